"""Attributes as CRFsuite's files hold them: one block of bytes, and where its fields are."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.features._base import Floats, Ints

Places = NDArray[np.uint32]

_ESCAPED = re.compile(r"\\([:\\])")


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    r"""Sequences of rows, a row being a label and attributes; no Python object per attribute.

    Label t is ``text[labels[t, 0] : labels[t, 1]]`` and attribute k is
    ``text[fields[k, 0] : fields[k, 1]]``, in UTF-8, a backslash before each colon and backslash.
    The attributes of row t are ``offsets[t]`` to ``offsets[t + 1]``; the rows of all sequences
    follow each other.

    Parameters
    ----------
    text : bytes
        What the fields point into, less than 4 GiB.
    labels : array [n_rows, 2] of uint32
    fields : array [n_fields, 2] of uint32
    values : array [n_fields] or None
        Values of the attributes; None if all are 1.
    offsets : array [n_rows + 1] of int64
    lengths : array of int64
        Rows of each sequence.
    weights : array
        How much each sequence counts.

    Examples
    --------
    >>> items, *_ = Items.parsed(b"B\tw=a\\:b\tlength:3\nO\tw=.\n", at_end=True)
    >>> items
    Items(1 sequences, 2 rows, 3 attributes)
    >>> items.label_names()
    ['B', 'O']
    >>> items.values.tolist()
    [1.0, 3.0, 1.0]
    """

    text: bytes
    labels: Places
    fields: Places
    values: Floats | None
    offsets: Ints
    lengths: Ints
    weights: Floats

    @classmethod
    def parsed(cls, text: bytes, at_end: bool) -> tuple[Items, int, int, int]:
        """The finished sequences of a text, all of them if it is the last one.

        Also returns how many bytes and lines they take, and the line, from 0 on, that cannot be
        read, or -1.
        """
        labels, fields, values, offsets, lengths, weights, consumed, lines, problem = (
            _kernels.items_read(text, at_end)
        )
        items = cls(
            text,
            labels.reshape(-1, 2),
            fields.reshape(-1, 2),
            values if len(values) else None,
            offsets,
            lengths,
            weights,
        )
        return items, consumed, lines, problem

    def label_names(self) -> list[str]:
        """The label of each row."""
        places = np.ascontiguousarray(self.labels)
        codes, first = _kernels.columns_codes(self.text, places.reshape(-1))
        names = [self.text[begin:end].decode() for begin, end in places[first].tolist()]
        unescaped = [_ESCAPED.sub(r"\1", name) for name in names]
        return [unescaped[k] for k in codes.tolist()]

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        n = len(self.labels)
        return f"Items({len(self)} sequences, {n} rows, {len(self.fields)} attributes)"
