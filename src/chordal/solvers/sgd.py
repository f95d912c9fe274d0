"""Stochastic gradient descent, one example at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from math import inf, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._saved import Saved, State
from chordal._status import Status
from chordal._validate import check_choice, check_number
from chordal.oracle import Floats
from chordal.oracle.rules.gradient import GradientRule
from chordal.solvers._base import number
from chordal.solvers._keeping import LoopState
from chordal.solvers._online import OnlineRun, OnlineSolver
from chordal.solvers._passes import GROWTH
from chordal.solvers._stopping import Slope, fallen, is_minimum

GAIN = 1e-3  # of the value: what a round of further steps has to bring
ROUNDS = 3  # that may bring less, one after another
LONGER = 1.5  # a round of steps half as large, in passes
FARTHEST = 2.0**10  # times the way of a round
TINY = 1e-6  # of the rate: steps whose sum is a gradient


@dataclass(frozen=True)
class StepSchedule:
    """Step sizes: step k has the size rate / (1 + slope · k^power).

    Attributes
    ----------
    rate : float, optional
        The initial rate. By default it is found by trials.
    slope : float, optional
        By default λ · rate, with λ = l2 / number of examples, which suits a strongly convex
        objective. The rate may then be infinite, and the sizes are 1 / (λ k).
    power : float, default=1.0
        Exponent of k.
    first : {1, 0}, default=1
        The number k of the first step.

    Examples
    --------
    >>> [float(StepSchedule(rate=0.1, power=0.5, slope=1.0).size(k)) for k in (1, 4)]
    [0.05, 0.03333333333333333]
    """

    rate: float | None = None
    slope: float | None = None
    power: float = 1.0
    first: int = 1

    def __post_init__(self) -> None:
        if self.rate is not None and not (self.slope is None and self.rate == inf):
            check_number("rate", self.rate, strict=True)
        if self.slope is not None:
            check_number("slope", self.slope)
        check_number("power", self.power, strict=True)
        if self.first not in (0, 1):
            raise ValueError(f"first must be 0 or 1, got {self.first!r}")

    def rule(self, decay: float, rate: float | None = None) -> GradientRule:
        """The update rule of these steps; `rate` replaces that of the schedule."""
        rate = self.rate if rate is None else rate
        if rate is None:
            raise ValueError("the schedule has no rate: give learning_rate")
        inverse = inf if rate == 0.0 else 1.0 / rate
        growth = decay if self.slope is None else 0.0 if rate == 0.0 else self.slope / rate
        if inverse == growth == 0.0:
            raise ValueError("schedule 'pegasos', with steps 1 / (λ k), needs l2 > 0")
        return GradientRule(decay, inverse, growth, self.power, float(self.first))

    def size(self, k: int, decay: float = 0.0) -> float:
        """The size of step k, with λ = decay."""
        return self.rule(decay).rate(k - self.first)


#: Schedules by name.
STEP_SCHEDULES = {
    "bottou": StepSchedule(first=0),
    "pegasos": StepSchedule(rate=inf),
    "constant": StepSchedule(slope=0.0),
    "inverse": StepSchedule(rate=1.0, slope=0.05),
    "inverse_sqrt": StepSchedule(rate=0.1, slope=1.0, power=0.5),
}


@dataclass
class _Descent(LoopState):
    """The state between passes: the update rule, and the progress of polishing."""

    before: float = inf  # the value at the start
    left: int = -1  # steps; below 0: no limit
    polishes: bool = False
    value: float = inf  # of all examples
    rate: float = 0.0  # of the steps of this round of polishing
    passes: float = 0.0  # of this round
    done: int = 0
    fruitless: int = 0  # rounds
    rule: GradientRule = field(default_factory=GradientRule)

    def to_state(self) -> State:
        """The values, and those of the rule."""
        return {**super().to_state(), "rule": asdict(self.rule)}

    def from_state(self, saved: Saved) -> None:
        """Restore the values and the rule."""
        names = [name for name in self.kept if name not in ("rule", "left")]
        for name in names:
            setattr(self, name, saved.like(name, getattr(self, name)))
        self.left, rule = saved.integer("left", minimum=-1), saved.part("rule")
        given = asdict(self.rule)
        self.rule = GradientRule(**{name: rule.like(name, own) for name, own in given.items()})


@final
@dataclass(eq=False)
class SGD(OnlineSolver):
    """Stochastic gradient descent; with objective "hinge", the stochastic subgradient method.

    Step k uses the loss ℓ of one example and its share of the L2 penalty, λ = l2 / number of
    examples. The step is w ← (1 − η λ) w − η ∇ℓ(w), with η by `schedule`. The L2 penalty, momentum
    and averaging concern all weights and are applied lazily, so a step costs only as much as its
    example.

    Parameters
    ----------
    tol : float, default=1e-6
        The run settles when the objective, estimated from the losses during passes, fell by less
        than this fraction in `period` passes. If the step size was found by trials, further passes
        with smaller steps follow, and their weights are averaged, while that lowers the objective
        by a thousandth.
    learning_rate : float, optional
        η₀. By default that of the schedule; if it has none, the rate that lowers the objective of a
        sample most.
    period : int, default=10
        Number of passes for `tol`.
    first_rate, rate_factor : float, default=0.1 and 2.0
        The rates tried are first_rate · rate_factor^k, for k = 0, 1, …, then −1, −2, ….
    sample_size, n_rates, max_trials : int, default=1000, 10 and 19
        Examples in the sample, number of working rates wanted in each direction, and maximum number
        of trials. CRFsuite's calibration.max_trials is one more than its trials.
    schedule : str or StepSchedule, default="bottou"
        "bottou": η₀ / (1 + λ η₀ (k − 1)). "constant": η₀. "pegasos": 1 / (λ k). "inverse": η₀ / (1
        + 0.05 k), with η₀ = 1. "inverse_sqrt": η₀ / (1 + √k), with η₀ = 0.1.
    momentum : float, default=0.0
        μ: each step adds μ times the previous step. Below 1.
    average_after : float, optional
        Return the mean of the weights over all steps after this many passes (Polyak and Ruppert). 0
        averages all steps; 1.5 skips the first one and a half passes. By default there is no
        averaging.
    shuffle : bool, default=True
        Whether each pass has a new order; if not, that of the data.
    max_steps : int, optional
        Maximum number of steps, to stop within a pass. By default there is no limit.
    projection : bool, default=False
        Whether to project w, after each step, onto the ball that contains the minimum (Pegasos).
    look_ahead : bool, default=False
        Whether to evaluate the gradient after momentum and the L2 penalty have moved the weights
        (Nesterov; without momentum, CRFsuite's order).
    keep_best : bool, default=True
        Whether the result is the weights after the pass with the lowest objective; if not, the last
        weights. With averaging it is always the last mean.

    References
    ----------
    Bottou (2012), Stochastic gradient descent tricks; Shalev-Shwartz, Singer and Srebro (2007),
    Pegasos: primal estimated sub-gradient solver for SVM; Polyak and Juditsky (1992),
    Acceleration of stochastic approximation by averaging.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> ChainCRF(solver=SGD(max_iter=20, random_state=0), l2=0.1).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    >>> subgradient = SGD(max_iter=20, schedule="pegasos", average_after=1, random_state=0)
    >>> ChainCRF("hinge", subgradient, l2=0.1).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    """

    max_iter: int = number(1000, minimum=1)
    tol: float = number(1e-6, minimum=-inf)
    learning_rate: float | None = number(None, strict=True)
    period: int = number(10, minimum=1)
    first_rate: float = number(0.1, strict=True)
    rate_factor: float = number(2.0, minimum=1.0, strict=True)
    sample_size: int = number(1000, minimum=1)
    n_rates: int = number(10, minimum=1)
    max_trials: int = number(19, minimum=1)
    schedule: str | StepSchedule = "bottou"
    momentum: float = number(0.0, below=1.0)
    average_after: float | None = number(None)
    shuffle: bool = True
    max_steps: int | None = number(None, minimum=1)
    projection: bool = False
    look_ahead: bool = False
    keep_best: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection and self.momentum:
            raise ValueError("projection and momentum cannot be combined: choose one")
        own = self.schedule
        if not isinstance(own, StepSchedule):
            check_choice("schedule", own, STEP_SCHEDULES)
            own = STEP_SCHEDULES[own]
        if self.learning_rate is not None:
            if own.rate == inf:
                raise ValueError("schedule 'pegasos' does not use learning_rate: leave it at None")
            own = replace(own, rate=float(self.learning_rate))
        self._schedule = own

    @property
    def mixes(self) -> bool:
        """Whether it takes examples in a random order."""
        return bool(self.shuffle)

    def remedy(self) -> str:
        """Advice: another learning rate."""
        return "lower learning_rate, or leave it at None to have it found"

    def _run(self, run: OnlineRun) -> Status:
        now, status = run.keep("descent", _Descent()), None
        if not run.resumed:
            now.rule = self._rule(run)
            now.before = self._start_value(run, now.rule)
            now.left = -1 if self.max_steps is None else self.max_steps
        if not now.polishes:
            status = self._descended(run, now)
        if now.polishes or (status is Status.CONVERGED and self._may_polish(now.rule)):
            status = self._polished(run, now)
        if status is Status.CONVERGED and not self._is_proven(run, now.rule):
            status = Status.SETTLED
        if status in (Status.STOPPED, Status.CONVERGED, Status.SETTLED):
            return status
        if np.isinf(run.value):
            raise OverflowError
        self._warn_of_divergence(run, now.before)
        return Status.MAX_ITERATIONS

    def _descended(self, run: OnlineRun, now: _Descent) -> Status | None:
        """Passes until the objective settles."""
        rule, status = now.rule, None
        learner = run.keep("learner", run.oracle.learner(rule, run.start))
        n = max(run.oracle.n_examples, 1)
        while status is None and now.left != 0:
            run.between(copy=True)
            order = self._order(run)[: None if now.left < 0 else now.left]
            weights, value = run.go(learner, order, keep=rule.averaged)
            value = value * n / max(len(order), 1) + run.oracle.penalty(weights)
            if value < run.value or rule.averaged or not self.keep_best:
                run.weights, run.value = weights, value
            now.left = now.left if now.left < 0 else now.left - len(order)
            converged = self._converged(run.history, value)
            status = run.record(weights, value, run.gradient_norm, converged)
        return status

    def _is_proven(self, run: OnlineRun, rule: GradientRule) -> bool:
        """Whether the gradients at the start and at the end show that this is a minimum.

        Warns if the starting weights were better: steps are then too large for the features.
        """
        value, first = (self._value_at(run, rule, weights) for weights in (run.weights, run.start))
        if first > 0.0 and value > 1.001 * first:  # at 0, a perceptron's loss is the lowest
            warnings.warn(
                f"solver 'sgd' diverges: the objective ends at {value:.6g}, but the starting "
                "weights "
                f"have {first:.6g}; scale the features, use solver 'lbfgs', or {self.remedy()}",
                RuntimeWarning,
                stacklevel=4,
            )
            return False
        now, start = (self._gradient_norm(run, rule, own) for own in (run.weights, run.start))
        l2 = 0.0 if len(run.oracle.exempt) else run.oracle.l2
        length = float(np.linalg.norm(run.weights))
        return now < inf and is_minimum(Slope(value, now), Slope(first, start), length, l2)

    def _may_polish(self, rule: GradientRule) -> bool:
        """Whether the step size was found by trials."""
        own = rule.averaged or rule.momentum or rule.look_ahead or not self.keep_best
        return self._schedule.rate is None and not own and self.max_steps is None

    def _polished(self, run: OnlineRun, now: _Descent) -> Status:
        """Reduce the noise of single examples: average further steps while that helps.

        The objective of a pass stops falling when its noise is as large as the remaining gain. So
        rounds of passes with a constant step size follow, and the mean of a round's second half is
        evaluated on all examples. If a round gains little, steps are halved and rounds get longer.
        At a kink, a mean is as far away as the steps are large, and small steps move slowly along
        it.
        """
        n, rule, status = run.oracle.n_examples, now.rule, None
        if not now.polishes:
            now.polishes, now.passes = True, float(self.period)
            now.value = self._value_at(run, rule, run.weights)
            now.rate = rule.rate(run.n_iter * n)
        while status is None:
            half = 0.5 * n * int(now.passes)
            steps = replace(rule, inverse_rate=1.0 / now.rate, growth=0.0, average_after=half)
            learner = run.keep("learner", run.oracle.learner(steps, run.weights))
            while now.done < int(now.passes) and status is None:
                run.between(copy=True)
                weights, _ = run.go(learner, self._order(run), keep=False)
                now.done += 1
                status = run.record(weights, now.value, run.gradient_norm, converged=False)
            weights, found = self._farther(run, rule, weights, now.value)
            gain = now.value - found
            if gain > 0.0:
                run.weights, run.value, now.value = weights, found, found
                run.history[-1] = found
            now.done, now.fruitless = 0, now.fruitless + 1
            if gain > GAIN * abs(now.value):
                now.fruitless = 0
            else:
                now.rate, now.passes = 0.5 * now.rate, LONGER * now.passes
            if now.fruitless == ROUNDS:
                status = status or Status.CONVERGED
        return status

    def _farther(
        self, run: OnlineRun, rule: GradientRule, weights: Floats, value: float
    ) -> tuple[Floats, float]:
        """The best of the weights of a round and of extrapolations by factors 2, 4, ….

        The error of a constant step size shrinks with that size, so extrapolation helps.
        """
        move, factor = weights - run.weights, 2.0
        found = self._value_at(run, rule, weights)
        while factor <= FARTHEST:
            try:
                other = self._value_at(run, rule, run.weights + factor * move)
            except OverflowError:
                break
            if not other < found:
                break
            weights, found, factor = run.weights + factor * move, other, 2.0 * factor
        return weights, found

    def _value_at(self, run: OnlineRun, rule: GradientRule, weights: Floats) -> float:
        """The objective of all examples at these weights."""
        learner = run.oracle.learner(self._at(rule, 0.0), weights)
        return run.visit(learner, np.arange(run.oracle.n_examples)) + run.oracle.penalty(weights)

    def _gradient_norm(self, run: OnlineRun, rule: GradientRule, weights: Floats) -> float:
        """The norm of the gradient, which a pass of very small steps adds up; infinite if too large
        for a number.
        """
        rate = TINY * rule.rate(0)
        learner = run.oracle.learner(GradientRule(rule.decay, inverse_rate=1.0 / rate), weights)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                run.visit(learner, np.arange(run.oracle.n_examples))
            except OverflowError:
                return inf
            norm = float(np.linalg.norm((learner.weights() - weights) / rate))
        return norm if np.isfinite(norm) else inf

    def _warn_of_divergence(self, run: OnlineRun, before: float) -> None:
        """Warn of divergence. If the start has value 0, the lowest, only growth shows it."""
        value, first, at = run.value, before, "at the starting weights"
        grown = value > 2.0 * before
        if before == 0.0 and run.history:
            value, first, at = run.history[-1], run.history[0], "in the first pass"
            grown = value > GROWTH * first
        if grown:
            warnings.warn(
                f"solver 'sgd' diverges: the objective is {value:.6g}, and was {first:.6g} {at}; "
                f"{self.remedy()}, or allow more passes",
                RuntimeWarning,
                stacklevel=3,
            )

    def _converged(self, history: list[float], value: float) -> bool:
        fall = fallen(history, value, self.period)
        return fall < self.tol * abs(value) or (value == 0.0 and self.tol >= 0.0 and fall < inf)

    def _order(self, run: OnlineRun) -> NDArray[np.int64]:
        return run.order() if self.shuffle else np.arange(run.oracle.n_examples)

    def _rule(self, run: OnlineRun) -> GradientRule:
        """The rule of this run; finds the rate first, if none is given."""
        n, l2 = max(run.oracle.n_examples, 1), run.oracle.l2
        rule = replace(
            self._schedule.rule(l2 / n, self._schedule.rate or 0.0),
            momentum=float(self.momentum),
            look_ahead=bool(self.look_ahead),
        )
        if self.projection:
            rule = replace(rule, radius=self._radius(run, rule))
        if self._schedule.rate is None:
            rule = self._at(rule, self._calibrated(run, rule))
        if self.average_after is not None:
            rule = replace(rule, average_after=float(self.average_after) * n)
        return rule

    def _at(self, rule: GradientRule, rate: float) -> GradientRule:
        """The rule with another rate."""
        sizes = self._schedule.rule(rule.decay, rate)
        return replace(rule, inverse_rate=sizes.inverse_rate, growth=sizes.growth)

    def _start_value(self, run: OnlineRun, rule: GradientRule) -> float:
        """The objective of the starting weights on a sample; infinite if the rate was found."""
        n = run.oracle.n_examples
        if self._schedule.rate is None or n == 0:
            return inf
        sample = np.unique(np.linspace(0, n - 1, self.sample_size).astype(np.int64))
        return self._trial(run, rule, sample, 0.0) * n / len(sample)

    def _calibrated(self, run: OnlineRun, rule: GradientRule) -> float:
        """The best of the rates that lower the objective of a sample within one pass."""
        sample = self._order(run)[: self.sample_size]
        before = self._trial(run, rule, sample, 0.0)
        best, rate = self._best_rate(run, rule, sample, before, self._trial)
        if best < before:
            return rate
        # Examples that contradict each other: the losses met on the way rise at every rate.
        return self._best_rate(run, rule, sample, before, self._trial_after)[1]

    def _best_rate(
        self,
        run: OnlineRun,
        rule: GradientRule,
        sample: NDArray[np.int64],
        before: float,
        trial: Callable[[OnlineRun, GradientRule, NDArray[np.int64], float], float],
    ) -> tuple[float, float]:
        """The lowest objective of a trial and its rate; tries larger rates first, then smaller."""
        rate, best_rate, best = self.first_rate, self.first_rate, inf
        rising, left = True, self.n_rates
        for _ in range(self.max_trials):
            after = trial(run, rule, sample, rate)
            works = after < before
            left -= works
            if after < best:
                best, best_rate = after, rate
            if rising and not (works and left > 0):
                rising, left, rate = False, self.n_rates, self.first_rate
            elif left <= 0:
                break
            rate = rate * self.rate_factor if rising else rate / self.rate_factor
        return best, best_rate

    def _trial(
        self, run: OnlineRun, rule: GradientRule, sample: NDArray[np.int64], rate: float
    ) -> float:
        """The objective of the sample during one pass over it; infinite if it diverges."""
        learner = run.oracle.learner(self._at(rule, rate), run.weights)
        try:
            value = run.visit(learner, sample)
        except OverflowError:
            return inf
        share = len(sample) / max(run.oracle.n_examples, 1)
        return value + share * run.oracle.penalty(learner.weights())

    def _trial_after(
        self, run: OnlineRun, rule: GradientRule, sample: NDArray[np.int64], rate: float
    ) -> float:
        """The objective of the sample after one pass over it; infinite if it diverges."""
        learner = run.oracle.learner(self._at(rule, rate), run.weights)
        try:
            run.visit(learner, sample)
            weights = learner.weights()
            value = run.visit(run.oracle.learner(self._at(rule, 0.0), weights), sample)
        except OverflowError:
            return inf
        return value + len(sample) / max(run.oracle.n_examples, 1) * run.oracle.penalty(weights)

    def _radius(self, run: OnlineRun, rule: GradientRule) -> float:
        """The radius of the ball around the centre c that contains the minimum w*.

        With L the mean loss, λ (w* − c) = −∇L(w*), and L(c) ≥ L(w*) + λ ‖w* − c‖² by convexity.
        """
        if rule.decay == 0.0:
            raise UnsupportedError(
                "projection needs l2 > 0: without it no ball contains the minimum"
            )
        n, centre = run.oracle.n_examples, run.oracle.centre
        at = np.zeros(run.oracle.n_weights) if centre is None else centre
        loss = run.visit(run.oracle.learner(self._at(rule, 0.0), at), np.arange(n))
        return sqrt(loss / n / rule.decay)
