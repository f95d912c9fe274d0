"""Wapiti's text models.

Strings are written as their length in bytes, a colon, the bytes and a comma::

    #mdl#2#8034                  type (1 is a MEMM, 2 a CRF), number of weights that are not 0
    #rdr#19/2/0                  patterns, last column that they ask for, whether "u" is implied
    13:u00:%x[-2,0],             patterns, the first letter in lower case
    …
    #qrk#22                      labels
    4:B-NP,
    …
    #qrk#76328                   observations, the first letter saying what has weights:
    6:u00:He,                    u every label, b every pair (from, to), * first labels, then pairs
    …
    17=-0x1.5bf0a8b145769p+1     number of a weight in the order of observations, and its value
    …
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import numpy as np

from chordal._errors import UnsupportedError
from chordal.compat._observations import (
    Blocks,
    Floats,
    Ints,
    Model,
    chunks,
    decoded,
    read_text_model,
)
from chordal.estimators import ChainCRF
from chordal.structures import offsets_of

MEMM = 1


def read_wapiti(source: str | os.PathLike[str] | bytes, **parameters: object) -> ChainCRF:
    """A model that `wapiti train` or `wapiti update` has written.

    The result reads what `wapiti label` reads, rows of columns of text, and gives the same tags
    and marginals.

    Parameters
    ----------
    source : path of the file, or its bytes
    **parameters
        Of `ChainCRF`.

    Raises
    ------
    UnsupportedError
        For maximum-entropy Markov models, and for models trained without patterns.

    Examples
    --------
    >>> text = b"#mdl#2#1\\n#rdr#1/0/0\\n10:u0:%x[0,0],\\n#qrk#2\\n1:D,\\n1:N,\\n"
    >>> crf = read_wapiti(text + b"#qrk#1\\n6:u0:cat,\\n1=0x1p-1\\n")
    >>> crf.predict([[["cat"]]])
    [['N']]
    """
    return read_text_model(source, "Wapiti", "wapiti", parse_wapiti, parameters)


def parse_wapiti(data: bytes) -> Model:
    """The parts of a model file."""
    reader = _Reader(data)
    kind, n_weights = reader.line(rb"#mdl#(?:(\d+)#)?(\d+)", "#mdl#")
    if kind == MEMM:
        raise UnsupportedError(
            "the model is a maximum-entropy Markov model (wapiti --type memm), which normalises "
            "each step by itself; a ChainCRF does not"
        )
    n_patterns, _, _ = reader.line(rb"#rdr#(\d+)/(\d+)(?:/(\d+))?", "#rdr#")
    if not n_patterns:
        raise UnsupportedError(
            "the model was trained without patterns, on prepared observations; only models with "
            "patterns can be read"
        )
    lines = [decoded(line, "patterns") for line in reader.strings(n_patterns, "patterns")]
    for line in lines:
        if line[:1] not in ("u", "b", "*"):
            raise ValueError(f"patterns must begin with u, b or *, got {line!r}")
    (n_labels,) = reader.line(rb"#qrk#(\d+)", "#qrk# of the labels")
    labels = [decoded(label, "labels") for label in reader.strings(n_labels, "labels")]
    (n_observations,) = reader.line(rb"#qrk#(\d+)", "#qrk# of the observations")
    names = reader.strings(n_observations, "observations")
    ids, weights = reader.weights(n_weights)
    return Model(labels, names, _blocks(names, len(labels)), ids, weights, lines)


def _blocks(names: Sequence[bytes], n: int) -> Blocks:
    kinds = np.frombuffer(b"".join(name[:1] or b"?" for name in names), dtype=np.uint8)
    bad = np.flatnonzero(~np.isin(kinds, list(b"ub*")))
    if len(bad):
        raise ValueError(f"observations must begin with u, b or *, got {names[bad[0]]!r}")
    # Row 0 for labels, row 1 for pairs: their order within an observation.
    present = np.stack([kinds != ord("b"), kinds != ord("u")], axis=1)
    observation, pairs = np.nonzero(present)
    sizes = np.where(pairs == 1, n * n, n)
    return Blocks(offsets_of(sizes)[:-1], observation, pairs == 1)


class _Reader:
    """Goes through the file, and says where it went wrong."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def line(self, pattern: bytes, what: str) -> list[int]:
        """The numbers of a line; those that are left out count as 0."""
        end = self._data.find(b"\n", self._at)
        end = len(self._data) if end < 0 else end
        found = self._data[self._at : min(end, self._at + 100)]
        match = re.fullmatch(pattern, found)
        if match is None:
            raise ValueError(f"expected a line {what} at byte {self._at}, got {found[:30]!r}")
        numbers = [int(group or 0) for group in match.groups()]
        # Every entry takes a byte and more.
        if max(numbers) > len(self._data):
            raise ValueError(f"its line {what} asks for {max(numbers)} entries, more than it holds")
        self._at = end + 1
        return numbers

    def strings(self, n: int, what: str) -> list[bytes]:
        data, at, found = self._data, self._at, []
        for number in range(n):
            colon = data.find(b":", at, at + 12)
            size = data[at:colon]
            end = colon + 1 + int(size) if colon > 0 and size.isdigit() else len(data)
            if data[end : end + 2] != b",\n":
                raise ValueError(f"entry {number} of the {what} is damaged, at byte {at}")
            found.append(data[colon + 1 : end])
            at = end + 2
        self._at = at
        return found

    def weights(self, n: int) -> tuple[Ints, Floats]:
        ids, values = [], []
        for chunk in chunks(self._data, self._at):
            try:
                text = chunk.rstrip(b"\n").decode("ascii")
                parts = text.replace("=", "\n").split("\n")
                numbers, found = parts[0::2], parts[1::2]
                # All are in base 16, as Wapiti writes them: no function of ours for each.
                number = float.fromhex if text.count("x") == len(found) else _number
                ids.append(np.array(list(map(int, numbers)), dtype=np.int64))
                values.append(np.array(list(map(number, found)), dtype=np.float64))
            except (ValueError, OverflowError) as error:
                raise ValueError(f"weights must be written number=value: {error}") from None
        all_ids, all_values = np.concatenate([[0], *ids])[1:], np.concatenate([[0.0], *values])[1:]
        if len(all_values) != n or len(all_ids) != n:
            raise ValueError(f"it must have {n} weights, got {len(all_values)}")
        return all_ids, all_values


def _number(text: str) -> float:
    """As C reads it: in base 16 if it begins so."""
    return float.fromhex(text) if "x" in text else float(text)
