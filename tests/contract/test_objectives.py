"""Every registered objective × every model generator."""

import itertools

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.costs.chunk import ChunkCost
from chordal.costs.hamming import Hamming
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.inference import INFERENCE, Inference
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives import OBJECTIVES, Evaluation
from chordal.objectives.hinge import Hinge
from chordal.objectives.likelihood import Likelihood
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.objectives.stochastic_likelihood import StochasticLikelihood
from chordal.potentials import Potentials
from chordal.structures import Chain
from chordal.targets import PartialLabels, SoftLabels
from chordal.testing import MODELS, check_objective, feasible_labels
from chordal.testing.contracts.objectives import JUMP, jump_of_slope

METHODS = {name: INFERENCE.get(name)() for name in INFERENCE}
METHODS["exhaustive"] = ExhaustiveInference(max_labellings=100)  # numeric derivatives ask often
METHODS.pop("max_flow", None)  # numeric derivatives ask for scores that are not submodular


OBJECTS = {name: OBJECTIVES.get(name)() for name in OBJECTIVES} | {
    "hinge-slack": Hinge(scaling="slack"),
    "hinge-slack-weighted": Hinge(WeightedHamming({"0": 2, ("1", "0"): 3}), scaling="slack"),
    "hinge-relaxed": Hinge(relaxed=True),
    "hinge-normalized": Hinge(Hamming(normalize=True)),
    "hinge-chunk": Hinge(ChunkCost(missed=2.0)),
    "softmax_margin-weighted": SoftmaxMargin(WeightedHamming({"0": 2.5, ("1", "0"): 0.3})),
    "softmax_margin-chunk": SoftmaxMargin(ChunkCost(missed=2.0)),
    "stochastic-contrastive": StochasticLikelihood("contrastive", n_samples=3),
    "stochastic-inference": StochasticLikelihood("inference", n_samples=3),
}
SAMPLED = ("stochastic_likelihood", "stochastic-contrastive")
TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def bound(objective, structure):
    """The objective for this structure's labels: tags for chunks, digits for others."""
    n = int(structure.label_counts.max(initial=1))
    names = [TAGS[k] if k < len(TAGS) else f"I-{k}" for k in range(n)]
    if not isinstance(getattr(objective, "cost", None), ChunkCost):
        names = [str(k) for k in range(max(n, 2))]
    return objective.for_labels(names, np.arange(len(names)))


def refuses(objective, method, structure):
    try:
        objective.require(method, structure)
    except UnsupportedError:
        return True
    return False


NEEDS = {
    "likelihood": {"log_partition", "marginals"},
    "softmax_margin": {"log_partition", "marginals"},
    "hinge": {"map"},
    "perceptron": {"map"},
    "hinge-slack": {"map_by_cost"},
    "hinge-relaxed": {"relaxed_map"},
    "stochastic-inference": {"sample"},
}


def works(name, method, structure):
    """What this test expects, by rules of its own."""
    cliques, chain = structure.n_cliques > 0, isinstance(structure, Chain)
    if name in ("squared_error", "one_vs_all", "one_vs_rest", "crammer_singer"):
        return not cliques
    if name.endswith("-chunk") and not (chain and len(set(structure.label_counts)) < 2):
        return False
    if name in ("pseudo_likelihood", "piecewise", *SAMPLED):
        return True
    known = [k for k in NEEDS if name == k or name.startswith(k + "-")]
    needed = NEEDS[max(known, key=len)]
    return needed <= method.answers and method.supports(structure)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("inference", METHODS)
def test_what_cannot_work_is_refused(name, inference):
    method = METHODS[inference]
    for structure in STRUCTURES.values():
        expected = works(name, method, structure)
        assert refuses(bound(OBJECTS[name], structure), method, structure) is not expected


def checked_with(name, structure):
    """By which methods an objective is checked: its settings, and what asks nothing of inference,
    by one."""
    chain = isinstance(structure, Chain)
    if name == "hinge-relaxed":  # a maximum over a polytope, found exactly on any structure
        return [] if chain else ["linear_program"]
    one = "chain" if chain else "exhaustive"
    if "-" in name or name not in NEEDS:
        return [one]
    return [one, "exhaustive"] if chain else ["tree", "junction_tree", "exhaustive"]


STRUCTURES = {name: make(np.random.default_rng(0)).structure for name, make in MODELS.items()}
CASES = [
    (name, inference, model)
    for name in OBJECTS
    for model, structure in STRUCTURES.items()
    for inference in checked_with(name, structure)
    if works(name, METHODS[inference], structure)
]


@pytest.mark.parametrize(("name", "inference", "model"), CASES)
def test_derivatives_weights_and_convexity(name, inference, model):
    rng = np.random.default_rng(0)
    potentials, method = MODELS[model](rng), METHODS[inference]
    loss = bound(OBJECTS[name], potentials.structure)
    check_objective(loss, potentials, feasible_labels(potentials, rng), method, rng)


def random_target(kind, potentials, labels, rng):
    """A target of this kind in which the given labelling is possible."""
    s = potentials.structure
    gold = np.zeros(s.n_states, dtype=bool)
    gold[s.state_offsets[:-1] + labels] = True
    allowed = (rng.random(s.n_states) < 0.5) | gold
    if kind == "partial":
        return PartialLabels(allowed, s.label_counts)
    # Other labels get a share only where all scores are finite: E_q[score] must be.
    finite = np.isfinite(potentials.unary).all() and np.isfinite(potentials.tables).all()
    q = rng.random(s.n_states) * allowed if finite else gold.astype(float)
    sums = np.add.reduceat(q, s.state_offsets[:-1]) if s.n_variables else np.zeros(0)
    return SoftLabels(q / np.repeat(sums, s.label_counts), s.label_counts)


@pytest.mark.parametrize("generator", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", list(OBJECTIVES))
@pytest.mark.parametrize("kind", ["soft", "partial"])
def test_soft_and_partial_targets(name, kind, generator):
    rng = np.random.default_rng(0)
    potentials, loss = generator(rng), OBJECTIVES.get(name)()
    target = random_target(kind, potentials, feasible_labels(potentials, rng), rng)
    if kind == "partial" and loss.completes:
        loss.require_targets(target)  # training completes sets for it
        return
    if kind not in loss.targets:
        with pytest.raises(UnsupportedError, match=f"objective '{name}' needs one label.*{kind}"):
            loss.require_targets(target)
        return
    methods = [m for m in METHODS.values() if m.exact_on(potentials.structure)]
    needs = loss.needs | (loss.curvature_needs or frozenset())
    method = next(m for m in methods if needs <= m.answers)
    check_objective(loss, potentials, target, method, rng)


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
    if not loss.curvature_needs:  # it asks nothing of inference
        return

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


class DependsOnTheLevel(Likelihood):
    minus_gold = False

    def evaluate(self, potentials, labels, inference, weight=None, overwrite=False):
        values, parts = super().evaluate(potentials, labels, inference, weight)
        each = np.ones(len(values)) if weight is None else weight
        values = values + each * potentials.unary.sum()
        return Evaluation(values, parts.like(parts.unary + each.sum(), parts.tables))


class Writes(Likelihood):
    def evaluate(self, potentials, *arguments, **keywords):
        result = super().evaluate(potentials, *arguments, **keywords)
        potentials.tables[0] += 1e-6
        return result


# Targets other than labels, and estimates.
class ForgetsTheSets(Likelihood):
    def evaluate(self, potentials, labels, inference, weight=None, overwrite=False):
        values, _ = super().evaluate(potentials, labels, inference, weight)
        return Evaluation(values, super().evaluate(potentials, None, inference, weight).parts)


class Unrepeatable(StochasticLikelihood):
    earlier = itertools.count()  # of the class: copies share it

    def evaluate(self, *arguments, **keywords):
        values, parts = super().evaluate(*arguments, **keywords)
        return Evaluation(values + next(self.earlier), parts)


class GoldWithoutWeights(StochasticLikelihood):
    def evaluate(self, potentials, labels, inference, weight=None, overwrite=False):
        values, parts = super().evaluate(potentials, labels, inference, weight)
        parts.add_indicators(labels, 1.0, weight)
        parts.add_indicators(labels, -1.0)
        return Evaluation(values, parts)


def test_a_derivative_that_forgets_the_sets_is_caught():
    rng = np.random.default_rng(0)
    potentials = MODELS["chain_tied"](rng)
    target = random_target("partial", potentials, feasible_labels(potentials, rng), rng)
    with pytest.raises(AssertionError, match=r"parts.unary\[\d+\] is"):
        check_objective(ForgetsTheSets(), potentials, target, ExhaustiveInference(), rng)


BROKEN = [
    (Unrepeatable, "values of a copy"),
    (GoldWithoutWeights, "is not the sum of the values"),
    (NoDerivative, r"parts.unary\[\d+\] is"),
    (TablesNotSummed, r"parts.tables\[\d+\] is"),
    (PartsWithoutWeights, r"parts.unary\[\d+\] is"),
    (ValuesWithoutWeights, "values are not the weights times"),
    (Concave, "not convex"),
    (HalfTheCurvature, "curvature.unary"),
    (CurvatureWithoutWeights, "curvature.unary"),
    (DependsOnTheLevel, "more than differences of scores"),
    (Writes, "changed potentials.tables"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    rng = np.random.default_rng(0)
    potentials = MODELS["chain_tied"](rng)
    labels = feasible_labels(potentials, rng)
    with pytest.raises(AssertionError, match=message):
        check_objective(broken(), potentials, labels, ExhaustiveInference(), rng)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if not OBJECTIVES.get(name).smooth])
def test_objectives_that_do_not_claim_to_be_smooth_have_kinks(name):
    rng = np.random.default_rng(0)
    objective, method = OBJECTIVES.get(name)(), ChainInference()
    potentials = Potentials(Chain([1] * 5, n_labels=3), rng.normal(size=15), [])
    labels = rng.integers(0, 3, 5).astype(np.int32)

    def slope(at, direction):
        parts = objective.evaluate(at, labels, method).parts
        return float(parts.unary @ direction.unary)

    direction = potentials.like(rng.normal(size=15), np.zeros(0))
    assert jump_of_slope(slope, potentials, direction) > 100 * JUMP
    objective = OBJECTIVES.get("likelihood")()
    assert jump_of_slope(slope, potentials, direction) < JUMP
