"""Every emission family: normalised, learned by moments, sampled from, and read with care."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from chordal.emissions import EMISSIONS

N_LABELS, N_DRAWN = 3, 20_000


def counts(rng, labels):
    return rng.poisson(1.0 + np.array([[0, 1, 2], [1, 0, 2], [1, 1, 1]])[labels])


#: Rows for labels 0, 1, 2; a new family needs some too.
ROWS = {
    "categorical": lambda rng, labels: np.stack(
        [(labels + rng.integers(0, 3, len(labels))) % 4, rng.integers(0, 2, len(labels))], axis=1
    ),
    "gaussian": lambda rng, labels: 5.0 + 0.3 * labels[:, None] + rng.normal(size=(len(labels), 2)),
    "multinomial": counts,
    "poisson": counts,
}


@pytest.fixture(params=EMISSIONS.names())
def fitted(request):
    """A family, its rows and their labels."""
    rng = np.random.default_rng(0)
    labels = np.arange(90) % N_LABELS
    family = EMISSIONS.resolve(request.param)
    rows = family.read([ROWS[request.param](rng, labels)], grow=True)
    family.fit(rows.data, labels, N_LABELS)
    return family, rows.data, labels


def test_parameters_have_the_shapes_that_they_claim(fitted):
    family, data, labels = fitted
    T = family.statistics(data)
    assert sp.issparse(T) == family.sparse
    assert T.shape == (len(labels), family.natural.shape[1])
    assert family.natural.shape[0] == len(family.log_partition) == N_LABELS
    assert family.log_base(data).shape == (len(labels),)
    assert np.isfinite(family.natural).all()
    expected = T @ family.natural.T - family.log_partition + family.log_base(data)[:, None]
    assert_allclose(family.log_density(data), expected)


def test_densities_of_all_labels_have_the_same_total(fitted):
    """Σ p(x | b) = 1 as a mean of p(x | b) / p(x | a) over samples of a."""
    family, _, _ = fitted
    rng = np.random.default_rng(1)
    for a in range(N_LABELS):
        drawn = family.sample(np.full(N_DRAWN, a), rng)
        density = family.log_density(family.read([drawn], grow=False).data)
        ratio = np.exp(density - density[:, [a]])
        error = ratio.std(axis=0) / np.sqrt(N_DRAWN)
        assert (np.abs(ratio.mean(axis=0) - 1.0) <= 5.0 * error + 1e-12).all()


def test_the_mean_of_the_statistics_is_the_slope_of_the_log_partition(fitted):
    """Learning from many samples of the model gives the model."""
    family, _, _ = fitted
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(N_LABELS), N_DRAWN)
    drawn = family.read([family.sample(labels, rng)], grow=False)
    again = copy.deepcopy(family)
    again.fit(drawn.data, labels, N_LABELS)
    difference = again.log_density(drawn.data[:500]) - family.log_density(drawn.data[:500])
    assert np.abs(difference).max() < 0.2
    assert np.abs(difference).mean() < 0.03


def test_a_weight_is_as_many_rows(fitted):
    family, data, labels = fitted
    times = np.arange(len(labels)) // N_LABELS % 3
    times[:N_LABELS] = 1
    a, b = copy.deepcopy(family), copy.deepcopy(family)
    a.fit(data, labels, N_LABELS, times.astype(float))
    rows = np.repeat(np.arange(len(labels)), times)
    b.fit(data[rows], labels[rows], N_LABELS)
    assert_allclose(a.natural, b.natural, rtol=1e-9)
    assert_allclose(a.log_partition, b.log_partition, rtol=1e-9)


def test_inputs_stay_as_they_were_and_samples_follow_the_generator(fitted):
    family, _, labels = fitted
    X = [ROWS[family.name](np.random.default_rng(3), labels)]
    before = [x.copy() for x in X]
    lengths = family.read([X[0][:4], X[0][4:4], X[0][4:]], grow=False).lengths
    assert_array_equal(lengths, [4, 0, 86])
    assert_array_equal(X[0], before[0])
    one, two = (family.sample(labels, np.random.default_rng(4)) for _ in range(2))
    assert_array_equal(one, two)
    assert one.shape == X[0].shape
