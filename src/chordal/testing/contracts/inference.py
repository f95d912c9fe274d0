"""The contract of inference methods: every claim, checked against brute force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._optional import needed
from chordal._status import Status
from chordal.inference import Convergence, Inference, Ranked, Spans
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Floats, Potentials
from chordal.testing.contracts._common import (
    assert_same_parts,
    copy_of,
    random_direction,
    require,
    rounding,
    unchanged,
    weighted_parts,
)
from chordal.testing.contracts._derivative import check_marginals_derivative

with needed("scipy", "chordal.testing"):
    from scipy.stats import chi2

N_SAMPLES = 4000
#: Chance that a correct sampler fails the frequency test, for each example.
SIGNIFICANCE = 1e-7
#: How far the marginals of a method that is not exact may be from sums that fit each other.
LOOSE = 1e-3

_truth = ExhaustiveInference(max_labellings=100_000)


def check_inference(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    """Check every claim of a method on one small model with at least one labelling.

    Where it is exact, its answers must be those of brute force; where it is not, they must be
    consistent in themselves and respect the bound it claims. Inputs stay as they were, and what
    is not claimed is refused.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.testing.generators import MODELS
    >>> rng = np.random.default_rng(0)
    >>> check_inference(ChainInference(domain="log"), MODELS["chain_tied"](rng), rng)
    """
    _check_refusals(method, potentials, rng)
    if not method.supports(potentials.structure) or method.refusal_of(potentials) is not None:
        return
    for question in sorted(method.answers):
        method.require(question, potentials.structure)
        with unchanged(potentials, f"{method!r}.{question}"):
            _ask(method, question, potentials, rng)
        _CHECKS[question](method, potentials, rng)


def check_infeasible(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    """Check that a method that is exact here notices that some example has no labelling."""
    if not method.exact_on(potentials.structure) or method.refusal_of(potentials) is not None:
        return
    expected = _truth.log_partition(potentials)
    require((expected == -np.inf).any(), "this model has a labelling for every example")
    for question in sorted(method.answers):
        with unchanged(potentials, f"{method!r}.{question}"):
            if question == "log_partition":
                actual = method.log_partition(potentials)
                assert_allclose(actual, expected, rtol=1e-9, err_msg="log_partition")
                continue
            try:
                _ask(method, question, potentials, rng)
            except InfeasibleError:
                continue
            raise AssertionError(f"{method!r}.{question} answers though no labelling is allowed")


def _check_refusals(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    unknown = method.answers - set(_CHECKS)
    require(not unknown, f"{method!r} answers {sorted(unknown)}, for which there is no contract")
    more = set(method.quality) - method.answers
    require(
        not more, f"{method!r} declares the quality of {sorted(more)}, which it does not answer"
    )
    for question in method.answers:
        cost = method.cost(potentials.structure, question)
        require(cost >= 1.0, f"{method!r} costs {cost} for {question}: a look at every cell is 1")
    supported = method.supports(potentials.structure)
    accepted = supported and method.refusal_of(potentials) is None
    require(
        supported or not method.exact_on(potentials.structure),
        f"{method!r} claims to be exact where it does not work",
    )
    require(
        accepted or not supported or not method.any_scores, f"{method!r} claims to take any scores"
    )
    refused = set(_CHECKS) - method.answers if accepted else set(_CHECKS)
    for question in sorted(refused):
        with unchanged(potentials, f"the refusal of {question}"):
            try:
                _ask(method, question, potentials, rng)
            except UnsupportedError as error:
                require(method.name in str(error), f"the refusal does not name it: {error}")
                continue
            raise AssertionError(
                f"{method!r}.{question} must raise UnsupportedError on {potentials.structure}"
            )


def _ask(
    method: Inference, question: str, potentials: Potentials, rng: np.random.Generator
) -> object:
    extra: dict[str, tuple[Any, ...]] = {
        "k_best": (2,),
        "sample": (1, rng),
        "map_by_cost": (_random_prices(potentials, rng),),
        "marginals_derivative": (random_direction(potentials, rng),),
        "span_log_probability": (random_spans(potentials, rng, n=1),),
    }
    return getattr(method, question)(potentials, *extra.get(question, ()))


def _check_log_partition(
    method: Inference, potentials: Potentials, rng: np.random.Generator
) -> None:
    actual, expected = method.log_partition(potentials), _truth.log_partition(potentials)
    _check_log_z(method, potentials, actual, expected, "log_partition")


def _check_log_z(
    method: Inference, potentials: Potentials, actual: Floats, expected: Floats, what: str
) -> None:
    atol = rounding(potentials)
    require(actual.shape == expected.shape, f"{what} has shape {actual.shape}")
    if method.exact_on(potentials.structure):
        assert_allclose(actual, expected, rtol=1e-12, atol=atol, err_msg=what)
    elif method.bound is not None:
        require(method.bound in ("upper", "lower"), f"bound {method.bound!r} has no meaning")
        sign = 1.0 if method.bound == "upper" else -1.0
        gap = sign * (actual - expected)
        require((gap >= -atol).all(), f"{what} is no {method.bound} bound: off by {gap.min()}")
    if "log_partition" not in method.answers:
        require(np.isnan(actual).all(), f"{what} must be NaN where log Z is not known: {actual}")
        return
    require(np.isfinite(actual).all(), f"{what} is not finite: {actual}")


def _check_marginals(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    log_partition, parts, ended = method.marginals(potentials)
    _check_ending(ended, "marginals")
    truth = _truth.marginals(potentials)
    _check_log_z(method, potentials, log_partition, truth.log_partition, "marginals' log Z")
    exact = method.exact_on(potentials.structure)
    atol = rounding(potentials) if exact else LOOSE
    if exact:
        assert_same_parts(parts, truth.parts, "marginals", atol=atol)
    _check_sums(potentials, method.marginals(potentials.untied()).parts, atol)

    overwritten = method.marginals(copy_of(potentials), overwrite=True)
    assert_array_equal(overwritten.log_partition, log_partition, err_msg="log Z with overwrite")
    assert_same_parts(overwritten.parts, parts, "marginals with overwrite", atol=0.0, rtol=0.0)

    weight = rng.uniform(0.5, 2.0, size=potentials.structure.n_examples)
    weight[: len(weight) // 2] = 0.0
    weighted = method.marginals(potentials, weight)
    assert_array_equal(weighted.log_partition, log_partition, err_msg="log Z with a weight")
    assert_same_parts(
        weighted.parts,
        weighted_parts(potentials, weight, method.marginals(potentials.untied()).parts),
        "weighted marginals",
        atol=2 * atol,
    )


def _check_sums(potentials: Potentials, untied: Potentials, atol: float) -> None:
    """Node marginals are distributions, and each clique's table has them as its sums."""
    s = potentials.structure
    for name in ("unary", "tables"):
        values = getattr(untied, name)
        inside = (values >= 0.0) & (values <= 1.0 + atol)  # NaN is not
        require(inside.all(), f"marginals.{name} holds {values[~inside][:3]}, no probabilities")
        scores = getattr(potentials.untied(), name)
        require((values[scores == -np.inf] == 0.0).all(), f"{name}: what is forbidden has a chance")
    nodes = [untied.unary[slice(*s.state_offsets[v : v + 2])] for v in range(s.n_variables)]
    for v, node in enumerate(nodes):
        assert_allclose(node.sum(), 1.0, rtol=0.0, atol=atol, err_msg=f"sum of variable {v}")
    for clique in range(s.n_cliques):
        table, scope = untied.table(clique), s.scope(clique)
        for axis, v in enumerate(scope):
            others = tuple(k for k in range(len(scope)) if k != axis)
            message = f"clique {clique} does not fit variable {v}"
            assert_allclose(table.sum(axis=others), nodes[v], rtol=0.0, atol=atol, err_msg=message)


def _check_map(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    found = method.map(potentials)
    labels, score, bound = found.labels, found.score, found.bound
    _check_ending(found.convergence, "map")
    _check_ranked(method, potentials, Ranked(labels[None], score[:, None]), "map")
    if bound is None:
        require(method.exact_on(potentials.structure), "map: no bound, though it is not exact")
        return
    require(bound.shape == score.shape, f"map: bound has shape {bound.shape}")
    atol, best = rounding(potentials), _truth.map(potentials).score
    below = ~(bound >= best - atol)  # NaN too
    require(not below.any(), f"map: bounds {bound[below]} below the best scores {best[below]}")


def _check_relaxed_map(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    value, parts, ended = method.relaxed_map(potentials)
    _check_ending(ended, "relaxed_map")
    s, best = potentials.structure, _truth.map(potentials).score
    require(value.shape == best.shape, f"relaxed_map: value has shape {value.shape}")
    below = ~(value >= best - rounding(potentials))  # NaN too
    require(not below.any(), f"relaxed_map: {value[below]} below the best scores {best[below]}")
    loose = LOOSE * (1.0 + np.abs(value))
    if s.is_forest:
        assert_allclose(value, best, rtol=0.0, atol=loose.max(initial=0.0), err_msg="on a forest")
    _check_sums(potentials, method.relaxed_map(potentials.untied()).parts, LOOSE)
    product = sum(
        float(mine[mine != 0.0] @ scores[mine != 0.0])
        for mine, scores in ((parts.unary, potentials.unary), (parts.tables, potentials.tables))
    )
    message = "relaxed_map: the value is not the parts' product with the scores"
    assert_allclose(product, value.sum(), rtol=0.0, atol=loose.sum(), err_msg=message)
    weight = rng.uniform(0.5, 2.0, size=s.n_examples)
    weighted = method.relaxed_map(potentials, weight)
    assert_array_equal(weighted.value, value, err_msg="relaxed_map: value with a weight")
    untied = method.relaxed_map(potentials.untied()).parts
    expected = weighted_parts(potentials, weight, untied)
    assert_same_parts(weighted.parts, expected, "weighted relaxed_map", atol=20 * LOOSE)


def _check_ending(ended: Convergence | None, what: str) -> None:
    if ended is None:
        return
    require(isinstance(ended.status, Status), f"{what}: status is {ended.status!r}")
    require(ended.n_iter >= 0 and ended.change >= 0.0, f"{what}: {ended} makes no sense")


def _check_k_best(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    for k in (1, 4, 50):
        _check_ranked(method, potentials, method.k_best(potentials, k), f"k_best(k={k})")


def _check_ranked(method: Inference, potentials: Potentials, ranked: Ranked, what: str) -> None:
    s, k = potentials.structure, len(ranked.labels)
    require(ranked.labels.dtype == np.int32, f"{what}: labels are {ranked.labels.dtype}")
    require(ranked.labels.shape == (k, s.n_variables), f"{what}: {ranked.labels.shape}")
    require(ranked.score.shape == (s.n_examples, k), f"{what}: {ranked.score.shape}")
    atol, best = rounding(potentials), _truth.k_best(potentials, k).score
    if method.exact_on(s):
        assert_allclose(ranked.score, best, rtol=1e-12, atol=atol, err_msg=what)
    else:
        require((ranked.score <= best + atol).all(), f"{what}: a score above the best there is")
    require((ranked.score[:, :-1] >= ranked.score[:, 1:]).all(), f"{what}: not best first")
    own = np.stack([potentials.score(labels) for labels in ranked.labels], axis=1)
    found = ranked.score > -np.inf
    message = f"{what}: scores are not those of the labellings"
    assert_allclose(ranked.score[found], own[found], rtol=1e-12, atol=atol, err_msg=message)
    for example in range(s.n_examples):
        first, last = s.variable_offsets[example : example + 2]
        rows = ranked.labels[found[example], first:last]
        require(len(np.unique(rows, axis=0)) == len(rows), f"{what}: the same labelling twice")


def _check_map_by_cost(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    s, price = potentials.structure, _random_prices(potentials, rng)
    actual = method.map_by_cost(potentials, price)
    expected = _truth.map_by_cost(potentials, price)
    assert_array_equal(actual.offsets, expected.offsets, err_msg="map_by_cost: offsets")
    atol = rounding(potentials)
    if method.exact_on(s):
        assert_allclose(
            actual.score, expected.score, rtol=1e-12, atol=atol, err_msg="map_by_cost: scores"
        )
    else:
        above = actual.score > expected.score + atol
        require(not above.any(), "map_by_cost: a score above the best there is")
    of_states = potentials.like(price.astype(np.float64), np.zeros_like(potentials.tables))
    levels = np.diff(actual.offsets)
    for cost in range(int(levels.max(initial=0))):
        level = np.minimum(cost, levels - 1)
        labels, score = actual.at(s, level), actual.score[actual.offsets[:-1] + level]
        found = (cost < levels) & (score > -np.inf)
        message = "map_by_cost: scores are not those of the labellings"
        own = potentials.score(labels)
        assert_allclose(own[found], score[found], rtol=1e-12, atol=atol, err_msg=message)
        paid = of_states.score(labels)[found]
        require((paid == cost).all(), f"map_by_cost: labellings of cost {cost} cost {paid}")


def _random_prices(potentials: Potentials, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.integers(0, 3, potentials.structure.n_states)


def _check_sample(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    s, seed = potentials.structure, int(rng.integers(2**32))
    samples = method.sample(potentials, N_SAMPLES, np.random.default_rng(seed))
    require(samples.shape == (N_SAMPLES, s.n_variables), f"samples: shape {samples.shape}")
    again = method.sample(potentials, N_SAMPLES, np.random.default_rng(seed))
    assert_array_equal(samples, again, err_msg="the same seed gives other samples")
    for example in range(s.n_examples):
        first, last = s.variable_offsets[example : example + 2]
        probability = _probabilities(potentials, example)
        cells = np.ravel_multi_index(tuple(samples[:, first:last].T), probability.shape)
        counts = np.bincount(np.atleast_1d(cells), minlength=probability.size)
        if last == first:
            continue
        if method.exact_on(s):
            _check_frequencies(counts, probability.ravel(), f"example {example}")
    allowed = np.isfinite([potentials.score(labels) for labels in np.unique(samples, axis=0)])
    require(allowed.all(), "samples: a labelling that is forbidden")


def _probabilities(potentials: Potentials, example: int) -> Floats:
    """P(y) of one example, an axis for each variable."""
    s = potentials.structure
    first, last = s.variable_offsets[example : example + 2]
    counts = s.label_counts[first:last]
    scores = np.zeros(counts)
    for v in range(first, last):
        row = potentials.unary[slice(*s.state_offsets[v : v + 2])]
        scores += _spread(row, [v - first], len(counts))
    for clique in range(s.clique_offsets[example], s.clique_offsets[example + 1]):
        scores += _spread(potentials.table(clique), s.scope(clique) - first, len(counts))
    probability = np.exp(scores - scores.max(initial=-np.inf))
    return np.asarray(probability / probability.sum())


def _spread(table: Floats, axes: Sequence[int] | NDArray[np.int64], ndim: int) -> Floats:
    """The table with its axes at these places among `ndim`."""
    shape = np.ones(ndim, dtype=np.int64)
    shape[axes] = table.shape
    return table.transpose(np.argsort(axes)).reshape(shape)


def _check_frequencies(counts: np.ndarray, probability: Floats, where: str) -> None:
    """Pearson's chi-square test; cells with few expected counts are taken together."""
    impossible = counts[probability == 0.0].sum()
    require(impossible == 0, f"samples of {where}: {impossible} have probability 0")
    n = counts.sum()
    rare = n * probability < 5.0
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(n * probability[~rare], n * probability[rare].sum())
    observed, expected = observed[expected > 0.0], expected[expected > 0.0]
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-3)).sum()
    chance = float(chi2.sf(statistic, max(1, len(observed) - 1)))
    require(
        chance >= SIGNIFICANCE,
        f"samples of {where}: such frequencies have a chance of {chance:.1e}",
    )


def _check_entropy(method: Inference, potentials: Potentials, rng: np.random.Generator) -> None:
    actual, expected = method.entropy(potentials), _truth.entropy(potentials)
    require(actual.shape == expected.shape, f"entropy has shape {actual.shape}")
    require((actual >= 0.0).all(), f"entropy below zero, or NaN: {actual}")
    if method.exact_on(potentials.structure):
        atol = 10 * rounding(potentials)
        assert_allclose(actual, expected, rtol=1e-9, atol=atol, err_msg="entropy")


def _check_span_log_probability(
    method: Inference, potentials: Potentials, rng: np.random.Generator
) -> None:
    spans = random_spans(potentials, rng, n=20)
    actual = method.span_log_probability(potentials, spans)
    expected = _truth.span_log_probability(potentials, spans)
    require(actual.shape == expected.shape, f"spans: shape {actual.shape}")
    require((actual <= 0.0).all(), f"spans: log P above zero, or NaN: {actual[~(actual <= 0.0)]}")
    if not method.exact_on(potentials.structure):
        return
    # Far below e^-700 a probability may be taken for none at all.
    seen = (expected > -700.0) | (actual > -700.0)
    atol = 10 * rounding(potentials)
    assert_allclose(actual[seen], expected[seen], rtol=1e-9, atol=atol, err_msg="spans")
    impossible = expected == -np.inf
    require((actual[impossible] == -np.inf).all(), "spans: an impossible event has a chance")


def random_spans(potentials: Potentials, rng: np.random.Generator, n: int) -> Spans:
    """Events of up to n random spans of any length, with about half of the labels in each."""
    s = potentials.structure
    lengths = np.diff(s.variable_offsets)
    filled = np.flatnonzero(lengths)
    example = np.sort(rng.choice(filled, size=n if len(filled) else 0))
    start = rng.integers(0, lengths[example])
    length = rng.integers(1, lengths[example] - start + 1)
    first = s.variable_offsets[example] + start
    flags = [
        rng.integers(0, 2, s.label_counts[v], dtype=np.uint8)
        for a, size in zip(first, length, strict=True)
        for v in range(a, a + size)
    ]
    allowed = np.concatenate(flags) if flags else np.zeros(0, dtype=np.uint8)
    return Spans(example, start, length, allowed)


_Check = Callable[[Inference, Potentials, np.random.Generator], None]
_CHECKS: dict[str, _Check] = {
    "log_partition": _check_log_partition,
    "marginals": _check_marginals,
    "marginals_derivative": check_marginals_derivative,
    "map": _check_map,
    "map_by_cost": _check_map_by_cost,
    "relaxed_map": _check_relaxed_map,
    "k_best": _check_k_best,
    "sample": _check_sample,
    "entropy": _check_entropy,
    "span_log_probability": _check_span_log_probability,
}
