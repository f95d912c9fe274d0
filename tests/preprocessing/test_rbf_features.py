"""RBFFeatures: scikit-learn's contract, the formula, and the choice of centres."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from chordal import CRFClassifier, RBFFeatures
from chordal.datasets import make_curved_classes


@parametrize_with_checks([RBFFeatures(), RBFFeatures(width=2.0, include_bias=True)])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


X, Y = make_curved_classes(60)


def test_formula():
    found = RBFFeatures(width=0.7).fit(X[:10]).transform(X)
    expected = [[np.exp(-((x - c) ** 2).sum() / (2 * 0.7**2)) for c in X[:10]] for x in X]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_bias_comes_first():
    plain, with_bias = (
        RBFFeatures(5, include_bias=b, random_state=0).fit(X) for b in (False, True)
    )
    found = with_bias.transform(X)
    assert (found[:, 0] == 1.0).all()
    assert (found[:, 1:] == plain.transform(X)).all()
    assert with_bias.get_feature_names_out().tolist() == [f"rbffeatures{k}" for k in range(6)]


def test_centres():
    assert (RBFFeatures().fit(X).centres_ == X).all()
    given = [[0.0, 1.0], [2.0, 3.0]]
    assert (RBFFeatures(given).fit(X).centres_ == given).all()
    points = {tuple(x) for x in X}
    drawn = RBFFeatures(7, choose="sample", random_state=1).fit(X).centres_
    assert {tuple(c) for c in drawn} <= points
    assert len(np.unique(drawn, axis=0)) == 7
    means = RBFFeatures(7, random_state=1).fit(X).centres_
    assert not {tuple(c) for c in means} <= points
    for choose in ("sample", "kmeans"):
        a, b = (RBFFeatures(7, choose=choose, random_state=3).fit(X).centres_ for _ in range(2))
        assert (a == b).all()


def test_cluster_means_cover_the_data():
    """Every point is nearer to a mean than to the nearest of as many points at random."""
    means, drawn = (
        RBFFeatures(6, choose=choose, random_state=0).fit(X).centres_
        for choose in ("kmeans", "sample")
    )
    to = [((X[:, None] - c) ** 2).sum(axis=2).min(axis=1).mean() for c in (means, drawn)]
    assert to[0] < to[1]


def test_curved_classes_become_linear():
    train, test = make_curved_classes(400), make_curved_classes(400, random_state=1)
    linear = CRFClassifier().fit(*train).score(*test)
    curved = make_pipeline(RBFFeatures(40, width=0.8, random_state=0), CRFClassifier(l2=0.1))
    assert curved.fit(*train).score(*test) > linear + 0.08


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"width": 0.0}, "width must be a number above 0"),
        ({"choose": "grid"}, "choose must be one of 'kmeans', 'sample'"),
        ({"centres": 0}, "centres must be an integer of at least 1"),
        ({"centres": 1.5}, "centres must be an integer"),
        ({"centres": 61}, r"centres must be at most the number of samples \(60\), got 61"),
        ({"centres": [[1.0]]}, "centres must have 2 columns, as X has, got 1"),
        ({"centres": [[1.0, np.nan]]}, "centres contains NaN"),
        ({"centres": [1.0, 2.0]}, "Expected 2D array"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RBFFeatures(**parameters).fit(X)
