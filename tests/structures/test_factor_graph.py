"""Factor graphs: how cliques are given, and which are refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal.structures import FactorGraph


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_an_array_of_cliques_is_the_same_as_tuples(order):
    rng = np.random.default_rng(order)
    rows = np.array([rng.permutation(9)[:order] for _ in range(30)])
    made = FactorGraph([9, 2], [rows, [(0, 1)]], n_labels=2)
    listed = FactorGraph([9, 2], [[tuple(row) for row in rows.tolist()], [(0, 1)]], n_labels=2)
    assert_array_equal(made.scopes, listed.scopes)
    assert_array_equal(made.scope_offsets, listed.scope_offsets)
    assert_array_equal(made.clique_offsets, listed.clique_offsets)


@pytest.mark.parametrize(
    ("cliques", "message"),
    [
        ([[(0, 1)], [(0, 1, 2), (1, 0, 1)]], "clique 1 of example 1 names variable 1 twice"),
        ([[(0, 1)], [(0, 1, 2), (1, 3)]], "clique 1 of example 1 names variable 3, but"),
        ([[(0, 1)], [(0, 1, 2), (1, -1)]], "clique 1 of example 1 names variable -1, but"),
        ([[(0, 1)], [(0, 1.5)]], "clique 1 of the batch must be a tuple"),
        ([[(0, 1)], [()]], "clique 1 of the batch must be a tuple"),
        ([[(0, 1)], [2]], "clique 1 of the batch must be a tuple"),
        ([[(0, 1)], np.zeros((2, 0), dtype=int)], "clique 1 of the batch must be a tuple"),
        ([[(0, 1)], np.ones((2, 2))], "clique 1 of the batch must be a tuple"),
    ],
)
def test_wrong_cliques_are_named(cliques, message):
    with pytest.raises(ValueError, match=message):
        FactorGraph([2, 3], cliques, n_labels=2)
