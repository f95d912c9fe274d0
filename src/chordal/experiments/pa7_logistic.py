"""Assignment 7, part 1: the letters p and q by logistic regression."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from sklearn.model_selection import StratifiedKFold

from chordal import CRFClassifier, CRFClassifierCV, plots
from chordal.datasets import load_pa7
from chordal.experiments._base import Array, Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import bars, confusion, training
from chordal.solvers.sgd import SGD

N_STEPS = 5000


@final
class PA7Logistic(Experiment):
    """Stochastic gradient descent, and λ by a validation set."""

    title: ClassVar[str] = "Two letters by logistic regression (assignment 7, part 1)"
    about: ClassVar[str] = (
        "Is an image of 16 × 8 pixels a p or a q? The assignment takes 5,000 steps of stochastic "
        "gradient descent, and chooses λ by a validation set. Then Newton's method finds the "
        "optimum itself, and cross-validation chooses λ without that set."
    )
    data: ClassVar[str] = "assignment 7's own images (Train1, Validation1, Test1)"
    split: ClassVar[str] = "as given"
    model: ClassVar[str] = "logistic regression, 128 pixels and a bias; steps 0.1 / (1 + √k)"
    source: ClassVar[str] = "Stanford PGM course, assignment 7: CRF learning for OCR (2012)"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        data = load_pa7().part_one
        train, validation, test = (
            (data[f"{part}1X"][:, 1:].astype(float), data[f"{part}1Y"])
            for part in ("Train", "Validation", "Test")
        )
        outcome = Outcome()
        setup.say("stochastic gradient descent at every λ")
        lambdas, given = data["Part1Lambdas"], data["ValidationAccuracy"]
        models = [_by_sgd(*train, float(lam)) for lam in lambdas]
        accuracy = np.array([model.score(*validation) for model in models])
        plain = models[int(np.argmin(lambdas))]
        outcome.rows.append(
            Row("accuracy on the training data, λ = 0", plain.score(*train), 0.96, digits=2)
        )
        outcome.rows.append(
            Row(
                "largest difference to the given validation accuracies",
                float(np.abs(accuracy - given).max()),
                0.0,
                must=0.01,
                lower=True,
                why="the vector of 11 values of λ",
            )
        )
        outcome.tables.append(
            Table(
                "Validation accuracy at every λ",
                ["λ", "given", "ours"],
                [[float(v) for v in row] for row in zip(lambdas, given, accuracy, strict=True)],
            )
        )
        best = float(lambdas[int(np.argmax(accuracy))])
        at_best = _by_sgd(*train, best).score(*test)
        outcome.rows.append(Row(f"test accuracy, λ = {best:g} by validation", at_best))
        setup.say("Newton, λ by cross-validation")
        chosen = CRFClassifierCV(
            CRFClassifier(solver="newton"),
            l2s=np.geomspace(0.1, 1000.0, 5 if setup.quick else 13).tolist(),
            cv=StratifiedKFold(5, shuffle=True, random_state=self.seed),
        ).fit(*train)
        outcome.rows.append(
            Row(
                "test accuracy, the optimum by Newton, λ by cross-validation",
                chosen.score(*test),
                must=at_best,
                why="the validation set is not needed",
            )
        )
        self._pictures(outcome, {"given": given, "ours": accuracy}, lambdas, chosen, test)
        return outcome

    def _pictures(
        self,
        outcome: Outcome,
        accuracies: dict[str, Any],
        lambdas: Array,
        model: CRFClassifierCV,
        test: tuple[Array, Array],
    ) -> None:
        outcome.pictures.append(
            bars(
                "Validation accuracy by λ",
                "The given values, and ours.",
                [f"{lam:g}" for lam in lambdas],
                accuracies,
                xlabel="λ",
                ylabel="validation accuracy",
                limits=(0.4, 1.0),
            )
        )
        best = model.estimator_
        weights = best.coef_[0].reshape(8, 16).T
        limit = float(np.abs(weights).max())
        figure, ax = plots.subplots(size=(2.4, 3.6))
        ax.imshow(weights, cmap="RdBu", vmin=-limit, vmax=limit)
        ax.set_axis_off()
        outcome.draw(
            "Weights of the pixels",
            "Blue pixels speak for a p.",
            figure,
            f"An image of 16 by 8 weights between −{limit:.2f} and {limit:.2f}.",
        )
        X, y = test
        letters = np.array(["q", "p"])
        outcome.pictures += [
            training("Newton's method", "Of the λ chosen by cross-validation.", best.fit_report_),
            confusion(
                "What is taken for what",
                "Test images, percent.",
                letters[y.astype(int)].tolist(),
                letters[np.asarray(model.predict(X)).astype(int)].tolist(),
            ),
        ]


def _by_sgd(X: Array, y: Array, lam: float) -> CRFClassifier:
    """The assignment's steps: one example each, in order, beginning with the second."""
    X, y = np.roll(X, -1, axis=0), np.roll(y, -1)
    passes = N_STEPS // len(y)
    solver = SGD(passes, period=passes, schedule="inverse_sqrt", shuffle=False, keep_best=False)
    return CRFClassifier(solver=solver, l2=lam * len(y)).fit(X, y)
