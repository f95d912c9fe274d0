"""Weights that a penalty leaves alone: in online learning, and under L1."""

from dataclasses import replace

import numpy as np
import pytest

from chordal import CRFClassifier, UnsupportedError
from chordal._blocks import run_in_turn
from chordal.execution.serial import Serial
from chordal.inference.chain import ChainInference
from chordal.objectives.likelihood import Likelihood
from chordal.oracle.chains import ChainExamples
from chordal.oracle.rules.gradient import GradientRule
from chordal.solvers.owlqn import OWLQN

RULES = {
    "decay": GradientRule(0.05, 1 / 0.3, 0.05, first=0.0),
    "strong decay": GradientRule(3.0, 3.1, 3.0),  # the common factor is written out again and again
    "look ahead": GradientRule(0.5, 2.0, look_ahead=True),
    "momentum": GradientRule(0.3, 5.0, momentum=0.8),
    "Nesterov": GradientRule(0.3, 5.0, 0.5, momentum=0.5, look_ahead=True),
    "averaged": GradientRule(0.4, 1.0, 0.05, 0.5, average_after=11.0),
    "averaged, with momentum": GradientRule(0.4, 8.0, 0.1, momentum=0.3, average_after=0.0),
}


def examples_of(features, shards, l2):
    return ChainExamples(features, shards, Likelihood(), ChainInference(), Serial(), l2)


def compiled(X, y, **parameters):
    """The layout of a classifier, and all examples as one shard."""
    model = CRFClassifier(**parameters).fit(X, y)
    batch = model.reader_.read(X, grow=False)
    return model.layout_, [model.layout_.compile(batch, 0, len(y), y)]


def problem(n_classes, l2=1.0):
    """Examples as the compiled loop has them, and their gradient by the formula of softmax."""
    rng = np.random.default_rng(n_classes)
    X, y = rng.normal(size=(12, 3)), rng.integers(n_classes, size=12).astype(np.int32)
    y[:n_classes] = np.arange(n_classes)
    layout, shards = compiled(X, y)
    exempt = np.zeros(layout.n_weights, dtype=bool)
    exempt[layout.slices["intercept"]] = True
    examples = examples_of(layout, shards, np.where(exempt, 0.0, l2))
    phi = np.column_stack([X, np.ones(len(X))])

    def gradient(i, w):
        scores = phi[i] @ w.reshape(4, -1)  # columns × functions, the intercepts last
        if n_classes == 2:
            return (1.0 / (1.0 + np.exp(-scores[0])) - y[i]) * phi[i]
        p = np.exp(scores) / np.exp(scores).sum()
        parts = np.outer(p - np.eye(n_classes)[y[i]], phi[i])
        return parts.T.ravel()

    return examples, gradient, exempt


def descended(rule, gradient, exempt, start, order):
    """The definition of the rule, with d = 1 for weights that are exempt."""
    w, m, seen = start.copy(), np.zeros_like(start), []
    for t, i in enumerate(order):
        eta = rule.rate(t)
        d = np.where(exempt, 1.0, 1.0 - eta * rule.decay)
        at = d * w + rule.momentum * m if rule.look_ahead else w
        m = rule.momentum * m - eta * gradient(i, at)
        w = d * w + m
        if t >= rule.average_after:
            seen.append(w.copy())
    return np.mean(seen, axis=0) if rule.averaged else w


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", RULES)
def test_online(name, n_classes):
    examples, gradient, exempt = problem(n_classes)
    assert 0 < exempt.sum() < len(exempt)
    rng = np.random.default_rng(0)
    start, order = rng.normal(size=len(exempt)), rng.integers(12, size=300)
    learner = examples.learner(RULES[name], start)
    learner.visit(order[:100])
    learner.visit(order[100:])
    expected = descended(RULES[name], gradient, exempt, start, order)
    np.testing.assert_allclose(learner.weights(), expected, rtol=1e-8, atol=1e-10)


def test_the_penalty_of_online_learning():
    examples, _, exempt = problem(3, l2=2.0)
    w = np.arange(len(exempt), dtype=float)
    assert examples.penalty(w) == pytest.approx((w[~exempt] ** 2).sum(), rel=1e-12)
    assert examples.l2 == 2.0


def test_what_online_learning_refuses():
    examples, _, exempt = problem(3)
    with pytest.raises(UnsupportedError, match="projection shortens all weights"):
        examples.learner(replace(RULES["decay"], radius=1.0), np.zeros(len(exempt)))
    layout, shards = compiled(np.eye(3), np.arange(3, dtype=np.int32), fit_intercept=False)
    with pytest.raises(UnsupportedError, match="one l2 for all weights, or 0 for some"):
        examples_of(layout, shards, np.arange(9.0))


class Quadratic:
    """½ Σ scale (w − centre)²; some weights are not for the L1 term."""

    n_weights = 6

    def __init__(self, without_l1):
        self.scale = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 0.2])
        self.centre = np.array([3.0, -2.0, 0.1, 0.1, 0.3, -9.0])
        self.without_l1, self.noisy, self.run = without_l1, False, run_in_turn

    def recycle(self, vector):
        pass

    def value_grad(self, w):
        offset = w - self.centre
        return 0.5 * float(self.scale @ offset**2), self.scale * offset


@pytest.mark.parametrize("start", [np.zeros(6), np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])])
def test_l1(start):
    """Soft thresholding, but of weights 2 and 5, which may cross zero freely."""
    oracle = Quadratic(np.array([2, 5]))
    solution = OWLQN(tol=1e-12, l1=0.5).minimize(oracle, start)
    c = oracle.centre
    expected = np.sign(c) * np.maximum(np.abs(c) - 0.5 / oracle.scale, 0.0)
    expected[[2, 5]] = c[[2, 5]]
    np.testing.assert_allclose(solution.weights, expected, rtol=0, atol=1e-5)
    assert (solution.weights[[3, 4]] == 0.0).sum() == (expected[[3, 4]] == 0.0).sum()
    others = np.abs(solution.weights[[0, 1, 3, 4]]).sum()
    assert solution.value == pytest.approx(oracle.value_grad(solution.weights)[0] + 0.5 * others)
