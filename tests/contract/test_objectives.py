"""Every registered objective × every model generator."""

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.inference import INFERENCE, Inference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives import OBJECTIVES, Evaluation
from chordal.objectives.likelihood import Likelihood
from chordal.testing import MODELS, check_objective, feasible_labels

METHODS = {name: INFERENCE.get(name)() for name in INFERENCE}
METHODS["exhaustive"] = ExhaustiveInference(max_labellings=100)  # numeric derivatives ask often


@pytest.mark.parametrize("generator", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("objective", list(OBJECTIVES))
@pytest.mark.parametrize("inference", METHODS)
def test_derivatives_weights_and_convexity(objective, inference, generator):
    rng = np.random.default_rng(0)
    potentials, loss = generator(rng), OBJECTIVES.get(objective)()
    labels, method = feasible_labels(potentials, rng), METHODS[inference]
    if not method.supports(potentials.structure):
        with pytest.raises(UnsupportedError, match=inference):
            loss.require(method, potentials.structure)
        return
    check_objective(loss, potentials, labels, method, rng)


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_a_pair_that_cannot_work_is_refused_by_name(objective):
    class Silent(Inference):
        answers = frozenset()

        def supports(self, structure):
            return True

        def exact_on(self, structure):
            return True

    loss = OBJECTIVES.get(objective)()
    potentials = MODELS["chain_tied"](np.random.default_rng(0))
    if loss.needs:
        with pytest.raises(UnsupportedError, match=f"'{objective}' needs"):
            loss.require(Silent(), potentials.structure)


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_second_derivatives_are_answered_or_refused_by_name(objective):
    rng = np.random.default_rng(0)
    loss, potentials = OBJECTIVES.get(objective)(), MODELS["chain_tied"](rng)
    method, structure = ExhaustiveInference(), potentials.structure
    if loss.curvature_needs is None:
        with pytest.raises(UnsupportedError, match=f"'newton'.*'{objective}' does not have"):
            loss.require_curvature(method, structure, "newton")
        with pytest.raises(UnsupportedError, match=f"'{objective}' has no second derivatives"):
            loss.curvature(potentials, feasible_labels(potentials, rng), method, potentials)
        return
    loss.require_curvature(method, structure, "newton")

    class Plain(ExhaustiveInference):
        answers = ExhaustiveInference.answers - {"marginals_derivative"}

    with pytest.raises(UnsupportedError, match=f"'newton'.*'{objective}'.*marginals_derivative"):
        loss.require_curvature(Plain(), structure, "newton")


# The likelihood, with one claim broken in each subclass.
class NoDerivative(Likelihood):
    def evaluate(self, *arguments, **keywords):
        values, parts = super().evaluate(*arguments, **keywords)
        return Evaluation(values, parts.like(1.01 * parts.unary, parts.tables))


class TablesNotSummed(Likelihood):
    def evaluate(self, *arguments, **keywords):
        values, parts = super().evaluate(*arguments, **keywords)
        return Evaluation(values, parts.like(parts.unary, parts.tables / 2))


class PartsWithoutWeights(Likelihood):
    def evaluate(self, potentials, labels, inference, weight=None, overwrite=False):
        values, _ = super().evaluate(potentials, labels, inference, weight, overwrite)
        return Evaluation(values, super().evaluate(potentials, labels, inference).parts)


class ValuesWithoutWeights(Likelihood):
    def evaluate(self, potentials, labels, inference, weight=None, overwrite=False):
        values, _ = super().evaluate(potentials, labels, inference)
        parts = super().evaluate(potentials, labels, inference, weight, overwrite).parts
        return Evaluation(values, parts)


class Concave(Likelihood):
    def evaluate(self, *arguments, **keywords):
        values, parts = super().evaluate(*arguments, **keywords)
        return Evaluation(-values, parts.like(-parts.unary, -parts.tables))


class HalfTheCurvature(Likelihood):
    def curvature(self, *arguments, **keywords):
        parts = super().curvature(*arguments, **keywords)
        return parts.like(0.5 * parts.unary, parts.tables)


class CurvatureWithoutWeights(Likelihood):
    def curvature(self, potentials, labels, inference, direction, weight=None, overwrite=False):
        return super().curvature(potentials, labels, inference, direction)


class Writes(Likelihood):
    def evaluate(self, potentials, *arguments, **keywords):
        result = super().evaluate(potentials, *arguments, **keywords)
        potentials.tables[0] += 1e-6
        return result


BROKEN = [
    (NoDerivative, r"parts.unary\[\d+\] is"),
    (TablesNotSummed, r"parts.tables\[\d+\] is"),
    (PartsWithoutWeights, r"parts.unary\[\d+\] is"),
    (ValuesWithoutWeights, "values are not the weights times"),
    (Concave, "not convex"),
    (HalfTheCurvature, "curvature.unary"),
    (CurvatureWithoutWeights, "curvature.unary"),
    (Writes, "changed potentials.tables"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    rng = np.random.default_rng(0)
    potentials = MODELS["chain_tied"](rng)
    labels = feasible_labels(potentials, rng)
    with pytest.raises(AssertionError, match=message):
        check_objective(broken(), potentials, labels, ExhaustiveInference(), rng)
