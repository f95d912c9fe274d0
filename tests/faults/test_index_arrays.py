"""Index arrays of structures and potentials: no sum wraps around, none is shared with the caller,
and compiled code checks them once.
"""

import numpy as np
import pytest

from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Matching


def test_more_cells_than_any_memory_holds_are_refused():
    clique = FactorGraph([64], [[tuple(range(64))]], 2)  # 2^64 wraps around to 0
    with pytest.raises(ValueError, match="number of cells of all tables must be below"):
        Potentials(clique, np.zeros(128), np.zeros(0))
    for structure in (clique, FactorGraph([62], [[tuple(range(62))]], 2), Chain([3], 2**32)):
        with pytest.raises(ValueError, match="number of cells"):
            structure.table_sizes  # noqa: B018
    with pytest.raises(ValueError, match="number of cells"):
        Matching([3], [2**33]).table_offsets  # noqa: B018


@pytest.mark.parametrize(
    "make",
    [
        lambda: Chain([2**62] * 4, 2),
        lambda: Chain([4], [2**62] * 4),
        lambda: Graph([2**62] * 4, [[]] * 4, 2),
        lambda: FactorGraph([2**62] * 4, [[]] * 4, 2),
        lambda: Matching([2**62] * 4, [1] * 4),
        lambda: Matching([2**32], [1]),
        lambda: Grid([(2**32, 2**32)], 2),
    ],
)
def test_sums_that_would_wrap_around_are_refused(make):
    with pytest.raises(ValueError, match=r"must be below 2\^60"):
        make()


def test_arrays_are_copied():
    index, counts, offsets = np.zeros(2, np.int32), np.array([2, 2, 2]), np.array([0, 4])
    chain = Chain([3], counts)
    p = Potentials(chain, np.arange(6.0), np.arange(4.0), index, offsets)
    index[:], counts[:], offsets[:] = 10**7, 10**6, 10**7
    assert p.score([1, 0, 1]).tolist() == [1 + 2 + 5 + 2 + 1]
    assert chain.label_counts.tolist() == [2, 2, 2]
    targets = np.array([2])
    matching = Matching([2], targets)
    targets[:] = 10**4
    assert matching.table_offsets.tolist() == [0, 9]


def test_compiled_code_checks_what_was_put_in_later():
    p = Potentials(Chain([3], 2), np.zeros(6), np.zeros(4))
    for index in ([0, 10**7], [0, -1]):
        p.table_of_clique = np.array(index, dtype=np.int32)
        with pytest.raises(ValueError, match="tables do not fit"):
            p.score([0, 0, 0])
    p = Potentials(Chain([3], 2), np.zeros(6), np.zeros(4))
    p.structure.scopes = np.array([0, 1, 1, 10**7])
    with pytest.raises(ValueError, match="variables or cliques that it does not have"):
        p.score([0, 0, 0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        Potentials(Chain([3], 2), np.zeros(6), np.zeros(4), [2**32, 0])
