"""Alternate between fitting and completing sets of labels; with checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal.estimators._training.checkpoint import Checkpointer
from chordal.estimators._training.judging import completions, lower_losses
from chordal.estimators._training.work import Plan, Work
from chordal.inference import Inference
from chordal.solvers import Solution
from chordal.structures import offsets_of
from chordal.targets import Labels, Target

MOST_TURNS = 50  # of fitting and completing


class Turns:
    """The current labels within the sets, and the solution of the previous round.

    Parameters
    ----------
    sets : list
        The sets of possible labels of each shard.
    n_weights : int

    Attributes
    ----------
    labels : list
        The labels of this round; empty before the first.
    found : Solution or None
        The solution of the previous round, with the labels `own`.
    values : list of float
        The objective after each round.
    """

    def __init__(self, sets: Sequence[Target | None], n_weights: int) -> None:
        self.sets, self._n_weights = sets, n_weights
        self.labels: list[Target | None] = []
        self.own: list[Target | None] = []
        self.found: Solution | None = None
        self.values: list[float] = []

    def to_state(self) -> State:
        """The two completions, and the solution."""
        state: State = {"labels": _joined(self.labels), "values": self.values, "found": []}
        if self.found is not None:
            known = vars(self.found) | {"status": self.found.status.name}
            state["found"] = [{**known, "labels": _joined(self.own)}]
        return state

    def from_state(self, saved: Saved) -> None:
        """Restore an interrupted round."""
        self.values, self.labels = saved.numbers("values"), self._split(saved)
        for found in saved.parts("found"):
            self.own = self._split(found)
            name = found.word("status")
            if name not in Status.__members__:
                raise SavedError(f"there is no status {name!r}")
            weights = found.array("weights", np.float64, (self._n_weights,), finite=False)
            given = Solution(weights, 0.0, 0.0, Status[name], 0, 0, 0.0)
            for own in fields(Solution):
                if own.name not in ("weights", "status"):
                    setattr(given, own.name, found.like(own.name, getattr(given, own.name)))
            self.found = given

    def _split(self, saved: Saved) -> list[Target | None]:
        """The labels of each shard, which must be in their sets."""
        ends = offsets_of([0 if own is None else len(own) for own in self.sets])
        labels = saved.array("labels", np.int32, (int(ends[-1]),))
        split: list[Target | None] = list(np.split(labels, ends[1:-1]))
        for own, given in zip(self.sets, split, strict=True):
            counts = np.diff(getattr(own, "state_offsets", np.zeros(1)))
            if len(counts) and ((np.asarray(given) < 0) | (np.asarray(given) >= counts)).any():
                raise SavedError("a label must be one of its variable's")
        return split


def _joined(labels: Sequence[Target | None]) -> Labels:
    parts = [np.asarray(own, dtype=np.int32) for own in labels]
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])


def labelled_by(work: Work, labels: Sequence[Target | None]) -> Work:
    """The same work with other labels."""
    pairs = zip(work.shards, labels, strict=True)
    return work._replace(shards=[replace(shard, labels=own) for shard, own in pairs])


def completed_by(
    solve: Callable[[Work], Solution],
    plan: Plan,
    work: Work,
    turns: Turns,
    inference: Inference,
    keeper: Checkpointer | None,
) -> tuple[Solution, Work]:
    """The solution, alternating between fits and completions of sets, until nothing improves.

    An example gets a new completion only if that lowers its loss, so no round raises the objective.
    """
    while True:
        work = labelled_by(work, turns.labels)
        again = solve(work)
        if turns.found is not None and not again.value < turns.values[-1]:
            break  # the solver's tolerance is larger than what was gained
        turns.found, turns.own = again, turns.labels
        turns.values.append(again.value)
        if again.status is Status.INTERRUPTED or len(turns.values) >= MOST_TURNS:
            break
        labels = completions(work.layout, work.shards, turns.sets, inference, again.weights)
        turns.labels, changed = lower_losses(
            plan.objective, work.layout, work.shards, labels, inference, again.weights
        )
        if not changed:
            break
        if keeper is not None:
            keeper.urgent = True
    return turns.found, labelled_by(work, turns.own)
