"""Points of the plane: reproducible, and of the kind that they promise."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from chordal import CRFClassifier
from chordal.datasets import make_curved_classes, make_masked_classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curved_classes(n_classes):
    X, y = make_curved_classes(500, n_classes)
    again = make_curved_classes(500, n_classes)
    assert (again[0] == X).all()
    assert (again[1] == y).all()
    assert X.shape == (500, 2)
    assert np.abs(X).max() <= 2.5
    assert np.bincount(y).min() > 50
    assert len(np.bincount(y)) == n_classes
    assert CRFClassifier().fit(X, y).score(X, y) < 0.9
    assert (make_curved_classes(500, n_classes, random_state=1)[0] != X).all()


def test_labels_are_drawn_from_the_softmax():
    """The share of class 1 at points where its score is f is σ(4 f)."""
    X, y = make_curved_classes(40_000)
    f = X[:, 1] + 1.4 * X[:, 0] - 0.35 * X[:, 0] ** 3
    for low in np.arange(-0.6, 0.6, 0.2):
        near = (f >= low) & (f < low + 0.2)
        expected = (1.0 / (1.0 + np.exp(-4.0 * f[near]))).mean()
        assert abs(y[near].mean() - expected) < 4.0 * 0.5 / np.sqrt(near.sum())


def test_squared_error_masks_the_middle_class():
    X, y = make_masked_classes(600)
    squared = LinearRegression().fit(X, np.eye(3)[y]).predict(X).argmax(axis=1)
    assert (squared[y == 1] == 1).mean() < 0.5
    assert CRFClassifier().fit(X, y).score(X, y) > 0.98


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (make_curved_classes, {"n_samples": 0}, "n_samples must be an integer of at least 1"),
        (make_curved_classes, {"n_classes": 4}, "n_classes must be 2 or 3, got 4"),
        (make_curved_classes, {"sharpness": -1.0}, "sharpness must be a number of at least 0"),
        (make_masked_classes, {"n_samples": 2.5}, "n_samples must be an integer"),
        (make_masked_classes, {"spread": None}, "spread must be a number"),
    ],
)
def test_bad_parameters(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters)
