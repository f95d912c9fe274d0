"""The compiled loop of the pseudo-likelihood: its exponentials, and rows of every size."""

from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal import _kernels
from chordal.inference.chain import ChainInference
from chordal.objectives.pseudo_likelihood import PseudoLikelihood
from chordal.potentials import Potentials
from chordal.structures import Chain


def units_off(x, value):
    """How many units in the last place a value is from exp(x)."""
    with localcontext() as context:
        context.prec = 40
        exact = Decimal(float(x)).exp()
    unit = Decimal(float(np.spacing(float(exact))))
    return float(abs(Decimal(float(value)) - exact) / unit)


def beside_zero(x):
    """Single variables, of which the gold label scores 0, the other one x."""
    scores = np.column_stack([np.zeros_like(x), x]).ravel()
    p = Potentials(Chain([1] * len(x), 2), scores, [])
    return PseudoLikelihood().evaluate(p, [0] * len(x), ChainInference())


@pytest.mark.unsanitized("its last digit depends on the optimisation")
def test_exponentials_to_a_unit_in_the_last_place():
    # Beside a label of score 0, one of score x < -38 has probability exp(x): the sum rounds to 1.
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-708, -38, 6000), np.log(2) * -np.arange(60, 1020, 1.0)])
    x[6000:] += np.log(2) * rng.choice([-0.5, 0.0, 0.5], len(x) - 6000)  # where it rounds to k
    _, parts = beside_zero(x)
    off = [units_off(*pair) for pair in zip(x, parts.unary[1::2], strict=True)]
    assert max(off) < (1.0 if _kernels.instruction_set() == "x86-64-v3" else 1.25)


def test_what_underflows_is_zero():
    x = np.array([-709.0, -720.0, -1e4, -1e306, -np.inf])
    values, parts = beside_zero(x)
    assert not values.any()
    assert not parts.unary.any()


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 7, 8, 9, 13])
@pytest.mark.parametrize("lengths", [[1], [2, 1, 40, 3], [60, 9]])
def test_rows_of_every_size(n_labels, lengths):
    """Against the formula, with the table used by more cliques than it has rows, and by fewer."""
    rng = np.random.default_rng(n_labels)
    chain = Chain(lengths, n_labels)
    table = rng.normal(size=(n_labels, n_labels))
    gold = rng.integers(n_labels, size=chain.n_variables)
    p = Potentials(chain, rng.normal(size=chain.n_states), table.ravel() if chain.n_cliques else [])
    weight = rng.uniform(0.5, 2.0, len(lengths))
    values, parts = PseudoLikelihood().evaluate(p, gold, ChainInference(), weight)
    scores, by_table = p.unary.reshape(-1, n_labels).copy(), np.zeros_like(table)
    starts = np.cumsum([0, *lengths])
    for begin, end in pairwise(starts):
        scores[begin + 1 : end] += table[gold[begin : end - 1]]
        scores[begin : end - 1] += table[:, gold[begin + 1 : end]].T
    log_sums = np.log(np.exp(scores).sum(axis=1))
    losses = log_sums - scores[np.arange(len(gold)), gold]
    derivative = np.exp(scores - log_sums[:, None]) - np.eye(n_labels)[gold]
    derivative *= np.repeat(weight, lengths)[:, None]
    for begin, end in pairwise(starts):
        np.add.at(by_table, gold[begin : end - 1], derivative[begin + 1 : end])
        np.add.at(by_table.T, gold[begin + 1 : end], derivative[begin : end - 1])
    expected = [weight[i] * losses[starts[i] : starts[i + 1]].sum() for i in range(len(lengths))]
    assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    assert_allclose(parts.unary, derivative.ravel(), rtol=1e-11, atol=1e-13)
    if chain.n_cliques:
        assert_allclose(parts.tables, by_table.ravel(), rtol=1e-11, atol=1e-12)
