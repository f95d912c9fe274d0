"""AD3 with scores near the largest numbers: no overflow writes beside its arrays, and no rounding
makes a bound that a labelling exceeds.
"""

import numpy as np
import pytest

from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Grid

AD3, EXACT = INFERENCE.resolve("ad3"), INFERENCE.resolve("junction_tree")


def grid_with(forbidding, seed):
    """A 6 × 6 grid whose forbidden labels and pairs have this score."""
    rng, grid = np.random.default_rng(seed), Grid([(6, 6)], 3)
    unary, table = rng.normal(size=grid.n_states), rng.normal(size=9)
    table[rng.random(9) < 0.4], table[0] = forbidding, 0.3
    unary[rng.random(len(unary)) < 0.2] = forbidding
    return grid, unary, table


def trusted(structure, unary, tables):
    """Potentials as estimators make them: their scores are not looked at again."""
    index = np.zeros(structure.n_cliques, dtype=np.int32)
    offsets = np.array([0, len(tables)])
    return Potentials.trusted(structure, unary, np.asarray(tables), index, offsets)


@pytest.mark.parametrize("size", [1e308, -1e308, 1.7e308])
def test_overflow_ends_the_iterations(size):
    for scores in ([size, size], [size, 0.0], [size, -size]):
        p = trusted(FactorGraph([4], [[(0,)]], 2), np.zeros(8), scores)
        found, relaxed = AD3.map(p), AD3.relaxed_map(p)
        assert found.labels.min() >= 0
        assert found.labels.max() <= 1
        assert found.bound >= found.score
        assert np.isfinite(relaxed.parts.unary).all()


@pytest.mark.parametrize("forbidding", [-1e6, -1e10, -1e30, -1e300, -1e307])
@pytest.mark.parametrize("seed", range(4))
def test_no_labelling_exceeds_the_bound(forbidding, seed):
    p = trusted(*grid_with(forbidding, seed))
    found, best = AD3.map(p), EXACT.map(p)
    assert found.bound >= best.score
    assert found.bound >= found.score
    proved = found.gap <= 1e-9 * max(1.0, np.abs(found.score[0]))
    assert not proved or found.score >= best.score - 1e-6 * np.abs(best.score)


def test_small_scores_are_not_proved_by_an_absolute_gap():
    rng, grid = np.random.default_rng(0), Grid([(5, 5)], 3)
    p = Potentials(grid, 1e-200 * rng.normal(size=75), 1e-200 * rng.normal(size=9))
    found, best = AD3.map(p), EXACT.map(p)
    assert found.bound >= best.score
    assert found.gap > 0.0 or found.score == pytest.approx(best.score, rel=1e-9)


def test_potentials_whose_sums_overflow_are_refused():
    graph = FactorGraph([4], [[(0,)]], 2)
    for scores in ([1e308, 1e308], [0.0, -1e308], [np.nan, 0.0], [np.inf, 0.0]):
        with pytest.raises(ValueError, match=r"(could overflow|-inf), got .* in tables\[[01]\]"):
            Potentials(graph, np.zeros(8), scores)
        with pytest.raises(ValueError, match="in unary"):
            Potentials(graph, scores * 4, np.zeros(2))
    Potentials(graph, np.full(8, 1e306), [-np.inf, 0.0])
