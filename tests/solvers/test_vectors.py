"""Long vectors in blocks: the same digits for any number of threads, and memory used again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import ChainCRF, _blocks
from chordal.execution.threads import Threads
from chordal.solvers import _vectors, lbfgs
from chordal.solvers._vectors import Vectors
from chordal.solvers.lbfgs import CurvatureHistory, two_loop


@pytest.fixture
def small_blocks(monkeypatch):
    """So that short vectors have many blocks, the last one odd."""
    for module in (lbfgs, _vectors):
        monkeypatch.setattr(module, "blocks_of", lambda n: _blocks.blocks_of(n, 700))


def test_sums_and_steps(small_blocks):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3001))
    with Threads(3) as threads:
        for vectors in (Vectors(), Vectors(threads.map)):
            assert vectors.dot(a, b) == Vectors().dot(a, b)
            assert_allclose(vectors.dot(a, b), a @ b)
            assert_allclose(vectors.norm(a), np.linalg.norm(a))
            assert_allclose(vectors.moved(a, b, 0.3), a + 0.3 * b, rtol=1e-15)


def test_memory_is_used_again():
    vectors = Vectors()
    first = vectors.moved(np.ones(5), np.ones(5), 1.0)
    vectors.recycle(first)
    second = vectors.moved(np.ones(5), np.ones(5), 2.0)
    assert second is first
    assert_array_equal(second, 3.0)


@pytest.mark.parametrize("n", [1, 3, 1024, 3001])
def test_the_direction_is_that_of_the_two_loop_recursion(small_blocks, n):
    rng = np.random.default_rng(n)
    scales = rng.uniform(0.5, 2.0, n)  # a quadratic: curvature is positive
    weights, pairs = rng.normal(size=n), []
    with Threads(2) as threads:
        histories = [CurvatureHistory(4), CurvatureHistory(4, threads.map)]
        for _ in range(7):
            moved = weights - rng.uniform(0.1, 0.5) * scales * weights + 0.01 * rng.normal(size=n)
            gradient = scales * moved
            for history in histories:
                history.add(moved, weights, gradient, scales * weights)
            s, y = (moved - weights), scales * (moved - weights)
            s, y = s.astype(np.float32).astype(float), y.astype(np.float32).astype(float)
            pairs = [*pairs, (s, y, s @ y)][-4:]
            weights = moved
        out = np.empty((2, n))
        slopes = [h.direction(gradient, d) for h, d in zip(histories, out, strict=True)]
    assert_array_equal(out[0], out[1])
    assert slopes[0] == slopes[1]
    expected = two_loop(pairs, gradient)
    assert_allclose(out[0], expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())
    assert_allclose(slopes[0], out[0] @ gradient, rtol=1e-10)


def test_a_kept_iterate_stays_as_it_was():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(20)]
    y = [rng.integers(0, 3, 5) for _ in X]
    kept = []
    crf = ChainCRF(l2=0.1, tol=1e-9).fit(X, y, callback=lambda s: kept.append((s.value, s.weights)))
    assert len(kept) > 5
    for value, weights in kept:
        crf.weights_ = weights
        loss = -crf.log_likelihood(X, y).sum() + 0.05 * weights @ weights
        assert loss == pytest.approx(value)
