"""Label the pixels of noisy pictures: a network says what a pixel shows, a grid CRF links them.

Run it by `python examples/segmentation_network.py`; it needs PyTorch, and prints a table. Pictures
are disks, bars and rings of random places under bimodal noise, after Kumar and Hebert (2003): each
colour has two peaks of brightness, and they lie in turn. No line between dark and bright parts the
colours, which a linear model of a pixel needs and a network does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import GridCRF
from chordal.torch import NeuralCRF

Image = NDArray[Any]
PEAKS = np.array([[0.1, 0.6], [0.35, 0.85]])  # of both colours


def make_pictures(n: int, size: int, seed: int) -> tuple[list[Image], list[Image]]:
    """Noisy pictures [size, size, 1], and the colours of their pixels."""
    rng, X, y = np.random.default_rng(seed), [], []
    rows, columns = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    for k in range(n):
        a, b = rng.uniform(-0.4, 0.4, size=2)
        distance = np.hypot(rows - a, columns - b)
        bars = (np.abs(rows - a) < 0.2) | (np.abs(columns - b) < 0.2)
        ring = (distance > 0.4) & (distance < 0.8)
        shape = (distance < 0.6, bars, ring)[k % 3].astype(int)
        peak = PEAKS[shape, rng.integers(2, size=shape.shape)]
        X.append((peak + 0.09 * rng.normal(size=shape.shape))[..., None])
        y.append(shape)
    return X, y


def main(n_train: int = 24, n_test: int = 24, size: int = 12, passes: int = 20) -> dict[str, float]:
    """The share of test pixels that are right, by model."""
    (X, y), (X_test, y_test) = make_pictures(n_train, size, 0), make_pictures(n_test, size, 1)
    links = GridCRF(l2=0.1)
    linear = GridCRF(l2=0.1).fit(X, y)
    model = NeuralCRF(
        "mlp",
        links,
        hidden=16,
        n_layers=2,
        training="two_stage_joint",
        learning_rate=0.01,
        schedule="cosine",
        batch_size=2,
        max_iter=passes,
        random_state=0,
    ).fit(X, y)
    found = {
        "linear, pixels alone": alone(linear, X_test, y_test),
        "linear, linked": linear.score(X_test, y_test),
        "network, pixels alone": alone(model, X_test, y_test),
        "network, linked": model.score(X_test, y_test),
    }
    for name, score in found.items():
        print(f"{name:24} {score:.3f}")
    return found


def alone(model: GridCRF | NeuralCRF, X: list[Image], y: list[Image]) -> float:
    """The share of pixels that are right by their own scores."""
    pairs = zip(model.node_scores(X), y, strict=True)
    return float(np.mean([model.classes_[own.argmax(-1)] == labels for own, labels in pairs]))


if __name__ == "__main__":
    main()
