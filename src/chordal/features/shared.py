"""Rows shared by all variables of an example, with separate weights per variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, run_in_turn
from chordal.features._base import Input, RowFeatures, SeenRows, WeightKeys
from chordal.features.arrays import DenseFeatures, DenseInput, SparseInput
from chordal.features.attributes import AttributeFeatures
from chordal.features.batch import Floats, Ints, Rows


@final
@dataclass(frozen=True)
class SharedRows:
    """The row and the weights of every variable.

    data : rows of examples, an array or `Occurrences`
    row : int64 [n_variables], which of them
    own : int64 [n_variables], the number of the variable's weights
    """

    data: Any
    row: Ints
    own: Ints

    @property
    def size(self) -> int:
        """How many numbers the rows of all variables have; shared ones count for each."""
        if isinstance(self.data, np.ndarray):
            return len(self.row) * self.data.shape[1]
        return int(np.diff(self.data.offsets)[self.row].sum())

    def __getitem__(self, variables: Ints) -> SharedRows:
        """Those of some variables; the rows are not copied."""
        return SharedRows(self.data, self.row[variables], self.own[variables])


@final
class SharedInput(Input):
    """One row per example, an array or a sparse matrix, seen by `n_variables` variables."""

    def __init__(self, source: DenseInput | SparseInput, n_variables: int) -> None:
        self.source, self.n_variables = source, n_variables

    @property
    def n_columns(self) -> int:
        """Columns of all variables: those of the rows, each once per variable."""
        return self.source.n_columns * self.n_variables

    def name(self, column: int) -> str:
        """What users call a column."""
        column, variable = divmod(column, self.n_variables)
        return f"{self.source.name(column)} of variable {variable}"

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """All rows of matrices, as examples."""
        data, k = self.source.read(X, grow), self.n_variables
        n, numbers = data.n_rows, np.arange(data.n_rows, dtype=np.int64)
        shared = SharedRows(data.data, np.repeat(numbers, k), np.tile(np.arange(k), n))
        return Rows(np.full(n, k, dtype=np.int64), shared)

    def seen(
        self, rows: Rows, outputs: NDArray[np.int32], n_outputs: int, pairs: str = "seen"
    ) -> SeenRows:
        """What the rows of examples have."""
        whole = Rows(np.zeros(0, dtype=np.int64), rows.data.data)
        return self.source.seen(whole, outputs, self.n_variables * n_outputs)

    def features_of(
        self,
        seen: SeenRows,
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> SharedFeatures:
        """Weights of every column for every variable."""
        k = self.n_variables
        return SharedFeatures(self.source.features_of(seen, k * n_outputs), k)

    def facts(self) -> dict[str, Any]:
        """The number of columns; the features keep the rest."""
        return self.source.facts()

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> SharedInput:
        """What a model file holds, checked."""
        k, own = _opened(arrays)
        kind = SparseInput if own else DenseInput
        return cls(kind.from_arrays(facts, arrays), k)


@final
class SharedFeatures(RowFeatures):
    """Scores of all variables at once: one product of the examples' rows and all weights.

    Parameters
    ----------
    base : RowFeatures
        Of the rows of examples; its outputs are those of all variables, one after another.
    n_variables : int
    """

    def __init__(self, base: RowFeatures, n_variables: int) -> None:
        self.base, self.n_variables = base, n_variables
        self.n_outputs, self.n_weights = base.n_outputs // n_variables, base.n_weights

    def compile(self, rows: Rows, first: int, last: int) -> tuple[Any, Ints | None]:
        """Rows of examples, and the places of variables among all that these could have."""
        k, row, own = self.n_variables, rows.data.row[first:last], rows.data.own[first:last]
        examples, inverse = np.unique(row, return_inverse=True)
        data, places = rows.data.data, inverse * k + own
        begin, n = int(examples[0]) if len(examples) else 0, len(examples)
        if np.array_equal(examples, np.arange(begin, begin + n)):
            compiled = self.base.compile(Rows(np.zeros(0, dtype=np.int64), data), begin, begin + n)
        else:
            some = Rows(np.array([n]), data[examples])
            compiled = self.base.compile(some, 0, n)
        whole = np.array_equal(places, np.arange(n * k))
        return compiled, None if whole else places

    def expand(self, weights: Floats, memory: Any = None, run: Runner = run_in_turn) -> Any:
        """The weights as the base takes them."""
        return self.base.expand(weights, memory, run)

    def map(self, rows: tuple[Any, Ints | None], expanded: Any, out: Floats) -> None:
        """Set out to the scores of variables."""
        compiled, places = rows
        if places is None:
            self.base.map(compiled, expanded, out)
            return
        scores = np.empty((int(places.max()) // self.n_variables + 1) * self.base.n_outputs)
        self.base.map(compiled, expanded, scores)
        out.reshape(-1, self.n_outputs)[:] = scores.reshape(-1, self.n_outputs)[places]

    def zeros(self, memory: Any = None, run: Runner = run_in_turn) -> Any:
        """An empty gradient."""
        return self.base.zeros(memory, run)

    def n_blocks(self, n_jobs: int) -> int:
        """Into how many tasks the adjoint splits."""
        return self.base.n_blocks(n_jobs)

    def adjoint(
        self, rows: tuple[Any, Ints | None], parts: Floats, sums: Any, block: int, n_jobs: int
    ) -> None:
        """Add the gradient of one block of weights."""
        compiled, places = rows
        if places is not None:
            n = (int(places.max()) // self.n_variables + 1) * self.n_variables
            spread = np.zeros((n, self.n_outputs))
            spread[places] = parts.reshape(-1, self.n_outputs)
            parts = spread.ravel()
        self.base.adjoint(compiled, parts, sums, block, n_jobs)

    def collect(self, sums: Any, out: Floats, run: Runner = run_in_turn) -> None:
        """Write the finished gradient to out."""
        self.base.collect(sums, out, run)

    def keys(self) -> WeightKeys:
        """Column (by variable) and output of every weight."""
        keys = self.base.keys()
        variable, output = np.divmod(keys.output, self.n_outputs)
        return WeightKeys(keys.column * self.n_variables + variable, output)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Those of the base, and the number of variables."""
        return {"n_variables": np.array([self.n_variables], dtype=np.int64), **self.base.arrays()}

    @classmethod
    def from_arrays(
        cls, n_columns: int, n_outputs: int, arrays: Mapping[str, NDArray[Any]]
    ) -> SharedFeatures:
        """What a model file holds, checked."""
        k, own = _opened(arrays)
        if n_columns % k:
            raise ValueError(f"{n_columns} columns cannot be those of {k} variables")
        made: type[RowFeatures] = AttributeFeatures if own else DenseFeatures
        return cls(made.from_arrays(n_columns // k, k * n_outputs, own), k)


def _opened(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, dict[str, NDArray[Any]]]:
    """The number of variables, and the arrays of the base, of which dense rows have none."""
    own = {name: array for name, array in arrays.items() if name != "kept"}
    given = own.pop("n_variables")
    if given.shape != (1,) or given.dtype != np.int64 or not 0 < given[0] < 2**31:
        raise ValueError("n_variables must be one whole number above 0")
    return int(given[0]), own
