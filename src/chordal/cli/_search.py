"""The search of ``chordal tune``: points, their scores, and what is kept when it is stopped."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from chordal._atomic import atomic_write
from chordal._errors import FormatError
from chordal.cli._data import Data
from chordal.cli._fit import fit, store
from chordal.cli._output import note

if TYPE_CHECKING:
    from chordal import ChainCRF

Point = tuple[float, float]  # l1, l2


class Scores:
    """Scores of points on parts, kept in a file if one is named, so that a search can go on.

    The first line says what is searched, each other line is one score.
    """

    def __init__(self, path: str | None, search: dict[str, Any]) -> None:
        self._path = path
        self._known: dict[tuple[float, float, int], float] = {}
        if path is None:
            return
        if not os.path.exists(path) or not os.path.getsize(path):
            self._append(search)
            return
        with open(path, encoding="utf-8") as file:
            *lines, _ = file.read().split("\n")  # the last may be cut
        try:
            head, *rest = map(json.loads, lines)
            self._known = {(r["l1"], r["l2"], r["part"]): float(r["score"]) for r in rest}
            differing = sorted(name for name in search if head.get(name) != search[name])
        except (ValueError, LookupError, TypeError, AttributeError):
            raise FormatError(
                path, "not a file of --resume: remove it, or give another path"
            ) from None
        if differing:
            raise FormatError(
                path,
                f"holds scores of another search ({', '.join(differing)}): remove it, or give "
                "another path",
            )
        with atomic_write(path) as whole:
            whole.write("".join(f"{line}\n" for line in lines).encode())

    def get(self, point: Point, part: int) -> float | None:
        """The score of a point on a part, if it is known."""
        return self._known.get((*point, part))

    def add(self, point: Point, part: int, score: float) -> None:
        """Keep one score."""
        self._append({"l1": point[0], "l2": point[1], "part": part, "score": score})

    def _append(self, fact: dict[str, Any]) -> None:
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(fact) + "\n")


class Search:
    """Points and their scores so far, and the model with the best of them."""

    def __init__(self, parts: list[tuple[Data, Data]], metric: str, known: Scores) -> None:
        self.parts, self.metric, self.known = parts, metric, known
        self.results: list[dict[str, Any]] = []
        self.stopped = False
        self._best: tuple[float, int, ChainCRF] | None = None

    def score(self, point: Point, crf: ChainCRF) -> float | None:
        """The mean over the parts, or None if Ctrl-C came before it was known."""
        try:
            scores = [self._one(point, k, crf) for k in range(len(self.parts))]
        except KeyboardInterrupt:
            self.stopped = True
            return None
        mean = math.fsum(scores) / len(scores)
        self.results.append({"l1": point[0], "l2": point[1], self.metric: mean, "scores": scores})
        return mean

    def figures(self) -> list[str]:
        """The best mean so far, and its point."""
        best = max(self.results, key=lambda result: result[self.metric], default=None)
        if best is None:
            return []
        return [
            f"best {self.metric} {best[self.metric]:.4f} at l1={best['l1']:g} l2={best['l2']:g}"
        ]

    def _one(self, point: Point, k: int, crf: ChainCRF) -> float:
        """The metric of a model fitted on one part and asked about the other."""
        from chordal import metrics
        from chordal.estimators import whole_fits

        before = self.known.get(point, k)
        if before is not None:
            return before
        fitted, scored = self.parts[k]
        crf = type(crf)(**crf.get_params(deep=False))
        with whole_fits():
            fit(crf, fitted)
        name = {"accuracy": "token_accuracy"}.get(self.metric, self.metric)
        found = float(metrics.sequence_counts(name, scored.y, crf.predict(scored.X)).value)
        self.known.add(point, k, found)
        if self._best is None or found > self._best[0]:
            self._best = found, k, crf
        return found

    def keep(self, output: str) -> None:
        """Write the best model that this search has fitted, after Ctrl-C."""
        if self._best is None:
            note(f"no model was fitted before Ctrl-C: {output} is not written")
            return
        _, k, crf = self._best
        store(crf, output)
        what = "all data" if len(self.parts) == 1 else f"the data without fold {k + 1}"
        note(f"the best model so far, fitted on {what}, is in {output}")
