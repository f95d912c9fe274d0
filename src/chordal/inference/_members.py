"""The members of a portfolio, and their order on one part of a model.

Each is limited by work, so the clock only decides where the run stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.inference._answers import Decoded, Labels
from chordal.inference._base import Inference
from chordal.inference._cliques import at_most_pairs, forbids
from chordal.inference._polytope import n_columns
from chordal.inference._search import SubgraphSearch
from chordal.inference._subgraphs import crossed
from chordal.inference._thresholds import by_thresholds
from chordal.inference.ad3 import AD3Inference
from chordal.inference.alpha_expansion import AlphaExpansionInference
from chordal.inference.annealing import AnnealingInference, typical_range
from chordal.inference.elimination import EliminationInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.milp import MILPInference
from chordal.inference.qpbo import QPBOInference
from chordal.inference.trw_s import TRWSInference
from chordal.potentials import Floats, Potentials

#: Gaps below this share of 1 + the score are rounding.
ROUNDING = 1e-9
#: Memory of a junction tree that is used before anything else is tried.
SMALL_TREE = 2e7
#: Columns of integer programs: tried early where the relaxation is near, and late.
FEW_COLUMNS, MANY_COLUMNS = 30_000, 100_000
#: How near a relaxation is: the share that its gap has in that of the rough bound.
NEAR = 0.25
#: Cells of all cliques' tables up to which subgraphs and thresholds are tried.
MAX_CELLS = 20_000_000
#: Temperatures of annealing, at its beginning and end, in typical ranges of a variable's scores.
HEATS = ((1.0, 0.02), (0.2, 0.005), (0.2, 0.002), (0.05, 0.002))
#: Sweeps and restarts of an annealing at first, and rounds of the search between two of them.
SWEEPS, RESTARTS, BETWEEN = 200, 4, 25
#: Sweeps at most.
MAX_SWEEPS = 20_000
#: Rounds of the search by subgraphs: at first, between others, and without gain before the end.
FIRST_ROUNDS, MORE_ROUNDS, IDLE_ROUNDS, LAST_ROUNDS = 4, 20, 300, 20_000


def closed(score: Floats, bound: Floats) -> NDArray[np.bool_]:
    """Whether the bound proves that a labelling of this score is best."""
    with np.errstate(invalid="ignore"):
        return (score > -np.inf) & (bound - score <= ROUNDING * (1.0 + np.abs(score)))


class Step(NamedTuple):
    """One call of a member.

    name : the member's
    share : the share of the part's remaining time for this call
    run : the call
    """

    name: str
    share: float
    run: Callable[[], object]


class Case:
    """One part of a model, with the best labelling and bound so far.

    potentials : Potentials of one example
    labels, score, bound : the best so far
    found_by : the member that has found the labels
    """

    def __init__(self, potentials: Potentials, found: Decoded, member: str, seed: int) -> None:
        self.potentials = potentials
        self.rough = float(potentials.bound()[0])
        self.labels, self.score = found.labels, float(found.score[0])
        self.found_by = member
        self.bound = self.rough if found.bound is None else float(found.bound[0])
        self.seed = seed
        self.proved = found.bound is None
        self._search: SubgraphSearch | None = None
        self._range, self._annealed = typical_range(potentials), 0

    @property
    def closed(self) -> bool:
        """Whether the labelling is proved to be the best."""
        return self.proved or bool(closed(np.array(self.score), np.array(self.bound)))

    @property
    def gap(self) -> float:
        """How much better another labelling can be at most; inf if no labelling is known."""
        return max(0.0, self.bound - self.score)

    @property
    def near(self) -> bool:
        """Whether the relaxation is close to the best labelling."""
        return self.score > -np.inf and self.gap <= NEAR * (self.rough - self.score)

    @property
    def search(self) -> SubgraphSearch:
        """The search, which continues from round to round."""
        if self._search is None:
            rng = np.random.default_rng(self.seed)
            self._search = SubgraphSearch(self.potentials, self.labels, rng)
        return self._search

    def offer(self, labels: Labels, member: str) -> bool:
        """Take the better pieces of another labelling; returns whether there were any."""
        if self.score > -np.inf:
            labels = crossed(self.potentials, self.labels, labels)
        score = float(self.potentials.score(labels)[0])
        if score <= self.score + 1e-12 * abs(self.score):
            return False
        self.labels, self.score, self.found_by = labels, score, member
        return True

    def take(self, found: Decoded, member: str) -> None:
        """The answer of another method: its labels, its bound, or the proof that it is best."""
        if found.bound is None:
            self.labels, self.score, self.found_by = found.labels, float(found.score[0]), member
            self.bound, self.proved = self.score, True
            return
        self.offer(found.labels, member)
        self.bound = max(self.score, min(self.bound, float(found.bound[0])))

    def asked(self, method: Inference, share: float) -> Step:
        """A call of another method, if it supports the model."""

        def run() -> None:
            if method.fits("map", self.potentials.structure):
                self.take(method.map(self.potentials), method.name)

        return Step(method.name, share, run)

    def annealing(self) -> Step:
        """Annealing between other temperatures than the last time; more and more sweeps."""
        hot, cold = HEATS[self._annealed % len(HEATS)]
        method = AnnealingInference(
            min(SWEEPS << self._annealed // len(HEATS), MAX_SWEEPS),
            RESTARTS,
            hot=hot * self._range,
            cold=cold * self._range,
            random_state=self.seed + self._annealed,
        )
        self._annealed += 1
        return self.asked(method, 0.1)

    def by_thresholds(self) -> None:
        """Labellings whose worst cell is as good as possible."""
        by_thresholds(self.potentials, lambda labels: self.offer(labels, "thresholds"))

    def descend(self) -> bool:
        """Begin the search by subgraphs."""
        return self._searched(self.search.descend)

    def round(self) -> bool:
        """A round of the search; returns whether it gained."""
        self.search.offer(self.labels)
        return self._searched(self.search.round)

    def _searched(self, move: Callable[[], object]) -> bool:
        try:
            move()
        finally:
            gained = self.offer(self.search.labels, "subgraphs")
        return gained


def relaxation(potentials: Potentials, thorough: bool = False) -> Inference:
    """A bound and labels of any model."""
    if at_most_pairs(potentials.structure):
        return TRWSInference(max_iter=3000 if thorough else 1000)
    return AD3Inference(max_iter=5000 if thorough else 500)


def steps(case: Case, memory_limit: float) -> Iterator[Step]:
    """What is tried on one part, in this order, while it is open."""
    p, s = case.potentials, case.potentials.structure
    pairs, cells = at_most_pairs(s), int(s.table_sizes.sum())
    columns = int(n_columns(s)[0])
    small = min(SMALL_TREE, memory_limit)
    yield case.asked(JunctionTreeInference(memory_limit=small), 0.5)
    if cells <= MAX_CELLS:
        yield Step("thresholds", 0.1, case.by_thresholds)
        yield Step("subgraphs", 0.3, case.descend)
    yield case.asked(LoopyBPInference(damping=0.3, max_iter=100), 0.1)
    if pairs and s.label_counts.max() > 2 and not forbids(p):
        yield case.asked(AlphaExpansionInference(max_iter=10), 0.1 if cells <= MAX_CELLS else 0.5)
    for _ in HEATS[:1] if cells > MAX_CELLS else HEATS:
        yield case.annealing()
    yield from _rounds(case, FIRST_ROUNDS)
    yield case.asked(relaxation(p, thorough=True), 0.15)
    if columns <= FEW_COLUMNS and case.near:
        yield case.asked(MILPInference(), 0.5)
    yield case.asked(JunctionTreeInference(memory_limit=memory_limit), 0.6)
    if pairs and s.label_counts.max() <= 2:
        yield case.asked(QPBOInference(), 0.1)
    yield from _rounds(case, MORE_ROUNDS)
    yield from _rounds(case, IDLE_ROUNDS, idle=True)
    yield case.asked(EliminationInference("auto", memory_limit=memory_limit), 0.5)
    if columns <= MANY_COLUMNS:
        yield case.asked(MILPInference(), 0.3)
    yield from _rounds(case, LAST_ROUNDS, idle=True)


def _rounds(case: Case, n: int, idle: bool = False) -> Iterator[Step]:
    """Rounds of the search: a fixed number, or until several gained nothing."""
    left = n if int(case.potentials.structure.table_sizes.sum()) <= MAX_CELLS else 0
    gained = False

    def run() -> None:
        nonlocal gained
        gained = False
        gained = case.round()

    for k in count(1):
        if left == 0:
            break
        yield Step("subgraphs", 1.0, run)
        left = n if idle and gained else left - 1
        if k % BETWEEN == 0:
            yield case.annealing()


__all__ = ["MAX_CELLS", "Case", "Step", "closed", "relaxation", "steps"]
