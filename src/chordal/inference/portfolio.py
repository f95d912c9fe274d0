"""The best labelling that several methods find together within a time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, NamedTuple, final

import numpy as np

from chordal import _kernels
from chordal._errors import InfeasibleError, UnsupportedError
from chordal._limits import TimeLimitError, no_time_limit, seconds_left, time_limit
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Decoded
from chordal.inference._base import Inference, Pace
from chordal.inference._cliques import at_most_pairs, most_probable_labels
from chordal.inference._members import MAX_CELLS, Case, Step, closed, relaxation, steps
from chordal.inference._reduction import Reduced, one_of, reduced
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.potentials import Potentials
from chordal.structures import Structure

#: Cells of all cliques' tables beyond which max-product messages come before `ad3`.
MANY_CELLS = 1_000_000


class Progress(NamedTuple):
    """The progress of a portfolio: totals over all examples.

    member : the method that works next
    score, bound : of the best labellings so far
    seconds : since the beginning
    """

    member: str
    score: float
    bound: float
    seconds: float


@final
class PortfolioInference(Inference):
    """Several methods take turns on each model, until its gap is closed or time is over.

    First, labels that constraints exclude are removed, and independent parts are split. On each
    open part it then runs a relaxation with a bound (`trw_s`, or `ad3` for larger cliques), a small
    `junction_tree` and subgraph moves. Then follow damped max-product messages, `alpha_expansion`,
    `annealing` at several temperatures, `milp` for few columns, large junction trees and
    `elimination`. Last, subgraph moves and annealing repeat until they gain no more.

    A subgraph move frees all variables except a few, chosen at random so that the rest has a clique
    tree with small tables. The free ones are drawn at falling temperatures, then get their best
    labels. The best labelling takes those pieces of the new one that score better.

    The answer has the best labelling and the lowest bound of all members. Its status is CONVERGED
    only if the gap is closed, which proves that no labelling is better. It is MAX_TIME if time was
    over, and SETTLED if nothing gained any more. After Ctrl-C, `map` returns the best so far with
    the status INTERRUPTED; estimators still raise KeyboardInterrupt.

    All stages are limited by work and use a fixed seed. So the same model has the same answer,
    unless the time limit is reached.

    Parameters
    ----------
    time_limit : float, optional, default=5.0
        Seconds for each answer, shared by all examples of the batch. None: until nothing gains.
    random_state : int, default=0
        Seed.

    References
    ----------
    Selby (2014), Efficient subgraph-based sampling of Ising-type models with frustration. Gomes
    and Selman (2001), Algorithm portfolios.

    Examples
    --------
    >>> from chordal.structures import Grid
    >>> rng = np.random.default_rng(0)
    >>> grid = Grid([(12, 12)], n_labels=2)
    >>> p = Potentials(grid, rng.normal(size=288), rng.normal(size=4 * grid.n_cliques))
    >>> found = PortfolioInference().map(p)
    >>> found.convergence.status.name, bool(found.gap < 1e-6)
    ('CONVERGED', True)
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    # The best of all, with the time that takes.
    quality: ClassVar[Mapping[str, int]] = {"map": 100}
    anytime: ClassVar[bool] = True
    pace: ClassVar[Pace] = Pace.SECONDS

    def __init__(
        self,
        random_state: int = 0,
        *,
        time_limit: float | None = 5.0,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("random_state", random_state, integer=True)
        self.random_state = random_state
        #: Called before each step with a `Progress`.
        self.watch: Callable[[Progress], None] | None = None

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Not known in advance: only a closed gap proves it."""
        return False

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling that any member finds, and the lowest bound."""
        self.require("map", potentials.structure)
        left = seconds_left()
        with no_time_limit():
            run = _Run(self, potentials, left)
            try:
                run.work()
            except KeyboardInterrupt:
                run.interrupted = True
            return run.answer()


class _Run:
    """One call of `map`."""

    def __init__(self, method: PortfolioInference, potentials: Potentials, seconds: float) -> None:
        self._method, self._potentials = method, potentials
        self._begun = _kernels.clock()
        self._end = self._begun + seconds
        self.interrupted = False
        self._late = False
        self._n_steps = 0
        self._reduced: Reduced | None = None
        self._names: list[str] = []  # of the members that have found labels of the parts
        self._quick: Decoded | None = None  # of all parts
        self._cases: dict[int, Case] = {}
        self._memory = min(method.memory_budget, 1e9)

    def work(self) -> None:
        """All members on all parts, in turns."""
        self._reduced = reduced(self._potentials)
        parts = self._reduced.potentials
        labels = most_probable_labels(parts)
        score = parts.score(labels)
        self._names = [""] * parts.structure.n_examples
        self._quick = Decoded(labels, score, np.maximum(parts.bound(), score))
        # On what is too large for the search, others seldom do better.
        cells = int(parts.structure.table_sizes.sum())
        try:
            if cells > MANY_CELLS and not at_most_pairs(parts.structure):  # `ad3` is slow there
                self._begin(LoopyBPInference(damping=0.3, max_iter=100), 0.6)
            self._begin(relaxation(parts), 0.8 if cells > MAX_CELLS else 0.6)
        except InfeasibleError as error:
            raise InfeasibleError(int(self._reduced.owner[error.example])) from None
        self._open_cases()
        self._turns()

    def _begin(self, method: Inference, share: float) -> None:
        """A method on all parts: its labels where they are better, and its bounds."""
        assert self._reduced is not None
        assert self._quick is not None
        self._watch(method.name)
        parts, before = self._reduced.potentials, self._quick
        with self._limit(share):
            found = method.map(parts)
        if found.bound is None:
            better = np.ones(len(found.score), dtype=bool)
        else:
            better = (found.score > before.score) | np.array(
                [not name for name in self._names], dtype=bool
            )
        labels = np.where(
            np.repeat(better, np.diff(parts.structure.variable_offsets)),
            found.labels,
            before.labels,
        )
        self._names = [
            method.name if b else name for b, name in zip(better, self._names, strict=True)
        ]
        score = np.where(better, found.score, before.score)
        bound = found.bound
        if bound is not None and before.bound is not None:
            bound = np.maximum(np.minimum(bound, before.bound), score)
        self._quick = Decoded(labels, score, bound)

    def _open_cases(self) -> None:
        assert self._quick is not None
        assert self._reduced is not None
        found, parts = self._quick, self._reduced.potentials
        bound = found.score if found.bound is None else found.bound
        for k in np.flatnonzero(~closed(found.score, bound)).tolist():
            variables = slice(*parts.structure.variable_offsets[k : k + 2])
            own = Decoded(found.labels[variables], found.score[k : k + 1], bound[k : k + 1])
            seed = self._method.random_state + k
            self._cases[k] = Case(one_of(parts, k), own, self._names[k], seed)

    def _turns(self) -> None:
        """One step per open part in turn, until all are closed or settled, or time is over."""
        lines: dict[int, Iterator[Step]] = {
            k: steps(case, self._memory) for k, case in self._cases.items()
        }
        while lines:
            for k in list(lines):
                if _kernels.clock() >= self._end:
                    self._late = True
                    return
                case = self._cases[k]
                step = None if case.closed else next(lines[k], None)
                if step is None:
                    del lines[k]
                    continue
                self._watch(step.name)
                self._do(step, k, len(lines))

    def _do(self, step: Step, k: int, n_open: int) -> None:
        self._n_steps += 1
        try:
            with self._limit(step.share / n_open):
                step.run()
        except (UnsupportedError, ModuleNotFoundError, TimeLimitError):
            pass  # the next member may do
        except InfeasibleError:
            assert self._reduced is not None
            raise InfeasibleError(int(self._reduced.owner[k])) from None

    @contextmanager
    def _limit(self, share: float) -> Iterator[None]:
        left = max(0.0, self._end - _kernels.clock())
        with time_limit(None if left == np.inf else share * left):
            yield

    def _watch(self, member: str) -> None:
        if self._method.watch is None or self._reduced is None or self._quick is None:
            return
        score, bound = self._totals()
        seconds = _kernels.clock() - self._begun
        self._method.watch(Progress(member, float(score.sum()), float(bound.sum()), seconds))

    def _totals(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and bounds of the examples."""
        assert self._quick is not None
        assert self._reduced is not None
        score = self._quick.score.copy()
        bound = score.copy() if self._quick.bound is None else self._quick.bound.copy()
        for k, case in self._cases.items():
            score[k], bound[k] = case.score, case.score if case.closed else case.bound
        return self._reduced.total(score), self._reduced.total(bound)

    def answer(self) -> Decoded:
        """The best of all, and how it ended."""
        if self._reduced is None or self._quick is None:  # Ctrl-C came at once
            labels = most_probable_labels(self._potentials)
            score = self._potentials.score(labels)
            bound = np.maximum(self._potentials.bound(), score)
            return Decoded(labels, score, bound, Convergence(Status.INTERRUPTED, 0, np.inf))
        labels = self._quick.labels.copy()
        offsets = self._reduced.potentials.structure.variable_offsets
        for k, case in self._cases.items():
            labels[offsets[k] : offsets[k + 1]] = case.labels
        labels = self._reduced.labels(labels)
        score = self._potentials.score(labels)
        bound = np.maximum(self._totals()[1], score)
        open_ = any(not case.closed for case in self._cases.values())
        if self.interrupted:
            status = Status.INTERRUPTED
        elif not open_:
            status = Status.CONVERGED
        else:
            status = Status.MAX_TIME if self._late else Status.SETTLED
        with np.errstate(invalid="ignore"):
            gap = float((bound - score).max(initial=0.0))
        ended = Convergence(status, self._n_steps, gap)
        return Decoded(labels, score, bound, ended, self._found_by())

    def _found_by(self) -> tuple[str, ...]:
        """The member that has found the labels of each example's largest part."""
        assert self._reduced is not None
        owner = self._reduced.owner
        names = ["propagation"] * self._potentials.structure.n_examples
        sizes = np.diff(self._reduced.potentials.structure.variable_offsets)
        for k in np.argsort(sizes, kind="stable").tolist():  # the largest one last
            case = self._cases.get(k)
            names[owner[k]] = self._names[k] if case is None else case.found_by
        return tuple(names)
