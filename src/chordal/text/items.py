"""Attributes in CRFsuite's format: one block of bytes, and the positions of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import own_integers
from chordal.structures import read_only
from chordal.text.columns import Ints, check_spans, check_text, check_total

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    r"""Sequences of rows, a row being attributes; no Python object per attribute.

    Attribute k is ``text[fields[k, 0] : fields[k, 1]]``, in UTF-8, with a backslash before each
    colon and backslash. The attributes of row t are ``offsets[t]`` to ``offsets[t + 1]``; the rows
    of all sequences follow each other.

    Parameters
    ----------
    text : bytes
        The text that the fields refer to, less than 4 GiB; it may have more, such as labels.
    fields : array [n_fields, 2] of uint32
        Where each attribute begins and ends.
    values : array [n_fields] or None
        Values of the attributes; None if all are 1.
    offsets : array [n_rows + 1] of int64
        Where the attributes of each row begin, and where the last one's end.
    lengths : array of int64
        Number of rows of each sequence.
    labels : array [n_rows, 2] of uint32, optional
        Where the label of each row begins and ends.
    weights : array, optional
        Weights of sequences; None if all are 1.

    Examples
    --------
    >>> items, *_ = Items.parsed(b"B\tw=a\\:b\tlength:3\nO\tw=.\n", at_end=True)
    >>> items
    Items(1 sequences, 2 rows, 3 attributes)
    >>> items.rows()
    [[('w=a\\:b', 1.0), ('length', 3.0)], [('w=.', 1.0)]]
    """

    text: bytes
    fields: NDArray[np.uint32]
    values: Floats | None
    offsets: Ints
    lengths: Ints
    labels: NDArray[np.uint32] | None = None
    weights: Floats | None = None

    def __post_init__(self) -> None:
        """Check the arrays for compiled code, and keep private copies."""
        check_text("text", self.text)
        fields = own_integers("fields", self.fields, 2, np.uint32)
        if fields.shape[1] != 2:
            raise ValueError(f"fields must have shape [n_fields, 2], got {fields.shape}")
        check_spans("fields", fields, len(self.text))
        offsets = own_integers("offsets", self.offsets)
        if len(offsets) == 0 or offsets[0] or (np.diff(offsets) < 0).any():
            raise ValueError("offsets must begin with 0 and not fall")
        if offsets[-1] != len(fields):
            raise ValueError(
                f"offsets must end with the number of fields, {len(fields)}, got {offsets[-1]}"
            )
        lengths = own_integers("lengths", self.lengths)
        check_total("lengths", lengths, len(offsets) - 1, "rows")
        values = self.values
        if values is not None:
            values = np.array(values, dtype=np.float64)
            if values.shape != (len(fields),) or not np.isfinite(values).all():
                raise ValueError(
                    f"values must be {len(fields)} finite numbers, one per field, or None"
                )
        labels, weights = self.labels, self.weights
        if labels is not None:
            labels = own_integers("labels", labels, 2, np.uint32)
            if labels.shape != (len(offsets) - 1, 2):
                raise ValueError(
                    f"labels must have shape [{len(offsets) - 1}, 2], got {labels.shape}"
                )
            check_spans("labels", labels, len(self.text))
        if weights is not None:
            weights = np.array(weights, dtype=np.float64)
            if weights.shape != lengths.shape or not np.isfinite(weights).all():
                raise ValueError(
                    f"weights must be {len(lengths)} finite numbers, one per sequence, or None"
                )
        self._hold(self.text, fields, values, offsets, lengths, labels, weights)

    def _hold(
        self,
        text: bytes,
        fields: NDArray[np.uint32],
        values: Floats | None,
        offsets: Ints,
        lengths: Ints,
        labels: NDArray[np.uint32] | None,
        weights: Floats | None,
    ) -> None:
        vars(self).update(
            text=text,
            fields=read_only(fields),
            values=values,
            offsets=read_only(offsets),
            lengths=read_only(lengths),
            labels=labels,
            weights=weights,
        )

    @classmethod
    def parsed(cls, text: bytes, at_end: bool) -> tuple[Items, int, int, int]:
        """The finished sequences of a text, all of them if nothing follows it.

        Also returns how many bytes and lines they take, and the line, from 0 on, that cannot be
        read, or -1.
        """
        fields, values, offsets, lengths, labels, weights, consumed, lines, problem = (
            _kernels.items_read(text, at_end)
        )
        some = values if len(values) else None
        counts = weights if len(weights) else None
        made = object.__new__(cls)  # the reader's arrays fit, and nobody else holds them
        arrays = (fields.reshape(-1, 2), some, offsets, lengths, labels.reshape(-1, 2), counts)
        made._hold(text, *arrays)
        return made, consumed, lines, problem

    def label_lists(self) -> list[list[str]]:
        r"""The labels of each sequence.

        >>> Items.parsed(b"B\tw=a\nO\tw=b\n\nO\tw=.\n", at_end=True)[0].label_lists()
        [['B', 'O'], ['O']]
        """
        if self.labels is None:
            raise ValueError("these items have no labels")
        found, rows = _kernels.Vocabulary(), np.array([0, len(self.labels)], dtype=np.int64)
        flat = np.ascontiguousarray(self.labels).reshape(-1)
        ids, _, _ = found.read_fields(self.text, flat, None, rows, True)
        names = np.array(found.names(), dtype=object)[ids].tolist() if len(ids) else []
        ends = np.cumsum(self.lengths).tolist()
        return [names[a:b] for a, b in zip([0, *ends], ends, strict=False)]

    def rows(self) -> list[list[tuple[str, float]]]:
        """Attributes, as they are written, and values of each row."""
        names = [self.text[begin:end].decode() for begin, end in self.fields.tolist()]
        values = [1.0] * len(names) if self.values is None else self.values.tolist()
        pairs, limits = list(zip(names, values, strict=True)), self.offsets.tolist()
        return [pairs[a:b] for a, b in pairwise(limits)]

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        n = len(self.offsets) - 1
        return f"Items({len(self)} sequences, {n} rows, {len(self.fields)} attributes)"
