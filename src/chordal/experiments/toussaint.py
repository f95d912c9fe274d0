"""Logistic regression in the plane: curved borders, Newton's steps, and squared error failing."""

from __future__ import annotations

from typing import Any, ClassVar, final

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from chordal import CRFClassifier, RBFFeatures, plots
from chordal.datasets import make_curved_classes, make_masked_classes
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table


@final
class Toussaint(Experiment):
    """The pictures of the lecture, on data of our own."""

    title: ClassVar[str] = "Logistic regression in the plane"
    about: ClassVar[str] = (
        "Linear functions of quadratic, cubic and radial features have curved borders. Newton's "
        "method needs few steps. Squared error on class indicators loses the class in the middle."
    )
    data: ClassVar[str] = "points of 2 and 3 classes in the plane, drawn by our generator"
    split: ClassVar[str] = "none: accuracies are of the points that were learned from"
    model: ClassVar[str] = "CRFClassifier: one variable per example, penalty λ‖β‖² (l2 = 2λ)"
    source: ClassVar[str] = "Toussaint, Classification and structured output (2019)"

    def run(self, setup: Setup) -> Outcome:
        n = 80 if setup.quick else 200
        two, three, row = (
            make_curved_classes(n),
            make_curved_classes(n, 3),
            make_masked_classes(n),
        )
        models: list[tuple[str, Any, Any]] = [
            ("quadratic, λ = 1", two, _polynomial(2, 1.0)),
            ("cubic, λ = 1", two, _polynomial(3, 1.0)),
            ("radial, width 0.5, λ = 0.1", two, _radial(0.5, 0.1)),
            ("quadratic, λ = 1, three classes", three, _polynomial(2, 1.0)),
            ("linear, likelihood", row, make_pipeline(CRFClassifier(solver="newton", l2=0.1))),
            ("linear, squared error", row, make_pipeline(CRFClassifier("squared_error", l2=0.1))),
        ]
        outcome, scores, steps = Outcome(), {}, []
        figure, axes = plots.subplots(2, 3, size=(10.5, 6.6))
        for ax, (name, (X, y), model) in zip(axes.flat, models, strict=True):
            setup.say(name)
            scores[name] = model.fit(X, y).score(X, y)
            likely = "squared" not in name  # its scores are no logarithms of probabilities
            plots.decision_surface(model, X, y, probabilities=likely, ax=ax)
            ax.set_title(f"{name}: {scores[name]:.1%} right")
            report = model[-1].fit_report_
            if report.solver == "newton":
                steps.append([name, report.n_iter, report.objective, report.gradient_norm])
        outcome.draw(
            "How the models divide the plane",
            "Colours mix by p(y | x); points with a dark edge are on the wrong side.",
            figure,
        )
        for name, score in scores.items():
            if "squared" not in name:
                outcome.rows.append(Row(f"points right, {name}", score))
        outcome.rows.append(
            Row(
                "points that squared error loses against the likelihood",
                scores["linear, likelihood"] - scores["linear, squared error"],
                must=0.1,
                why="Hastie's masking: the class in the middle is all but lost",
            )
        )
        head = ["model", "Newton's steps", "objective", "gradient norm"]
        outcome.tables.append(Table("Newton's method", head, steps))
        outcome.rows.append(
            Row(
                "most steps of Newton's method",
                max(row[1] for row in steps),
                must=15,
                lower=True,
                digits=0,
            )
        )
        self._decrements(outcome, models[3], setup)
        return outcome

    def _decrements(self, outcome: Outcome, chosen: Any, setup: Setup) -> None:
        name, (X, y), model = chosen
        features = model[:-1].fit_transform(X, y)
        reports = {
            solver: CRFClassifier(solver=solver, l2=2.0, tol=1e-12).fit(features, y).fit_report_
            for solver in ("newton", "lbfgs")
        }
        figure, ax = plots.subplots()
        plots.convergence(reports, ax=ax)
        outcome.draw(
            "Newton and L-BFGS",
            f"{name}: the distance to the optimum. Newton's digits double with every step.",
            figure,
        )
        difference = abs(reports["newton"].objective - reports["lbfgs"].objective)
        outcome.rows.append(
            Row("difference of both optima", difference, must=1e-8, lower=True, digits=10)
        )


def _polynomial(degree: int, penalty: float) -> Any:
    features = PolynomialFeatures(degree, include_bias=False)
    return make_pipeline(features, CRFClassifier(solver="newton", l2=2.0 * penalty))


def _radial(width: float, penalty: float) -> Any:
    return make_pipeline(RBFFeatures(width=width), CRFClassifier(solver="newton", l2=2.0 * penalty))
