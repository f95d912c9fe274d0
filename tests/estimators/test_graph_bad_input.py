"""Graphs, images and cliques as nobody hopes to have them: an answer, or a clear refusal."""

import warnings

import numpy as np
import pytest

from chordal import CliqueTemplate, GraphCRF, GridCRF, TemplateCRF

RNG = np.random.default_rng(0)
NODES = RNG.normal(size=(6, 2))
Y = list("ababab")
IMAGE = RNG.normal(size=(3, 4, 2))
PIXELS = (IMAGE[..., 0] > 0).astype(int)


def edges(*pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


ODD = {
    "two pieces": edges((0, 1), (1, 2), (2, 0), (3, 4)),
    "no edges": edges(),
    "a list without edges": [],
    "a star": edges((0, 1), (0, 2), (0, 3), (0, 4), (0, 5)),
}


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "piecewise", "hinge"])
@pytest.mark.parametrize("kind", ODD)
def test_pieces_and_isolated_nodes_are_ordinary(kind, objective):
    crf = GraphCRF(objective, tol=0.01, max_iter=500)
    crf.fit([(NODES, ODD[kind])], [Y])
    alone, nobody = (NODES[:1], edges()), (NODES[:0], edges())
    found = crf.predict_marginals([(NODES, ODD[kind]), alone, nobody])
    assert [len(m) for m in found] == [6, 1, 0]
    for marginals in found:
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)
    assert crf.predict([nobody, alone])[0] == []
    assert np.isfinite(crf.weights_).all()


def test_pieces_do_not_know_of_each_other():
    """The marginals of a piece are those of the piece alone."""
    crf = GraphCRF().fit([(NODES, edges((0, 1), (1, 2), (2, 0)))], [Y])
    both = crf.predict_marginals([(NODES, edges((0, 1), (1, 2), (2, 0), (3, 4), (4, 5)))])[0]
    one = crf.predict_marginals([(NODES[:3], edges((0, 1), (1, 2), (2, 0)))])[0]
    two = crf.predict_marginals([(NODES[3:], edges((0, 1), (1, 2)))])[0]
    np.testing.assert_allclose(both, np.concatenate([one, two]), rtol=1e-12)


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "piecewise"])
def test_one_label_is_certain(objective):
    crf = GraphCRF(objective).fit([(NODES, edges((0, 1), (1, 2), (2, 0)))], [["a"] * 6])
    graph = (NODES, edges((0, 1), (3, 4)))
    assert crf.predict([graph]) == [["a"] * 6]
    assert (crf.predict_marginals([graph])[0] == 1.0).all()


GRAPHS = {
    "a self-loop": (edges((0, 1), (2, 2)), "clique 1 of example 0 names variable 2 twice"),
    "a node that is not there": (edges((0, 6)), "names variable 6, but the example has 6"),
    "a negative node": (edges((0, -1)), "names variable -1"),
    "floats": (
        np.array([[0.0, 1.0]]),
        r"X\[0\] must be whole numbers of shape \[n, 2\], got float",
    ),
    "triples": (
        np.array([[0, 1, 2]]),
        r"must be whole numbers of shape \[n, 2\], got .*\(1, 3\); CliqueTemplate\(…, order=3\)",
    ),
    "lists of several lengths": ([[0, 1], [2]], r"must be whole numbers of shape \[n, 2\]"),
    "names": ([("a", "b")], "must be whole numbers"),
    "None": (None, "must be whole numbers"),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_wrong_edges_are_refused(kind):
    given, message = GRAPHS[kind]
    fitted = GraphCRF().fit([(NODES, edges((0, 1)))], [Y])
    with pytest.raises(ValueError, match=message):
        GraphCRF().fit([(NODES, given)], [Y])
    with pytest.raises(ValueError, match=message):
        fitted.predict([(NODES, given)])


TABLES = {
    ("full", 3): r"over 20 variables with 3 labels each would need 27\.9 GB \(3\^20 scores\)",
    ("potts", 3): r"would need 27\.9 GB",
    ("symmetric", 3): r"would need 27\.9 GB",
}


def large_clique(order, tables):
    return TemplateCRF(
        [
            CliqueTemplate("nodes", features=lambda x: np.asarray(x)),
            CliqueTemplate("all", lambda x: [range(order)], order=order, tables=tables),
        ],
        max_iter=2,
    )


@pytest.mark.parametrize(("tables", "n_labels"), TABLES)
def test_tables_of_20_variables_are_refused_with_their_memory(tables, n_labels):
    x, y = RNG.normal(size=(21, 1)), [str(k % n_labels) for k in range(21)]
    with pytest.raises(ValueError, match=TABLES[tables, n_labels]):
        large_clique(20, tables).fit([x], [y])


def test_potts_tables_of_many_variables_compare_all():
    crf = large_clique(12, "potts").fit([RNG.normal(size=(12, 1))], [[0, 1] * 6])
    tables = crf.layout_.templates[1].tables
    assert np.flatnonzero(tables.output_of_cell == 0).tolist() == [0, 2**12 - 1]


IMAGES = {
    "infinity": (IMAGE * np.inf, "NaN, infinity or numbers too large"),
    "NaN": (IMAGE * np.nan, "NaN, infinity or numbers too large"),
    "huge": (IMAGE * 1e200, "too large to be squared; clean or scale"),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_contrast_of_numbers_that_cannot_be_compared_is_refused(kind):
    image, message = IMAGES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            GridCRF(contrast="auto").fit([image], [PIXELS])
        with pytest.raises(ValueError, match=r"NaN or infinity|features are too large"):
            GridCRF(contrast=1.0).fit([image], [PIXELS])


def test_columns_of_contrast_are_checked():
    for columns, message in (([2], "has column 2, but X.0. has only 2 features"), ("01", "a list")):
        with pytest.raises((ValueError, TypeError), match=message):
            GridCRF(contrast="auto", contrast_columns=columns).fit([IMAGE], [PIXELS])
    with pytest.raises(ValueError, match=r"contrast_columns\[1\] must be an integer"):
        GridCRF(contrast="auto", contrast_columns=[0, 0.5]).fit([IMAGE], [PIXELS])


SMALL = {
    "one pixel": (1, 1, 2),
    "no pixel": (0, 4, 2),
    "a row": (1, 4, 2),
    "no features": (3, 4, 0),
}


@pytest.mark.parametrize("kind", SMALL)
def test_small_images_are_ordinary(kind):
    shape = SMALL[kind]
    image = IMAGE[: shape[0], : shape[1], : shape[2]]
    labels = PIXELS[: shape[0], : shape[1]]
    train = [IMAGE[..., : shape[2]], image]
    crf = GridCRF(contrast="auto").fit(train, [PIXELS, labels])
    assert crf.predict([image])[0].shape == labels.shape
    assert np.isfinite(crf.weights_).all()
