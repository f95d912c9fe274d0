"""Turns of fitting and of completing sets of labels, as a checkpoint keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal.solvers import Solution
from chordal.structures import offsets_of
from chordal.targets import Labels, Target


class Turns:
    """Labels by shard within the sets, and what the turn before found.

    Parameters
    ----------
    sets : list
        What is known of the labels of each shard.
    n_weights : int

    Attributes
    ----------
    labels : list
        The completion of this turn; none before the first.
    found : Solution or None
        What the turn before found, with the completion `own`.
    values : list of float
        The objective after each turn.
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
        """Go on with a turn."""
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
