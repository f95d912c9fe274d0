"""The contract of online solvers: what they learn from examples, and how they stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.potentials import Floats
from chordal.testing.contracts._common import Iterate, require
from chordal.testing.contracts.solvers import CountingOracle, smooth_problems
from chordal.testing.listed import Listed, ListedExamples

#: Makes a solver from max_iter, tol and random_state, as every online solver class does.
OnlineFactory = Callable[..., Any]


def check_online_solver(make_solver: OnlineFactory) -> None:
    """Check that an online solver learns, that its seed decides, and how it stops.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.solvers.averaged_perceptron import AveragedPerceptron
    >>> check_online_solver(AveragedPerceptron)
    """
    _check_refusals(make_solver)
    _check_learning(make_solver)
    _check_objectives(make_solver)
    _check_seed(make_solver)
    _check_callback(make_solver)
    _check_interruption(make_solver)
    _check_limits(make_solver)


def single_examples(
    noise: int = 0, interrupt_at: int | None = None, temperature: int = 1, cost: float = 0.0
) -> ListedExamples:
    """Thirty examples of one variable with three labels, which linear scores can tell apart.

    With noise, that many more are labelled wrong, so that no weights are right. Temperature and
    the cost of a wrong label make the objective that gradients go down.
    """
    rng = np.random.default_rng(3)
    examples = []
    centres = np.array([[3.0, 0.0], [-1.5, 2.6], [-1.5, -2.6]])
    for n in range(30 + noise):
        gold = n % 3
        x = rng.normal(size=2) * 0.4 + centres[gold if n < 30 else gold - 1]
        features = np.zeros((3, 6))
        for label in range(3):
            features[label, 2 * label : 2 * label + 2] = x
        wrong = (np.arange(3) != gold).astype(np.int64)
        examples.append(Listed(features, wrong, 1, cost=cost * wrong))
    return ListedExamples(examples, l2=0.5, interrupt_at=interrupt_at, temperature=temperature)


def _check_refusals(make_solver: OnlineFactory) -> None:
    try:
        make_solver(l1=1.0)
    except TypeError:
        pass
    else:
        raise AssertionError("l1 > 0 must be refused by an online solver")
    problem = smooth_problems()[0]
    try:
        make_solver().minimize(CountingOracle(problem), problem.start)
    except UnsupportedError:
        pass
    else:
        raise AssertionError("an oracle without examples must be refused")


def _check_learning(make_solver: OnlineFactory) -> None:
    oracle, start = single_examples(), np.linspace(-1.0, 1.0, 6)
    kept = start.copy()
    solution = make_solver(max_iter=200, random_state=0).minimize(oracle, start)
    assert_array_equal(start, kept, err_msg="the start was written to")
    require(solution.status is Status.CONVERGED, f"status is {solution.status}")
    require(np.isfinite(solution.weights).all(), "weights are not finite")
    require(solution.n_iter == len(solution.history), "n_iter is not the length of the history")
    require(solution.n_evaluations == oracle.n_visits, "n_evaluations is wrong")
    require(solution.value in solution.history, "value is not of a pass")
    require(solution.elapsed >= 0.0, "elapsed is below zero")
    _require_right_labels(oracle, solution.weights)
    if make_solver().default_objective() == "likelihood":
        before = np.linalg.norm(oracle.value_and_gradient(start)[1])
        value, gradient = oracle.value_and_gradient(solution.weights)
        require(np.linalg.norm(gradient) < 0.05 * before, "not near the minimum")
        require(solution.value < 1.2 * value, "value is not the regularised objective")


def _require_right_labels(oracle: ListedExamples, weights: Floats) -> None:
    for example in oracle.examples:
        best = int(np.argmax(example.features @ weights))
        require(example.wrong[best] == 0, "an example of a separable problem is labelled wrong")


def _check_objectives(make_solver: OnlineFactory) -> None:
    """A solver of any objective learns by softmax and by maximum, with costs and without."""
    if make_solver().default_objective() != "likelihood":
        return
    for temperature, cost in ((1, 1.0), (0, 1.0), (0, 0.0)):
        oracle = single_examples(temperature=temperature, cost=cost)
        start = np.linspace(-1.0, 1.0, 6)
        solution = make_solver(max_iter=50, random_state=0).minimize(oracle, start)
        if cost:  # without, the L2 term takes all: no weights are the best ones
            _require_right_labels(oracle, solution.weights)
        before, after = (oracle.value_and_gradient(w)[0] for w in (start, solution.weights))
        require(after < before, f"temperature {temperature}, cost {cost}: the objective rose")


def _check_seed(make_solver: OnlineFactory) -> None:
    def learned(seed: int) -> Floats:
        solver = make_solver(max_iter=3, tol=0.0, random_state=seed)
        return solver.minimize(single_examples(noise=6), np.linspace(-1.0, 1.0, 6)).weights

    assert_array_equal(learned(5), learned(5), err_msg="the same seed, other weights")
    require((learned(5) != learned(6)).any(), "another seed, the same weights")


def _check_callback(make_solver: OnlineFactory) -> None:
    """The callback sees every pass once, and may end the run."""
    seen: list[Any] = []

    def stop_at_third(state: Iterate) -> bool:
        seen.append((state.iteration, state.value, state.weights.copy()))
        return bool(state.iteration == 3)

    solution = make_solver(max_iter=200, tol=0.0, random_state=0).minimize(
        single_examples(noise=6), np.linspace(-1.0, 1.0, 6), stop_at_third
    )
    require(solution.status is Status.STOPPED, f"stopped by a callback: {solution.status}")
    require([s[0] for s in seen] == [1, 2, 3], f"passes in order: {[s[0] for s in seen]}")
    assert_array_equal([s[1] for s in seen], solution.history, err_msg="values of the callback")
    passes = [s[2] for s in seen if s[1] == solution.value]
    require(any((w == solution.weights).all() for w in passes), "weights of the stopped pass")


def _check_interruption(make_solver: OnlineFactory) -> None:
    """Ctrl-C keeps what was learned so far: within the first pass too."""
    for visit in (20, 40, 20_000):
        oracle = single_examples(noise=6, interrupt_at=visit)
        start = np.linspace(-1.0, 1.0, 6)
        solver = make_solver(max_iter=10**6, tol=-1.0, random_state=0)  # never converges
        solution = solver.minimize(oracle, start)
        where = f"interrupted at visit {visit}"
        require(solution.status is Status.INTERRUPTED, f"{where}: {solution.status}")
        require(solution.n_iter == len(solution.history), f"{where}: n_iter is {solution.n_iter}")
        require(np.isfinite(solution.weights).all(), f"{where}: weights")
        if (
            solution.n_iter or make_solver().default_objective() != "likelihood"
        ):  # else: still calibrating
            require((solution.weights != start).any(), f"{where}: what was learned is lost")


def _check_limits(make_solver: OnlineFactory) -> None:
    for limit in (1, 4):
        solution = make_solver(max_iter=limit, tol=-1.0, random_state=0).minimize(
            single_examples(noise=6), np.linspace(-1.0, 1.0, 6)
        )
        require(solution.status is Status.MAX_ITERATIONS, f"max_iter={limit}: {solution.status}")
        require(solution.n_iter == limit, f"max_iter={limit}: {solution.n_iter} passes")
