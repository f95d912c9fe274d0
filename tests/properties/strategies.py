"""Small models of every structure, with scores of every size."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Tree

usual = st.floats(-20, 20, allow_subnormal=False)
wide = st.one_of(usual, st.floats(-700, 700), st.sampled_from([0.0, 1e-300, -1e4, 3e5]))
forbidding = st.one_of(usual, usual, usual, st.just(-np.inf))


def numbers(n, elements):
    return arrays(np.float64, n, elements=elements)


@st.composite
def chains(draw, scores=usual, tied=None, examples=3, longest=5):
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=examples))
    n = draw(st.integers(1, 4))
    chain = Chain(lengths, n)
    if chain.n_cliques == 0:
        return Potentials(chain, draw(numbers(chain.n_states, scores)), [])
    if draw(st.booleans()) if tied is None else tied:
        return Potentials(
            chain,
            draw(numbers(chain.n_states, scores)),
            draw(numbers(n * n, scores)),
            np.zeros(chain.n_cliques, dtype=np.int32),
        )
    return filled(draw, chain, scores)


@st.composite
def trees(draw, scores=usual):
    n = draw(st.integers(1, 6))
    parents = [-1, *(draw(st.integers(-1, k - 1)) for k in range(1, n))]
    counts = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return filled(draw, Tree([parents], counts), scores)


@st.composite
def graphs(draw, scores=usual):
    n = draw(st.integers(1, 5))
    every = [(i, j) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    return filled(draw, Graph([n], [edges], draw(st.integers(1, 3))), scores)


@st.composite
def factor_graphs(draw, scores=usual):
    n = draw(st.integers(1, 4))
    scope = st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True).map(tuple)
    scopes = draw(st.lists(scope, max_size=4))
    counts = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return filled(draw, FactorGraph([n], [scopes], counts), scores)


def models(scores=usual):
    return st.one_of(chains(scores), trees(scores), graphs(scores), factor_graphs(scores))


def filled(draw, structure, scores):
    size = int(structure.table_sizes.sum())
    unary, tables = draw(numbers(structure.n_states, scores)), draw(numbers(size, scores))
    return Potentials(structure, unary, tables)
