"""Marginals of message passing sum to one for scores of any size, also where labels tie."""

import numpy as np
import pytest

from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Grid

STRUCTURES = [
    Chain([5], 3),
    Grid([(2, 3)], 4),
    FactorGraph([3], [[(0, 1, 2), (1, 2), (0, 1)]], 3),
]


def tied(structure, size, seed):
    """Scores of few values, so that several labels are the best ones."""
    rng = np.random.default_rng(seed)
    unary = rng.choice([0.0, -1.0, -2.0], size=int(structure.label_counts.sum()))
    tables = rng.choice([0.0, -1.0], size=int(structure.table_sizes.sum()))
    return Potentials(structure, size * unary, size * tables)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e16, 1e150, 1e285])
@pytest.mark.parametrize("structure", STRUCTURES, ids=["chain", "grid", "triple"])
@pytest.mark.parametrize("method", ["loopy_bp", "tree_reweighted"])
def test_marginals_sum_to_one(method, structure, size):
    """They were 2 and 3 where as many labels tied: the logarithm of a sum was lost in rounding."""
    for seed in range(5):
        parts = INFERENCE.get(method)(max_iter=50).marginals(tied(structure, size, seed)).parts
        variables = np.add.reduceat(parts.unary, structure.state_offsets[:-1])
        ends = np.concatenate([[0], np.cumsum(structure.table_sizes)])[:-1]
        np.testing.assert_allclose(variables, 1.0, rtol=1e-9)
        np.testing.assert_allclose(np.add.reduceat(parts.tables, ends), 1.0, rtol=1e-9)


def test_sums_that_would_overflow_are_refused():
    """log Z was NaN, or -inf, which says that nothing is allowed."""
    p = tied(STRUCTURES[1], 1e300, 0)
    with pytest.raises(ValueError, match="too large to be added"):
        INFERENCE.get("tree_reweighted")().log_partition(p)
