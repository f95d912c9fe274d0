"""Messages through tables of label distances, beside those of the same tables cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from chordal import _kernels
from chordal.inference import INFERENCE
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.tree_reweighted import TreeReweightedInference
from chordal.inference.trw_s import TRWSInference
from chordal.potentials import Potentials
from chordal.structures import Grid, Tree


def passed(table, scores, message):
    """Whether the table is one of distances; the message is then written."""
    return _kernels.distance_message(table=table.ravel(), scores=scores, message=message)


LABELS = (3, 4, 5, 9, 16, 31, 100)


def steps(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def potts(n, rng):
    return rng.normal() + rng.uniform(0.1, 2.0) * np.eye(n)


def truncated_linear(n, rng):
    reach = rng.integers(1, n)
    return rng.normal() - rng.uniform(0.1, 2.0) * np.minimum(steps(n), reach)


def linear(n, rng):
    return rng.normal() - rng.uniform(0.1, 2.0) * steps(n)


def linear_with_a_drop(n, rng):
    """Even up to some distance; what is further apart costs much more, or is forbidden."""
    near = steps(n) < rng.integers(1, n)
    return np.where(near, -rng.uniform(0.1, 2.0) * steps(n), rng.choice([-1e3, -np.inf]))


def fractional_cap(n, rng):
    """The cap is reached between two whole steps."""
    return -np.minimum(0.3 * steps(n), 0.3 * rng.uniform(1, n - 1))


def weighted(n, rng):
    return rng.uniform(0.1, 10.0) * truncated_linear(n, rng)


def truncated_quadratic(n, rng):
    reach = max(1, n // 3)
    return -rng.uniform(0.1, 2.0) * np.minimum(steps(n) ** 2, reach**2)


def uneven(n, rng):
    """Any decline; beyond a third of the labels all is the same."""
    falls = np.cumsum(rng.exponential(size=n))
    return -falls[np.minimum(steps(n), max(1, n // 3))]


KINDS = (
    potts,
    truncated_linear,
    linear,
    linear_with_a_drop,
    fractional_cap,
    weighted,
    truncated_quadratic,
    uneven,
)


@pytest.mark.parametrize("n", LABELS)
@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_those_of_the_cells(kind, n):
    rng = np.random.default_rng(n)
    for _ in range(30):
        table = kind(n, rng)
        scores = 3.0 * rng.normal(size=n)
        if rng.random() < 0.3:
            scores[rng.random(n) < 0.5] = -np.inf
        found = np.full(n, np.nan)
        known = passed(table, scores, found)
        expected = (table + scores[:, None]).max(axis=0)
        if kind is potts or n >= 16:  # few labels gain nothing by distances
            assert known
        if known:
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("n", [3, 7, 12])
def test_other_tables_are_not_taken_for_such(n):
    rng, found = np.random.default_rng(n), np.zeros(n)
    scores = rng.normal(size=n)
    for kind in KINDS:
        table = kind(n, rng)
        i, j = rng.integers(n, size=2)
        table[i, j] = np.nextafter(table[i, j], 10.0)
        assert not passed(table, scores, found), (kind, i, j)
    repelling = -potts(n, rng)
    assert not passed(repelling, scores, found)
    growing = -linear(n, rng)
    assert not passed(growing, scores, found)


def nudged(table):
    """The same but for less than anything can tell, and no longer a table of distances."""
    other = np.array(table)
    other[0, -1] += 1e-9
    return other


@pytest.mark.parametrize("method", ["trw_s", "icm", "loopy_bp"])
@pytest.mark.parametrize("kind", [potts, truncated_linear, linear, truncated_quadratic, uneven])
def test_grids_are_labelled_as_by_their_cells(kind, method):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 20))
        unary, table = rng.normal(size=(7, 6, n)), kind(n, rng)
        grid = Grid([(7, 6)], n)
        found = INFERENCE.resolve(method).map(Potentials(grid, unary, table))
        other = INFERENCE.resolve(method).map(Potentials(grid, unary, nudged(table)))
        np.testing.assert_allclose(found.score, other.score, rtol=1e-7)
        if method == "trw_s":
            np.testing.assert_allclose(found.bound, other.bound, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_small_models_against_all_labellings(kind):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        shape, n = (2, 3), int(rng.integers(3, 6))
        p = Potentials(Grid([shape], n), rng.normal(size=(*shape, n)), kind(n, rng))
        best = ExhaustiveInference().map(p)
        found = TRWSInference().map(p)
        assert found.score[0] <= best.score[0] + 1e-9
        assert found.bound[0] >= best.score[0] - 1e-9
        if found.gap[0] < 1e-9:
            np.testing.assert_array_equal(found.labels, best.labels)


@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_exact(kind):
    rng = np.random.default_rng(0)
    n, length = 6, 5
    p = Potentials(Tree([[-1, 0, 0, 2, 1]], n), rng.normal(size=(length, n)), kind(n, rng))
    expected = ExhaustiveInference().map(p)
    for method in ("tree", "trw_s"):
        found = INFERENCE.resolve(method).map(p)
        np.testing.assert_allclose(found.score, expected.score, rtol=1e-12)


def test_a_table_for_every_edge():
    """Weights of edges times one table, which are recognised one by one."""
    rng = np.random.default_rng(0)
    n, grid = 9, Grid([(6, 5)], 9)
    weights = rng.uniform(0.1, 2.0, size=grid.n_cliques)
    tables = -weights[:, None, None] * np.minimum(steps(n), 6)
    unary = 2.0 * rng.normal(size=(6, 5, n))
    found = TRWSInference().map(Potentials(grid, unary, tables))
    other = TRWSInference().map(Potentials(grid, unary, np.array([nudged(t) for t in tables])))
    np.testing.assert_allclose(found.bound, other.bound, rtol=1e-5)
    np.testing.assert_allclose(found.score, other.score, rtol=1e-7)


def disguised(table):
    """The same but for rounding, and no longer a table of distances."""
    other = np.array(table)
    other[1, 1] = np.nextafter(other[1, 1], 10.0)
    return other


def of_two(unary, table):
    """log Z and marginals of an edge, from all its labellings."""
    scores = unary[0][:, None] + unary[1] + table
    shares = np.exp(scores - scores.max())
    total = shares.sum()
    return scores.max() + np.log(total), shares / total


@pytest.mark.parametrize("domain", ["auto", "log"])
@pytest.mark.parametrize("n", [8, 13, 24, 31, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_cells(kind, n, domain):
    """Also with labels that are forbidden, scores far apart, and large ones."""
    rng = np.random.default_rng(n)
    for scale, shift, hidden in ((1, 0, 0), (1, 900, 0.5), (40, 0, 0), (60, 0, 0.5), (1, 1e4, 0)):
        unary, table = scale * rng.normal(size=(2, n)), scale * kind(n, rng) + shift
        unary[0, rng.random(n) < hidden] = -np.inf
        unary[0, rng.integers(n)] = 1.0
        log_z, shares = of_two(unary, table)
        p = Potentials(Tree([[-1, 0]], n), unary, table)
        found = LoopyBPInference(domain=domain).marginals(p)
        np.testing.assert_allclose(found.log_partition, log_z, rtol=1e-12, atol=1e-11)
        rows = np.stack([shares.sum(axis=1), shares.sum(axis=0)])
        np.testing.assert_allclose(found.parts.unary.reshape(2, n), rows, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.parts.tables.reshape(n, n), shares, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "method",
    [
        LoopyBPInference(max_iter=20),
        LoopyBPInference("parallel", damping=0.3, max_iter=20),
        LoopyBPInference("residual", damping=0.1, tol=1e-13),  # rounding decides the order
        LoopyBPInference(domain="log", max_iter=20),
        LoopyBPInference("residual", tol=1e-13, domain="log"),
        TreeReweightedInference(max_iter=20),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_marginals_of_grids_are_those_of_their_cells(kind, method):
    """After the same iterations, whether messages have settled or not; "residual" settles."""
    for n in (12, 30, 60):
        rng = np.random.default_rng(n)
        unary, table = 2.0 * rng.normal(size=(4, 5, n)), 0.3 * kind(n, rng)
        grid = Grid([(4, 5)], n)
        found = method.marginals(Potentials(grid, unary, table))
        other = method.marginals(Potentials(grid, unary, disguised(table)))
        np.testing.assert_allclose(found.log_partition, other.log_partition, rtol=1e-10)
        np.testing.assert_allclose(found.parts.unary, other.parts.unary, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.parts.tables, other.parts.tables, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("schedule", ["sequential", "parallel"])  # residuals: last digits decide
@pytest.mark.parametrize("kind", KINDS)
def test_best_labels_of_grids_are_those_of_their_cells(kind, schedule):
    method = LoopyBPInference(schedule, damping=0.2, max_iter=30)
    for n in (12, 30, 60):
        rng = np.random.default_rng(n)
        unary, table = 3.0 * rng.normal(size=(5, 4, n)), 0.3 * kind(n, rng)
        grid = Grid([(5, 4)], n)
        found = method.map(Potentials(grid, unary, table))
        other = method.map(Potentials(grid, unary, disguised(table)))
        np.testing.assert_array_equal(found.labels, other.labels)
