"""Examples that are restored from a data set are read as the ones that were prepared."""

import numpy as np
import pytest

from chordal import (
    ChainCRF,
    CRFClassifier,
    Dataset,
    DatasetError,
    GraphCRF,
    GridCRF,
    MatchingModel,
    UnsupportedError,
)
from chordal.estimators._training import preparing
from chordal.estimators._training.examples import examples_of
from chordal.estimators._training.preparing import Keeping, prepare
from chordal.estimators._training.row_forms import RowForm, literal
from chordal.estimators._training.stored import stored_shapes, stored_weight

RNG = np.random.default_rng(0)
LENGTHS = [3, 0, 5, 1, 4, 2, 6, 3]
WORDS = [[[f"w{RNG.integers(5)}", "bias", "w0"] for _ in range(n)] for n in LENGTHS]
DENSE = [RNG.normal(size=(n, 4)) for n in LENGTHS]
Y = [[f"L{RNG.integers(3)}" for _ in range(n)] for n in LENGTHS]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 8)
    monkeypatch.setattr(preparing, "CHUNK", 2)


def restored(estimator, data):
    parts = [examples_of(estimator, data, k) for k in range(data.n_parts)]
    assert len(parts) > 1
    X, y = [x for part in parts for x in part.X], [own for part in parts for own in part.y]
    return X, y, [part.weight for part in parts]


def test_lists_of_attributes_come_back_as_they_were(tmp_path):
    weight = np.arange(1.0, 9.0)
    data = ChainCRF().prepare(tmp_path / "data", WORDS, Y, weight)
    X, y, weights = restored(ChainCRF(), data)
    assert X == WORDS
    assert y == Y
    np.testing.assert_array_equal(np.concatenate(weights), weight)


def test_arrays_come_back_with_their_type(tmp_path):
    for kind in (np.float64, np.float32):
        given = [x.astype(kind) for x in DENSE]
        data = ChainCRF().prepare(tmp_path / kind.__name__, given, Y)
        X, y, weights = restored(ChainCRF(), data)
        assert y == Y
        assert set(weights) == {None}
        for found, own in zip(X, given, strict=True):
            assert found.dtype == kind
            np.testing.assert_array_equal(found, own)


@pytest.mark.parametrize("form", ["values", "vectors"])
def test_dicts_are_read_alike(tmp_path, form):
    tokens = [[{"w": token[0], "n": 0.5 + t} for t, token in enumerate(x)] for x in WORDS]
    if form == "vectors":
        tokens = [
            [token | {"v": RNG.normal(size=2)} if t % 2 else token for t, token in enumerate(x)]
            for x in tokens
        ]
    data = ChainCRF().prepare(tmp_path / "data", tokens, Y)
    X, y, _ = restored(ChainCRF(), data)
    expected = ChainCRF(max_iter=5).fit(tokens, Y)
    found = ChainCRF(max_iter=5).fit(X, y)
    np.testing.assert_array_equal(found.weights_, expected.weights_)
    assert found.predict(X) == expected.predict(tokens)


def test_sparse_rows(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    given = [sparse.csr_array(x * (x > 0)) for x in DENSE]
    X, _, _ = restored(ChainCRF(), ChainCRF().prepare(tmp_path / "data", given, Y))
    for found, own in zip(X, given, strict=True):
        assert sparse.issparse(found)
        np.testing.assert_array_equal(found.toarray(), own.toarray())


def test_labels_that_are_not_known_exactly(tmp_path):
    sets = [[None if t % 3 == 1 else {label, "L9"} for t, label in enumerate(y)] for y in Y]
    sets[0][0] = "L1"
    _, y, _ = restored(ChainCRF(), ChainCRF().prepare(tmp_path / "sets", WORDS, sets))
    assert y == sets
    soft = [[{label: 0.75, "L9": 0.25} for label in y] for y in Y]
    _, y, _ = restored(ChainCRF(), ChainCRF().prepare(tmp_path / "soft", WORDS, soft))
    assert y == soft
    first = [[None] * n for n in LENGTHS[:4]] + Y[4:]  # a part without any label
    _, y, _ = restored(ChainCRF(), ChainCRF().prepare(tmp_path / "none", WORDS, first))
    assert y == first


def test_graphs(tmp_path):
    edges = [np.array([(i, i + 2) for i in range(n - 2)]).reshape(-1, 2) for n in LENGTHS]
    plain = list(zip(DENSE, edges, strict=True))
    seen = [(*x, RNG.normal(size=(len(x[1]), 2))) for x in plain]
    for name, given in {"plain": plain, "seen": seen}.items():
        X, y, _ = restored(GraphCRF(), GraphCRF().prepare(tmp_path / name, given, Y))
        assert y == Y
        for found, own in zip(X, given, strict=True):
            assert len(found) == len(own)
            for a, b in zip(found, own, strict=True):
                np.testing.assert_array_equal(a, b)


def test_images(tmp_path):
    shapes = [(2, 3), (1, 4), (4, 1), (3, 3), (2, 2), (1, 1)]
    given = [RNG.normal(size=(*shape, 2)) for shape in shapes]
    y = [RNG.integers(2, size=shape) for shape in shapes]
    y[0][0, 0], y[0][0, 1] = 0, 1
    X, labels, _ = restored(GridCRF(), GridCRF().prepare(tmp_path / "data", given, y))
    for found, own in zip([*X, *labels], [*given, *y], strict=True):
        np.testing.assert_array_equal(found, own)
    partly = [image.astype(object) for image in y]
    partly[1][0, 2] = None
    _, labels, _ = restored(GridCRF(), GridCRF().prepare(tmp_path / "partly", given, partly))
    assert labels[1].tolist() == partly[1].tolist()


def test_tables(tmp_path):
    X, y = RNG.normal(size=(30, 3)), RNG.integers(3, size=30)
    data = CRFClassifier().prepare(tmp_path / "data", X, y)
    parts = [examples_of(CRFClassifier(), data, k) for k in range(data.n_parts)]
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), X)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), y)


SYMBOLS = [
    "a",
    3,
    True,
    None,
    0.1,
    ("x", 2),
    ["w=a", "b"],
    {"w": "a", "n": 2.0},
    set(),
    {1, 2},
    b"z",
]


def test_symbols_come_back_as_they_were(tmp_path):
    form = RowForm(symbols=True)
    given = [SYMBOLS, ["a"], SYMBOLS[::-1]]
    y = [["L"] * len(x) for x in given]

    def kept(X, y):
        return [form.stored(x, f"X[{i}]") for i, x in enumerate(X)], y

    path = tmp_path / "data"
    data = prepare(ChainCRF(), path, given, y, keeping=Keeping(kept, form, "Another"))
    X, _, _ = restored(ChainCRF(), data)
    assert given == X
    assert [type(own) for own in X[0]] == [type(own) for own in SYMBOLS]
    with pytest.raises(DatasetError, match="a Another: its rows are symbols, not attributes or"):
        ChainCRF().fit(data)
    with pytest.raises(DatasetError, match="rows are symbols"):
        ChainCRF().prepare(path, WORDS, Y, append=True)
    assert Dataset(path).n_examples == 3
    for wrong in (object(), np.nan, [np.inf]):
        with pytest.raises(TypeError, match=r"X\[0\]\[1\] holds .* cannot store"):
            literal(wrong, "X[0][1]")


def test_small_arrays(tmp_path):
    form = RowForm(shape=(2, 3))
    given = [RNG.normal(size=(n, 2, 3)) for n in LENGTHS]

    def kept(X, y):
        return [form.stored(x, f"X[{i}]") for i, x in enumerate(X)], y

    data = prepare(ChainCRF(), tmp_path / "data", given, Y, keeping=Keeping(kept, form))
    for found, own in zip(restored(ChainCRF(), data)[0], given, strict=True):
        np.testing.assert_array_equal(found, own)
    with pytest.raises(DatasetError, match="arrays of 2 × 3 numbers"):
        ChainCRF().fit(data)


def test_what_cannot_be_restored(tmp_path):
    columns = ChainCRF(feature_template="U00:%x[0,0]\n")
    data = columns.prepare(tmp_path / "columns", WORDS, Y)
    with pytest.raises(UnsupportedError, match="feature_template"):
        examples_of(columns, data, 0)
    with pytest.raises(DatasetError, match="prepared for another model, a ChainCRF"):
        examples_of(ChainCRF(), data, 0)
    pairs = [(RNG.normal(size=(2, 3, 1)), np.array([0, 1]))] * 3
    data = MatchingModel().prepare(
        tmp_path / "matching", [x for x, _ in pairs], [y for _, y in pairs]
    )
    with pytest.raises(UnsupportedError, match="MatchingModel does not keep its examples"):
        examples_of(MatchingModel(), data, 0)


def test_arrays_that_do_not_fit_are_refused():
    sizes = np.array([6, 4])
    shapes = np.array([2, 3, 4, 1])
    assert stored_shapes({"shapes": shapes}, sizes).tolist() == [[2, 3], [4, 1]]
    assert stored_shapes({}, sizes) is None
    for wrong in (shapes[:3], shapes[::-1].copy(), np.array([2, 3, -1, -4]), shapes[:0]):
        with pytest.raises(ValueError, match="shape"):
            stored_shapes({"shapes": wrong}, sizes)
    for weight in (np.ones(3), np.array([1.0, -1.0]), np.array([1.0, np.nan]), np.ones(2, int)):
        with pytest.raises(ValueError, match="weight"):
            stored_weight({"sizes": sizes, "weight": weight})


@pytest.mark.parametrize("text", ["open('x')", "(" * 500, "1 +", "x", "[]" * 3])
def test_symbols_are_literals_and_nothing_else(text):
    with pytest.raises(ValueError, match="is not the literal of a symbol"):
        RowForm(symbols=True).restored([[text]], {})


def test_forms_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="a row must have one symbol, got 2"):
        RowForm(symbols=True).restored([["1", "2"]], {})
    with pytest.raises(ValueError, match="shape of rows must be numbers above 0"):
        RowForm.of({"form": {"symbols": False, "shape": [0, 3]}})
    with pytest.raises(ValueError, match=r"X\[0\] must be an array \[length, 2, 3\], got shape"):
        RowForm(shape=(2, 3)).stored(np.zeros((4, 6)), "X[0]")
