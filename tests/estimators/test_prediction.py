"""By which way models predict: the best labelling, or the best label of each variable."""

import warnings

import numpy as np
import pytest

import chordal
from chordal import ChainCRF, GraphCRF, GridCRF, MatchingModel, UnsupportedError
from chordal.estimators import CollapsedLabellingWarning
from chordal.estimators._training import judging
from chordal.inference import INFERENCE, most_probable_labels
from chordal.inference.loopy_bp import LoopyBPInference


def relational(degree=30, mixing=0.05, noise=0.4, n=500, n_classes=7, seed=0):
    """A graph whose edges mostly join nodes of one class, and noisy hints of the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    edges = set()
    while len(edges) < n * degree // 2:
        a, b = rng.integers(0, n, 2).tolist()
        if a != b and (y[a] == y[b] or rng.random() < mixing):
            edges.add((min(a, b), max(a, b)))
    features = np.eye(n_classes)[y] + noise * rng.normal(size=(n, n_classes))
    return (features, np.array(sorted(edges))), y


def coupled_crf(**settings):
    return GraphCRF("pseudo_likelihood", l2={"edges": 100.0}, **settings)


@pytest.fixture(scope="module")
def coupled():
    x, y = relational()
    return x, y, coupled_crf().fit([x], [y])


def test_strong_links_predict_by_marginals(coupled):
    """One label everywhere is the best labelling by far, and most marginals are right."""
    x, y, model = coupled
    report = model.fit_report_
    assert report.prediction == "mpm"
    assert report.prediction_scores["map"] < 0.3 < 0.9 < report.prediction_scores["mpm"]
    found = model.predict([x])[0]
    assert np.mean(found == y) == report.prediction_scores["mpm"] == model.score([x], [y])
    assert np.mean(model.predict([x], method="mpm")[0] == found) == 1.0
    with pytest.warns(CollapsedLabellingWarning):
        best = model.predict([x], method="map")[0]
    assert np.mean(best == y) == report.prediction_scores["map"]
    potentials = model.potentials([x])
    assert potentials.score(best)[0] > potentials.score(y)[0] + 100.0
    assert "predicts by mpm" in str(report)


def test_files_keep_the_way(coupled, tmp_path):
    x, _, model = coupled
    chordal.save(model, tmp_path / "model")
    again = chordal.load(tmp_path / "model")
    assert again.fit_report_.prediction == "mpm"
    assert again.fit_report_ == model.fit_report_
    np.testing.assert_array_equal(again.predict([x])[0], model.predict([x])[0])
    facts, arrays = model.to_state()
    facts["report"]["prediction"] = "guess"
    with pytest.raises(LookupError):
        coupled_crf().from_state(facts, arrays)


def test_asked_for(coupled):
    x, y, model = coupled
    with pytest.warns(CollapsedLabellingWarning):
        fixed = coupled_crf(prediction="map").fit([x], [y]).predict([x])[0]
    assert len(np.unique(fixed)) < 3
    by_marginals = coupled_crf(prediction="mpm").fit([x], [y])
    assert by_marginals.fit_report_.prediction is None  # nothing had to be compared
    np.testing.assert_array_equal(by_marginals.predict([x])[0], model.predict([x])[0])
    with pytest.raises(ValueError, match="prediction must be one of 'auto', 'map', 'mpm'"):
        GraphCRF(prediction="best").fit([x], [y])


def rings(n=6, seed=1):
    rng = np.random.default_rng(seed)
    ring = np.array([(i, (i + 1) % 5) for i in range(5)])
    X = [(rng.normal(size=(5, 2)), ring) for _ in range(n)]
    return X, [(x[:, 0] + rng.normal(size=5) > 0).astype(int) for x, _ in X]


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "piecewise"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_both_ways(objective, seed):
    """By enumeration, the scores that the report tells, and the better one is predicted."""
    X, y = rings(seed=seed)
    model = GraphCRF(objective, l2=0.3).fit(X, y)
    potentials, exhaustive = model.potentials(X), INFERENCE.resolve("exhaustive")
    best = exhaustive.map(potentials).labels
    likely = most_probable_labels(exhaustive.marginals(potentials).parts)
    gold = np.concatenate(y)
    expected = {"map": np.mean(best == gold), "mpm": np.mean(likely == gold)}
    assert model.fit_report_.prediction_scores == pytest.approx(expected)
    way = "mpm" if expected["mpm"] > expected["map"] else "map"
    assert model.fit_report_.prediction == way
    found = {"map": best, "mpm": likely}[way]
    np.testing.assert_array_equal(np.concatenate(model.predict(X)), found)


def test_unobserved_labels_and_weights_do_not_count():
    X, y = rings()
    hidden = [[None if t == 0 else int(v) for t, v in enumerate(own)] for own in y]
    model = GraphCRF(l2=0.3).fit(X, hidden)
    found = {way: model.predict(X, method=way) for way in ("map", "mpm")}
    for way, score in model.fit_report_.prediction_scores.items():
        assert score == pytest.approx(np.mean(np.array(found[way])[:, 1:] == np.array(y)[:, 1:]))
    weight = np.array([3.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    model = GraphCRF(l2=0.3).fit(X, y, weight)
    for way, score in model.fit_report_.prediction_scores.items():
        right = np.array(
            [np.mean(a == b) for a, b in zip(model.predict(X, method=way), y, strict=True)]
        )
        assert score == pytest.approx(np.average(right, weights=weight))


def test_nothing_is_compared_elsewhere():
    X, y = rings()
    chains = [x for x, _ in X]
    assert ChainCRF().fit(chains, y).fit_report_.prediction is None
    assert GraphCRF("hinge").fit(X, y).fit_report_.prediction is None  # scores, no probabilities
    only = GraphCRF(inference="mean_field").fit(X, y)
    assert only.fit_report_.prediction is None
    np.testing.assert_array_equal(only.predict(X), only.predict(X, method="mpm"))
    pairs = [np.random.default_rng(0).normal(size=(3, 3, 1)) for _ in range(4)]
    model = MatchingModel("likelihood", inference="exhaustive").fit(pairs, [[0, 1, 2]] * 4)
    assert model.fit_report_.prediction is None  # most probable targets may be no matching


def test_chains_by_marginals():
    """One short sequence takes a quick way, which gives the best labelling."""
    X = [[["a"], ["a"]], [["b"], ["b"]], [["a"], ["b"]]]
    y = [["A", "B"], ["B", "A"], ["A", "A"]]
    best, likely = (ChainCRF(prediction=way, l2=0.1).fit(X, y) for way in ("map", "mpm"))
    unseen = [[["?"], ["?"], ["?"]]]
    for x in [*([x] for x in X), unseen]:
        assert likely.predict(x) == likely.predict(x, method="mpm") == best.predict(x, method="mpm")
        assert best.predict(x) == likely.predict(x, method="map")
        codes = likely.classes_[likely.predict_codes(x)].tolist()
        assert codes == likely.predict(x)[0]


@pytest.mark.parametrize(("prediction", "inference"), [("map", "mean_field"), ("mpm", "trw_s")])
def test_what_inference_does_not_answer(prediction, inference):
    X, y = rings()
    model = GraphCRF("pseudo_likelihood", prediction=prediction, inference=inference)
    with pytest.raises(UnsupportedError, match=f"prediction={prediction!r} needs"):
        model.fit(X, y)


def images(shares, seed=0, noise=1.0):
    """Images whose left part has label 0, and one noisy channel."""
    rng = np.random.default_rng(seed)
    y = [np.repeat((np.arange(8) >= 8 * share)[None].astype(int), 8, axis=0) for share in shares]
    return [own[..., None] + noise * rng.normal(size=(8, 8, 1)) for own in y], y


def test_no_alarm_where_one_label_is_right():
    """Images of one label in training or at prediction, however noisy, are no collapse."""
    X, y = images([0.0, 0.5, 1.0, 0.25, 1.0])
    model = GridCRF(prediction="map").fit(X, y)
    assert model.fit_report_.label_share == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapsedLabellingWarning)
        found = model.predict(X)
        assert any(len(np.unique(own)) == 1 for own in found)
        mixed, labels = images([0.5, 0.25, 0.6], noise=0.4)
        model = GridCRF(prediction="map").fit(mixed, labels)
        assert model.fit_report_.label_share <= 0.9
        pure, _ = images([1.0, 0.0], seed=3, noise=0.4)
        assert all(len(np.unique(own)) == 1 for own in model.predict(pure))
        small = [image[:3, :3] for image in pure]
        model.predict(small)


def test_alarm_where_links_drown_observations():
    X, y = images([0.5, 0.4, 0.6], noise=0.1)
    model = GridCRF(prediction="map").fit(X, y)
    model.weights_ = model.weights_.copy()
    model.weights_[model.layout_.slices["edges"]] += np.array([50.0, 0.0, 50.0])
    with pytest.warns(CollapsedLabellingWarning, match="3 of 3 graphs got one label everywhere"):
        found = model.predict(X)
    assert all(len(np.unique(own)) == 1 for own in found)
    known = [np.full((8, 8), 0)] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapsedLabellingWarning)
        model.predict(X, allowed_labels=known)  # they were asked for


def test_large_graphs_are_compared_by_rough_answers(coupled, monkeypatch):
    """They choose the same way, at nearly the same scores; a method of one's own is not altered."""
    x, y, model = coupled
    monkeypatch.setattr(judging, "LARGE", 0)
    found = coupled_crf().fit([x], [y]).fit_report_
    assert found.prediction == model.fit_report_.prediction
    assert found.prediction_scores == pytest.approx(model.fit_report_.prediction_scores, abs=0.01)
    asked = []
    rough = LoopyBPInference.rough
    monkeypatch.setattr(LoopyBPInference, "rough", lambda self: asked.append(self) or rough(self))
    coupled_crf(inference=LoopyBPInference()).fit([x], [y])
    assert not asked
    coupled_crf().fit([x], [y])
    assert [method.tol for method in asked] == [1e-8]


@pytest.mark.parametrize("question", ["predict", "predict_marginals", "k_best", "sample"])
def test_scores_that_overflow_are_an_error(question):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 2)) for _ in range(20)]
    crf = ChainCRF().fit(X, [(x[:, 0] > 0).astype(int) for x in X])
    large = [X[0], np.array([[0.0, 1.0], [1e308, -1e308], [1e308, 1e308]]), X[1]]
    with pytest.raises(ValueError, match=r"the scores of X\[1\] overflow: .* scale them"):
        getattr(crf, question)(large)
