"""Structural SVMs: how perceptrons, subgradients, cutting planes and Frank–Wolfe come down."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from chordal import ChainCRF, FitReport, plots
from chordal.costs.hamming import Hamming
from chordal.datasets import load_ocr_letters
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.objectives.hinge import Hinge

#: The solver, its most passes over the words, and what the lecture says of its oracle calls.
SOLVERS = {
    "block_frank_wolfe": (1000, "O(1/ε) steps of one example, with a duality gap"),
    "frank_wolfe": (200, "O(1/ε) passes, with a duality gap"),
    "one_slack": (200, "O(1/ε) passes, with a duality gap"),
    "sgd": (200, "O(1/ε) steps of one example, no gap"),
}


@final
class Ssvm(Experiment):
    """The lecture's table, measured."""

    title: ClassVar[str] = "Structural SVM: convergence of its solvers"
    about: ClassVar[str] = (
        "All of these minimise the hinge loss with a margin that grows with the number of wrong "
        "letters. What counts is how many times the loss-augmented best word has to be found "
        "until the objective, or the duality gap, is small."
    )
    data: ClassVar[str] = "Taskar's handwritten words"
    split: ClassVar[str] = "fold 1 to train on, fold 0 to test"
    model: ClassVar[str] = "chain of pixels, bias and ends; Hamming cost by length; λ = 1/n"
    source: ClassVar[str] = "Sontag, lecture 13 (2015); Lacoste-Julien et al. (2013)"

    def run(self, setup: Setup) -> Outcome:
        words = load_ocr_letters()
        n = 60 if setup.quick else 10_000
        rng = np.random.default_rng(self.seed)
        train, test = (rng.permutation(np.flatnonzero(words.folds == k))[:n] for k in (1, 0))
        X, y = words.X, words.y
        data = [X[i] for i in train], [y[i] for i in train]
        tests = [X[i] for i in test], [y[i] for i in test]
        reports: dict[str, FitReport] = {}
        outcome, table = Outcome(), []
        for name, (passes, said) in SOLVERS.items():
            setup.say(name)
            crf = _svm(name, passes // 4 if setup.quick else passes, self.seed, setup)
            reports[name] = crf.fit(*data).fit_report_
            table.append([name, *_line(reports[name]), crf.score(*tests), said])
        for name in ("averaged_perceptron",):
            setup.say(name)
            crf = ChainCRF(solver=name, max_iter=20, random_state=self.seed, bias=True, ends=True)
            report = crf.fit(*data).fit_report_
            said = "mistakes at most (R/γ)² if separable; an objective of its own"
            table.append([name, report.n_iter, "", "", crf.score(*tests), said])
        head = ["solver", "passes", "objective", "relative gap", "test letters", "the lecture"]
        outcome.tables.append(Table("All solvers", head, table))
        self._rows(outcome, reports)
        self._pictures(outcome, reports)
        return outcome

    def _rows(self, outcome: Outcome, reports: dict[str, FitReport]) -> None:
        best = min(report.objective for report in reports.values())
        needed = {name: _passes_to(report, 1.01 * best) for name, report in reports.items()}
        first = needed["block_frank_wolfe"]
        others = min(passes for name, passes in needed.items() if name != "block_frank_wolfe")
        outcome.rows += [
            Row(
                "passes of block-coordinate Frank–Wolfe to 1% of the optimum",
                first,
                must=others,
                lower=True,
                digits=0,
                why=f"the best of the others: {others:g}",
            ),
            Row(
                "its relative duality gap in the end",
                _gap(reports["block_frank_wolfe"]),
                lower=True,
                digits=4,
            ),
        ]

    def _pictures(self, outcome: Outcome, reports: dict[str, FitReport]) -> None:
        figure, (left, right) = plots.subplots(1, 2, size=(9.6, 3.6))
        plots.convergence(reports, ax=left)
        left.set(xlabel="oracle calls per word (passes)")
        for name, report in reports.items():
            if "dual" in report.details:
                values = np.array(report.history) - np.array(report.details["dual"])
                right.plot(np.arange(1, len(values) + 1), values, label=name, lw=1.4)
        right.set(yscale="log", xlabel="passes", ylabel="duality gap")
        right.legend(frameon=False)
        outcome.draw("Primal objective and duality gap", "Both on logarithmic scales.", figure)


def _svm(name: str, passes: int, seed: int, setup: Setup) -> ChainCRF:
    return ChainCRF(
        objective=Hinge(Hamming(normalize=True)),
        solver=name,
        l2=1.0,
        bias=True,
        ends=True,
        transitions="all",
        max_iter=passes,
        random_state=seed,
        n_jobs=setup.n_jobs,
    )


def _line(report: FitReport) -> list[Any]:
    gap = _gap(report)
    return [report.n_iter, report.objective, "" if np.isnan(gap) else gap]


def _gap(report: FitReport) -> float:
    return float("nan") if report.gap is None else report.gap / report.objective


def _passes_to(report: FitReport, value: float) -> float:
    """The first pass with this objective; infinity if there is none."""
    reached = np.flatnonzero(np.array(report.history) <= value)
    return float(reached[0] + 1) if len(reached) else float("inf")
