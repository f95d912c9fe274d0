"""Sequential tree-reweighted message passing (TRW-S): labellings with a bound, compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, final
from weakref import WeakKeyDictionary

import numpy as np

from chordal import _kernels
from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Decoded
from chordal.inference._base import Inference
from chordal.inference._cliques import message_cells
from chordal.inference._limited import late
from chordal.inference._messages import ending
from chordal.inference._moves import improved_by_trees
from chordal.potentials import Potentials, refuse_infeasible
from chordal.structures import Structure

#: The tolerance and the iterations of one call in training, where calls go on from each other.
ROUGH, FEW = 1e-4, 5
#: Iterations of a rough answer, which has nothing to go on from.
SOME = 30


class Messages:
    """The last messages of calls on some structures."""

    def __init__(
        self,
        kept: WeakKeyDictionary[Structure, _kernels.TRWSMessages],
        structures: Iterable[Structure],
    ) -> None:
        self._kept, self._structures = kept, list(structures)

    def to_state(self) -> State:
        """The messages of all examples, one after another."""
        none = _kernels.TRWSMessages()
        found = [self._kept.get(structure, none).arrays() for structure in self._structures]
        rows = [row for own in found for row in own]
        return {
            "examples": np.array([len(own) for own in found], dtype=np.int64),
            "lengths": np.array([len(row) for row in rows], dtype=np.int64),
            "messages": np.concatenate([np.zeros(0), *rows]),
        }

    def from_state(self, saved: Saved) -> None:
        """Restore them; the kernel starts from zero if their number does not fit."""
        examples = saved.array("examples", np.int64, (len(self._structures),))
        lengths = saved.array("lengths", np.int64, (None,))
        messages = saved.array("messages", np.float64, (None,), finite=False)
        sound = (examples >= 0).all() and (lengths >= 0).all()
        if not sound or (examples.sum(), lengths.sum()) != (len(lengths), len(messages)):
            raise SavedError("the messages do not fit their examples")
        rows = iter(np.split(messages, np.cumsum(lengths)[:-1]))
        for structure, n in zip(self._structures, examples.tolist(), strict=True):
            own = self._kept[structure] = _kernels.TRWSMessages()
            for _ in range(n):
                own.append(np.ascontiguousarray(next(rows)))


@final
class TRWSInference(Inference):
    """A good labelling of a pairwise model, and an upper bound of all scores.

    Each iteration lowers or keeps an upper bound of all scores, the dual of a linear program. `gap`
    is then a certificate; zero proves that the labelling is the best. It is often the best choice
    for images and other large graphs, with any number of labels. The bound stays above the best
    score if the relaxation is not tight, as with frustrated loops, and iterations may settle
    slightly above the relaxation's optimum.

    Tables of label distances are recognised: Potts, linear, truncated linear, and any that become
    constant within half of the labels. An iteration is then linear in the number of labels, not
    quadratic.

    Every iteration labels one variable after another. The best labelling found is improved at the
    end, unless it is proved to be the best: by single variables, then by whole trees.

    Parameters
    ----------
    tol : float, default=1e-7
        Stop when an iteration lowers the bound by less than this fraction of 1 + its size, or when
        the bound is reached.
    max_iter : int, default=1000
        Maximum number of iterations; each is a forward and a backward pass.
    min_progress : float, default=0.004
        Long runs (more than 10⁹ steps, about a second) also stop when an iteration closes less than
        this share of the gap. Their status is SETTLED, and a round of α-expansion improves their
        labels. With 0 they continue to `tol`: a somewhat better labelling and bound, in several
        times the time.

    References
    ----------
    Kolmogorov (2006), Convergent tree-reweighted message passing for energy minimization.

    Examples
    --------
    >>> from chordal.structures import Grid
    >>> grid = Grid([(2, 3)], n_labels=3)
    >>> p = Potentials(grid, unary=np.sin(np.arange(18)), tables=0.5 * np.eye(3))
    >>> found = TRWSInference().map(p)
    >>> found.labels, bool(found.gap[0] < 1e-6)
    (array([2, 2, 2, 0, 2, 0], dtype=int32), True)
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    # Pairs: a good bound and good labels in little time.
    quality: ClassVar[Mapping[str, int]] = {"map": 80}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        tol: float = 1e-7,
        max_iter: int = 1000,
        min_progress: float = 0.004,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("tol", tol)
        check_number("max_iter", max_iter, minimum=1, integer=True)
        check_number("min_progress", min_progress)
        self.tol, self.max_iter = float(tol), max_iter
        self.min_progress = float(min_progress)
        self._kept: WeakKeyDictionary[Structure, _kernels.TRWSMessages] | None = None

    def in_training(self) -> TRWSInference:
        """Few iterations, from the messages of the last call on a structure; no tree moves."""
        limits = {"time_limit": self.time_limit, "memory_limit": self.memory_limit}
        made = TRWSInference(
            max(self.tol, ROUGH), min(self.max_iter, FEW), self.min_progress, **limits
        )
        made._kept = WeakKeyDictionary()
        return made

    def rough(self) -> TRWSInference:
        """Some tens of iterations, and moves of trees as always."""
        limits = {"time_limit": self.time_limit, "memory_limit": self.memory_limit}
        most = min(self.max_iter, SOME)
        return TRWSInference(self.tol, most, self.min_progress, **limits)

    def kept_for(self, structures: Iterable[Structure]) -> Messages | None:
        """The messages of the last calls, in training."""
        return None if self._kept is None else Messages(self._kept, structures)

    def __getstate__(self) -> dict[str, object]:
        # Messages are of no use to a copy; that it may keep its own stays.
        return {**vars(self), "_kept": self._kept is not None}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._kept = WeakKeyDictionary() if state["_kept"] else None

    def supports(self, structure: Structure) -> bool:
        """Cliques of one or two variables."""
        return bool((structure.orders <= 2).all())

    def exact_on(self, structure: Structure) -> bool:
        """Not known in advance: only a closed gap proves it."""
        return False

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """A message per edge, and the scores of the labels."""
        return 8.0 * (0.5 * message_cells(structure) + 2.0 * structure.n_states)

    def map(self, potentials: Potentials) -> Decoded:
        """A labelling, its score, and an upper bound of all scores."""
        self.require("map", potentials.structure)
        s = potentials.structure
        labels = np.zeros(s.n_variables, dtype=np.int32)
        bound = np.zeros(s.n_examples)
        kept = None if self._kept is None else self._kept.setdefault(s, _kernels.TRWSMessages())
        done = _kernels.trw_s_labels(
            potentials.scores,
            tolerance=self.tol,
            progress=self.min_progress,
            max_iter=self.max_iter,
            labels=labels,
            bound=bound,
            kept=kept,
        )
        refuse_infeasible(bound)
        ended = ending(done, self.tol)
        if ended.status is Status.MAX_ITERATIONS and ended.n_iter < self.max_iter:
            moved = _kernels.alpha_expansion_labels(potentials.scores, max_iter=1, labels=labels)
            ended = late(ended) if moved.late else ended._replace(status=Status.SETTLED)
        score = potentials.score(labels)
        if done.late:  # perhaps before the first bound was there
            bound = np.minimum(bound, potentials.bound())
        # Rounding may carry the bound below a score that reaches it.
        found = Decoded(labels, score, np.maximum(bound, score), ended)
        return found if kept is not None else improved_by_trees(potentials, found)
