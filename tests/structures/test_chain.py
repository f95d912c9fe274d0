import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal.structures import STRUCTURES, Chain, Structure, offsets_of, read_only


def test_a_batch_is_flat():
    chains = Chain([3, 1, 0, 2], n_labels=[2, 3, 2, 5, 4, 1])
    assert (chains.n_examples, chains.n_variables, chains.n_cliques) == (4, 6, 3)
    assert_array_equal(chains.lengths, [3, 1, 0, 2])
    assert_array_equal(chains.variable_offsets, [0, 3, 4, 4, 6])
    assert_array_equal(chains.clique_offsets, [0, 2, 2, 2, 3])
    assert_array_equal(chains.scopes, [0, 1, 1, 2, 4, 5])
    assert_array_equal(chains.scope_offsets, [0, 2, 4, 6])
    assert_array_equal(chains.state_offsets, [0, 2, 5, 7, 12, 16, 17])
    assert_array_equal(chains.table_sizes, [6, 6, 4])
    assert_array_equal(chains.scope(2), [4, 5])
    assert chains.n_states == 17


@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0], [1], [1, 1], [0, 1, 0]])
def test_no_transition(lengths):
    chains = Chain(lengths, n_labels=3)
    assert chains.n_examples == len(lengths)
    assert chains.n_variables == sum(lengths)
    assert chains.n_cliques == 0
    assert len(chains.scopes) == len(chains.table_sizes) == 0
    assert_array_equal(chains.clique_offsets, np.zeros(len(lengths) + 1))


def test_every_edge_joins_neighbours_of_one_chain():
    lengths = np.random.default_rng(0).integers(0, 6, 50)
    chains = Chain(lengths, n_labels=2)
    example = np.repeat(np.arange(50), lengths)
    left, right = chains.scopes.reshape(-1, 2).T
    assert_array_equal(right, left + 1)
    assert_array_equal(example[left], example[right])
    assert chains.n_cliques == np.maximum(lengths - 1, 0).sum()
    per_example = np.bincount(example[left], minlength=50)
    assert_array_equal(per_example, np.diff(chains.clique_offsets))


@pytest.mark.parametrize(
    ("lengths", "n_labels", "message"),
    [
        ([-1], 2, "lengths must be"),
        ([[2, 2]], 2, "lengths must be"),
        ([2], 0, "at least 1"),
        ([2], [2, 0], "at least 1"),
        ([2], [2, 2, 2], r"one entry per variable \(2\), got 3"),
        ([2, 1], [2], r"one entry per variable \(3\), got 1"),
        ([2], [[2], [2]], "1-d"),
    ],
)
def test_bad_input(lengths, n_labels, message):
    with pytest.raises(ValueError, match=message):
        Chain(lengths, n_labels)


def test_arrays_are_read_only():
    counts = np.array([2, 2])
    chains = Chain([2], counts)
    for name in (
        "label_counts",
        "state_offsets",
        "variable_offsets",
        "clique_offsets",
        "scopes",
        "scope_offsets",
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(chains, name)[0] = 7
    assert counts.flags.writeable


def test_read_only_leaves_the_original_writable():
    array = np.zeros(2)
    view = read_only(array)
    array[0] = 1.0
    assert view[0] == 1.0
    assert not view.flags.writeable


def test_offsets():
    assert_array_equal(offsets_of([]), [0])
    assert_array_equal(offsets_of([0, 2, 0, 1]), [0, 0, 2, 2, 3])


def test_the_registry_knows_chains():
    assert STRUCTURES.get("chain") is Chain
    assert repr(Chain([2, 0], 2)) == "Chain(2 examples, 2 variables, 1 cliques)"


def test_cliques_of_any_order():
    structure = Structure(
        [2, 3, 4],
        variable_offsets=np.array([0, 3]),
        scopes=np.array([0, 1, 2, 1]),
        scope_offsets=np.array([0, 3, 4]),
        clique_offsets=np.array([0, 2]),
    )
    assert_array_equal(structure.table_sizes, [24, 3])
    assert_array_equal(structure.scope(0), [0, 1, 2])
