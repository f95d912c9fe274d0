"""NeuralCRF on grids and graphs: bad input gets a right answer, or a message with its place."""

import numpy as np
import pytest

from chordal import ChainCRF, CRFClassifier, GraphCRF, GridCRF, load, save
from chordal.torch import NeuralCRF

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
GRID_Y = [RNG.integers(2, size=(3, 4)) for _ in range(4)]
GRID_X = [np.stack([y + RNG.normal(size=y.shape)] * 2, axis=-1) for y in GRID_Y]
EDGES = np.array([(0, 1), (1, 2)])
GRAPH_X = [(RNG.normal(size=(3, 2)), EDGES) for _ in range(4)]
GRAPH_Y = [[0, 1, 0]] * 4
NAN = GRID_X[1].copy()
NAN[1, 2, 1] = np.nan


def small(network="mlp", crf=None, **settings):
    return NeuralCRF(network, crf, **{"hidden": 3, "max_iter": 2, "random_state": 0, **settings})


def with_one(values, i, value):
    return [*values[:i], value, *values[i + 1 :]]


@pytest.fixture(scope="module")
def grid():
    return small("cnn", GridCRF()).fit(GRID_X, GRID_Y)


@pytest.fixture(scope="module")
def graph():
    return small("mlp", GraphCRF()).fit(GRAPH_X, GRAPH_Y)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (NAN, r"NaN or infinity in X\[1\], at pixel \(1, 2\), feature 1; clean it"),
        (np.zeros((3, 4, 3)), r"X\[1\] must have 2 features of each pixel.*got 3"),
        (np.zeros((3, 4)), r"X\[1\] must be an array \[height, width, n_features\]"),
        (np.full((3, 4, 2), "a"), r"X\[1\] must be an array .* of numbers"),
    ],
)
def test_images(x, message, grid):
    X = with_one(GRID_X, 1, x)
    for ask in (lambda: small("cnn", GridCRF()).fit(X, GRID_Y), lambda: grid.predict(X)):
        with pytest.raises(ValueError, match=message):
            ask()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (GRAPH_X[0][0], r"X\[1\] must be a pair \(node features, edges\)"),
        (
            (np.full((3, 2), np.inf), EDGES),
            r"NaN or infinity in the nodes of X\[1\], at position 0",
        ),
        ((np.zeros((3, 5)), EDGES), r"the nodes of X\[1\] must have \[2\] numbers"),
        ((np.zeros((3, 2)), [(0, 3)]), r"edge 0 of X\[1\] names node 3, and there are 3 nodes"),
        ((np.zeros((3, 2)), [(-1, 0)]), r"edge 0 of X\[1\] names node -1"),
        ((np.zeros((3, 2)), [(0.0, 1.0)]), r"the edges of X\[1\] must be whole numbers"),
        ((np.zeros((3, 2)), [(0, 1), (1, 0)]), r"edges 0 and 1 of X\[1\] both join nodes"),
    ],
)
def test_graphs(x, message, graph):
    X = with_one(GRAPH_X, 1, x)
    for ask in (lambda: small("mlp", GraphCRF()).fit(X, GRAPH_Y), lambda: graph.predict(X)):
        with pytest.raises((ValueError, TypeError), match=message):
            ask()


def test_features_of_edges_that_training_did_not_have(graph):
    with pytest.raises(ValueError, match="X has edge features, unlike the graphs"):
        graph.predict([(*GRAPH_X[0], np.zeros((2, 1)))])
    with pytest.raises(ValueError, match=r"got 3 rows for 2 cliques of X\[0\]"):
        small("mlp", GraphCRF()).fit([(*x, np.zeros((3, 1))) for x in GRAPH_X], GRAPH_Y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (GRID_X, with_one(GRID_Y, 2, np.zeros((4, 3))), r"y\[2\] must have the shape of its image"),
        (GRID_X, GRID_Y[:3], "X and y must have the same length, got 4 examples and 3"),
        (GRID_X, None, "y must be a list with the labels of each example"),
        (None, GRID_Y, "X must be a list"),
        ([], [], "X is empty: give at least one example"),
        ([np.zeros((0, 4, 2))], [np.zeros((0, 4))], "X holds no pixels: every image is empty"),
    ],
)
def test_labels_and_lists(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small("mlp", GridCRF()).fit(X, y)


@pytest.mark.parametrize(
    ("network", "crf", "message"),
    [
        ("mlp", CRFClassifier(), "crf must be a ChainCRF, GridCRF or GraphCRF"),
        ("mlp", GridCRF, "crf must be a ChainCRF, GridCRF or GraphCRF"),
        ("mlp", GridCRF(neighbours=5), "neighbours must be 4 or 8"),
        (
            "mlp",
            GridCRF("stochastic_likelihood"),
            "works by sampling, which cannot train a network",
        ),
        ("mlp", GridCRF("perceptron"), "objective 'perceptron'"),
        ("mlp", GridCRF(class_weight="balanced"), "class_weight needs a cost of errors"),
        ("mlp", GridCRF(contrast="auto", contrast_columns=[5]), "contrast_columns has column 5"),
        ("bilstm", GridCRF(), "network 'bilstm' reads sequences; with a GridCRF use one of 'mlp'"),
        (torch.nn.Conv2d(2, 5, 1), GridCRF(), r"shape \(4, 2, 3, 4\); got \(4, 5, 3, 4\)"),
        (torch.nn.Conv2d(7, 2, 1), GridCRF(), r"network does not take inputs of shape \(4, 2, 3"),
        (lambda n_in, n_out: None, GridCRF(), "network must give an nn.Module, got None"),
    ],
)
def test_networks_and_crfs(network, crf, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small(network, crf).fit(GRID_X, GRID_Y)


def test_a_chain_that_observes_by_itself():
    X, y = [np.zeros((2, 3))], [[0, 1]]
    for settings in ({"feature_template": "U0:%x[0,0]"}, {"transition_features": len}):
        with pytest.raises(ValueError, match=f"crf must have no {next(iter(settings))}"):
            small("mlp", ChainCRF(**settings)).fit(X, y)


def test_graphs_without_images_have_no_convolutions():
    with pytest.raises(ValueError, match="network 'cnn' needs nodes that are images"):
        small("cnn", GraphCRF()).fit(GRAPH_X, GRAPH_Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, r"validation_data must be a pair \(X, y\)"),
        ((GRID_X[:1], GRID_Y[:2]), "validation X and y must have the same number"),
        (([NAN], GRID_Y[:1]), r"NaN or infinity in validation X\[0\], at pixel \(1, 2\)"),
        (([], []), "validation y has no observed label"),
    ],
)
def test_validation_data(given, message):
    with pytest.raises(ValueError, match=message):
        small("mlp", GridCRF()).fit(GRID_X, GRID_Y, validation_data=given)


def test_augment():
    for function, message in (
        (lambda batch, rng: [x[:2] for x in batch], "augment must give as many examples"),
        (lambda batch, rng: None, r"augment\(X\) must be a list"),
        (lambda batch, rng: [NAN] * len(batch), r"NaN or infinity in augment\(X\)\[0\]"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            small("mlp", GridCRF(), augment=function).fit(GRID_X, GRID_Y)
    moved = small("mlp", GraphCRF(), augment=lambda batch, rng: [(x[0] + 9.0, x[1]) for x in batch])
    assert moved.fit(GRAPH_X, GRAPH_Y).predict(GRAPH_X[:1])


@pytest.mark.parametrize("network", ["mlp", "cnn"])
def test_examples_without_variables(network):
    X, y = [*GRID_X, np.zeros((0, 4, 2))], [*GRID_Y, np.zeros((0, 4), dtype=int)]
    model = small(network, GridCRF(), batch_size=1).fit(X, y)  # one step would have no pixel
    assert model.predict(X)[4].shape == (0, 4)
    assert model.predict_marginals(X[4:])[0].shape == (0, 4, 2)
    with pytest.raises(ValueError, match="nothing to learn from"):
        small(network, GridCRF()).fit(X, y, sample_weight=[0, 0, 0, 0, 1])


@pytest.mark.parametrize("crf", [None, ChainCRF()])
@pytest.mark.parametrize("network", ["mlp", "cnn", "bilstm"])
def test_sequences_without_positions(network, crf):
    X = [RNG.normal(size=(n, 2)) for n in (3, 0, 2)]
    model = small(network, crf, batch_size=1).fit(X, [[0, 1, 0], [], [1, 0]])
    assert [len(labels) for labels in model.predict(X)] == [3, 0, 2]
    assert model.predict([X[1]]) == [[]]


def test_allowed_labels(grid):
    with pytest.raises(ValueError, match=r"allowed_labels\[0\] must have the shape of its image"):
        grid.predict(GRID_X[:1], allowed_labels=[[None] * 2])
    with pytest.raises(ValueError, match="unknown label 7"):
        grid.predict(GRID_X[:1], allowed_labels=[[[7] * 4] * 3])


def test_sets_where_an_objective_takes_none():
    y = [RNG.integers(3, size=(3, 4)).astype(object) for _ in range(4)]
    y[0][0, 0] = {0, 1}
    with pytest.raises(ValueError, match="objective 'hinge' does not support sets of labels here"):
        small("mlp", GridCRF("hinge")).fit(GRID_X, y)


def test_a_model_of_a_device_that_is_not_here(tmp_path, monkeypatch):
    """As where it was trained on a graphics processor, and is loaded where there is none."""
    X, y = [["a", "b"], ["b"]], [["x", "y"], ["y"]]
    model = small().fit(X, y)
    model.device = "meta"
    with monkeypatch.context() as patched:
        patched.setattr("chordal.torch._parameters.check_device", lambda device: None)
        save(model, tmp_path / "model")
    with pytest.warns(UserWarning, match="device 'meta', which cannot be used here.* on 'cpu'"):
        loaded = load(tmp_path / "model")
    assert (loaded.device, loaded.predict(X)) == ("cpu", model.predict(X))


@pytest.mark.parametrize("x", [{"a": 1}, {0: "a"}, {"a"}, "ab"])
def test_a_sequence_that_is_no_list(x):
    for X in ([x, ["a"]], [["a"], x]):
        with pytest.raises((TypeError, ValueError), match=r"X\[[01]\] must be"):
            small().fit(X, [["x"], ["x"]])


@pytest.mark.parametrize("name", ["learning_rate", "weight_decay"])
def test_settings_beyond_float32(name):
    X, y = [np.eye(2)], [["a", "b"]]
    with pytest.raises(ValueError, match=f"{name} must be at most 1e.30, got 1e.300"):
        small(**{name: 1e300}).fit(X, y)


@pytest.mark.parametrize("value", [1e39, 1e308])
def test_inputs_beyond_float32(value):
    X, y = [np.eye(2), np.array([[value, 0.0]])], [["a", "b"], ["a"]]
    with pytest.raises(ValueError, match=r"too large for float32 in X\[1\], at position 0"):
        small().fit(X, y)
    image = GRID_X[0].copy()
    image[1, 0, 1] = -value
    with pytest.raises(ValueError, match=r"float32 in X\[1\], at pixel \(1, 0\), feature 1; scale"):
        small("mlp", GridCRF()).fit([GRID_X[0], image], [GRID_Y[0]] * 2)
