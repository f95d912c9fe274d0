"""Draw how linear classifiers of features divide the plane.

Run it by `python examples/decision_surfaces.py`; it writes report/decision_surfaces.png.

Logistic regression is the simplest conditional random field: one variable per example. Linear in
quadratic, cubic or radial features of x, it has curved borders. The last two pictures show three
classes in a row, which linear functions can separate: the likelihood finds them, while squared
error on class indicators all but loses the class in the middle.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from rich.console import Console
from rich.table import Table
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from chordal import CRFClassifier, RBFFeatures, plots
from chordal.datasets import make_curved_classes, make_masked_classes


def polynomial(degree: int, penalty: float) -> Any:
    """Logistic regression of all products of up to `degree` coordinates; λ‖β‖² is l2 = 2λ."""
    features = PolynomialFeatures(degree, include_bias=False)
    return make_pipeline(features, CRFClassifier(l2=2.0 * penalty))


def radial(width: float, penalty: float) -> Any:
    """Logistic regression of the distances to all training points."""
    return make_pipeline(RBFFeatures(width=width), CRFClassifier(l2=2.0 * penalty))


TWO, THREE, ROW = make_curved_classes(200), make_curved_classes(200, 3), make_masked_classes(200)

# Title, data, and model; of the first, the three probabilities are drawn as well.
PICTURES = [
    ("Quadratic, λ = 1", THREE, polynomial(2, 1.0)),
    ("Cubic, λ = 1", TWO, polynomial(3, 1.0)),
    ("Radial, width 0.5, λ = 0.1", TWO, radial(0.5, 0.1)),
    ("Linear, likelihood", ROW, CRFClassifier(l2=0.1)),
    ("Linear, squared error", ROW, CRFClassifier("squared_error", l2=0.1)),
]


def main(output: Path = Path("report")) -> dict[str, float]:
    """Fit, draw, and write the picture into the folder `output`; accuracies by title."""
    table = Table(title="Share of points on the right side", title_justify="left")
    table.add_column("Model")
    table.add_column("Accuracy", justify="right")
    scores = {}
    with mpl.rc_context({"font.size": 9.0}):
        figure, axes = plt.subplots(2, 4, figsize=(14.0, 6.8), layout="constrained")
        places = iter(axes.flat)
        for title, (X, y), model in PICTURES:
            scores[title] = model.fit(X, y).score(X, y)
            table.add_row(title, f"{scores[title]:.3f}")
            for label in model.classes_ if len(scores) == 1 else ():
                ax = next(places)
                plots.DecisionSurfaceDisplay.from_estimator(model, X, y, label=label, ax=ax)
                ax.set_title(f"p(y = {label} | x)")
            likely = "squared error" not in title  # its scores are no logarithms of probabilities
            ax = next(places)
            plots.DecisionSurfaceDisplay.from_estimator(model, X, y, probabilities=likely, ax=ax)
            ax.set_title(f"{title}: {scores[title]:.1%} right")
        output.mkdir(parents=True, exist_ok=True)
        path = output / "decision_surfaces.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
    console = Console()
    console.print(table)
    console.print(f"Picture: {path}", soft_wrap=True, highlight=False)
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("report"), help="folder of the picture")
    main(parser.parse_args().output)
