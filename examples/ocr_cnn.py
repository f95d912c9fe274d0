"""Words of handwritten digits, read by a convolutional network with a chain above it.

Run it by `python examples/ocr_cnn.py`; it needs PyTorch and scikit-learn, and prints a table. Words
are numbers of five digits, most of which are one more than the digit before, such as 67892; they
are written with scikit-learn's images of 8 × 8 pixels under noise. With the real letters of OCR in
the folder named by CHORDAL_DATA, `python examples/ocr_cnn.py letters` reads those: one of ten folds
is the test.

Words are few here. Joint training from the start then leaves the network behind, since the chain
explains much by itself; the network first, the chain second and both at last read best.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from chordal.datasets import load_ocr_letters
from chordal.metrics import token_accuracy, zero_one_accuracy
from chordal.torch import NeuralCRF

Words = tuple[list[NDArray[Any]], list[NDArray[Any]]]


def make_words(
    images: NDArray[Any], labels: NDArray[Any], n: int, noise: float, seed: int
) -> Words:
    """Numbers that mostly count up, written with these images."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        steps = np.where(rng.random(5) < 0.8, 1, rng.integers(10, size=5))
        digits = (rng.integers(10) + np.cumsum(steps)) % 10
        chosen = [rng.choice(np.flatnonzero(labels == digit)) for digit in digits]
        X.append(images[chosen] + noise * rng.normal(size=(5, *images.shape[1:])))
        y.append(digits)
    return X, y


def digits(n_train: int, n_test: int, noise: float) -> tuple[Words, Words]:
    """Training and test words; no image is in both."""
    data = load_digits()
    parts = train_test_split(data.images / 16.0, data.target, test_size=0.4, random_state=0)
    train, test, train_labels, test_labels = parts
    return (
        make_words(train, train_labels, n_train, noise, 0),
        make_words(test, test_labels, n_test, noise, 1),
    )


def letters() -> tuple[Words, Words]:
    """The words of OCR: nine folds to learn from, the first to test."""
    words = load_ocr_letters()
    train, test = np.flatnonzero(words.folds != 0), np.flatnonzero(words.folds == 0)

    def chosen(own: NDArray[Any]) -> Words:
        return [words.images[i] for i in own], [words.y[i] for i in own]

    return chosen(train), chosen(test)


def main(
    source: str = "digits", n_train: int = 300, n_test: int = 200, passes: int = 12
) -> dict[str, tuple[float, float]]:
    """Shares of characters and of words that are right, by the way of training."""
    (X, y), (X_test, y_test) = letters() if source == "letters" else digits(n_train, n_test, 0.3)
    found: dict[str, tuple[float, float]] = {}
    print(f"{'':20} {'characters':>10} {'words':>6}")
    for training in ("joint", "two_stage", "two_stage_joint"):
        model = NeuralCRF(
            "cnn",
            channels=16,
            dropout=0.2,
            training=training,
            learning_rate=0.003,
            schedule="cosine",
            batch_size=10,
            max_iter=passes,
            random_state=0,
        ).fit(X, y)
        answers = {training: model.predict(X_test)}
        if training == "two_stage":  # its network learned without the chain
            alone = [model.classes_[s.argmax(axis=1)] for s in unlinked(model, X_test)]
            answers = {"network alone": alone, **answers}
        for name, read in answers.items():
            found[name] = token_accuracy(y_test, read), zero_one_accuracy(y_test, read)
            print(f"{name:20} {found[name][0]:10.3f} {found[name][1]:6.3f}")
    return found


def unlinked(model: NeuralCRF, X: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """The scores of the network, without the weights of first and last labels."""
    scores = model.node_scores(X)
    for own in scores:
        own[0] -= model.crf_.start_
        own[-1] -= model.crf_.end_
    return list(scores)


if __name__ == "__main__":
    main(*sys.argv[1:2])
