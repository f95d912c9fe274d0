"""How the steps of stochastic gradient descent shrink."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from chordal._validate import check_choice, check_number
from chordal.oracle.rules import GradientRule


@dataclass(frozen=True)
class StepSchedule:
    """Step k has the size rate / (1 + slope · k^power).

    Attributes
    ----------
    rate : float, optional
        None: it is found by trials.
    slope : float, optional
        None: λ · rate, with λ = l2 / number of examples. This suits a strongly convex objective;
        then the rate may be infinite, and the sizes are 1 / (λ k).
    power : float
    first : {1, 0}
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
        """The rule of these steps; `rate` takes the place of the schedule's own."""
        rate = self.rate if rate is None else rate
        if rate is None:
            raise ValueError("the schedule has no rate: give one")
        inverse = inf if rate == 0.0 else 1.0 / rate
        growth = decay if self.slope is None else 0.0 if rate == 0.0 else self.slope / rate
        if inverse == growth == 0.0:
            raise ValueError("a schedule of steps 1 / (λ k), 'pegasos', needs l2 > 0")
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


def schedule_for(schedule: str | StepSchedule, learning_rate: float | None) -> StepSchedule:
    """The schedule of this name, or the one given, with this rate unless it is None."""
    if not isinstance(schedule, StepSchedule):
        check_choice("schedule", schedule, STEP_SCHEDULES)
        schedule = STEP_SCHEDULES[schedule]
    if learning_rate is None:
        return schedule
    check_number("learning_rate", learning_rate, strict=True)
    if schedule.rate == inf:
        raise ValueError("learning_rate has no part in steps 1 / (λ k): leave it at None")
    return replace(schedule, rate=float(learning_rate))
