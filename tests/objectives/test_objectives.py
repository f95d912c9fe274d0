"""Objectives against their definitions, written out."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import UnsupportedError
from chordal.costs.hamming import Hamming
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.inference import Decoded
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives.crammer_singer import CrammerSinger
from chordal.objectives.hinge import Hinge
from chordal.objectives.likelihood import Likelihood
from chordal.objectives.one_vs_all import OneVsAll
from chordal.objectives.one_vs_rest import OneVsRest
from chordal.objectives.piecewise import Piecewise
from chordal.objectives.pseudo_likelihood import PseudoLikelihood
from chordal.objectives.squared_error import SquaredError
from chordal.potentials import Potentials
from chordal.structures import Chain
from chordal.testing import MODELS, feasible_labels

NAMES = ["chain_tied", "chain_per_clique", "chain_varied_labels", "loop_of_three", "triplets"]


def each_labelling(p):
    counts = p.structure.label_counts
    for labels in itertools.product(*(range(n) for n in counts)):
        yield np.array(labels, dtype=np.int32)


@pytest.mark.parametrize("name", [*NAMES, "chain_forbidden_per_clique", "chain_some_tied"])
def test_piecewise_by_its_definition(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    s, gold = p.structure, feasible_labels(p, rng)
    expected = -p.score(gold)
    for e in range(s.n_examples):
        for v in range(*s.variable_offsets[e : e + 2]):
            expected[e] += np.logaddexp.reduce(p.unary[slice(*s.state_offsets[v : v + 2])])
        for c in range(*s.clique_offsets[e : e + 2]):
            expected[e] += np.logaddexp.reduce(p.table(c).ravel())
    values = Piecewise().evaluate(p, gold, ExhaustiveInference()).values
    assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_pieces_are_never_more_likely_than_the_whole(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    gold = feasible_labels(p, rng)
    bound, whole = (
        loss.evaluate(p, gold, ExhaustiveInference()).values for loss in (Piecewise(), Likelihood())
    )
    scale = np.abs(p.unary[np.isfinite(p.unary)]).sum()
    assert (bound >= whole - 1e-9 - 1e-12 * scale).all()


@pytest.mark.parametrize("name", [*NAMES, "chain_forbidden_per_clique", "chain_many_labels"])
def test_pseudo_likelihood_by_its_definition(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    gold = feasible_labels(p, rng)
    expected = np.zeros(p.structure.n_examples)
    example = np.repeat(np.arange(len(expected)), np.diff(p.structure.variable_offsets))
    for v, n in enumerate(p.structure.label_counts):
        scores = []
        for label in range(n):
            other = gold.copy()
            other[v] = label
            scores.append(p.score(other)[example[v]])
        expected[example[v]] += np.logaddexp.reduce(scores) - p.score(gold)[example[v]]
    values = PseudoLikelihood().evaluate(p, gold, ChainInference()).values
    assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


def test_pseudo_likelihood_of_single_variables_is_the_likelihood():
    rng = np.random.default_rng(0)
    p = MODELS["chain_batch_of_ones"](rng)
    gold = feasible_labels(p, rng)
    a, b = (o.evaluate(p, gold, ChainInference()) for o in (PseudoLikelihood(), Likelihood()))
    assert_allclose(a.values, b.values, rtol=1e-12)
    assert_allclose(a.parts.unary, b.parts.unary, atol=1e-12)


@pytest.mark.parametrize("cost", [
    Hamming(), Hamming(normalize=True), WeightedHamming([[0, 2, 1], [3, 0, 1], [1, 0, 0]]),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("name", ["chain_tied", "chain_per_clique"])
def test_slack_scaling_by_its_definition(name, cost):
    rng = np.random.default_rng(3)
    p = MODELS[name](rng)
    p = Potentials(Chain([4], 3), p.unary[:12], p.tables[:9])
    gold = feasible_labels(p, rng)
    best = max(
        cost.of(p, y, gold)[0] * (1.0 + p.score(y)[0] - p.score(gold)[0]) for y in each_labelling(p)
    )
    for method in (ChainInference(), ExhaustiveInference()):
        values = Hinge(cost, scaling="slack").evaluate(p, gold, method).values
        assert_allclose(values, [best], rtol=1e-12)


def test_slack_scaling_of_a_long_chain_agrees_with_its_bound():
    # Slack scaling asks for a lead of one; where all wrong labellings lag by one it is zero.
    chain = Chain([200], 4)
    unary = np.zeros((200, 4))
    unary[:, 2] = 1.5
    p = Potentials(chain, unary, np.zeros(16))
    gold = np.full(200, 2, dtype=np.int32)
    slack = Hinge(scaling="slack").evaluate(p, gold, ChainInference())
    assert slack.values[0] == 0.0
    unary[17, 2] = 0.0  # one label is open: its lead is missing once, for a cost of one
    p = Potentials(chain, unary, np.zeros(16))
    assert Hinge(scaling="slack").evaluate(p, gold, ChainInference()).values[0] == 1.0


def single(rng, n=5, n_labels=4):
    chain = Chain(np.ones(n, dtype=int), n_labels)
    labels = rng.integers(0, n_labels, n).astype(np.int32)
    return Potentials(chain, 2.0 * rng.normal(size=n * n_labels), []), labels


def test_crammer_singer_is_the_hinge_without_cliques():
    p, gold = single(np.random.default_rng(0))
    a, b = (o.evaluate(p, gold, ChainInference()) for o in (CrammerSinger(), Hinge()))
    assert_allclose(a.values, b.values, rtol=1e-12)
    assert_allclose(a.parts.unary, b.parts.unary, atol=0.0)


def test_losses_of_single_variables_by_their_definitions():
    p, gold = single(np.random.default_rng(1))
    scores = p.unary.reshape(5, 4)
    target = np.eye(4)[gold]
    squared = SquaredError().evaluate(p, gold, ChainInference())
    assert_allclose(squared.values, 0.5 * ((scores - target) ** 2).sum(axis=1), rtol=1e-12)
    rest = OneVsRest().evaluate(p, gold, ChainInference())
    sign = 2 * target - 1
    assert_allclose(rest.values, np.maximum(0, 1 - sign * scores).sum(axis=1), rtol=1e-12)
    every = OneVsAll().evaluate(p, gold, ChainInference())
    lead = scores[np.arange(5), gold][:, None] - scores
    near = np.where(target == 1, 0.0, np.maximum(0, 1 - lead))
    assert_allclose(every.values, near.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("loss", [SquaredError(), OneVsAll(), OneVsRest(), CrammerSinger()])
def test_cliques_are_refused_by_name(loss):
    p = MODELS["chain_tied"](np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match=f"objective '{loss.name}' is for single variables"):
        loss.evaluate(p, np.zeros(8, dtype=np.int32), ChainInference())


def test_least_squares_never_choose_the_middle_class():
    # Three classes in a row on a line: the fault that makes squared error a bad idea.
    from scipy.optimize import minimize

    x = np.concatenate([np.full(50, -1.0), np.tile([-0.1, 0.1], 25), np.full(50, 1.0)])
    gold = np.repeat([0, 1, 2], 50).astype(np.int32)
    rows = np.stack([np.ones(150), x], axis=1)
    chain = Chain(np.ones(150, dtype=int), 3)

    def right(loss):
        def value_grad(w):
            p = Potentials(chain, rows @ w.reshape(2, 3), [])
            found = loss.evaluate(p, gold, ChainInference())
            grad = rows.T @ found.parts.unary.reshape(150, 3) + 1e-3 * w.reshape(2, 3)
            return found.values.sum() + 5e-4 * w @ w, grad.ravel()

        w = minimize(value_grad, np.zeros(6), jac=True, method="L-BFGS-B").x.reshape(2, 3)
        return [np.mean((rows @ w).argmax(axis=1)[gold == k] == k) for k in range(3)]

    assert right(Likelihood()) == [1.0, 1.0, 1.0]
    assert right(SquaredError()) == [1.0, 0.0, 1.0]


def test_an_approximate_labelling_is_never_worse_than_gold():
    """The loss stays above zero where a method overlooks the gold labelling."""

    class Worst(ExhaustiveInference):
        def exact_on(self, structure):
            return False

        def map(self, potentials):
            turned = potentials.like(-potentials.unary, -potentials.tables)
            labels = super().map(turned).labels
            return Decoded(labels, potentials.score(labels))

    rng = np.random.default_rng(0)
    p = MODELS["grid_potts"](rng)
    gold = ExhaustiveInference().map(p).labels
    values, parts = Hinge(Hamming()).evaluate(p, gold, Worst())
    assert_allclose(values, 0.0, atol=1e-12)
    assert not parts.unary.any()
    assert not parts.tables.any()
