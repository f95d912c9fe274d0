"""Simulated annealing: Gibbs sweeps at a temperature that falls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import ClassVar, final

import numpy as np

from chordal import _kernels
from chordal._limits import TimeLimitError, check_time, no_time_limit, seconds_left
from chordal._status import Status
from chordal._validate import check_choice, check_number
from chordal.inference._answers import Decoded
from chordal.inference._base import Inference
from chordal.inference._cliques import with_rough_bound
from chordal.inference._limited import without_time
from chordal.inference._moves import improved, improved_by_trees
from chordal.inference._schedules import Schedule, SingleSchedule, TreeSchedule, in_threads
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure

#: The last temperature as a share of the first, if it is not given.
COLD = 0.02
BLOCKS: dict[str, Callable[[Potentials], Schedule]] = {
    "single": SingleSchedule,
    "tree": TreeSchedule,
}
#: Sweeps of the descent at the end.
MAX_ITER = 1000


@final
class AnnealingInference(Inference):
    """A good labelling of any structure, by random sweeps at falling temperatures.

    Each restart begins at random labels and draws every variable given all others, with scores
    divided by a temperature that falls geometrically. Iterated conditional modes of variables and
    trees finish it. The best restart is the answer. It is slow but general: for cliques of any
    order, where no other method works, and where others are far from their bounds, as with strong
    contradicting edges. Slower cooling (more sweeps) is better than more restarts. Constraints
    (−inf) are respected; if the sweeps find no allowed labelling, a search does. The bound is
    rough.

    Parameters
    ----------
    n_sweeps : int, default=200
        Number of sweeps per restart.
    n_restarts : int, default=4
        Number of independent restarts.
    hot, cold : float, optional
        First and last temperature, in units of the scores. By default the mean range of a
        variable's scores, and a fiftieth of it.
    random_state : int, default=0
        Seed.
    n_jobs : int, default=1
        Number of threads for the restarts. The answer does not depend on it.
    blocks : {"tree", "single"}, default="tree"
        What is drawn jointly: whole trees given the rest, or single variables. A sweep of trees
        takes twice the time and gains more than two single sweeps.

    References
    ----------
    Kirkpatrick, Gelatt and Vecchi (1983), Optimization by simulated annealing; Geman and Geman
    (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images.

    Examples
    --------
    >>> from chordal.structures import Graph
    >>> ring = [(0, 1), (1, 2), (2, 3), (3, 0)]  # neighbours like to differ
    >>> p = Potentials(Graph([4], [ring], n_labels=2), [0, 0.5, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0])
    >>> found = AnnealingInference().map(p)
    >>> found.labels, found.score
    (array([1, 0, 1, 0], dtype=int32), array([4.5]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    # Better labels than `icm`, but only by patience.
    quality: ClassVar[Mapping[str, int]] = {"map": 20}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        n_sweeps: int = 200,
        n_restarts: int = 4,
        hot: float | None = None,
        cold: float | None = None,
        random_state: int = 0,
        n_jobs: int = 1,
        blocks: str = "tree",
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        for name, value in (("n_sweeps", n_sweeps), ("n_restarts", n_restarts), ("n_jobs", n_jobs)):
            check_number(name, value, minimum=1, integer=True)
        for name, temperature in (("hot", hot), ("cold", cold)):
            if temperature is not None:
                check_number(name, temperature, strict=True)
        check_number("random_state", random_state, integer=True)
        check_choice("blocks", blocks, BLOCKS)
        if hot is not None and cold is not None and cold > hot:
            raise ValueError(f"cold must not be above hot ({hot:g}), got {cold:g}")
        self.n_sweeps, self.n_restarts, self.blocks = n_sweeps, n_restarts, blocks
        self.hot, self.cold = hot, cold
        self.random_state, self.n_jobs = random_state, n_jobs

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Never: it is a random search."""
        return False

    @property
    def copies(self) -> float:
        """The restarts."""
        return float(self.n_restarts)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """A generator and a labelling for each restart."""
        return self.n_restarts * (2000.0 + 8.0 * structure.n_variables)

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling of all restarts."""
        s, temperatures = potentials.structure, self.temperatures(potentials)
        descend = partial(_kernels.icm_labels, incidence=s.incidence)
        seeds = np.random.SeedSequence(self.random_state).spawn(self.n_restarts)
        found: list[Decoded | None] = [None] * self.n_restarts
        with no_time_limit():
            schedule = BLOCKS[self.blocks](potentials)

        def restart(k: int, check: Callable[[], None]) -> None:
            if k > 0 and seconds_left() == 0.0:
                return
            rng = np.random.default_rng(seeds[k])
            labels = (rng.random(s.n_variables) * s.label_counts).astype(np.int32)
            with suppress(TimeLimitError):
                check_time()
                for temperature in temperatures:
                    check()
                    schedule.advance(labels, 1, rng, temperature)
            end = improved(descend, potentials, MAX_ITER, start=labels)
            found[k] = improved_by_trees(potentials, end)

        in_threads(restart, self.n_restarts, self.n_jobs)
        ends = [end for end in found if end is not None]
        if seconds_left() == 0.0:  # then even the start of others may be better
            ends.append(without_time(potentials))
        best = np.argmax([end.score for end in ends], axis=0)
        of_variable = np.repeat(best, np.diff(s.variable_offsets))
        labels = np.stack([end.labels for end in ends])[of_variable, np.arange(s.n_variables)]
        worst = max(
            (end.convergence for end in ends if end.convergence),
            key=lambda ended: (ended.status is Status.MAX_TIME, ended.change),
        )
        ended = worst._replace(n_iter=self.n_sweeps + worst.n_iter)
        return with_rough_bound(potentials, labels, ended)

    def temperatures(self, potentials: Potentials) -> Floats:
        """The schedule on these potentials (float64 [n_sweeps]).

        >>> from chordal.structures import Chain
        >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 2, 0, 4], tables=[1, 0, 0, 1])
        >>> AnnealingInference(n_sweeps=3, cold=0.25).temperatures(p)
        array([4.  , 1.  , 0.25])
        """
        given = self.hot if self.hot is not None else typical_range(potentials)
        cold = self.cold if self.cold is not None else COLD * given
        return np.geomspace(max(given, cold), cold, self.n_sweeps)


def typical_range(potentials: Potentials) -> float:
    """The mean over variables of the range of their finite scores."""
    s = potentials.structure
    if s.n_variables == 0:
        return 1.0
    total = _ranges(potentials.unary, s.state_offsets).sum()
    tables = _ranges(potentials.tables, potentials.table_offsets)
    total += (tables[potentials.table_of_clique] * s.orders).sum()
    return float(total / s.n_variables) or 1.0


def _ranges(scores: Floats, offsets: np.ndarray) -> Floats:
    """Largest minus smallest finite score of each block."""
    out = np.zeros(len(offsets) - 1)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled) == 0:
        return out
    finite = np.isfinite(scores)
    high = np.maximum.reduceat(np.where(finite, scores, -np.inf), offsets[filled])
    low = np.minimum.reduceat(np.where(finite, scores, np.inf), offsets[filled])
    out[filled] = np.where(high >= low, high - low, 0.0)
    return out
