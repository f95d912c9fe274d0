"""Graphs, trees, grids and factor graphs: what they hold, and what they refuse."""

from itertools import pairwise

import networkx
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal.structures import Chain, FactorGraph, Graph, Grid, Structure, Tree


def edges_of(structure: Structure) -> set[tuple[int, ...]]:
    return {tuple(structure.scope(k).tolist()) for k in range(structure.n_cliques)}


@pytest.mark.parametrize(
    ("shape", "neighbours"), [((3, 4), 4), ((3, 4), 8), ((2, 3, 4), 6), ((2, 3, 4), 26)]
)
def test_a_grid_joins_exactly_the_pixels_that_are_close(shape, neighbours):
    grid = Grid([shape], n_labels=2, neighbours=neighbours)
    pixels = list(np.ndindex(*shape))
    furthest = 1 if neighbours in (4, 6) else len(shape)
    close = {
        (a, b)
        for a, p in enumerate(pixels)
        for b, q in enumerate(pixels)
        if a < b
        and max(abs(i - j) for i, j in zip(p, q, strict=True)) == 1
        and sum(abs(i - j) for i, j in zip(p, q, strict=True)) <= furthest
    }
    assert edges_of(grid) == close
    assert grid.n_cliques == len(close)
    assert len(grid.directions) == neighbours // 2


def test_a_grid_knows_the_direction_of_its_edges():
    grid = Grid([(2, 3), (0, 4), (3, 1)], n_labels=2, neighbours=8)
    assert_array_equal(np.diff(grid.variable_offsets), [6, 0, 3])
    for example in (0, 2):
        shape, first = grid.shapes[example], grid.variable_offsets[example]
        for k in range(*grid.clique_offsets[example : example + 2]):
            a, b = (np.array(np.unravel_index(v - first, shape)) for v in grid.scope(k))
            assert tuple(b - a) == grid.directions[grid.direction_of_clique[k]]


def test_loops_are_found():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(1, 9))
        n_edges, seed = (int(k) for k in rng.integers(0, [n + 2, 99]))
        graph = networkx.gnm_random_graph(n, n_edges, seed=seed)
        made = Graph([n], [list(graph.edges)], n_labels=2)
        assert made.is_forest == networkx.is_forest(graph)
        assert made.is_pairwise
    assert Chain([4, 0, 2], 3).is_forest
    assert Tree([[-1, 0, 0], [-1]], 3).is_forest
    assert not Grid([(2, 2)], 3).is_forest
    assert not FactorGraph([2], [[(0, 1), (1, 0)]], 2).is_forest  # twice the same pair
    assert not FactorGraph([3], [[(0, 1, 2), (1, 2)]], 2).is_forest
    assert FactorGraph([5], [[(0, 1, 2), (2, 3), (4,), (0,)]], 2).is_forest
    assert not FactorGraph([3], [[(0, 1, 2)]], 2).is_pairwise


def test_cliques_of_variables():
    graph = FactorGraph([3, 2], [[(0, 2), (2,), (1, 2, 0)], [(1, 0)]], n_labels=2)
    offsets, cliques = graph.cliques_of_variable
    found = [cliques[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == [[0, 2], [2], [0, 1, 2], [3], [3]]
    assert_array_equal(graph.orders, [2, 1, 3, 2])


def test_a_tree_in_any_order_of_its_nodes():
    tree = Tree([[2, 2, 4, 1, -1], [], [-1, -1]], n_labels=[2, 3, 2, 2, 2, 1, 4])
    assert edges_of(tree) == {(2, 0), (2, 1), (4, 2), (1, 3)}
    assert_array_equal(tree.clique_offsets, [0, 4, 4, 4])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([2, 3], [[], [(0, 3)]], 2), "clique 0 of example 1 names variable 3"),
        (lambda: Graph([3], [[(0, 1), (1, 1)]], 2), "clique 1 of example 0 names variable 1 twice"),
        (lambda: Graph([3], [[(0, 1), (1, 2), (1, 0)]], 2), "edges 0 and 2 of example 0 both join"),
        (lambda: Graph([3], [[(-1, 1)]], 2), "names variable -1"),
        (lambda: Graph([3], [], 2), "one entry per example"),
        (lambda: Graph([3], [[(0, 1, 2)]], 2), r"shape \[n_edges, 2\]"),
        (lambda: Graph([3], [[(0.0, 1.0)]], 2), "whole numbers"),
        (lambda: Graph([-1], [[]], 2), "non-negative"),
        (lambda: Graph([2], [[]], [2, 0]), "counts of at least 1"),
        (lambda: Tree([[1, 0]], 2), "have a cycle"),
        (lambda: Tree([[-1], [-1, 1, 3, 2]], 2), "example 1 have a cycle through node 1"),
        (lambda: Tree([[-1, 2]], 2), "between -1 and 1"),
        (lambda: Grid([(2, 2, 2)], 2), "2 sizes"),
        (lambda: Grid([(2, 2)], 2, neighbours=5), "neighbours must be"),
        (lambda: FactorGraph([2], [[()]], 2), "tuple of variables"),
        (lambda: FactorGraph([2], [[(0, 1, 0)]], 2), "variable 0 twice"),
        (lambda: FactorGraph([2], [], 2), "one entry per example"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_million_nodes():
    grid = Grid([(1000, 1000)], n_labels=2)
    assert grid.n_cliques == 2 * 999 * 1000
    assert not grid.is_forest
