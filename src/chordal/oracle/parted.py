"""The oracle of data in parts that are elsewhere: each answers, and answers are added up."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, run_in_turn
from chordal.features import Layout
from chordal.inference import Inference
from chordal.objectives import Objective
from chordal.oracle.training import SummedOracle, regularised
from chordal.potentials import Floats

Ints = NDArray[np.int64]

#: The largest share of the weights that are sent with their places. Sums of such numbers take about
#: 20 times as long as sums of all: they pay where they save most of what is sent.
SPARSE = 0.25


@dataclass(frozen=True)
class Term:
    """A part's answer: a value, and numbers of the weights that the part touches.

    numbers : float64 or float32
    at : int32, rising, the weights that they belong to; None for all
    n : how many numbers a full answer has

    Examples
    --------
    >>> a = Term.of(1.0, np.array([1.0, 0.0, 0.0]), at=np.array([0], dtype=np.int32))
    >>> b = Term.of(2.0, np.array([5.0, 0.0, 7.0]), at=None)
    >>> a.plus(b).full()
    array([6., 0., 7.])
    """

    value: float
    numbers: NDArray[Any]
    at: NDArray[np.int32] | None
    n: int

    @classmethod
    def of(
        cls, value: float, full: Floats, at: NDArray[np.int32] | None, dtype: str = "float64"
    ) -> Term:
        """What is sent of a full answer."""
        numbers = full if at is None else full[at]
        return cls(value, numbers.astype(dtype, copy=False), at, len(full))

    def plus(self, other: Term) -> Term:
        """The sum, always self first: the order of a sum decides its last digits."""
        dtype, value = self.numbers.dtype, self.value + other.value
        at = None
        if self.at is not None and other.at is not None:
            touched = np.zeros(self.n, dtype=bool)
            touched[self.at] = touched[other.at] = True
            if touched.mean() < SPARSE:
                at = np.flatnonzero(touched).astype(np.int32)
        total = self.full()
        if other.at is None:
            total += other.numbers
        else:
            total[other.at] += other.numbers
        return Term.of(value, total, at, str(dtype))

    def full(self) -> Floats:
        """All numbers, those of weights that no part touches being zero."""
        if self.at is None:
            return self.numbers.astype(np.float64)
        out = np.zeros((self.n, *self.numbers.shape[1:]))
        out[self.at] = self.numbers
        return out

    @property
    def nbytes(self) -> int:
        """What it takes to send it."""
        return self.numbers.nbytes + (0 if self.at is None else self.at.nbytes)


class PartOracle:
    """Compiled shards of one part of the data; asked one question at a time.

    Parameters
    ----------
    touched : int32, optional
        The weights that the part's examples have anything to do with; None for all.
    """

    def __init__(
        self,
        features: Layout,
        shards: Sequence[Any],
        objective: Objective,
        inference: Inference,
        cuts: Sequence[int] | None = None,
        touched: NDArray[np.int32] | None = None,
    ) -> None:
        self._made_of = (features, shards, objective, inference, cuts, touched)
        self.features, self.shards, self.touched = features, shards, touched
        self._oracle = SummedOracle(features, shards, objective, inference, _InTurn(), cuts=cuts)
        self._batches = [] if cuts is None else self._oracle.batches()
        self._lock = Lock()  # oracles work in memory of their own

    @property
    def batch_sizes(self) -> list[int]:
        """How many examples each mini-batch has."""
        return [
            sum(shard.frame.structure.n_examples for shard in own.shards) for own in self._batches
        ]

    def answer(
        self, question: str, vectors: Sequence[Floats], batch: int | None, dtype: str = "float64"
    ) -> Term:
        """What this part adds to "value_grad", "hess_vec" or "hessian" at these vectors."""
        vectors = [np.asarray(own, dtype=np.float64) for own in vectors]
        n = self.features.n_weights
        if batch is not None and batch >= len(self._batches):  # it has fewer than other parts
            return Term(0.0, np.zeros(0, dtype), np.zeros(0, np.int32), n)
        with self._lock:
            oracle = self._oracle if batch is None else self._batches[batch]
            found = getattr(oracle, question)(*vectors)
        value, full = found if question == "value_grad" else (0.0, found)
        return Term.of(value, full, self.touched if full.ndim == 1 else None, dtype)

    def __sizeof__(self) -> int:
        """About as much as the shards have: what it would cost to move them."""
        return 1000 + sum(_nbytes(shard.rows) + _nbytes(shard.labels) for shard in self.shards)

    def __reduce__(self) -> tuple[Any, ...]:
        return PartOracle, self._made_of


class Ask(Protocol):
    """Asks all parts, and sums their answers in one order."""

    def __call__(self, question: str, vectors: Sequence[Floats], batch: int | None) -> Term:
        """The sum of `PartOracle.answer`."""


@dataclass(eq=False, repr=False)
class PartedOracle:
    """Σ objective + (l2/2) ‖w − centre‖² over parts of the data, which are elsewhere.

    It has the protocols of `SummedOracle`. A mini-batch is made of one of every part, so that all
    parts work at once; `shares` says which share of the examples each has.
    """

    ask: Ask
    n_weights: int
    noisy: bool = False
    l2: float | Floats = 0.0
    centre: Floats | None = None
    without_l1: Ints | None = None
    shares: Sequence[float] = ()
    run: Runner = run_in_turn
    batch: int | None = None

    def recycle(self, vector: Floats) -> None:
        """Gradients come from elsewhere: their memory is of no use."""

    def batches(self) -> list[PartedOracle]:
        """An oracle for each mini-batch, with a share of the penalty by its number of examples."""
        made = []
        for k, share in enumerate(self.shares):
            part = copy(self)
            part.batch, part.l2 = k, share * self.l2
            made.append(part)
        return made or [self]

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        term = self.ask("value_grad", (weights,), self.batch)
        return regularised(term.value, term.full(), weights, self.l2, self.centre, self.run)

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The Hessian at the weights times the direction."""
        product = self.ask("hess_vec", (weights, direction), self.batch).full()
        if np.any(self.l2):
            product += self.l2 * direction
        return product

    def hessian(self, weights: Floats) -> Floats:
        """The Hessian, which parts make a column at a time."""
        found = self.ask("hessian", (weights,), self.batch).full()
        found[np.diag_indices(self.n_weights)] += self.l2
        return found


class _InTurn:
    """One task after another, where it is asked for."""

    n_jobs = 1
    map = staticmethod(run_in_turn)


def _nbytes(value: Any) -> int:
    """The bytes of the arrays in a value, as far as they are easily found."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(map(_nbytes, value))
    if hasattr(value, "__dataclass_fields__"):
        return sum(_nbytes(getattr(value, name)) for name in value.__dataclass_fields__)
    return 0
