"""MatchingModel: learns what made the matchings, by every road; refuses what it cannot take."""

import numpy as np
import pytest

from chordal import MatchingModel, UnsupportedError
from chordal.datasets import make_parallel_sample
from chordal.inference.matching import MatchingInference
from chordal.metrics import alignment_error_rate
from chordal.potentials import matching_potentials
from chordal.preprocessing import AlignmentFeatures
from chordal.solvers.averaged_perceptron import AveragedPerceptron
from chordal.solvers.sgd import SGD


def made(n=60, seed=0):
    """Pairs whose best matching by known weights is the right one."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(*rng.integers(1, 6, size=2), 3)) for _ in range(n)]
    potentials = matching_potentials([x @ [2.0, -1.0, 0.5] for x in X])
    labels = MatchingInference().map(potentials).labels
    labels[labels == potentials.structure.label_counts - 1] = -1
    return X, np.split(labels, potentials.structure.variable_offsets[1:-1])


WAYS = {
    "block_frank_wolfe": {"solver": "block_frank_wolfe", "max_iter": 20, "random_state": 0},
    "frank_wolfe": {"solver": "frank_wolfe", "tol": 0.01},
    "cutting_plane": {"solver": "cutting_plane", "tol": 0.05},
    "passive_aggressive": {"solver": "passive_aggressive", "max_iter": 5, "random_state": 0},
    "one_slack": {"solver": "one_slack"},
    "subgradient": {
        "solver": SGD(max_iter=40, schedule="pegasos", average_after=1, random_state=0)
    },
    "averaged_perceptron": {"solver": AveragedPerceptron(max_iter=20, random_state=0)},
    "perceptron_sgd": {
        "objective": "perceptron",
        "solver": SGD(max_iter=20, schedule="constant", learning_rate=0.1, random_state=0),
    },
    "adam": {"solver": "adam", "max_iter": 40, "random_state": 0},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_learning_finds_the_rule(way):
    X, y = made()
    test_X, test_y = made(seed=1)
    model = MatchingModel(l2=0.1, **WAYS[way]).fit(X, y)
    assert model.score(test_X, test_y) > 0.93
    ratio = model.coef_ / model.coef_[0]
    np.testing.assert_allclose(ratio, [1.0, -0.5, 0.25], atol=0.12)
    again = MatchingModel(l2=0.1, **WAYS[way]).fit(X, y)
    np.testing.assert_array_equal(again.weights_, model.weights_)


def test_dual_solvers_agree_on_the_optimum():
    X, y = made(30)
    weight = np.linspace(0.5, 1.5, 30)
    values = [
        MatchingModel(solver=s, l2=1.0, tol=1e-3, max_iter=3000, random_state=0)
        .fit(X, y, sample_weight=weight)
        .objective_
        for s in ("one_slack", "frank_wolfe")
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=3e-3)


def test_tiny_matchings_have_a_likelihood():
    X, y = made(20)
    X, y = zip(*[(x, t) for x, t in zip(X, y, strict=True) if len(x) <= 3], strict=True)
    model = MatchingModel("likelihood", "lbfgs", "exhaustive", l2=0.1).fit(X, y)
    assert model.fit_report_.status.succeeded
    assert model.score(X, y) > 0.9


def test_alignment_of_words_beats_association():
    """AER on 300 sentences of which nothing but the words was seen: 200 others have links."""
    sample = make_parallel_sample(700, random_state=1)
    features = AlignmentFeatures().fit(sample.X)
    X = [features(*pair) for pair in sample.X]
    train, test = slice(0, 200), slice(400, 700)

    def error(part, found):
        return alignment_error_rate(sample.sure[part], found, sample.possible[part])

    def associated(part, column, threshold):
        potentials = matching_potentials(
            [x[..., column] for x in X[part]], [np.full(len(x), threshold) for x in X[part]]
        )
        labels = MatchingInference().map(potentials).labels
        labels[labels == potentials.structure.label_counts - 1] = -1
        return np.split(labels, potentials.structure.variable_offsets[1:-1])

    baselines = {}
    for column, name in enumerate(AlignmentFeatures.names[:4]):
        thresholds = np.linspace(0.0, 0.6, 13)
        best = min(thresholds, key=lambda t, c=column: error(train, associated(train, c, t)))
        baselines[name] = error(test, associated(test, column, best))
    perceptron = MatchingModel(solver=AveragedPerceptron(max_iter=10, random_state=0))
    for model in (perceptron, MatchingModel(tol=0.01, random_state=0)):
        model.fit(X[train], sample.y[train])
        assert error(test, model.predict(X[test])) < 0.7 * min(baselines.values()), baselines


def test_sentences_are_taken_by_a_feature_function():
    sample = make_parallel_sample(40, random_state=0)
    features = AlignmentFeatures().fit(sample.X)
    whole = MatchingModel(features=features, tol=0.1, random_state=0).fit(sample.X, sample.y)
    arrays = [features(*pair) for pair in sample.X]
    apart = MatchingModel(tol=0.1, random_state=0).fit(arrays, sample.y)
    np.testing.assert_array_equal(whole.weights_, apart.weights_)
    with pytest.raises(TypeError, match=r"X\[0\] must be a pair"):
        whole.predict([["one sentence"]])


def test_bad_input():
    X, y = made(4)
    model = MatchingModel()
    with pytest.raises(ValueError, match="takes target 0 twice"):
        model.fit([np.zeros((2, 2, 1))], [[0, 0]])
    with pytest.raises(ValueError, match=r"from 0 to 1, or -1 for none"):
        model.fit([np.zeros((2, 2, 1))], [[0, 2]])
    with pytest.raises(ValueError, match="must be 2 whole numbers"):
        model.fit([np.zeros((2, 2, 1))], [[0.0, 1.0]])
    with pytest.raises(ValueError, match="same length, got 4 and 3"):
        model.fit(X, y[:3])
    with pytest.raises(ValueError, match="NaN or infinite"):
        model.fit([np.full((1, 1, 1), np.inf)], [[0]])
    with pytest.raises(ValueError, match=r"got shape \(2, 2\)"):
        model.fit([np.zeros((2, 2))], [[0, 1]])
    with pytest.raises(UnsupportedError, match="'likelihood' needs log_partition, marginals"):
        MatchingModel("likelihood", "lbfgs", "matching").fit(X, y)
    with pytest.raises(UnsupportedError, match="'exponentiated_gradient' works only on chains"):
        MatchingModel(solver="exponentiated_gradient").fit(X, y)
    fitted = model.fit(X, y)
    with pytest.raises(ValueError, match="2 features per pair; the model needs 3"):
        fitted.predict([np.zeros((1, 1, 2))])


def test_sides_may_be_empty():
    X, y = made(10)
    model = MatchingModel().fit([*X, np.zeros((0, 2, 3)), np.zeros((2, 0, 3))], [*y, [], [-1, -1]])
    found = model.predict([np.zeros((0, 2, 3)), np.zeros((2, 0, 3)), X[0]])
    assert [len(f) for f in found] == [0, 2, len(X[0])]
    assert found[1].tolist() == [-1, -1]
