"""The contract of objectives: derivatives, weights and claimed convexity."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from chordal.inference import Inference
from chordal.objectives import Evaluation, Objective
from chordal.potentials import Floats, Potentials
from chordal.targets import Labels, PartialLabels, SoftLabels, Target, add_target, score_of
from chordal.testing.contracts._common import (
    assert_same_parts,
    copy_of,
    random_direction,
    require,
    rounding,
    unchanged,
)

STEP = 1e-4
#: Of a numeric derivative, beside the rounding of the values it comes from.
TOLERANCE = 1e-6
MAX_COORDINATES = 60
#: Of the slope along a line within 1e-9: more is a kink.
JUMP = 1e-5


def check_objective(
    objective: Objective,
    potentials: Potentials,
    labels: Target,
    inference: Inference,
    rng: np.random.Generator,
) -> None:
    """Check an objective's parts, weights and convexity on one small model.

    Its `parts` must be the derivative of the sum of its weighted values with respect to every
    score, tied tables included; at a kink, a subgradient. Scores of −inf are left alone. With
    partially observed labels nothing is claimed to be convex or linear. Of an objective that is
    estimated from samples, a copy must give the same estimates.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.objectives.likelihood import Likelihood
    >>> from chordal.testing.generators import MODELS, feasible_labels
    >>> rng = np.random.default_rng(0)
    >>> p = MODELS["chain_tied"](rng)
    >>> check_objective(Likelihood(), p, feasible_labels(p, rng), ChainInference(), rng)
    """
    objective.require(inference, potentials.structure)
    objective.require_targets(labels)
    problem = _Problem(objective, labels, inference, rng, potentials)
    if objective.stochastic:
        with unchanged(potentials, f"{type(objective).__name__}.evaluate"):
            problem.total(potentials)
        _check_estimate(problem, potentials)
        return
    with unchanged(potentials, f"{type(objective).__name__}.evaluate"):
        problem.total(potentials)
    _check_evaluation(problem, potentials)
    _check_derivative(problem, potentials, rng)
    if isinstance(labels, PartialLabels):
        return
    if objective.smooth:
        jump = jump_of_slope(problem.slope, potentials, random_direction(potentials, rng))
        require(jump <= JUMP, f"claims to be smooth, and its derivative jumps by {jump:g}")
    if objective.convex:
        _check_convexity(problem, potentials, rng)
    if objective.curvature_needs is not None:
        _check_curvature(problem, potentials, rng)
    if objective.minus_gold:
        _check_gold_term(problem, potentials, labels)
    if objective.relative:
        _check_shift(problem, potentials, rng)


def jump_of_slope(
    slope: Callable[[Potentials, Potentials], float],
    potentials: Potentials,
    direction: Potentials,
) -> float:
    """How far the slope along a line changes within 1e-9 of it, where it changes most.

    By bisection: of a half, the one along which the slope changes more. A kink is never left.
    """

    def at(step: float) -> float:
        unary = potentials.unary + step * direction.unary
        return slope(potentials.like(unary, potentials.tables + step * direction.tables), direction)

    low, high = -10.0, 10.0
    of_low, of_high = at(low), at(high)
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        of_middle = at(middle)
        if abs(of_middle - of_low) >= abs(of_high - of_middle):
            high, of_high = middle, of_middle
        else:
            low, of_low = middle, of_middle
    return abs(of_high - of_low)


class _Problem:
    """The objective as a function of the potentials alone."""

    def __init__(
        self,
        objective: Objective,
        labels: Target,
        inference: Inference,
        rng: np.random.Generator,
        potentials: Potentials,
    ) -> None:
        self.objective, self.labels, self.inference = objective, labels, inference
        self.weight: Floats = rng.uniform(0.5, 2.0, potentials.structure.n_examples)
        self.weight[::3] = 0.0

    def values(self, potentials: Potentials) -> Floats:
        return self.objective.evaluate(
            potentials, self.labels, self.inference, self.weight, overwrite=False
        ).values

    def slope(self, potentials: Potentials, direction: Potentials) -> float:
        """The derivative of the total along a direction."""
        parts = self.objective.evaluate(
            potentials, self.labels, self.inference, self.weight, overwrite=False
        ).parts
        return float(parts.unary @ direction.unary + parts.tables @ direction.tables)

    def total(self, potentials: Potentials) -> float:
        return float(self.values(potentials).sum())


def _check_evaluation(problem: _Problem, potentials: Potentials) -> None:
    """Shapes, weights, and the same answer when the memory is reused."""
    objective, labels, inference = problem.objective, problem.labels, problem.inference
    values, parts = objective.evaluate(potentials, labels, inference)
    require(values.shape == (potentials.structure.n_examples,), f"values: {values.shape}")
    for name, array in (("values", values), ("unary", parts.unary), ("tables", parts.tables)):
        require(np.isfinite(array).all(), f"{name} are not finite")

    again = objective.evaluate(copy_of(potentials), labels, inference, overwrite=True)
    assert_array_equal(again.values, values, err_msg="values with overwrite")
    assert_same_parts(again.parts, parts, "parts with overwrite", atol=0.0, rtol=0.0)

    ones = objective.evaluate(potentials, labels, inference, np.ones(len(values)))
    atol = rounding(potentials)
    assert_allclose(ones.values, values, rtol=1e-12, atol=atol, err_msg="values, all weights 1")
    assert_same_parts(ones.parts, parts, "parts, all weights 1", atol=atol)
    weighted = problem.weight * values
    message = "values are not the weights times the unweighted values"
    assert_allclose(problem.values(potentials), weighted, rtol=1e-12, atol=atol, err_msg=message)


def _check_shift(problem: _Problem, potentials: Potentials, rng: np.random.Generator) -> None:
    """The same number added to all labels of a variable changes nothing."""
    counts = potentials.structure.label_counts
    shift = np.repeat(rng.normal(size=len(counts)), counts)
    moved = potentials.like(potentials.unary + shift, potentials.tables)
    assert_allclose(
        problem.values(moved),
        problem.values(potentials),
        rtol=1e-9,
        atol=10.0 * rounding(potentials),
        err_msg="values depend on more than differences of scores",
    )


def _check_estimate(problem: _Problem, potentials: Potentials) -> None:
    """Copies estimate the same, weights multiply, and new samples are drawn each time."""
    labels, inference = problem.labels, problem.inference

    def fresh(given: Potentials, weight: Floats | None, overwrite: bool) -> Evaluation:
        return copy.deepcopy(problem.objective).evaluate(
            given, labels, inference, weight, overwrite
        )

    values, parts = fresh(potentials, None, False)
    require(values.shape == (potentials.structure.n_examples,), f"values: {values.shape}")
    for name, array in (("values", values), ("unary", parts.unary), ("tables", parts.tables)):
        require(np.isfinite(array).all(), f"{name} are not finite")
    again = fresh(copy_of(potentials), None, True)
    assert_array_equal(again.values, values, err_msg="values of a copy")
    assert_same_parts(again.parts, parts, "parts of a copy", atol=0.0, rtol=0.0)
    weighted = fresh(potentials, problem.weight, False)
    message = "values are not the weights times the unweighted values"
    assert_allclose(weighted.values, problem.weight * values, rtol=1e-12, err_msg=message)
    # Parts of all examples together are their derivative while samples stay: they are linear.
    finite = [np.where(np.isfinite(a), a, 0.0) for a in (potentials.unary, potentials.tables)]
    total = float(weighted.parts.unary @ finite[0] + weighted.parts.tables @ finite[1])
    atol = 1e-9 + 1e3 * rounding(potentials)
    message = "⟨parts, potentials⟩ is not the sum of the values"
    assert_allclose(total, weighted.values.sum(), rtol=1e-9, atol=atol, err_msg=message)


def _check_gold_term(
    problem: _Problem, potentials: Potentials, labels: Labels | SoftLabels
) -> None:
    """Without labels, only − score(gold) is missing."""
    objective, inference = problem.objective, problem.inference
    whole = objective.evaluate(potentials, problem.labels, inference, problem.weight)
    free = objective.evaluate(potentials, None, inference, problem.weight)
    gold = problem.weight * score_of(potentials, labels)
    atol = rounding(potentials)
    message = "without labels, the value is not larger by the gold score"
    assert_allclose(free.values - gold, whole.values, rtol=1e-9, atol=atol, err_msg=message)
    add_target(free.parts, labels, scale=-1.0, weight=problem.weight)
    assert_same_parts(free.parts, whole.parts, "parts without the gold term", atol=1e-12)


def _check_derivative(problem: _Problem, potentials: Potentials, rng: np.random.Generator) -> None:
    parts = problem.objective.evaluate(
        potentials, problem.labels, problem.inference, problem.weight
    ).parts
    atol = TOLERANCE + 4.0 * rounding(potentials) / STEP
    here = problem.total(potentials)
    for name in ("unary", "tables"):
        finite = np.flatnonzero(np.isfinite(getattr(potentials, name)))
        if len(finite) > MAX_COORDINATES:
            finite = rng.choice(finite, MAX_COORDINATES, replace=False)
        for k in finite:
            moved = copy_of(potentials)
            scores = getattr(moved, name)
            scores[k] += STEP
            right = (problem.total(moved) - here) / STEP
            scores[k] -= 2.0 * STEP
            left = (here - problem.total(moved)) / STEP
            _check_slope(float(getattr(parts, name)[k]), left, right, atol, f"{name}[{k}]")


def _check_curvature(problem: _Problem, potentials: Potentials, rng: np.random.Generator) -> None:
    """Second derivatives along a line: beside differences of the parts, and symmetric."""
    objective, arguments = problem.objective, (problem.labels, problem.inference)
    direction, other = (random_direction(potentials, rng) for _ in range(2))
    with unchanged(potentials, "curvature"), unchanged(direction, "curvature"):
        change = objective.curvature(potentials, *arguments, direction, problem.weight)

    def parts(step: float) -> Potentials:
        moved = potentials.like(
            potentials.unary + step * direction.unary, potentials.tables + step * direction.tables
        )
        return objective.evaluate(moved, *arguments, problem.weight).parts

    right, left = parts(STEP), parts(-STEP)
    numeric = potentials.like(
        (right.unary - left.unary) / (2.0 * STEP), (right.tables - left.tables) / (2.0 * STEP)
    )
    atol = 1e-4 + 8.0 * rounding(potentials) / STEP
    assert_same_parts(change, numeric, "curvature", atol=atol, rtol=1e-3)
    again = objective.curvature(
        copy_of(potentials), *arguments, copy_of(direction), problem.weight, overwrite=True
    )
    assert_same_parts(again, change, "curvature with overwrite", atol=0.0, rtol=0.0)
    back = objective.curvature(potentials, *arguments, other, problem.weight)
    one = float(other.unary @ change.unary + other.tables @ change.tables)
    two = float(direction.unary @ back.unary + direction.tables @ back.tables)
    atol = 1e-9 + 100.0 * rounding(potentials)
    assert_allclose(one, two, rtol=1e-9, atol=atol, err_msg="curvature is not symmetric")


def _check_slope(part: float, left: float, right: float, atol: float, where: str) -> None:
    if abs(right - left) > 100.0 * STEP + atol:  # a kink
        fits = min(left, right) - atol <= part <= max(left, right) + atol
    else:
        fits = abs(part - 0.5 * (left + right)) <= atol
    require(
        fits,
        f"parts.{where} is {part:.9g}, the slopes on both sides are {left:.9g} and {right:.9g}",
    )


def _check_convexity(problem: _Problem, potentials: Potentials, rng: np.random.Generator) -> None:
    """Above its tangent and below its chord along random lines."""
    parts = problem.objective.evaluate(
        potentials, problem.labels, problem.inference, problem.weight
    ).parts
    here, atol = problem.total(potentials), 1e-9 + 10.0 * rounding(potentials)
    for length in (0.1, 1.0, 10.0):
        to_unary = length * rng.normal(size=len(potentials.unary))
        to_tables = length * rng.normal(size=len(potentials.tables))
        far, middle = (
            problem.total(
                potentials.like(
                    potentials.unary + share * to_unary, potentials.tables + share * to_tables
                )
            )
            for share in (1.0, 0.5)
        )
        slope = float(parts.unary @ to_unary + parts.tables @ to_tables)
        require(far >= here + slope - atol, f"not convex: {far} lies below its tangent")
        require(middle <= 0.5 * (here + far) + atol, f"not convex: {middle} lies above its chord")
