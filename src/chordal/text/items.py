"""Attributes as CRFsuite's files hold them: one block of bytes, and where its fields are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.text.columns import Ints

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
        What the fields point into, less than 4 GiB; it may hold more, such as labels.
    fields : array [n_fields, 2] of uint32
        Where each attribute begins and ends.
    values : array [n_fields] or None
        Values of the attributes; None if all are 1.
    offsets : array [n_rows + 1] of int64
        Where the attributes of each row begin, and where the last one's end.
    lengths : array of int64
        Rows of each sequence.
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
        pairs = (fields.reshape(-1, 2), some, offsets, lengths, labels.reshape(-1, 2), counts)
        return cls(text, *pairs), consumed, lines, problem

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
