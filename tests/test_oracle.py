"""The oracle: one value and gradient, whatever the number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal.estimators import chain_batch, chain_layout
from chordal.execution.serial import Serial
from chordal.execution.threads import Threads
from chordal.features import Rows, input_for
from chordal.inference.chain import ChainInference
from chordal.objectives.likelihood import Likelihood
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.oracle import SummedOracle

N_LABELS = 4


def lengths_of(rng, n=60):
    lengths = rng.integers(0, 9, n)
    lengths[:4] = [0, 1, 30, 0]
    return lengths


def attribute_sequences(rng, lengths):
    def token():
        return [f"a{k}" for k in np.minimum(rng.geometric(0.05, 5), 80)]

    return [[token() for _ in range(n)] for n in lengths]


def dense_sequences(rng, lengths, n_columns=40):
    return [rng.normal(size=(n, n_columns)).astype(np.float32) for n in lengths]


def valued_sequences(rng, lengths):
    def token():
        return {f"a{k}": float(rng.normal()) for k in rng.geometric(0.1, 4)}

    return [[token() for _ in range(n)] for n in lengths]


KINDS = {
    "attributes": (attribute_sequences, None),
    "values": (valued_sequences, None),
    "dense": (dense_sequences, None),
    "dense edges": (attribute_sequences, lambda rng, n: dense_sequences(rng, n, n_columns=5)),
    "attribute edges": (dense_sequences, attribute_sequences),
}


def problem(kind, weighted=True, shard=3):
    """Features, and shards of a few sequences each."""
    rng = np.random.default_rng(0)
    lengths = lengths_of(rng)
    node, edge = KINDS[kind]
    labels = rng.integers(0, N_LABELS, lengths.sum()).astype(np.int32)
    node_features, node_rows = compiled(node(rng, lengths), labels, N_LABELS)
    edge_features = edge_rows = None
    if edge is not None:
        pairs = [y[:-1] * N_LABELS + y[1:] for y in np.split(labels, np.cumsum(lengths)[:-1])]
        edges = np.concatenate(pairs).astype(np.int32)
        edge_features, edge_rows = compiled(
            edge(rng, np.maximum(lengths - 1, 0)), edges, N_LABELS**2
        )
    kept = dict.fromkeys(("intercept", "start", "end"), np.arange(N_LABELS))
    kept["transitions"] = np.arange(0, N_LABELS**2, 2)
    features = chain_layout(N_LABELS, {"node": node_features, "edge": edge_features}, kept)
    batch = chain_batch(node_rows, edge_rows)
    weight = rng.uniform(0.0, 2.0, len(lengths)) if weighted else None
    limits = range(0, len(lengths) + shard, shard)
    shards = [
        features.compile(batch, a, min(a + shard, len(lengths)), labels, weight)
        for a in limits
        if a < len(lengths)
    ]
    return features, shards


def compiled(X, outputs, n_outputs) -> tuple[object, Rows]:
    source = input_for(X[2])
    rows = source.read(X, grow=True)
    return source.features(rows, outputs, n_outputs), rows


def oracle_of(features, shards, mapper, **options):
    return SummedOracle(features, shards, Likelihood(), ChainInference(), mapper, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_any_number_of_threads(kind):
    features, shards = problem(kind)
    assert len(shards) == 20
    weights = np.random.default_rng(1).normal(size=features.n_weights)
    value, gradient = oracle_of(features, shards, Serial(), l2=0.3).value_grad(weights)
    for n_jobs in (1, 2, 3, 5):
        with Threads(n_jobs) as threads:
            oracle = oracle_of(features, shards, threads, l2=0.3)
            for _ in range(2):  # memory is reused: the second time must not differ either
                again, gradient_again = oracle.value_grad(weights)
                assert again == value
                assert_array_equal(gradient_again, gradient)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_the_derivative(kind):
    features, shards = problem(kind)
    rng = np.random.default_rng(2)
    weights, centre = 0.5 * rng.normal(size=(2, features.n_weights))
    oracle = oracle_of(features, shards, Serial(), l2=0.7, centre=centre)
    assert oracle.n_weights == features.n_weights
    before = weights.copy()
    value, gradient = oracle.value_grad(weights)
    assert_array_equal(weights, before)
    assert isinstance(value, float)

    def slope(direction, step=1e-5):
        right = oracle.value_grad(weights + step * direction)[0]
        return (right - oracle.value_grad(weights - step * direction)[0]) / (2.0 * step)

    for _ in range(4):
        direction = rng.normal(size=len(weights))
        direction /= np.linalg.norm(direction)
        assert_allclose(slope(direction), gradient @ direction, rtol=1e-6, atol=1e-6)
    groups = [group for group in features.slices.values() if group.stop > group.start]
    for group in groups:
        for k in rng.integers(group.start, group.stop, 3):
            unit = np.eye(1, len(weights), k)[0]
            assert_allclose(slope(unit), gradient[k], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["attributes", "dense edges"])
def test_how_the_data_are_cut_changes_rounding_only(kind):
    weights, results = None, []
    for shard in (1, 7, 60):
        features, shards = problem(kind, shard=shard)
        if weights is None:
            weights = np.random.default_rng(1).normal(size=features.n_weights)
        results.append(oracle_of(features, shards, Serial()).value_grad(weights))
    for value, gradient in results[1:]:
        assert_allclose(value, results[0][0], rtol=1e-12)
        assert_allclose(gradient, results[0][1], rtol=1e-9, atol=1e-11)


def test_weights_of_examples_count_as_repetitions():
    features, shards = problem("attributes", weighted=False, shard=1)
    ones = [type(s)(**{**vars(s), "weight": np.ones(1)}) for s in shards]
    twos = [type(s)(**{**vars(s), "weight": np.full(1, 2.0)}) for s in shards]
    weights = np.random.default_rng(1).normal(size=features.n_weights)
    value, gradient = oracle_of(features, shards, Serial()).value_grad(weights)
    same, gradient_same = oracle_of(features, ones, Serial()).value_grad(weights)
    assert_allclose(same, value, rtol=1e-14)
    assert_allclose(gradient_same, gradient, rtol=1e-12, atol=1e-13)
    for other in (twos, shards + shards):
        double, gradient_double = oracle_of(features, other, Serial()).value_grad(weights)
        assert_allclose(double, 2.0 * value, rtol=1e-13)
        assert_allclose(gradient_double, 2.0 * gradient, rtol=1e-10, atol=1e-12)


def test_the_penalty():
    features, shards = problem("attributes")
    weights = np.random.default_rng(1).normal(size=features.n_weights)
    value, gradient = oracle_of(features, shards, Serial()).value_grad(weights)
    centre = np.full(features.n_weights, 0.25)
    for c in (None, centre):
        offset = weights - (0.0 if c is None else c)
        with_l2 = oracle_of(features, shards, Serial(), l2=3.0, centre=c).value_grad(weights)
        assert_allclose(with_l2[0], value + 1.5 * offset @ offset, rtol=1e-13)
        assert_allclose(with_l2[1], gradient + 3.0 * offset, rtol=1e-12, atol=1e-12)


def test_no_data_leaves_the_penalty():
    features, _ = problem("attributes")
    weights = np.ones(features.n_weights)
    value, gradient = oracle_of(features, [], Serial(), l2=2.0).value_grad(weights)
    assert value == features.n_weights
    assert_array_equal(gradient, 2.0 * weights)


def test_the_value_at_zero_weights_is_known():
    features, shards = problem("dense", weighted=False)
    value, _ = oracle_of(features, shards, Serial()).value_grad(np.zeros(features.n_weights))
    n = sum(shard.frame.structure.n_variables for shard in shards)
    assert_allclose(value, n * np.log(N_LABELS), rtol=1e-13)


@pytest.mark.parametrize("objective", [Likelihood(), SoftmaxMargin()], ids=lambda o: o.name)
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_the_hessian(kind, objective):
    features, shards = problem(kind)
    rng = np.random.default_rng(3)
    weights, direction, other = 0.3 * rng.normal(size=(3, features.n_weights))
    oracle = SummedOracle(features, shards, objective, ChainInference(), Serial(), l2=0.7)
    kept = weights.copy(), direction.copy()
    product = oracle.hess_vec(weights, direction)
    assert_array_equal(weights, kept[0])
    assert_array_equal(direction, kept[1])
    right, left = (oracle.value_grad(weights + h * direction)[1] for h in (1e-5, -1e-5))
    assert_allclose(product, (right - left) / 2e-5, rtol=1e-5, atol=1e-5)
    assert_allclose(other @ product, direction @ oracle.hess_vec(weights, other), rtol=1e-10)
    for n_jobs in (2, 5):
        with Threads(n_jobs) as threads:
            parallel = SummedOracle(features, shards, objective, ChainInference(), threads, l2=0.7)
            assert_array_equal(parallel.hess_vec(weights, direction), product)


def test_the_whole_hessian():
    features, shards = problem("attribute edges", shard=20)
    rng = np.random.default_rng(3)
    weights = 0.3 * rng.normal(size=features.n_weights)
    small = np.flatnonzero(rng.random(features.n_weights) < 0.02)
    oracle = oracle_of(features, shards[:1], Serial(), l2=0.7)
    hessian = oracle.hessian(weights)
    assert_array_equal(hessian, hessian.T)
    for k in small[:5]:
        unit = np.eye(1, features.n_weights, k)[0]
        assert_allclose(hessian[k], oracle.hess_vec(weights, unit), rtol=1e-9, atol=1e-11)
    assert np.linalg.eigvalsh(hessian).min() > 0.69  # convex, and the penalty


@pytest.mark.parametrize("kind", KINDS)
def test_batches_sum_to_the_whole(kind):
    features, shards = problem(kind)
    rng = np.random.default_rng(4)
    weights, direction = 0.3 * rng.normal(size=(2, features.n_weights))
    oracle = oracle_of(features, shards, Serial(), l2=0.7, cuts=[0, 3, 4, 11, 20])
    value, gradient = oracle.value_grad(weights)
    batches = oracle.batches()
    assert len(batches) == 4
    parts = [batch.value_grad(weights) for batch in batches]
    assert_allclose(sum(part[0] for part in parts), value, rtol=1e-12)
    assert_allclose(sum(part[1] for part in parts), gradient, rtol=1e-9, atol=1e-10)
    products = [batch.hess_vec(weights, direction) for batch in batches]
    assert_allclose(sum(products), oracle.hess_vec(weights, direction), rtol=1e-9, atol=1e-10)
    alone = oracle_of(features, shards[3:4], Serial(), l2=0.7 / 20)
    assert_allclose(parts[1][0], alone.value_grad(weights)[0], rtol=1e-12)
    assert_allclose(parts[1][1], alone.value_grad(weights)[1], rtol=1e-9, atol=1e-11)
