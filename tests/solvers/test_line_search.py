import numpy as np
import pytest

from chordal.solvers.lbfgs import (
    ARMIJO,
    CURVATURE,
    MAX_EVALUATIONS,
    Point,
    strong_wolfe,
)


def steep(x):
    if x > 30.0:
        return np.inf, np.nan
    return np.exp(20.0 * (x - 1.0)) - x, 20.0 * np.exp(20.0 * (x - 1.0)) - 1.0


def between_poles(x):
    if not -1.0 < x < 3.0:
        return np.inf, np.nan
    value = x - 2.0 * np.log(3.0 - x) - 4.0 * np.log(x + 1.0)
    return value, 1.0 + 2.0 / (3.0 - x) - 4.0 / (x + 1.0)


# Functions of one variable with their slopes, all falling at 0.
FUNCTIONS = {
    "quadratic": lambda x: ((x - 2.0) ** 2, 2.0 * (x - 2.0)),
    "flat": lambda x: ((x - 2.0) ** 4, 4.0 * (x - 2.0) ** 3),
    "steep": steep,
    "wavy": lambda x: (np.sin(5.0 * x) - 8.0 * x + x * x, 5.0 * np.cos(5.0 * x) - 8.0 + 2.0 * x),
    "narrow": lambda x: (-x / (x * x + 0.02), (x * x - 0.02) / (x * x + 0.02) ** 2),
    "far": lambda x: ((x - 1e5) ** 2, 2.0 * (x - 1e5)),
    "between poles": between_poles,
}


class Line:
    def __init__(self, function):
        self.function, self.seen = function, []

    def __call__(self, weights):
        value, slope = self.function(weights[0])
        self.seen.append(float(weights[0]))
        return float(value), np.array([slope])


def search(function, step):
    line = Line(function)
    value, gradient = line(np.zeros(1))
    start = Point(0.0, np.zeros(1), value, gradient, float(gradient[0]))
    assert start.slope < 0.0
    return line, start, strong_wolfe(line, start, np.ones(1), step)


@pytest.mark.parametrize("step", [1e-4, 0.1, 1.0, 2.5, 1e3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_strong_wolfe_conditions_hold(name, step):
    line, start, point = search(FUNCTIONS[name], step)
    assert point is not None
    assert point.value <= start.value + ARMIJO * point.step * start.slope
    assert abs(point.slope) <= -CURVATURE * start.slope
    assert len(line.seen) - 1 <= MAX_EVALUATIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_point_is_what_was_evaluated(name):
    line, _, point = search(FUNCTIONS[name], 1.0)
    value, slope = FUNCTIONS[name](point.step)
    assert point.value == float(value)
    assert point.slope == float(slope) == point.gradient[0]
    assert point.weights[0] == point.step
    assert point.step in line.seen


def test_a_good_first_step_costs_one_evaluation():
    line, _, point = search(FUNCTIONS["quadratic"], 1.9)
    assert point.step == 1.9
    assert len(line.seen) == 2


def test_a_cubic_is_solved_at_the_first_interpolation():
    line, _, point = search(lambda x: (x**3 - 3.0 * x, 3.0 * x * x - 3.0), 1.9)
    assert point.step == pytest.approx(1.0, abs=1e-12)
    assert len(line.seen) == 3


def test_no_descent_gives_none():
    # The slope claims a descent that the values do not have.
    line = Line(lambda x: (x, -1.0))
    start = Point(0.0, np.zeros(1), 0.0, np.array([-1.0]), -1.0)
    assert strong_wolfe(line, start, np.ones(1), 1.0) is None
    assert len(line.seen) <= MAX_EVALUATIONS


def test_nowhere_finite_gives_none():
    line = Line(lambda x: (np.nan, np.nan))
    start = Point(0.0, np.zeros(1), 0.0, np.array([-1.0]), -1.0)
    assert strong_wolfe(line, start, np.ones(1), 1.0) is None


def test_without_end_the_best_point_is_kept():
    # Falls for ever: no point has a small slope.
    _, start, point = search(lambda x: (-x, -1.0), 1.0)
    assert point is not None
    assert point.value < start.value


def test_start_and_direction_are_left_alone():
    start = Point(0.0, np.array([1.0, 2.0]), 5.0, np.array([2.0, 4.0]), -20.0)
    direction = np.array([-2.0, -4.0])
    point = strong_wolfe(lambda w: (float(w @ w), 2.0 * w), start, direction, 1.0)
    np.testing.assert_array_equal(start.weights, [1.0, 2.0])
    np.testing.assert_array_equal(direction, [-2.0, -4.0])
    np.testing.assert_allclose(point.weights, start.weights + point.step * direction, rtol=1e-15)
