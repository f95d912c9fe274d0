"""Every registered online solver: what it learns from examples, and how it stops."""

from dataclasses import replace

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.oracle import Oracle
from chordal.oracle.examples import ExampleOracle
from chordal.solvers import SOLVERS
from chordal.solvers._online import OnlineSolver
from chordal.solvers.arow import AROW
from chordal.solvers.averaged_perceptron import AveragedPerceptron
from chordal.solvers.sgd import SGD
from chordal.testing import check_online_solver
from chordal.testing.contracts.online import single_examples

ONLINE = pytest.mark.parametrize(
    "name", [s for s in SOLVERS if SOLVERS.get(s).asks is ExampleOracle]
)


@ONLINE
def test_what_it_learns_and_how_it_stops(name):
    check_online_solver(SOLVERS.get(name))


def test_crfsuites_four_are_there():
    online = {s for s in SOLVERS if SOLVERS.get(s).asks is ExampleOracle}
    assert {"sgd", "averaged_perceptron", "passive_aggressive", "arow"} <= online


@pytest.mark.parametrize("name", [s for s in SOLVERS if Oracle in SOLVERS.get(s).asks.__mro__])
def test_others_refuse_an_oracle_of_examples(name):
    with pytest.raises(UnsupportedError, match=f"{name}.*value_grad.*ListedExamples"):
        SOLVERS.get(name)().minimize(single_examples(), np.zeros(6))


@ONLINE
def test_divergence_is_reported_with_what_to_try(name):
    class Diverging:
        def visit(self, order):
            raise OverflowError

    oracle = single_examples()
    oracle.learner = lambda rule, start: Diverging()
    with pytest.raises(ValueError, match=f"'{name}' diverges.*scale them"):
        SOLVERS.get(name)(random_state=0).minimize(oracle, np.zeros(6))


@ONLINE
def test_weights_that_are_not_finite_are_never_returned(name):
    class Overflown:
        def visit(self, order):
            return 1.0

        def weights(self):
            return np.full(6, np.inf)

    oracle = single_examples()
    oracle.learner = lambda rule, start: Overflown()
    with pytest.raises(ValueError, match=f"'{name}' diverges.*scale them"):
        SOLVERS.get(name)(random_state=0).minimize(oracle, np.zeros(6))


@ONLINE
def test_an_error_of_the_oracle_is_not_swallowed(name):
    oracle = single_examples()
    oracle.examples = [None] * 30
    with pytest.raises(AttributeError):
        SOLVERS.get(name)(random_state=0).minimize(oracle, np.zeros(6))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "passive_aggressive",
            {"variant": 1},
            "variant must be one of 'hard', 'linear'",
        ),
        ("passive_aggressive", {"aggressiveness": 0}, "aggressiveness must be a number above 0"),
        ("arow", {"variance": 0.0}, "variance must be a number above 0"),
        ("arow", {"regularization": -1}, "regularization must be a number above 0"),
        ("sgd", {"learning_rate": 0}, "learning_rate must be a number above 0"),
        ("sgd", {"rate_factor": 1.0}, "rate_factor must be a number above 1"),
        ("sgd", {"period": 0}, "period must be an integer of at least 1"),
        ("sgd", {"max_trials": 1.5}, "max_trials must be an integer"),
    ],
)
def test_wrong_parameters_are_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        SOLVERS.get(name)(**parameters)


def changed(base, **changes):
    class Wrong(base):
        def minimize(self, oracle, start, callback=None):
            solution = super().minimize(oracle, start, callback)
            return replace(solution, **{k: f(solution) for k, f in changes.items()})

    return Wrong


class IgnoresTheSeed(AveragedPerceptron):
    def minimize(self, oracle, start, callback=None):
        self.random_state = 0
        return super().minimize(oracle, start, callback)


class AnotherSeedEachTime(AveragedPerceptron):
    def minimize(self, oracle, start, callback=None):
        self.random_state = None
        return super().minimize(oracle, start, callback)


class NeverStops(AveragedPerceptron):
    def minimize(self, oracle, start, callback=None):
        return super().minimize(oracle, start, callback and (lambda state: callback(state) and 0))


class WritesToTheStart(AROW):
    def minimize(self, oracle, start, callback=None):
        solution = super().minimize(oracle, start, callback)
        start[:] = solution.weights
        return solution


class TakesL1(AveragedPerceptron):
    def __init__(self, max_iter=100, tol=1e-5, l1=0.0, random_state=None):
        super().__init__(max_iter, tol, random_state)


class TakesAnything(AveragedPerceptron):
    def minimize(self, oracle, start, callback=None):
        if not hasattr(oracle, "learner"):
            return None
        return super().minimize(oracle, start, callback)


class LosesWhatItLearned(AveragedPerceptron):
    def minimize(self, oracle, start, callback=None):
        solution = super().minimize(oracle, start, callback)
        interrupted = solution.status is Status.INTERRUPTED
        return replace(solution, weights=np.array(start)) if interrupted else solution


BROKEN = [
    (changed(AveragedPerceptron, weights=lambda s: -s.weights), "labelled wrong"),
    (changed(AROW, n_evaluations=lambda s: s.n_iter), "n_evaluations is wrong"),
    (changed(AROW, n_iter=lambda s: s.n_iter + 1), "n_iter"),
    (changed(AROW, status=lambda s: Status.STALLED), "status is"),
    (changed(SGD, weights=lambda s: 0.5 * s.weights), "not near the minimum"),
    (changed(SGD, value=lambda s: s.history[0]), "not the regularised objective"),
    (IgnoresTheSeed, "another seed, the same weights"),
    (AnotherSeedEachTime, "the same seed, other weights"),
    (NeverStops, "stopped by a callback"),
    (WritesToTheStart, "the start was written to"),
    (TakesL1, "l1 > 0 must be refused"),
    (TakesAnything, "without examples must be refused"),
    (LosesWhatItLearned, "what was learned is lost"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    assert issubclass(broken, OnlineSolver)
    with pytest.raises(AssertionError, match=message):
        check_online_solver(broken)
