"""Images: what neighbours, directions and contrast do, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import GraphCRF, GridCRF, UnsupportedError
from chordal.inference.gibbs import GibbsInference
from chordal.structures import Grid


@pytest.fixture(scope="module")
def halves():
    """Noisy images whose two halves have the labels 0 and 1; colours tell where they meet."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for k in range(8):
        labels = np.zeros((4, 6), dtype=int)
        labels[:, 2 + k % 3 :] = 1
        noise = rng.normal(size=(4, 6, 1))
        X.append(np.concatenate([labels[..., None] + noise, labels[..., None] * 3.0], axis=-1))
        y.append(labels)
    return X, y


def test_a_grid_is_its_graph(halves):
    X, y = halves
    crf = GridCRF(tol=1e-9).fit(X, y)
    edges = Grid([(4, 6)], 2).scopes.reshape(-1, 2)
    graph = GraphCRF(tol=1e-9).fit(
        [(x.reshape(-1, 2), edges) for x in X], [labels.ravel() for labels in y]
    )
    assert crf.fit_report_.exact
    assert_allclose(crf.coef_, graph.coef_, atol=1e-6)
    found = crf.predict_marginals(X)[0]
    assert found.shape == (4, 6, 2)
    expected = graph.predict_marginals([(X[0].reshape(-1, 2), edges)])[0]
    assert_allclose(found.reshape(-1, 2), expected, atol=1e-6)
    assert crf.predict(X)[0].shape == (4, 6)
    assert crf.sample(X[:1], 2)[0][1].shape == (4, 6)
    assert_allclose(crf.log_likelihood(X, y).sum() < 0, True)


def test_neighbours_help(halves):
    X, y = halves
    X = [x[..., :1] for x in X]
    alone = GridCRF(freeze=("edges",)).fit(X, y)
    together = GridCRF().fit(X, y)
    assert together.score(X, y) > alone.score(X, y) + 0.05
    pair = together.template_weights("edges")["intercept"]
    assert pair[0, 0] + pair[1, 1] > 2 * pair[0, 1]


@pytest.mark.parametrize(
    ("neighbours", "shape", "n"),
    [(4, (3, 4), 2), (8, (3, 4), 4), (6, (2, 3, 2), 3), (26, (2, 2, 2), 13)],
)
def test_directions_have_weights_of_their_own(neighbours, shape, n):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(*shape, 1)) for _ in range(2)]
    y = [rng.integers(0, 2, shape) for _ in range(2)]
    crf = GridCRF("pseudo_likelihood", neighbours=neighbours, directions=True, tables="full")
    crf.fit(X, y)
    assert len(crf.layout_.templates) == 1 + n
    assert crf.predict(X)[0].shape == shape
    assert crf.template_weights(f"edges {(0,) * (len(shape) - 1) + (1,)}")["intercept"].shape == (
        2,
        2,
    )


def test_contrast(halves):
    X, y = halves
    crf = GridCRF(contrast="auto", contrast_columns=[1], tables="potts", l2=0.01).fit(X, y)
    squares = []  # of differences downwards and to the right
    for x in X:
        colour = x[..., 1]
        squares += [np.diff(colour, axis=axis).ravel() ** 2 for axis in (0, 1)]
    assert crf.contrast_ == pytest.approx(0.5 / np.concatenate(squares).mean())
    weights = crf.template_weights("edges")
    assert weights["features"][0, 0, 0] > weights["intercept"][0, 0]  # equal where the image is
    given = GridCRF(contrast=crf.contrast_, contrast_columns=[1], tables="potts", l2=0.01)
    assert_array_equal(given.fit(X, y).weights_, crf.weights_)

    def fading(a, b):
        return np.exp(-crf.contrast_ * (a[:, 1:] - b[:, 1:]) ** 2)

    own = GridCRF(edge_features=fading, tables="potts", l2=0.01).fit(X, y)
    assert_allclose(own.weights_, crf.weights_, atol=1e-6)


def test_void_pixels_are_left_out(halves):
    X, y = halves
    hidden = [labels.copy() for labels in y]
    for labels in hidden:
        labels[0] = 9
    crf = GridCRF("pseudo_likelihood", ignore_label=9).fit(X, hidden)
    assert list(crf.classes_) == [0, 1]
    smaller = GridCRF("pseudo_likelihood").fit([x[1:] for x in X], [labels[1:] for labels in y])
    assert_allclose(crf.weights_, smaller.weights_, atol=1e-9)
    assert 0.5 < crf.score(X, hidden) <= 1.0
    assert GridCRF(ignore_label=9).fit(X, hidden).score(X, hidden) > 0.8


def test_bad_images_are_named():
    image, labels = np.zeros((3, 4, 2)), np.zeros((3, 4), dtype=int)
    labels[0] = 1
    with pytest.raises(ValueError, match=r"X\[0\] must be an array \[height, width, n_features\]"):
        GridCRF().fit([image[..., 0]], [labels])
    with pytest.raises(ValueError, match=r"y\[0\] must have the shape of its image, \(3, 4\)"):
        GridCRF().fit([image], [labels.T])
    with pytest.raises(ValueError, match="neighbours must be 4 or 8"):
        GridCRF(neighbours=5).fit([image], [labels])
    with pytest.raises(ValueError, match="contrast must be a number, 'auto' or None"):
        GridCRF(contrast="strong").fit([image], [labels])
    with pytest.raises(ValueError, match="edge_features must return a row for each of 17 edges"):
        GridCRF(edge_features=lambda a, b: np.zeros(3)).fit([image], [labels])


@pytest.mark.parametrize(
    ("inference", "objective"),
    [
        ("mean_field", "likelihood"),
        ("tree_reweighted", "likelihood"),
        (GibbsInference(n_draws=20), "pseudo_likelihood"),
    ],
)
def test_methods_without_a_best_labelling_predict_by_marginals(inference, objective):
    rng = np.random.default_rng(0)
    y = [np.tri(5, dtype=int), np.tri(5, dtype=int).T]
    X = [labels[:, :, None] + 0.3 * rng.normal(size=(5, 5, 1)) for labels in y]
    crf = GridCRF(objective, inference=inference, max_iter=5)
    crf.fit(X, y, validation_data=(X, y))
    for labels, by_marginals in zip(crf.predict(X), crf.predict(X, method="mpm"), strict=True):
        assert_array_equal(labels, by_marginals)
    assert crf.score(X, y) > 0.8
    with pytest.raises(UnsupportedError, match="does not compute 'map'"):
        crf.predict(X, method="map")
    with pytest.raises(ValueError, match="method must be"):
        crf.predict(X, method="best")


def _probabilities(labels):
    return np.eye(2)[labels]


def _dicts(labels):
    out = np.empty(labels.shape, dtype=object)
    for place, label in np.ndenumerate(labels):
        out[place] = {int(label): 1.0}
    return out


def test_distributions_of_an_image_without_pixels(halves):
    X, y = halves[0], [_probabilities(labels) for labels in halves[1]]
    nothing = np.zeros((0, 2, X[0].shape[-1]))
    model = GridCRF().fit([nothing, *X], [np.zeros((0, 2, 2)), *y])
    np.testing.assert_allclose(model.weights_, GridCRF().fit(X, y).weights_, atol=1e-6)


@pytest.mark.parametrize("made", [_dicts, _probabilities, lambda y: _dicts(y).tolist()])
def test_certain_distributions_are_labels(halves, made):
    X, y = halves
    plain = GridCRF(tol=1e-9).fit(X, y)
    crf = GridCRF(tol=1e-9).fit(X, [made(labels) for labels in y])
    assert_allclose(crf.coef_, plain.coef_, atol=1e-6)
    for found, expected in zip(crf.predict(X), plain.predict(X), strict=True):
        assert_array_equal(found, expected)
        assert found.shape == (4, 6)
        assert found.dtype.kind == "i"


@pytest.mark.parametrize("unknown", [None, {0, 1}, frozenset({0, 1})])
@pytest.mark.parametrize("as_lists", [False, True])
def test_label_images_of_objects_predict_images(halves, unknown, as_lists):
    X, y = halves
    partly = [labels.astype(object) for labels in y]
    for labels in partly:
        labels[1, 1] = unknown
    graph = GraphCRF(tol=1e-9).fit(
        [(x.reshape(-1, 2), Grid([(4, 6)], 2).scopes.reshape(-1, 2)) for x in X],
        [list(labels.ravel()) for labels in partly],
    )
    crf = GridCRF(tol=1e-9).fit(X, [own.tolist() for own in partly] if as_lists else partly)
    assert_allclose(crf.coef_, graph.coef_, atol=1e-5)
    for found in (crf.predict(X)[0], crf.sample(X, 2)[0][1], crf.k_best(X, 2)[0][1][0]):
        assert found.shape == (4, 6)
        assert set(found.ravel()) <= {0, 1}
        assert found.dtype.kind == "i"


def test_arrays_of_objects_stay_arrays():
    """Of every estimator: labels that are not observed do not turn arrays into lists."""
    X = [(np.array([[1.0], [-1.0], [0.5]]), [(0, 1), (1, 2)])]
    y = [np.array(["a", "b", None], dtype=object)]
    found = GraphCRF().fit(X, y).predict(X)[0]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == ["a", "b", "a"]


def test_labels_of_another_shape_are_refused(halves):
    X, y = halves
    with pytest.raises(ValueError, match=r"y\[0\] must have the shape of its image, \(4, 6\)"):
        GridCRF().fit(X, [labels[:, :5] for labels in y])
    with pytest.raises(ValueError, match=r"axis of probabilities; got int64 of shape"):
        GridCRF().fit(X, [labels[..., None] for labels in y])
