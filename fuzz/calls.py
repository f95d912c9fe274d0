"""Public calls with arguments that bytes choose: right ones, nearly right ones and nonsense."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import scipy.sparse as sp

from chordal import (
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    UnsupportedError,
)
from chordal._limits import time_limit
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Tree
from chordal.text import Columns
from fuzz.mutation import of_bytes
from fuzz.target import Target

ODD = [0.0, -1.0, 1e300, -1e300, 1e-300, 5e-324, np.inf, -np.inf, np.nan, 1e308, 709.0, -745.0]
METHODS = [name for name in INFERENCE.names() if name not in ("milp", "linear_program")]
QUESTIONS = ["log_partition", "marginals", "map", "k_best", "sample", "entropy", "relaxed_map"]


class Choices:
    """Numbers from bytes; zeros once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def below(self, n: int) -> int:
        """A number from 0 to n − 1."""
        at, self._at = self._at, self._at + 1
        return self._data[at] % n if at < len(self._data) else 0

    def one_of(self, values: Any) -> Any:
        """One of some values."""
        return values[self.below(len(values))]

    def floats(self, n: int) -> Any:
        """Scores: most are small, some are odd."""
        return np.array([self._float() for _ in range(n)])

    def _float(self) -> float:
        kind = self.below(12)
        if kind == 0:
            return float(self.one_of(ODD))
        if kind == 1:
            at, self._at = self._at, self._at + 8
            found = self._data[at : at + 8]
            return float(struct.unpack("<d", found)[0]) if len(found) == 8 else 0.0
        return (self.below(256) - 128) / 16.0

    def size(self, n: int) -> int:
        """Usually n; sometimes near it, or absurd."""
        kind = self.below(24)
        return n if kind > 2 else max(0, (n - 1, n + 1, 3 * n)[kind])


def potentials(choose: Choices) -> Potentials:
    """A small model of any structure."""
    labels = 1 + choose.below(4)
    kind = choose.below(5)
    if kind == 0:
        structure: Any = Chain([choose.below(6) for _ in range(choose.below(4))], labels)
    elif kind == 1:
        structure = Grid([(1 + choose.below(3), 1 + choose.below(3))], labels)
    elif kind == 2:
        n = 1 + choose.below(5)
        structure = Tree([[choose.below(n + 1) - 1 for _ in range(n)]], labels)
    elif kind == 3:
        n = 1 + choose.below(5)
        edges = [(choose.below(n), choose.below(n + 1)) for _ in range(choose.below(7))]
        structure = Graph([n], [edges], labels)
    else:
        n = 1 + choose.below(4)
        scopes = [
            tuple(choose.below(n) for _ in range(1 + choose.below(3)))
            for _ in range(choose.below(4))
        ]
        structure = FactorGraph([n], [scopes], [1 + choose.below(3) for _ in range(n)])
    sizes = structure.table_sizes
    n_tables = int(sizes[0]) if len(sizes) and choose.below(2) and kind < 4 else int(sizes.sum())
    index = None
    if len(sizes) and n_tables == sizes[0] and kind < 4:
        index = np.zeros(len(sizes), dtype=np.int32)
        if choose.below(30) == 0:
            index[choose.below(len(index))] = choose.below(5) - 2
    unary = choose.floats(choose.size(structure.n_states))
    tables = choose.floats(choose.size(n_tables))
    return Potentials(structure, unary, tables, index)


def ask_inference(choose: Choices) -> None:
    """One question to one method."""
    method, question = choose.one_of(METHODS), choose.one_of(QUESTIONS)
    p = potentials(choose)
    asked = INFERENCE.resolve(method)
    with time_limit(1.0):
        if question == "k_best":
            found: Any = asked.k_best(p, choose.below(9))
        elif question == "sample":
            found = asked.sample(p, choose.below(5), np.random.default_rng(0))
        else:
            found = getattr(asked, question)(p)
    if question == "marginals" and method in ("chain", "tree", "junction_tree", "exhaustive"):
        unary = found.parts.unary
        at = p.structure.state_offsets
        sums = np.add.reduceat(unary, at[:-1]) if len(unary) else np.ones(0)
        if not np.allclose(sums, 1.0, rtol=0, atol=1e-6):
            raise AssertionError(f"marginals of {method} sum to {sums}")
    if question in ("map", "k_best"):
        labels = np.atleast_2d(found.labels)
        if (labels < 0).any() or (labels >= p.structure.label_counts).any():
            raise AssertionError(f"labels of {method} are out of range: {labels}")


def labels_and_weights(choose: Choices) -> None:
    """Labels and weights of examples of any length, type and value."""
    p = potentials(choose)
    kinds = [np.float64, np.float32, np.int64, np.int8, np.uint64, object]

    def some(n: int) -> Any:
        values = choose.floats(choose.size(n)) if choose.below(2) else np.zeros(choose.size(n))
        with np.errstate(all="ignore"):
            return values.astype(choose.one_of(kinds) if choose.below(2) else np.float64)

    labels, weight = some(p.structure.n_variables), some(p.structure.n_examples)
    weight = None if choose.below(4) == 0 else weight
    with time_limit(1.0):
        task = choose.below(3)
        if task == 0:
            p.score(labels)
        elif task == 1:
            p.zeros().add_indicators(labels, 1.0, weight)
        else:
            INFERENCE.resolve(choose.one_of(METHODS)).marginals(p, weight)


def columns(choose: Choices) -> None:
    """Columns from arrays, right or wrong, through a template."""
    made = Columns.from_sequences([[["a", "b"], ["c", "d"]], [["e", "f"]]])
    cells = np.array(made.cells)
    lengths = np.array(made.lengths)
    for array in (cells, lengths):
        if choose.below(2) and array.size:
            array.flat[choose.below(array.size)] = choose.one_of([-1, 0, 1, 2, 3, 5, 7, 2**31 - 1])
    MODELS["columns"].predict(Columns(made.text, cells, lengths))


def sparse(choose: Choices) -> None:
    """Sparse matrices that SciPy takes."""
    n = 1 + choose.below(4)
    indptr = np.array([choose.below(6) for _ in range(choose.size(n) + 1)])
    if choose.below(3):
        indptr = np.sort(indptr)
        indptr[0] = 0
    size = max(0, int(indptr[-1])) if choose.below(6) else choose.below(9)
    indices = np.array(
        [choose.one_of([0, 1, 2, 3, -1, 4, 10**7]) for _ in range(size)], dtype=np.int32
    )
    x = sp.csr_matrix((n, 4))
    x.data, x.indices, x.indptr = choose.floats(size), indices, indptr.astype(np.int32)
    if choose.below(2):
        MODELS["sparse"].predict([x])
    else:
        MODELS["classifier"].predict(x)


def arrays(choose: Choices) -> None:
    """Dense rows, graphs and images of any numbers."""
    rows = choose.floats(choose.size(6)).reshape(-1, 2 if choose.below(9) else 1)
    kind = choose.below(4)
    with time_limit(1.0):
        if kind == 0:
            MODELS["dense"].predict_marginals([rows])
        elif kind == 1:
            edges = [(choose.below(4) - 1, choose.below(4)) for _ in range(choose.below(4))]
            MODELS["graph"].predict([(rows, np.array(edges).reshape(-1, 2))])
        elif kind == 2:
            MODELS["grid"].predict([choose.floats(8).reshape(2, 2, 2)])
        else:
            ChainCRF(max_iter=3, solver=choose.one_of(["lbfgs", "sgd", "newton", "arow"])).fit(
                [rows], [[choose.below(3) for _ in range(choose.size(len(rows)))]]
            )


def _models() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 2))
    edges = np.array([(0, 1), (1, 2), (2, 3)])
    four = sp.csr_matrix(rng.normal(size=(6, 4)))
    return {
        "columns": ChainCRF(feature_template="U:%x[0,0]\nU:%x[-1,1]\n").fit(
            [[["a", "b"], ["c", "d"]]], [["x", "y"]]
        ),
        "sparse": ChainCRF().fit([four], [list("ababab")]),
        "classifier": CRFClassifier().fit(four, [0, 1] * 3),
        "dense": ChainCRF().fit([x], [list("abab")]),
        "graph": GraphCRF().fit([(x, edges)], [list("abab")]),
        "grid": GridCRF(max_iter=3).fit([x.reshape(2, 2, 2)[..., :]], [np.array([[0, 1], [1, 0]])]),
    }


MODELS: dict[str, Any] = {}


def calls() -> Target:
    """Random public calls."""
    MODELS.update(_models())
    tasks = [
        ask_inference,
        ask_inference,
        ask_inference,
        columns,
        sparse,
        arrays,
        labels_and_weights,
    ]

    def run(data: bytes) -> None:
        choose = Choices(data)
        choose.one_of(tasks)(choose)

    rng = np.random.default_rng(0)
    seeds = [rng.bytes(n) for n in (8, 30, 80, 200) for _ in range(5)]
    allowed = (ValueError, TypeError, UnsupportedError, TimeoutError)
    return Target(seeds, run, of_bytes((), seeds), allowed)
