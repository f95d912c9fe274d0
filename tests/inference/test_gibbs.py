"""Gibbs sampling: its stationary distribution, constraints, and diagnostics."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import _kernels
from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal.inference import effective_sample_size, r_hat
from chordal.inference._schedules import in_threads
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.gibbs import BLOCKS, GibbsInference
from chordal.potentials import Potentials
from chordal.structures import Chain, Graph, Grid
from chordal.testing import MODELS

MIXING = ["chain_tied", "chain_varied_labels", "loop_of_three", "triplets", "chain_batch"]


@pytest.mark.parametrize("name", MIXING)
def test_marginals_come_near_the_exact_ones(name):
    p = MODELS[name](np.random.default_rng(0))
    exact = ExhaustiveInference().marginals(p).parts
    found = GibbsInference(n_draws=4000).marginals(p)
    assert_allclose(found.parts.unary, exact.unary, atol=0.04)
    assert_allclose(found.parts.tables, exact.tables, atol=0.12)
    assert np.isnan(found.log_partition).all()


def test_one_sweep_keeps_the_exact_distribution():
    # Started from exact samples, draws after a sweep must be exact samples too.
    from chordal.inference._sweeps import sweep

    p = MODELS["triplets"](np.random.default_rng(0))
    exact, rng = ExhaustiveInference(), np.random.default_rng(1)
    labels = exact.sample(p, 40_000, rng)
    before = labels.copy()
    sweep(p, labels, 1, rng)
    assert (labels != before).any()
    frequency = [(labels[:, v] == 1).mean() for v in range(7)]
    assert_allclose(frequency, exact.marginals(p).parts.unary[1::2], atol=0.012)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_chains_stay_at_allowed_labellings(blocks):
    hard = ["chain_forbidden_transitions", "chain_last_resort", "chain_one_labelling"]
    for name in (*hard, "graph_forbidden", "cliques_forbidden", "tree_extreme_scores"):
        p = MODELS[name](np.random.default_rng(0))
        drawn = GibbsInference(blocks=blocks).sample(p, 50, np.random.default_rng(0))
        assert np.isfinite([p.score(labels) for labels in drawn]).all()


def ring(n, n_labels, tables):
    edges = [(k, (k + 1) % n) for k in range(n)]
    return Potentials(Graph([n], [edges], n_labels), np.zeros(n * n_labels), tables)


def test_no_allowed_labelling_is_said():
    differ = np.where(np.eye(2) == 1.0, -np.inf, 0.0)
    with pytest.raises(InfeasibleError, match="example 0"):
        GibbsInference().marginals(ring(31, 2, differ))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_start_that_sweeps_do_not_find_is_searched(blocks):
    # Around the ring each label is the next of five: five labellings are allowed of 5 ** 40.
    step = np.where(np.roll(np.eye(5), 1, axis=1) == 1.0, 0.0, -np.inf)
    p = ring(40, 5, step)
    drawn = GibbsInference(burn_in=0, blocks=blocks).sample(p, 8, np.random.default_rng(0))
    assert np.isfinite([p.score(labels) for labels in drawn]).all()


def test_a_search_that_is_given_up_is_said():
    # Pigeons: one more than there are holes, which no clique sees.
    n = 11
    pairs = [(i, j) for i in range(n) for j in range(i)]
    differ = np.where(np.eye(n - 1) == 1.0, -np.inf, 0.0)
    p = Potentials(Graph([n], [pairs], n - 1), np.zeros(n * (n - 1)), differ)
    with pytest.raises(UnsupportedError, match="'gibbs' found no allowed labelling of example 0"):
        GibbsInference().marginals(p)


@pytest.mark.parametrize("blocks", ["chromatic", "tree"])
@pytest.mark.parametrize("name", [*MIXING, "cliques_of_every_size", "forest", "grid_potts"])
def test_blocks_keep_the_exact_distribution(blocks, name):
    # Started from exact samples, draws after a sweep must be exact samples too.
    p = MODELS[name](np.random.default_rng(0))
    exact, rng = ExhaustiveInference(), np.random.default_rng(1)
    schedule = GibbsInference(blocks=blocks)._schedule(p, 1)
    drawn = exact.sample(p, 10_000, rng)
    before = drawn.copy()
    for labels in drawn:
        schedule.advance(labels, 1, rng)
    assert (drawn != before).any()
    counts = p.zeros()
    for labels in drawn:
        counts.add_indicators(labels, 1e-4)
    truth = exact.marginals(p).parts
    assert_allclose(counts.unary, truth.unary, atol=0.025)
    assert_allclose(counts.untied().tables, truth.untied().tables, atol=0.06)


def test_a_whole_tree_is_drawn_at_once():
    # Strong ties: single variables never leave a mode, a tree's draws are independent.
    n = 200
    p = Potentials(Chain([n], 2), np.zeros(2 * n), 30.0 * np.eye(2).ravel())
    tree = GibbsInference(burn_in=0, n_chains=2, blocks="tree")
    drawn = tree.sample(p, 400, np.random.default_rng(0))[:, 0]
    assert 0.4 < drawn.mean() < 0.6
    assert 0.35 < (drawn[::2][1:] == drawn[::2][:-1]).mean() < 0.65


def test_trees_mix_faster_on_a_grid():
    rng, grid = np.random.default_rng(0), Grid([(3, 40)], 2)
    p = Potentials(grid, 0.3 * rng.normal(size=240), [1.0, 0.0, 0.0, 1.0])
    size = {}
    for blocks in ("single", "tree"):
        drawn = GibbsInference(blocks=blocks).sample(p, 2000, np.random.default_rng(0))
        share = drawn.reshape(500, 4, 120).mean(axis=2).T  # of label 1, by chain and draw
        size[blocks] = effective_sample_size(share)
    assert size["tree"] > 2.0 * size["single"]


@pytest.mark.parametrize("blocks", BLOCKS)
def test_threads_change_nothing(blocks, monkeypatch):
    monkeypatch.setattr("chordal.inference._schedules.WORTH_SPLITTING", 10)
    p = Potentials(Grid([(9, 9)], 3), np.random.default_rng(0).normal(size=243), np.eye(3))
    settings = {"n_draws": 20, "burn_in": 5, "thinning": 2, "blocks": blocks}
    one = GibbsInference(**settings).marginals(p)
    for n_jobs in (2, 3, 9):
        many = GibbsInference(**settings, n_jobs=n_jobs).marginals(p)
        assert_array_equal(one.parts.unary, many.parts.unary)
        assert_array_equal(one.parts.tables, many.parts.tables)
        assert one.convergence == many.convergence


def test_colours_and_forests():
    p = MODELS["cliques_of_every_size"](np.random.default_rng(0))
    colour = _kernels.greedy_colours(p.structure.topology, p.structure.incidence)
    for clique in range(p.structure.n_cliques):
        scope = p.structure.scope(clique)
        assert len(set(colour[scope])) == len(scope)
    for graph in (p, Potentials(Grid([(50, 50)], 2), np.zeros(5000), np.zeros(4))):
        s = graph.structure
        blocks = _kernels.greedy_forests(s.topology, s.incidence)
        check_forests(s, blocks.order, blocks.parent, blocks.offsets)


def check_forests(structure, order, parent, offsets):
    covered = set()
    for first, last in pairwise(offsets):
        members = order[first:last].tolist()
        assert len(set(members)) == len(members)
        covered |= set(members)
        links = {frozenset(link) for link in zip(members, parent[first:last], strict=True)}
        before = set()
        for v, p in zip(members, parent[first:last], strict=True):
            assert p < 0 or p in before  # a parent comes first
            before.add(v)
        for clique in range(structure.n_cliques):  # who shares a clique is parent and child
            inside = set(structure.scope(clique)) & before
            assert len(inside) < 2 or inside in links
    assert covered == set(range(structure.n_variables))
    if isinstance(structure, Grid):
        assert (np.diff(offsets) > 0.6 * structure.n_variables).all()
        assert len(offsets) == 3


def test_the_status_is_by_r_hat():
    easy = Potentials(Chain([6], 2), np.zeros(12), np.zeros(4))
    run = GibbsInference().marginals(easy).convergence
    assert (run.status, run.n_iter, run.change) == (Status.CONVERGED, 350, 0.0)
    stuck = Potentials(Chain([2], 2), [0.5, 0.0, 0.5, 0.0], 40.0 * np.eye(2).ravel())
    run = GibbsInference(n_chains=8).marginals(stuck).convergence
    assert (run.status, run.change) == (Status.MAX_ITERATIONS, np.inf)
    assert GibbsInference(n_draws=3).marginals(easy).convergence.change == np.inf  # too few to tell


def test_an_error_in_one_chain_ends_all():
    def task(k, check):
        if k == 1:
            raise RuntimeError("chain 1")
        while True:
            check()

    with pytest.raises(RuntimeError, match="chain 1"):
        in_threads(task, 3, n_jobs=3)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="blocks must be one of 'single', 'chromatic', 'tree'"):
        GibbsInference(blocks="trees")
    with pytest.raises(ValueError, match="n_jobs must be an integer of at least 1"):
        GibbsInference(n_jobs=0)


def test_the_seed_decides():
    p = MODELS["loop_of_three"](np.random.default_rng(0))
    a, b, c = (GibbsInference(random_state=k).marginals(p).parts.unary for k in (0, 0, 1))
    assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_diagnostics_tell_mixing_from_sticking():
    easy = Potentials(Chain([6], 2), np.zeros(12), np.zeros(4))
    found = GibbsInference().diagnose(MODELS["loop_of_three"](np.random.default_rng(0)))
    assert found.r_hat[0] < 1.02
    assert found.effective_sample_size[0] > 200
    assert GibbsInference().diagnose(easy).r_hat[0] == 1.0  # every labelling has the same score
    # Strong ties: no chain leaves the mode it has found, and one mode is better.
    stuck = Potentials(Chain([2], 2), [0.5, 0.0, 0.5, 0.0], 40.0 * np.eye(2).ravel())
    found = GibbsInference(n_chains=8).diagnose(stuck)
    assert found.r_hat[0] == np.inf
    assert found.effective_sample_size[0] < 20


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    rng, n = np.random.default_rng(0), 20_000
    noise = rng.normal(size=(4, n))
    x = np.zeros((4, n))
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    assert_allclose(effective_sample_size(x), 4 * n * (1 - rho) / (1 + rho), rtol=0.2)
    assert r_hat(x) < 1.01


def test_diagnostics_of_constant_chains():
    assert r_hat(np.ones((2, 10))) == 1.0
    assert r_hat(np.array([[1.0], [2.0]]) * np.ones((2, 10))) == np.inf
    assert effective_sample_size(np.ones((2, 10))) == 20
    with pytest.raises(ValueError, match="n_draws >= 4"):
        r_hat(np.ones((2, 3)))
