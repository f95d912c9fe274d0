"""Dense and sparse rows: the same numbers in other containers give the same scores."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from chordal.features import DenseFeatures, DenseInput, Rows, SparseInput

LENGTHS = [4, 0, 9]
N_COLUMNS, N_LABELS = 17, 3


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    # Of quarters, so that float32 holds them exactly.
    full = [rng.integers(-8, 8, size=(n, N_COLUMNS)) / 4.0 for n in LENGTHS]
    return [x * (rng.random(x.shape) < 0.4) for x in full]


CONTAINERS = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "fortran": np.asfortranarray,
    "view": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "csr_array": sp.csr_array,
    "csr32": lambda x: sp.csr_matrix(x.astype(np.float32)),
    "stored zeros": lambda x: with_zeros(x),
    "duplicates": lambda x: halves(x),
}


def with_zeros(x):
    """Every entry stored, also the zeros."""
    row, column = np.indices(x.shape).reshape(2, -1)
    matrix = sp.csr_matrix((x.ravel(), (row, column)), shape=x.shape)
    assert matrix.nnz == x.size
    return matrix


def halves(x):
    """Every entry stored twice, as halves."""
    c = sp.coo_matrix(x)
    data = np.concatenate([c.data, c.data]) / 2.0
    return sp.coo_matrix((data, (np.tile(c.row, 2), np.tile(c.col, 2))), shape=x.shape)


def scores_and_gradient(X):
    """With one weight for each column and output, whatever order the features keep them in."""
    source = SparseInput(N_COLUMNS) if sp.issparse(X[0]) else DenseInput(N_COLUMNS)
    rows = source.read(X, grow=True)
    assert_array_equal(rows.lengths, LENGTHS)
    n = rows.n_rows
    features = source.features(rows, np.zeros(n, dtype=np.int32), N_LABELS)
    assert features.n_weights == N_COLUMNS * N_LABELS
    rng = np.random.default_rng(1)
    table, parts = rng.normal(size=(N_COLUMNS, N_LABELS)), rng.normal(size=(n, N_LABELS))
    keys, compiled = features.keys(), features.compile(rows, 0, n)
    out, gradient = np.empty(n * N_LABELS), np.empty(features.n_weights)
    features.map(compiled, features.expand(table[keys.column, keys.output]), out)
    sums = features.zeros()
    for block in range(features.n_blocks(2)):
        features.adjoint(compiled, parts.ravel(), sums, block, 2)
    features.collect(sums, gradient)
    by_key = np.empty((N_COLUMNS, N_LABELS))
    by_key[keys.column, keys.output] = gradient
    whole = np.concatenate([x.toarray() if sp.issparse(x) else np.asarray(x, float) for x in X])
    return out.reshape(n, N_LABELS), by_key, whole @ table, whole.T @ parts


@pytest.mark.parametrize("container", CONTAINERS)
def test_all_containers_agree(container, arrays):
    scores, gradient, _, _ = scores_and_gradient([CONTAINERS[container](x) for x in arrays])
    _, _, expected_scores, expected_gradient = scores_and_gradient(arrays)
    assert_allclose(scores, expected_scores, rtol=1e-12, atol=1e-12)
    assert_allclose(gradient, expected_gradient, rtol=1e-12, atol=1e-12)


def test_float32_stays_float32_and_sums_in_float64():
    X = [np.full((2000, 1), 0.1, dtype=np.float32)]
    source = DenseInput(1)
    rows = source.read(X, grow=True)
    assert rows.data.dtype == np.float32
    features = source.features(rows, np.zeros(2000, dtype=np.int32), 1)
    sums = features.zeros()
    features.adjoint(features.compile(rows, 0, 2000), np.ones(2000), sums, 0, 1)
    assert_allclose(sums, 2000 * float(np.float32(0.1)), rtol=1e-13)
    assert source.read([X[0], np.zeros((1, 1))], grow=True).data.dtype == np.float64


def test_names():
    assert DenseInput(3).name(2) == SparseInput(3).name(2) == "x2"
    assert DenseInput(3).n_columns == SparseInput(3).n_columns == 3


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([np.zeros((2, 3)), np.zeros(3)], ValueError, r"X\[1\] must be an array \[length, 3\]"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], ValueError, r"X\[1\] must have 3 columns, got 4"),
        ([np.array([["a", "b", "c"]])], TypeError, "of numbers, got dtype"),
        ([np.zeros((2, 3), dtype=complex)], TypeError, "of numbers, got dtype"),
        ([np.zeros((2, 3)), np.zeros((0, 3)), [[0, 0, 0], [0, np.nan, 0]]], ValueError,
         r"X\[2\]\[1\] has NaN"),
        ([np.full((1, 3), np.inf)], ValueError, r"X\[0\]\[0\] has NaN or infinity"),
    ],
)  # fmt: skip
def test_bad_dense_input(X, error, message):
    with pytest.raises(error, match=message):
        DenseInput(3).read(X, grow=True)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([sp.eye(3), np.eye(3)], TypeError, r"X\[1\] must be a SciPy sparse matrix"),
        ([sp.eye(3), sp.eye(4)], ValueError, r"X\[1\] must have 3 columns, got 4"),
        ([sp.eye(3), sp.csr_matrix([[0, 0, np.nan]])], ValueError, r"X\[1\]\[0\] has NaN"),
        ([sp.csr_matrix([[0, np.inf, 0]]), sp.eye(3)], ValueError, r"X\[0\]\[0\] has NaN"),
    ],
)
def test_bad_sparse_input(X, error, message):
    with pytest.raises(error, match=message):
        SparseInput(3).read(X, grow=True)


def test_inputs_are_left_alone(arrays):
    for convert in (np.copy, sp.csr_matrix, halves):
        X = [convert(x) for x in arrays]
        before = [x.copy() for x in X]
        scores_and_gradient(X)
        for a, b in zip(X, before, strict=True):
            if sp.issparse(a):
                assert a.nnz == b.nnz
                a, b = a.toarray(), b.toarray()
            assert_array_equal(a, b)


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 4, 6, 13, 26, 50])
@pytest.mark.parametrize("n_columns", [1, 3, 8, 17, 32, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_products_of_every_size(n_columns, n_outputs, dtype):
    rng = np.random.default_rng(n_columns)
    features = DenseFeatures(n_columns, n_outputs)
    for n_rows in (0, 1, 5, 300):
        x = rng.normal(size=(n_rows, n_columns)).astype(dtype)
        weights = rng.normal(size=(n_columns, n_outputs))
        parts, out = rng.normal(size=(n_rows, n_outputs)), np.full(n_rows * n_outputs, np.nan)
        rows = features.compile(Rows(np.array([n_rows]), x), 0, n_rows)
        features.map(rows, features.expand(weights.ravel()), out)
        wide = x.astype(np.float64)
        assert_allclose(out.reshape(n_rows, n_outputs), wide @ weights, rtol=1e-12, atol=1e-12)
        sums = features.zeros()
        sums += 1.0
        for block in range(features.n_blocks(1)):
            features.adjoint(rows, parts.ravel(), sums, block, 1)
        assert_allclose(sums, 1.0 + wide.T @ parts, rtol=1e-12, atol=1e-11)
