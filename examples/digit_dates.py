"""Read handwritten dates: what a chain CRF gains over models that read digit by digit.

Run it by `make demo`, or `python examples/digit_dates.py`; it writes report/index.html.

Every model sees the same: the 64 pixels of a digit and its position in the date. Three of them
decide on each digit alone. The full CRF also learns which digits follow each other, with weights
of their own for each of the seven transitions of a date, and decides on the date as a whole.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _digit_dates_report import write_report
from rich.console import Console
from rich.table import Table
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from chordal import ChainCRF
from chordal.datasets import load_digit_dates
from chordal.metrics import hamming_accuracy, zero_one_accuracy

STRENGTHS = (0.1, 1.0, 10.0)  # C in scikit-learn; l2 = 1 / C


def with_position(x: np.ndarray) -> np.ndarray:
    """Pixels and, one-hot, the position: [8, 64] → [8, 72]."""
    return np.hstack([x, np.eye(len(x))])


def transition_position(x: np.ndarray) -> np.ndarray:
    """One-hot position of each transition: a table of weights for each."""
    return np.eye(len(x) - 1)


class DigitByDigit(BaseEstimator):
    """A classifier of single digits, taking and giving whole dates."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> DigitByDigit:
        self.classifier_ = clone(self.classifier).fit(np.concatenate(X), np.concatenate(y))
        return self

    def predict(self, X: Sequence[Any]) -> list[np.ndarray]:
        labels = self.classifier_.predict(np.concatenate(X))
        return np.split(labels, np.cumsum([len(x) for x in X])[:-1])


def linear_svc(C: float) -> DigitByDigit:
    return DigitByDigit(LinearSVC(C=C, random_state=0))


def logistic_regression(C: float) -> DigitByDigit:
    return DigitByDigit(LogisticRegression(C=C, max_iter=1000))


def unary_crf(C: float) -> ChainCRF:
    return ChainCRF(l2=1.0 / C, transitions="none", n_jobs=-1)


def full_crf(C: float) -> ChainCRF:
    return ChainCRF(l2=1.0 / C, transition_features=transition_position, n_jobs=-1)


MODELS: dict[str, Callable[[float], Any]] = {
    "Linear SVC": linear_svc,
    "Logistic regression": logistic_regression,
    "CRF, unary only": unary_crf,
    "CRF, full": full_crf,
}


@dataclass(frozen=True)
class Reading:
    """One model's answers on the test dates."""

    name: str
    strength: float
    model: Any
    predicted: list[np.ndarray]
    hamming: float
    zero_one: float


def choose_strength(build: Callable[[float], Any], X: list[Any], y: list[Any]) -> float:
    """The C that reads a held-out quarter of the training dates best.

    Training dates share images, so the scores are somewhat high, for every model alike.
    """
    X_fit, X_held, y_fit, y_held = train_test_split(X, y, test_size=0.25, random_state=0)
    scores = [
        hamming_accuracy(y_held, build(C).fit(X_fit, y_fit).predict(X_held)) for C in STRENGTHS
    ]
    return STRENGTHS[int(np.argmax(scores))]


@contextmanager
def stage(console: Console, text: str) -> Iterator[None]:
    """A live line while it lasts, where output is a terminal; a plain one when it is done."""
    began = time.perf_counter()
    with console.status(f"{text} …"):
        yield
    console.print(f"{text:<34}{time.perf_counter() - began:6.1f} s", highlight=False)


def results_table(readings: list[Reading]) -> Table:
    table = Table(title="Handwritten dates, test set", title_justify="left")
    table.add_column("Model")
    table.add_column("C", justify="right")
    table.add_column("Average Hamming", justify="right")
    table.add_column("Zero-one", justify="right")
    best = max(reading.zero_one for reading in readings)
    for r in readings:
        style = "bold" if r.zero_one == best else ""
        table.add_row(
            r.name, f"{r.strength:g}", f"{r.hamming:.3f}", f"{r.zero_one:.3f}", style=style
        )
    return table


def main(
    output: Path = Path("report"),
    n_train: int = 400,
    n_test: int = 1000,
    random_state: int = 0,
    picture: Path | None = None,
) -> list[Reading]:
    """Train, compare, and write the report into the folder `output`."""
    console = Console()
    with stage(console, f"Write {n_train:,} + {n_test:,} dates"):
        dates = load_digit_dates(n_train, n_test, random_state=random_state)
        X_train = [with_position(x) for x in dates.X_train]
        X_test = [with_position(x) for x in dates.X_test]

    readings = []
    for name, build in MODELS.items():
        # Small matrices: one thread of BLAS is faster than several.
        with stage(console, f"Train {name}"), threadpool_limits(1, user_api="blas"):
            C = choose_strength(build, X_train, dates.y_train)
            model = build(C).fit(X_train, dates.y_train)
            predicted = model.predict(X_test)
        hamming = hamming_accuracy(dates.y_test, predicted)
        zero_one = zero_one_accuracy(dates.y_test, predicted)
        readings.append(Reading(name, C, model, predicted, hamming, zero_one))

    path = output / "index.html"
    with stage(console, "Write the report"):
        smudge = np.tile(np.mean(dates.X_train, axis=(0, 1)), (8, 1))  # eight average images
        pairs = readings[-1].model.predict_marginals([with_position(smudge)], "transitions")[0]
        write_report(path, dates, readings, smudge[0], pairs, picture)
    console.print(results_table(readings))
    console.print(f"Report: {path}", soft_wrap=True, highlight=False)
    return readings


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("report"), help="folder of the report")
    parser.add_argument("--picture", type=Path, help="also save the README's picture here")
    options = parser.parse_args()
    main(options.output, picture=options.picture)
