"""Every registered inference method × every model generator × every claim."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from chordal._errors import UnsupportedError
from chordal.inference import INFERENCE, Inference, Marginals
from chordal.inference.annealing import AnnealingInference
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.gibbs import GibbsInference
from chordal.inference.icm import ICMInference
from chordal.potentials import Potentials
from chordal.structures import Chain
from chordal.testing import INFEASIBLE, MODELS, check_infeasible, check_inference

METHODS = {name: INFERENCE.get(name)() for name in INFERENCE} | {
    "chain-log": ChainInference(domain="log"),
    "gibbs": GibbsInference(burn_in=30, n_draws=60),  # no claim depends on how long it runs
    "icm-tree": ICMInference(blocks="tree"),
    "annealing-single": AnnealingInference(n_sweeps=20, blocks="single"),
}


def every(methods, generators):
    return pytest.mark.parametrize(
        ("method", "generator"),
        [
            pytest.param(method, generator, id=f"{name}-{generator.__name__}")
            for name, method in methods.items()
            for generator in generators.values()
        ],
    )


@every(METHODS, MODELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_claim_holds(method, generator, seed):
    rng = np.random.default_rng(seed)
    check_inference(method, generator(rng).check(), rng)


@every(METHODS, INFEASIBLE)
def test_no_labelling_is_noticed(method, generator):
    rng = np.random.default_rng(0)
    check_infeasible(method, generator(rng).check(), rng)


@every({"chain-scaled": ChainInference(domain="scaled")}, MODELS)
def test_the_scaled_domain_is_exact_or_refuses(method, generator):
    rng = np.random.default_rng(0)
    potentials = generator(rng)
    try:
        check_inference(method, potentials, rng)
    except OverflowError:
        with pytest.raises(OverflowError, match="range is too wide"):
            method.log_partition(potentials)


def test_the_scaled_domain_accepts_ordinary_scores_and_refuses_extreme_ones():
    scaled, rng = ChainInference(domain="scaled"), np.random.default_rng(0)
    for name in ("chain_tied", "chain_per_clique", "chain_forbidden_labels", "chain_batch"):
        assert np.isfinite(scaled.log_partition(MODELS[name](rng))).all()
    for name in ("chain_extreme_scores", "chain_last_resort"):
        with pytest.raises(OverflowError):
            scaled.marginals(MODELS[name](rng))


def test_too_large_for_brute_force_is_refused():
    rng = np.random.default_rng(0)
    check_inference(ExhaustiveInference(max_labellings=5), MODELS["chain_tied"](rng), rng)
    with pytest.raises(UnsupportedError, match="exhaustive"):
        ExhaustiveInference().map(Potentials(Chain([30], 2), np.zeros(60), np.zeros(4)))


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 8, 13, 32, 50])
@pytest.mark.parametrize("tied", [True, False])
def test_log_and_auto_agree(n_labels, tied):
    rng = np.random.default_rng(n_labels)
    chain = Chain([40, 1, 70, 0, 2], n_labels)
    cells = n_labels**2 if tied else chain.table_sizes.sum()
    p = Potentials(chain, 3 * rng.normal(size=chain.n_states), 2 * rng.normal(size=cells))
    log, auto = ChainInference(domain="log"), ChainInference()
    a, b = log.marginals(p), auto.marginals(p)
    assert_allclose(a.log_partition, b.log_partition, rtol=1e-13)
    assert_allclose(a.parts.unary, b.parts.unary, rtol=1e-9, atol=1e-13)
    assert_allclose(a.parts.tables, b.parts.tables, rtol=1e-9, atol=1e-13)
    assert_allclose(log.entropy(p), auto.entropy(p), rtol=1e-11, atol=1e-12)
    direction = p.like(rng.normal(size=len(p.unary)), rng.normal(size=len(p.tables)))
    a, b = (m.marginals_derivative(p, direction) for m in (log, auto))
    assert_allclose(a.unary, b.unary, rtol=1e-8, atol=1e-11)
    assert_allclose(a.tables, b.tables, rtol=1e-8, atol=1e-10)
    first = log.sample(p, 20, np.random.default_rng(1))
    second = auto.sample(p, 20, np.random.default_rng(1))
    assert (first == second).mean() > 0.999  # the same uniform numbers, up to rounding


scores = st.one_of(
    st.floats(-5, 5),
    st.sampled_from([0.0, -np.inf, -np.inf, 1e4, -1e4, 300.0, -110.0, -590.0]),
)


@st.composite
def chains(draw):
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    counts = draw(st.lists(st.integers(1, 3), min_size=sum(lengths), max_size=sum(lengths)))
    chain = Chain(lengths, counts)
    n, cells = chain.n_states, int(chain.table_sizes.sum())
    unary = draw(st.lists(scores, min_size=n, max_size=n))
    return Potentials(chain, unary, draw(st.lists(scores, min_size=cells, max_size=cells)))


@given(chains(), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
def test_any_scores(potentials, seed):
    rng = np.random.default_rng(seed)
    feasible = np.isfinite(ExhaustiveInference().log_partition(potentials)).all()
    check = check_inference if feasible else check_infeasible
    check(ChainInference(), potentials, rng)


class Wrong(Inference):
    """Brute force, with one claim broken in each subclass."""

    answers = ExhaustiveInference.answers

    def supports(self, structure):
        return isinstance(structure, Chain)

    def exact_on(self, structure):
        return self.supports(structure)


for question in ExhaustiveInference.answers:

    def ask(self, potentials, *arguments, _question=question, **keywords):
        self.require(_question, potentials.structure)
        return getattr(ExhaustiveInference(), _question)(potentials, *arguments, **keywords)

    setattr(Wrong, question, ask)


class LogPartitionOff(Wrong):
    def log_partition(self, potentials):
        return super().log_partition(potentials) + 1e-3


class BiasedMarginals(Wrong):
    def marginals(self, potentials, weight=None, overwrite=False):
        log_partition, parts, _ = super().marginals(potentials, weight, overwrite)
        shift = 1e-4 * np.resize([1.0, -1.0, 0.0], len(parts.unary))  # sums stay at one
        return Marginals(log_partition, parts.like(parts.unary + shift, parts.tables))


class IgnoresWeights(Wrong):
    def marginals(self, potentials, weight=None, overwrite=False):
        return super().marginals(potentials, None, overwrite)


class ForgetsEdges(Wrong):
    def marginals(self, potentials, weight=None, overwrite=False):
        log_partition, parts, _ = super().marginals(potentials, weight, overwrite)
        return Marginals(log_partition, parts.like(parts.unary, 1.001 * parts.tables))


class DerivativeOff(Wrong):
    def marginals_derivative(self, potentials, direction, weight=None, overwrite=False):
        parts = super().marginals_derivative(potentials, direction, weight, overwrite)
        return parts.like(parts.unary, 1.001 * parts.tables)


class DerivativeWithoutWeights(Wrong):
    def marginals_derivative(self, potentials, direction, weight=None, overwrite=False):
        return super().marginals_derivative(potentials, direction, None, overwrite)


class DerivativeWrites(Wrong):
    def marginals_derivative(self, potentials, direction, weight=None, overwrite=False):
        parts = super().marginals_derivative(potentials, direction, weight, overwrite)
        direction.unary[:] += 1.0
        return parts


class NotTheBest(Wrong):
    def map(self, potentials):
        labels, score = self.k_best(potentials, 2)
        return type(super().map(potentials))(labels[1], score[:, 1])


class SecondBestTwice(Wrong):
    def k_best(self, potentials, k):
        ranked = super().k_best(potentials, k)
        ranked.labels[2:3] = ranked.labels[1:2]
        return ranked


class WrongPrices(Wrong):
    def map_by_cost(self, potentials, price):
        found = super().map_by_cost(potentials, price)
        return found._replace(labels=np.roll(found.labels, 1))


class ScoresOffAtSomeCost(Wrong):
    def map_by_cost(self, potentials, price):
        found = super().map_by_cost(potentials, price)
        return found._replace(score=found.score - 1e-3)


class IgnoresAnEdge(Wrong):
    def sample(self, potentials, n, rng):
        without = potentials.untied()
        without.table(0)[...] = 0.0
        return super().sample(without, n, rng)


class IgnoresTheSeed(Wrong):
    def sample(self, potentials, n, rng):
        return super().sample(potentials, n, np.random.default_rng())


class EntropyInBits(Wrong):
    def entropy(self, potentials):
        return super().entropy(potentials) / np.log(2.0)


class SpanOfOneTooMany(Wrong):
    def span_log_probability(self, potentials, spans):
        return 1.001 * super().span_log_probability(potentials, spans)


class WritesToItsInput(Wrong):
    def log_partition(self, potentials):
        result = super().log_partition(potentials)
        potentials.unary += 1.0
        return result


class WrongWhenOverwriting(Wrong):
    def marginals(self, potentials, weight=None, overwrite=False):
        result = super().marginals(potentials, weight)
        if overwrite:
            result.parts.unary[:] += 1e-12
        return result


class NoUpperBound(Wrong):
    bound = "upper"

    def exact_on(self, structure):
        return False

    def log_partition(self, potentials):
        return super().log_partition(potentials) - 0.01


class AnswersWhatItDoesNotClaim(Wrong):
    answers = Wrong.answers - {"entropy"}

    def entropy(self, potentials):
        return ExhaustiveInference().entropy(potentials)


class RanksWhatItDoesNotAnswer(Wrong):
    quality: ClassVar = {"relaxed_map": 10}


class CostsLessThanALook(Wrong):
    def cost(self, structure, question):
        return 0.5


class RefusesScoresUnannounced(Wrong):
    def refusal_of(self, potentials):
        return "not these"


BROKEN = [
    (LogPartitionOff, "log_partition"),
    (BiasedMarginals, "marginals.unary"),
    (IgnoresWeights, "weighted marginals"),
    (ForgetsEdges, "marginals.tables"),
    (DerivativeOff, "marginals_derivative.tables"),
    (DerivativeWithoutWeights, "weighted marginals_derivative"),
    (DerivativeWrites, "marginals_derivative changed potentials.unary"),
    (NotTheBest, "map"),
    (SecondBestTwice, "k_best"),
    (WrongPrices, "scores are not those of the labellings"),
    (ScoresOffAtSomeCost, "map_by_cost: scores"),
    (IgnoresAnEdge, "such frequencies have a chance"),
    (IgnoresTheSeed, "the same seed"),
    (EntropyInBits, "entropy"),
    (SpanOfOneTooMany, "spans"),
    (WritesToItsInput, "changed potentials.unary"),
    (WrongWhenOverwriting, "with overwrite"),
    (NoUpperBound, "no upper bound"),
    (AnswersWhatItDoesNotClaim, "must raise UnsupportedError"),
    (RanksWhatItDoesNotAnswer, "quality of .'relaxed_map'., which it does not answer"),
    (CostsLessThanALook, "costs 0.5"),
    (RefusesScoresUnannounced, "claims to take any scores"),
]


def test_the_wrapper_alone_keeps_the_contract():
    rng = np.random.default_rng(0)
    check_inference(Wrong(), MODELS["chain_tied"](rng), rng)


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match=message):
        check_inference(broken(), MODELS["chain_tied"](rng), rng)


def test_work_on_an_unclaimed_structure_is_caught():
    class WorksAnywhere(Wrong):
        def require(self, question, structure):
            pass

    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="must raise UnsupportedError"):
        check_inference(WorksAnywhere(), MODELS["triplets"](rng), rng)


def test_an_unnoticed_infeasible_model_is_caught():
    class Guesses(Wrong):
        def map(self, potentials):
            finite = np.maximum(potentials.unary, -1e9)
            return super().map(potentials.like(finite, np.maximum(potentials.tables, -1e9)))

    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="map answers though no labelling"):
        check_infeasible(Guesses(), INFEASIBLE["no_label"](rng), rng)
