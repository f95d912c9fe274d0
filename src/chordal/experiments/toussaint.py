"""Logistic regression in the plane: curved borders, Newton's steps, and squared error failing."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from chordal import CRFClassifier, RBFFeatures, plots
from chordal.datasets import make_curved_classes, make_masked_classes
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import WIDTH, confusion, training


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
        """Everything, from the data to the figures."""
        n = 80 if setup.quick else 200
        outcome = Outcome()
        self._curved(outcome, n, setup)
        self._masked(outcome, n, setup)
        self._newton(outcome, n, setup)
        return outcome

    def _curved(self, outcome: Outcome, n: int, setup: Setup) -> None:
        """Quadratic, cubic and radial features, of two and of three classes."""
        names = ("quadratic, λ = 1", "cubic, λ = 1", "radial, width 0.5, λ = 0.1")
        figure, axes = plots.subplots(3, 2, size=(WIDTH, 6.6))
        steps = []
        for row, name in zip(axes, names, strict=True):
            for ax, n_classes in zip(row, (2, 3), strict=True):
                setup.say(f"{name}, {n_classes} classes")
                X, y = make_curved_classes(n, n_classes)
                model = _model(name).fit(X, y)
                score, report = model.score(X, y), model[-1].fit_report_
                plots.DecisionSurfaceDisplay.from_estimator(model, X, y, ax=ax)
                ax.set_title(f"{name.split(',')[0]}: {score:.1%} right", fontsize=9)
                ax.tick_params(labelsize=7)
                outcome.rows.append(Row(f"points right, {name}, {n_classes} classes", score))
                line = [report.n_iter, report.objective, report.gradient_norm]
                steps.append([f"{name}, {n_classes} classes", *line])
        outcome.draw(
            "How the models divide the plane",
            "Colours mix by p(y | x); points with a dark edge are on the wrong side.",
            figure,
            "Six planes with points, two and three classes, and curved borders between them.",
        )
        head = ["model", "Newton's steps", "objective", "gradient norm"]
        outcome.tables.append(Table("Newton's method", head, steps))
        most = max(line[1] for line in steps)
        outcome.rows.append(
            Row("most steps of Newton's method", most, must=15, lower=True, digits=0)
        )

    def _masked(self, outcome: Outcome, n: int, setup: Setup) -> None:
        """Three classes in a row: squared error cannot see the one in the middle."""
        setup.say("squared error")
        X, y = make_masked_classes(n)
        models = {
            "likelihood": CRFClassifier(solver="newton", l2=0.1).fit(X, y),
            "squared error": CRFClassifier("squared_error", l2=0.1).fit(X, y),
        }
        figure, axes = plots.subplots(1, 2, size=(WIDTH, 2.5))
        for ax, (name, model) in zip(axes, models.items(), strict=True):
            # The scores of squared error are no logarithms of probabilities.
            likely = name == "likelihood"
            plots.DecisionSurfaceDisplay.from_estimator(model, X, y, probabilities=likely, ax=ax)
            ax.set_title(f"{name}: {model.score(X, y):.1%} right", fontsize=9)
            ax.tick_params(labelsize=7)
        outcome.draw(
            "Hastie's masking",
            "Linear functions of three classes in a row: by squared error, that of the middle "
            "class is highest almost nowhere.",
            figure,
            "Two planes with three classes in a row; with squared error the middle one has "
            "hardly any part.",
        )
        found = models["squared error"].predict(X)
        outcome.pictures.append(
            confusion(
                "What squared error takes for what", "Class 1 is in the middle.", [*y], [*found]
            )
        )
        scores = {name: model.score(X, y) for name, model in models.items()}
        middle = 1
        kept = {
            name: float(np.mean(m.predict(X[y == middle]) == middle)) for name, m in models.items()
        }
        outcome.rows += [
            Row("points right, linear, likelihood", scores["likelihood"]),
            Row(
                "points that squared error loses against the likelihood",
                scores["likelihood"] - scores["squared error"],
                must=0.1,
                why="Hastie's masking",
            ),
            Row(
                "of the class in the middle, squared error finds",
                kept["squared error"],
                must=0.5 * kept["likelihood"],
                lower=True,
                why="half of what the likelihood finds",
            ),
        ]

    def _newton(self, outcome: Outcome, n: int, setup: Setup) -> None:
        """The same optimum by two methods."""
        setup.say("Newton and L-BFGS")
        X, y = make_curved_classes(n, 3)
        features = PolynomialFeatures(2, include_bias=False).fit_transform(X)
        reports = {
            solver: CRFClassifier(solver=solver, l2=2.0, tol=1e-12).fit(features, y).fit_report_
            for solver in ("newton", "lbfgs")
        }
        outcome.pictures.append(
            training(
                "Newton and L-BFGS",
                "Quadratic, three classes: the distance to the optimum. Newton's digits double "
                "with every step.",
                reports,
            )
        )
        difference = abs(reports["newton"].objective - reports["lbfgs"].objective)
        outcome.rows.append(
            Row("difference of both optima", difference, must=1e-8, lower=True, digits=10)
        )


def _model(name: str) -> Pipeline:
    if name.startswith("radial"):
        return make_pipeline(RBFFeatures(width=0.5), CRFClassifier(solver="newton", l2=0.2))
    degree = 2 if name.startswith("quadratic") else 3
    features = PolynomialFeatures(degree, include_bias=False)
    return make_pipeline(features, CRFClassifier(solver="newton", l2=2.0))
