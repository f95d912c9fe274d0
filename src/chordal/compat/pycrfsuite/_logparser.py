"""Reads the messages of a training run: CRFsuite's words, iteration by iteration."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_SCORES = r"\((\d\.\d+), (\d\.\d+), (\d\.\d+)\)"
_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}")
_SECONDS = re.compile(rf"Seconds required: {_NUMBER}")
_LABEL = re.compile(rf"    (.+): \((\d+), (\d+), (\d+)\) (?:{_SCORES}|\(\*+, \*+, \*+\))")
_AVERAGE = re.compile(rf"Macro-average precision, recall, F1: {_SCORES}")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_FIELDS: list[tuple[str, re.Pattern[str], Callable[[str], Any]]] = [
    ("loss", re.compile(rf"Loss: {_NUMBER}"), float),
    ("feature_norm", re.compile(rf"Feature norm: {_NUMBER}"), float),
    ("error_norm", re.compile(rf"Error norm: {_NUMBER}"), float),
    ("active_features", re.compile(r"Active features: (\d+)"), int),
    ("linesearch_trials", re.compile(r"Line search trials: (\d+)"), int),
    ("linesearch_step", re.compile(rf"Line search step: {_NUMBER}"), float),
    ("time", re.compile(rf"Seconds required for this iteration: {_NUMBER}"), float),
]


class LabelScore(NamedTuple):
    """How well one label was found: counts, and None for what is not defined."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Takes messages as they come, and keeps what they say.

    Attributes
    ----------
    iterations : list of dict
        For each iteration `num`, `loss`, `time` and what else the algorithm reports; with a
        holdout group also `scores` by label, `avg_precision`, `avg_recall`, `avg_f1`,
        `item_accuracy` and `instance_accuracy`.
    last_iteration : dict or None
    featgen_num_features, featgen_seconds, training_seconds, storing_seconds : numbers or None
    log : list of str
        All messages.
    events : list of (event, begin, end)
        What happened, and where its messages are in `log`.
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    @property
    def last_log(self) -> str:
        """The messages of the last event."""
        if not self.events:
            return ""
        _, begin, end = self.events[-1]
        return "".join(self.log[begin:end])

    def feed(self, line: str) -> str | None:
        """Take one message; returns the event that it completes, if any."""
        self.log.append(line)
        if self.state is None:
            self.state = "featgen" if line.startswith("Feature generation") else "starting"
            event = "start"
        else:
            found = getattr(self, f"_{self.state}")(line)
            if found is None:
                return None
            event = found
        begin = self.events[-1][2] if self.events else 0
        # These two are noticed at the first line of what follows.
        end = len(self.log) - (event in ("prepared", "optimization_end"))
        self.events.append((event, begin, end))
        return event

    def _starting(self, line: str) -> None:
        if line.startswith("Feature generation"):
            self.state = "featgen"

    def _featgen(self, line: str) -> str | None:
        if re.fullmatch(r"\d+|\.", line):
            self.featgen_percent += 2
            return "featgen_progress"
        count = re.match(r"Number of features: (\d+)", line)
        if count:
            self.featgen_num_features = int(count[1])
        seconds = _SECONDS.match(line)
        if seconds is None:
            return None
        self.featgen_seconds = float(seconds[1])
        self.state = "preparing"
        return "featgen_end"

    def _preparing(self, line: str) -> str | None:
        if "terminated with error" in line:
            self.state = "between"
            return "prepare_error"
        if self._begins_iteration(line):
            return "prepared"
        return self._between(line)  # a run may end before its first iteration

    def _between(self, line: str) -> str | None:
        if self._begins_iteration(line):
            return None
        total = re.match(rf"Total seconds required for training: {_NUMBER}", line)
        if total:
            self.training_seconds = float(total[1])
        if line.startswith("Storing the model"):
            self.state = "storing"
            return "optimization_end"
        return None

    def _iteration(self, line: str) -> str | None:
        if line == "\n":
            self.state = "between"
            return "iteration"
        now = self.iterations[-1]
        for key, pattern, kind in _FIELDS:
            match = pattern.match(line)
            if match:
                now[key] = kind(match[1])
        self._holdout(line, now)
        return None

    def _storing(self, line: str) -> str | None:
        seconds = _SECONDS.match(line)
        if seconds:
            self.storing_seconds = float(seconds[1])
        return "end" if line == "\n" else None

    def _begins_iteration(self, line: str) -> bool:
        head = _HEAD.match(line)
        if head is None:
            return False
        self.state = "iteration"
        self.last_iteration = {"num": int(head[1]), "scores": {}}
        self.iterations.append(self.last_iteration)
        return True

    def _holdout(self, line: str, now: dict[str, Any]) -> None:
        label = _LABEL.match(line)
        if label:
            counts = [int(n) for n in label.groups()[1:4]]
            scores = [None if s is None else float(s) for s in label.groups()[4:]]
            now["scores"][label[1]] = LabelScore(*counts, *scores)
        average = _AVERAGE.match(line)
        if average:
            for key, value in zip(("precision", "recall", "f1"), average.groups(), strict=True):
                now[f"avg_{key}"] = float(value)
        accuracy = _ACCURACY.match(line)
        if accuracy:
            right, total = int(accuracy[2]), int(accuracy[3])
            share = Fraction(right, total) if total else Fraction(0)
            key = f"{accuracy[1].lower()}_accuracy"
            now[key], now[f"{key}_float"] = share, float(share)
