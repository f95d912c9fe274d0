"""Roof duality: the linear relaxation, labels that a best labelling has, and what they leave."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.linear_program import LinearProgramInference
from chordal.inference.max_flow import MaxFlowInference
from chordal.inference.qpbo import QPBOInference
from chordal.inference.trw_s import TRWSInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid
from chordal.testing import check_inference

TRUTH, QPBO = ExhaustiveInference(), QPBOInference()
SCORES = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e4, -1e4, -np.inf]))


@st.composite
def two_labels(draw):
    """Graphs with one or two labels, tied tables and −inf anywhere."""
    n = draw(st.integers(1, 6))
    pairs = [(i, j) if (i + j) % 2 else (j, i) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs))) if pairs else []
    singles = [(v,) for v in draw(st.lists(st.integers(0, n - 1), max_size=2))]
    counts = draw(st.lists(st.sampled_from([1, 2, 2, 2]), min_size=n, max_size=n))
    graph = FactorGraph([n], [[*edges, *singles]], counts)
    shapes = [tuple(graph.label_counts[graph.scope(c)]) for c in range(graph.n_cliques)]
    kinds = list(dict.fromkeys(shapes))
    tables = [kinds.index(shape) for shape in shapes]
    if draw(st.booleans()):
        tables, kinds = list(range(graph.n_cliques)), shapes
    sizes = [int(np.prod(shape)) for shape in kinds]
    cells = draw(st.lists(SCORES, min_size=sum(sizes), max_size=sum(sizes)))
    unary = draw(st.lists(SCORES, min_size=graph.n_states, max_size=graph.n_states))
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=int)])
    return Potentials(graph, unary, cells, tables, offsets)


@given(two_labels())
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
def test_any_scores(p):
    if not np.isfinite(TRUTH.log_partition(p)).all():
        return
    check_inference(QPBO, p, np.random.default_rng(0))
    relaxed, program = QPBO.relaxed_map(p), LinearProgramInference().relaxed_map(p)
    size = np.abs(np.concatenate([p.unary, p.tables]))
    atol = 1e-9 * (1.0 + size[np.isfinite(size)].sum())
    assert_allclose(relaxed.value, program.value, rtol=0, atol=atol)
    assert np.isin(relaxed.parts.unary, [0.0, 0.5, 1.0]).all()
    # What is decided is part of some best labelling; where all the rest is exact, so is the whole.
    best = TRUTH.map(p).score
    rows = np.split(relaxed.parts.unary, p.structure.state_offsets[1:-1])
    decided = np.array([row.max() == 1.0 for row in rows])
    fixed = p.given([row.argmax() for row in rows], decided)
    assert_allclose(TRUTH.map(fixed).score, best, rtol=0, atol=atol)
    assert_allclose(QPBO.map(p).score, best, rtol=0, atol=atol)
    assert_allclose(QPBO.map(p).gap, 0.0, atol=atol)


def signs(size, strength, share, seed=0):
    """A grid of which a share of the edges prefers different labels."""
    rng, grid = np.random.default_rng(seed), Grid([size], 2)
    tables = np.zeros((grid.n_cliques, 4))
    differ = rng.random(grid.n_cliques) < share
    tables[~differ] = strength * np.array([1, 0, 0, 1])
    tables[differ] = strength * np.array([0, 1, 1, 0])
    return Potentials(grid, rng.normal(size=grid.n_states), tables)


def test_without_edges_that_prefer_difference_it_is_a_cut():
    p = signs((60, 70), 1.0, 0.0)
    found, cut = QPBO.map(p), MaxFlowInference().map(p)
    assert_allclose(found.score, cut.score, rtol=1e-12)
    assert_allclose(found.gap, 0.0, atol=1e-6)
    assert np.isin(QPBO.relaxed_map(p).parts.unary, [0.0, 1.0]).all()


def test_large_graphs_are_proved_where_little_is_undecided():
    p = signs((200, 200), 0.4, 0.3)
    found, other = QPBO.map(p), TRWSInference().map(p)
    assert 0 < (QPBO.relaxed_map(p).parts.unary == 0.5).sum() < 0.05 * p.structure.n_states
    assert_allclose(found.gap, 0.0, atol=1e-6)
    assert found.score >= other.score - 1e-6
    assert found.score <= other.bound + 1e-6


def test_where_all_is_undecided_the_rest_is_not_worse():
    p = signs((40, 40), 3.0, 0.5)
    found, other = QPBO.map(p), TRWSInference().map(p)
    assert found.convergence is not None  # trw_s did the rest
    assert_allclose(found.score, other.score, rtol=0.01)
    assert found.gap > 0.0
    assert found.bound <= other.bound + 1e-6


def test_examples_are_apart():
    parts = [signs((3, 3), 1.0, 0.5, seed) for seed in range(4)]
    graph = Graph([9] * 4, [part.structure.scopes.reshape(-1, 2) for part in parts], 2)
    unary, tables = (np.concatenate([getattr(q, n) for q in parts]) for n in ("unary", "tables"))
    found = QPBO.map(Potentials(graph, unary, tables))
    assert_allclose(found.score, [TRUTH.map(part).score[0] for part in parts])
    single = [QPBO.relaxed_map(part) for part in parts]
    together = QPBO.relaxed_map(Potentials(graph, unary, tables), np.arange(4.0))
    assert_allclose(together.value, [one.value[0] for one in single])
    expected = np.concatenate([k * one.parts.tables for k, one in enumerate(single)])
    assert_array_equal(together.parts.tables, expected)


def test_what_cannot_be():
    triangle = Graph([3], [[(0, 1), (1, 2), (2, 0)]], 2)
    differ = [-np.inf, 0, 0, -np.inf]
    with pytest.raises(InfeasibleError):  # the relaxation is content with halves, the rest is not
        QPBO.map(Potentials(triangle, np.zeros(6), differ))
    assert QPBO.relaxed_map(Potentials(triangle, np.zeros(6), differ)).value == [0.0]
    with pytest.raises(UnsupportedError, match="'qpbo' does not support Grid"):
        QPBO.map(Potentials(Grid([(2, 2)], 3), np.zeros(12), np.zeros(9)))
    with pytest.raises(ValueError, match="too large to be added"):
        QPBO.map(Potentials(triangle, np.full(6, 1e300), np.zeros(4)))
    none = Potentials(Graph([0, 2], [[], []], 2), [0, 1, 2, 0], np.zeros(0))
    assert_array_equal(QPBO.map(none).labels, [1, 0])


def test_a_submodular_model_is_cut_once_and_a_mixed_one_beside_its_image():
    rng = np.random.default_rng(5)
    grid = Grid([(3, 3), (2, 4)], n_labels=2)
    for sign in (1.0, -1.0):
        tables = np.abs(rng.normal(size=(grid.n_cliques, 1))) * [1.0, 0.0, 0.0, 1.0]
        tables[::3] *= sign
        p = Potentials(grid, rng.normal(size=grid.n_states), tables.ravel())
        found, best = QPBOInference().in_training().map(p), ExhaustiveInference().map(p)
        assert_allclose(found.score, best.score)
        relaxed = QPBOInference().relaxed_map(p)
        program = LinearProgramInference().relaxed_map(p)
        assert_allclose(relaxed.value, program.value, atol=1e-7)
