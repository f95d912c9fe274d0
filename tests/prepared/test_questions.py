"""Questions about prepared data have the answers that they have in memory."""

import numpy as np
import pytest

from chordal import (
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    InfeasibleError,
    TypedGraphCRF,
    UnsupportedError,
)
from chordal.estimators._training import preparing

RNG = np.random.default_rng(1)
X = [
    [[f"w{RNG.zipf(1.5)}", f"t{RNG.integers(5)}"] for _ in range(RNG.integers(1, 7))]
    for _ in range(40)
]
Y = [[f"L{int(token[1][1:]) % 3}" for token in x] for x in X]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 7)


@pytest.fixture
def fitted():
    return ChainCRF(max_iter=8, random_state=0).fit(
        X[:15], Y[:15]
    )  # later ones have new attributes


@pytest.fixture
def data(tmp_path):
    return ChainCRF().prepare(tmp_path / "data", X, Y)


def test_predictions(fitted, data, tmp_path):
    assert data.n_parts > 2
    assert fitted.predict(data) == fitted.predict(X)
    assert fitted.predict(tmp_path / "data") == fitted.predict(X)
    assert fitted.predict(str(tmp_path / "data")) == fitted.predict(X)
    assert fitted.predict(data, method="mpm") == fitted.predict(X, method="mpm")
    np.testing.assert_array_equal(fitted.predict_codes(data), fitted.predict_codes(X))
    assert fitted.predict([data, data]) == 2 * fitted.predict(X)
    assert fitted.predict([data, str(tmp_path / "data")]) == 2 * fitted.predict(X)
    assert fitted.score([str(tmp_path / "data")] * 2) == fitted.score(data)
    with pytest.raises(TypeError, match=r"X\[0\] must be a list of tokens"):
        fitted.predict(["no", "paths"])


@pytest.mark.parametrize("question", ["predict_marginals", "node_scores", "entropy"])
def test_numbers(fitted, data, question):
    found, expected = getattr(fitted, question)(data), getattr(fitted, question)(X)
    assert len(found) == len(expected)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)


def test_samples_of_parts_do_not_repeat(fitted, data):
    drawn = fitted.sample([data, data], 5)
    assert drawn[: len(X)] != drawn[len(X) :]
    assert drawn == fitted.sample([data, data], 5)


@pytest.mark.parametrize("question", ["predict", "k_best"])
def test_errors_number_examples_of_all_parts(tmp_path, question):
    X, Y = [[["a"], ["b"]]] * 50 + [[["a"]] * 3], [["A", "B"]] * 50 + [["A"] * 3]
    data = ChainCRF().prepare(tmp_path / "data", X, Y)
    ask = getattr(ChainCRF(max_iter=2, tol=0).fit(X, Y), question)
    assert data.n_parts > 1
    for given in (X, data):
        with pytest.raises(InfeasibleError, match="no labelling of example 50 is allowed"):
            ask(given, allowed_transitions=[("A", "B")])


def test_other_questions(fitted, data):
    assert fitted.k_best(data, 2)[3] == fitted.k_best(X, 2)[3]
    assert fitted.score(data) == pytest.approx(fitted.score(X, Y))
    transitions = fitted.predict_marginals(data, "transitions")
    np.testing.assert_allclose(transitions[5], fitted.predict_marginals(X, "transitions")[5])


def test_labels_that_are_not_observed_do_not_count(fitted, tmp_path):
    partly = [[None if i % 3 else label for i, label in enumerate(y)] for y in Y]
    data = ChainCRF().prepare(tmp_path / "partly", X, partly)
    assert fitted.score(data) == pytest.approx(fitted.score(X, partly))


def test_arrays_in_dicts(tmp_path):
    rows = [[{"w": token[0], "v": np.arange(2.0)} for token in x] for x in X]
    model = ChainCRF(max_iter=5).fit(rows[:15], Y[:15])
    assert model.predict(ChainCRF().prepare(tmp_path / "data", rows, Y)) == model.predict(rows)
    plain = [[{"w": token[0]} for token in x] for x in X]
    assert model.predict(ChainCRF().prepare(tmp_path / "plain", plain, Y)) == model.predict(plain)
    other = [[{"w": token[0], "u": np.arange(2.0)} for token in x] for x in X]
    with pytest.raises(ValueError, match="'u', which was not in the training"):
        model.predict(ChainCRF().prepare(tmp_path / "other", other, Y))


@pytest.mark.filterwarnings("ignore")
def test_other_estimators(tmp_path):
    table = RNG.normal(size=(60, 3))
    classes = (table[:, 0] > 0).astype(int)
    model = CRFClassifier().fit(table[:30], classes[:30])
    data = CRFClassifier().prepare(tmp_path / "table", table, classes)
    np.testing.assert_array_equal(model.predict(data), model.predict(table))
    assert model.score(data) == pytest.approx(model.score(table, classes))
    graphs = [(RNG.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3], [3, 0]]) for _ in range(40)]
    labels = [(x[0][:, 0] > 0).astype(int) for x in graphs]
    model = GraphCRF(max_iter=5).fit(graphs[:20], labels[:20])
    found = model.predict(GraphCRF().prepare(tmp_path / "graphs", graphs, labels))
    assert all(map(np.array_equal, found, model.predict(graphs)))
    settings = {"node_types": ("a", "b"), "edge_types": [("a", "b")], "max_iter": 5}
    typed = [({"a": x[0], "b": x[0][:1]}, {("a", "b"): [[0, 0]]}) for x in graphs]
    by_type = [{"a": own.tolist(), "b": ["x"]} for own in labels]
    by_type[0]["b"] = ["y"]
    model = TypedGraphCRF(**settings).fit(typed, by_type)
    found = model.predict(TypedGraphCRF(**settings).prepare(tmp_path / "typed", typed, by_type))
    assert found == model.predict(typed)
    images = [RNG.normal(size=(2, 3, 1)) for _ in range(30)]
    pixels = [(image[..., 0] > 0).astype(int) for image in images]
    model = GridCRF(max_iter=3).fit(images, pixels)
    data = GridCRF().prepare(tmp_path / "images", images, pixels)
    assert model.score(data) == pytest.approx(model.score(images, pixels))
    for found, own in zip(model.predict(data), model.predict(images), strict=True):
        np.testing.assert_array_equal(found, own)
    for found, own in zip(
        model.predict_marginals(data), model.predict_marginals(images), strict=True
    ):
        assert found.shape == (2, 3, 2)
        np.testing.assert_allclose(found, own, rtol=1e-12)


def test_what_goes_with_examples_alone_is_refused(fitted, data):
    with pytest.raises(UnsupportedError, match="allowed_labels"):
        fitted.predict(data, allowed_labels=[None] * len(X))
    with pytest.raises(UnsupportedError, match="sample_weight"):
        fitted.score(data, sample_weight=np.ones(len(X)))
    with pytest.raises(FileNotFoundError):
        fitted.predict("/no/such/data")
