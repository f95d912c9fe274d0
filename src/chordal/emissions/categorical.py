"""Symbols: each column of an observation is one of a few."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._validate import check_number, is_sparse
from chordal.emissions._base import Emission, Statistics, check_columns, log_probabilities
from chordal.features import Rows
from chordal.potentials import Floats
from chordal.structures import offsets_of

Ints = NDArray[np.int64]


@final
class Categorical(Emission):
    """Symbols with a probability for each label: (count + alpha) / (total + alpha · symbols).

    An observation is one symbol (anything hashable), or a row of several, which are then
    independent given the label. T(x) indicates the symbols, η their log-probabilities, and A = 0.
    Symbols that were not seen in training say nothing about the label.

    Parameters
    ----------
    alpha : float
        Added to every count. With 0, a symbol never seen with a label forbids it.

    Attributes
    ----------
    symbols : list of lists
        Those of each column.
    probabilities : list of arrays [n_labels, n_symbols], one for each column

    Examples
    --------
    >>> family = Categorical(alpha=0.0)
    >>> rows = family.read([["sun", "rain", "sun"], ["rain"]], grow=True)
    >>> family.fit(rows.data, np.array([0, 1, 0, 0]), n_labels=2)
    >>> family.symbols
    [['sun', 'rain']]
    >>> family.probabilities[0].round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])
    """

    sparse: ClassVar[bool] = True

    def __init__(self, alpha: float = 1.0) -> None:
        check_number("alpha", alpha)
        self.alpha = alpha
        self.symbols: list[list[Any]] = []
        self.probabilities: list[Floats] = []
        self._codes: list[dict[Any, int]] = []

    @classmethod
    def of(cls, symbols: Sequence[Sequence[Any]], probabilities: Sequence[Floats]) -> Categorical:
        """The family with these symbols and probabilities of each column."""
        made = cls(alpha=0.0)
        made._know([list(s) for s in symbols])
        made._set([np.asarray(p, dtype=np.float64) for p in probabilities])
        return made

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Codes of the symbols in every column; −1 is a symbol that training did not see."""
        sequences = [_rows_of(x, i) for i, x in enumerate(X)]
        lengths = np.array([len(rows) for rows in sequences], dtype=np.int64)
        rows = [row for sequence in sequences for row in sequence]
        if grow:
            width = len(rows[0]) if rows else 1
        else:
            width = len(self.symbols)
        wrong = next((k for k, row in enumerate(rows) if len(row) != width), None)
        if wrong is not None:
            i, t = _place(lengths, wrong)
            raise ValueError(f"X[{i}][{t}] must have {width} columns, got {len(rows[wrong])}")
        columns = list(zip(*rows, strict=True)) if rows else [()] * width
        if grow:
            self._know([list(dict.fromkeys(column)) for column in columns])
        codes = np.empty((len(rows), width), dtype=np.int64)
        for k, column in enumerate(columns):
            known = self._codes[k]
            codes[:, k] = [known.get(symbol, -1) for symbol in column]
        return Rows(lengths, codes)

    def join(self, others: Sequence[Categorical]) -> None:
        """New symbols come after those that are known."""
        read = [own.symbols for own in (self, *others)]
        check_columns([len(own) for own in read])
        self._know([list(dict.fromkeys(chain(*column))) for column in zip(*read, strict=True)])

    def statistics(self, data: NDArray[np.int64]) -> Statistics:
        """One indicator for each known symbol of a row."""
        with needed("scipy", f"emission {self.name!r}"):
            import scipy.sparse as sp

        starts = self._starts()
        known = data >= 0
        offsets = offsets_of(known.sum(axis=1))
        where = (data + starts[:-1])[known]
        return sp.csr_matrix((np.ones(len(where)), where, offsets), (len(data), int(starts[-1])))

    def names(self) -> list[str]:
        """The symbols, with their column if there are several: "sun", "x1=sun"."""
        if len(self.symbols) == 1:
            return [str(symbol) for symbol in self.symbols[0]]
        return [f"x{k}={symbol}" for k, own in enumerate(self.symbols) for symbol in own]

    def log_base(self, data: NDArray[np.int64]) -> Floats:
        """0 for every row."""
        return np.zeros(len(data))

    def learn(self, sums: Floats, counts: Floats) -> None:
        """Shares of the symbols of each label, smoothed by `alpha`."""
        tables = np.split(sums + self.alpha, self._starts()[1:-1], axis=1)
        self._set([table / table.sum(axis=1, keepdims=True) for table in tables])

    def sample(self, labels: Ints, rng: np.random.Generator) -> NDArray[Any]:
        """A symbol of every column for each label."""
        out = np.empty((len(labels), len(self.symbols)), dtype=object)
        for k, (symbols, table) in enumerate(zip(self.symbols, self.probabilities, strict=True)):
            below = np.cumsum(table, axis=1)[labels]
            drawn = (rng.random((len(labels), 1)) * below[:, -1:] >= below).sum(axis=1)
            for row, code in enumerate(drawn.tolist()):
                out[row, k] = symbols[code]
        return out

    def _starts(self) -> Ints:
        return offsets_of([len(symbols) for symbols in self.symbols])

    def _know(self, symbols: list[list[Any]]) -> None:
        self.symbols = symbols
        self._codes = [{s: code for code, s in enumerate(column)} for column in symbols]

    def _set(self, probabilities: list[Floats]) -> None:
        self.probabilities = probabilities
        self.natural = log_probabilities(np.concatenate(probabilities, axis=1))
        self.log_partition = np.zeros(len(self.natural))


def _rows_of(x: Sequence[Any] | NDArray[Any], i: int) -> list[Any]:
    """The observations of one sequence, each a list or tuple of symbols."""
    if isinstance(x, (str, bytes)) or is_sparse(x) or not hasattr(x, "__len__"):
        raise TypeError(f"X[{i}] must be a list or array of symbols, got {type(x).__name__}")
    rows = x.tolist() if isinstance(x, np.ndarray) else x
    out = [row if isinstance(row, (list, tuple)) else (row,) for row in rows]
    for t, row in enumerate(out):
        for symbol in row:
            try:
                hash(symbol)
            except TypeError:
                raise TypeError(f"X[{i}][{t}] holds {symbol!r}: symbols must be hashable") from None
            if symbol is None or symbol != symbol:
                raise ValueError(f"X[{i}][{t}] holds {symbol!r}; give every position its symbols")
    return out


def _place(lengths: Ints, row: int) -> tuple[int, int]:
    sequence = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
    return sequence, row - int(lengths[:sequence].sum())
