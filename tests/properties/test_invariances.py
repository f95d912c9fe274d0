"""What must not change an answer does not change it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain

from .strategies import chains, models, numbers, usual, wide

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def exact(p):
    return (
        INFERENCE.resolve("exhaustive"),
        INFERENCE.resolve("junction_tree"),
        *([INFERENCE.resolve("chain")] if isinstance(p.structure, Chain) else []),
    )


@given(p=models(wide), constant=st.floats(-1e3, 1e3), data=st.data())
def test_a_constant_added_to_the_scores_of_a_variable(p, constant, data):
    variable = data.draw(st.integers(0, p.structure.n_variables - 1))
    first, last = p.structure.state_offsets[variable : variable + 2]
    unary = p.unary.copy()
    unary[first:last] += constant
    moved = p.like(unary, p.tables)
    example = np.searchsorted(p.structure.variable_offsets, variable, side="right") - 1
    size = 1e-12 * (np.abs(p.unary).sum() + np.abs(p.tables).sum() * p.structure.n_cliques)
    close = {"rtol": 1e-9, "atol": 1e-8 + size}
    for method in exact(p)[1:]:
        before, after = method.marginals(p), method.marginals(moved)
        expected = before.log_partition.copy()
        expected[example] += constant
        np.testing.assert_allclose(after.log_partition, expected, **close)
        np.testing.assert_allclose(after.parts.unary, before.parts.unary, **close)
        np.testing.assert_allclose(after.parts.tables, before.parts.tables, **close)


@given(p=chains(tied=True), data=st.data())
def test_permuted_labels(p, data):
    n = int(p.structure.label_counts[0])
    order = np.array(data.draw(st.permutations(range(n))))
    unary = p.unary.reshape(-1, n)[:, order].reshape(-1)
    tables = p.tables.reshape(-1, n, n)[:, order][:, :, order].reshape(-1)
    permuted = p.like(unary, tables)
    for method in exact(p):
        before, after = method.marginals(p), method.marginals(permuted)
        np.testing.assert_allclose(after.log_partition, before.log_partition, **CLOSE)
        found = before.parts.unary.reshape(-1, n)[:, order]
        np.testing.assert_allclose(after.parts.unary.reshape(-1, n), found, **CLOSE)
        best, moved = method.map(p), method.map(permuted)
        np.testing.assert_allclose(best.score, moved.score, **CLOSE)


@given(p=chains(tied=True, examples=1))
def test_a_reversed_chain(p):
    n = int(p.structure.label_counts[0])
    unary = np.ascontiguousarray(p.unary.reshape(-1, n)[::-1].reshape(-1))
    tables = np.ascontiguousarray(p.tables.reshape(-1, n, n).swapaxes(1, 2).reshape(-1))
    backwards = p.like(unary, tables)
    for method in exact(p):
        before, after = method.marginals(p), method.marginals(backwards)
        np.testing.assert_allclose(after.log_partition, before.log_partition, **CLOSE)
        found = before.parts.unary.reshape(-1, n)[::-1]
        np.testing.assert_allclose(after.parts.unary.reshape(-1, n), found, **CLOSE)
        np.testing.assert_allclose(method.entropy(p), method.entropy(backwards), **CLOSE)


@given(data=st.data(), a=st.integers(1, 4), b=st.integers(1, 4), n=st.integers(1, 3))
def test_two_chains_merged_by_an_edge_of_zeros(data, a, b, n):
    unary = data.draw(numbers((a + b) * n, usual))
    tables = data.draw(numbers((a + b - 2) * n * n, usual))
    apart = Potentials(Chain([a, b], n), unary, tables)
    left = (a - 1) * n * n
    merged = np.concatenate([tables[:left], np.zeros(n * n), tables[left:]])
    together = Potentials(Chain([a + b], n), unary, merged)
    for method in exact(apart):
        two, one = method.marginals(apart), method.marginals(together)
        np.testing.assert_allclose(one.log_partition, two.log_partition.sum(), **CLOSE)
        np.testing.assert_allclose(one.parts.unary, two.parts.unary, **CLOSE)
        np.testing.assert_allclose(
            method.map(together).score, method.map(apart).score.sum(), **CLOSE
        )


@given(p=chains(tied=False, examples=1), padding=st.integers(1, 3))
def test_padding_with_variables_of_one_label(p, padding):
    s = p.structure
    n = int(s.label_counts[-1])
    padded = Potentials(
        Chain([s.n_variables + padding], [*s.label_counts, *[1] * padding]),
        np.concatenate([p.unary, np.zeros(padding)]),
        np.concatenate([p.tables, np.zeros(n + padding - 1)]),
    )
    for method in exact(p):
        before, after = method.marginals(p), method.marginals(padded)
        np.testing.assert_allclose(after.log_partition, before.log_partition, **CLOSE)
        np.testing.assert_allclose(after.parts.unary[: len(p.unary)], before.parts.unary, **CLOSE)
