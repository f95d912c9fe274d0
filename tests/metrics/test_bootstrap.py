"""Bootstrap intervals and the paired test."""

import numpy as np
import pytest

from chordal.metrics import (
    SequenceCounts,
    bootstrap,
    chunk_f1,
    hamming_accuracy,
    paired_bootstrap,
    sequence_counts,
    token_accuracy,
)

FUNCTIONS = {
    "chunk_f1": chunk_f1,
    "token_accuracy": token_accuracy,
    "hamming_accuracy": hamming_accuracy,
}


def chosen(y, indices):
    return [y[i] for i in indices]


@pytest.mark.parametrize("metric", FUNCTIONS)
def test_it_is_the_metric_on_samples_of_the_sequences(iob_corpus, metric):
    """The long way: build each sample as lists of labels, and score it."""
    y_true, y_pred = iob_corpus
    rng = np.random.default_rng(5)
    values = []
    for _ in range(40):
        indices = rng.integers(0, len(y_true), len(y_true))
        values.append(FUNCTIONS[metric](chosen(y_true, indices), chosen(y_pred, indices)))
    found = bootstrap(sequence_counts(metric, y_true, y_pred), n=40, confidence=0.9, seed=5)
    assert found.value == pytest.approx(FUNCTIONS[metric](y_true, y_pred), rel=1e-12)
    assert (found.low, found.high) == pytest.approx(np.quantile(values, [0.05, 0.95]), rel=1e-12)
    assert found.standard_error == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_a_share_has_the_known_standard_error():
    counts = SequenceCounts(np.repeat([1.0, 0.0], [300, 700]), np.ones(1000))
    found = bootstrap(counts, n=4000)
    expected = np.sqrt(0.3 * 0.7 / 1000)
    assert found.standard_error == pytest.approx(expected, rel=0.05)
    assert (found.low, found.high) == pytest.approx(
        (0.3 - 1.96 * expected, 0.3 + 1.96 * expected), abs=0.003
    )


def test_seeds(iob_corpus):
    counts = sequence_counts("chunk_f1", *iob_corpus)
    assert bootstrap(counts, seed=1) == bootstrap(counts, seed=1)
    assert bootstrap(counts, seed=1) != bootstrap(counts, seed=2)


def test_wider_with_more_confidence(iob_corpus):
    counts = sequence_counts("chunk_f1", *iob_corpus)
    narrow, wide = (bootstrap(counts, confidence=c) for c in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_samples_without_anything_to_count():
    """A sample may hold no chunk at all: its F1 is 0, not NaN."""
    counts = sequence_counts("chunk_f1", [["B-X"], ["O"], ["O"]], [["B-X"], ["O"], ["O"]])
    found = bootstrap(counts)
    assert (found.value, found.low, found.high) == (1.0, 0.0, 1.0)


def test_the_same_prediction_does_not_differ(iob_corpus):
    counts = sequence_counts("chunk_f1", *iob_corpus)
    assert paired_bootstrap(counts, counts) == (0.0, 0.0, 0.0, 1.0)


def test_differences_are_paired_and_signed(iob_corpus):
    y_true, y_pred = iob_corpus
    good = sequence_counts("chunk_f1", y_true, y_true)
    bad = sequence_counts("chunk_f1", y_true, y_pred)
    found, turned = paired_bootstrap(good, bad), paired_bootstrap(bad, good)
    assert found.value == good.value - bad.value > 0
    assert (turned.value, turned.low, turned.high) == (-found.value, -found.high, -found.low)
    assert found.p_value == turned.p_value == 1 / 1001
    # `good` never varies, so the difference varies as `bad` does.
    alone = bootstrap(bad)
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=1e-9)


def test_predictions_of_equal_worth_are_seldom_told_apart():
    """Under no difference the p-value is uniform: about 5 in 100 fall below 0.05."""
    rng = np.random.default_rng(0)
    below = 0
    for seed in range(300):
        first, second = rng.random((2, 150)) < 0.8
        ones = np.ones(150)
        found = paired_bootstrap(
            SequenceCounts(first * 1.0, ones), SequenceCounts(second * 1.0, ones), n=200, seed=seed
        )
        below += found.p_value < 0.05
    assert 5 <= below <= 27  # 15 expected, standard deviation 3.8


GOOD = SequenceCounts(np.ones(3), np.ones(3))


@pytest.mark.parametrize(
    ("counts", "options", "error", "message"),
    [
        (GOOD, {"n": 1}, ValueError, "n must be an integer of at least 2, got 1"),
        (GOOD, {"n": 10.5}, ValueError, "n must be an integer"),
        (GOOD, {"seed": -1}, ValueError, "seed must be an integer of at least 0, got -1"),
        (GOOD, {"confidence": 0}, ValueError, "confidence must be a number above 0"),
        (GOOD, {"confidence": 95}, ValueError, "confidence must be below 1, such as 0.95, got 95"),
        (3, {}, TypeError, "counts must be the result of sequence_counts, got 3"),
        ("ab", {}, TypeError, "counts must be the result of sequence_counts"),
        (([1, 2], [1]), {}, ValueError, "two numbers for each sequence, got shapes"),
        (([], []), {}, ValueError, "two numbers for each sequence"),
        (([np.nan], [1]), {}, ValueError, "counts must be finite and not negative"),
        (([1], [-1]), {}, ValueError, "counts must be finite and not negative"),
    ],
)
def test_bad_input(counts, options, error, message):
    with pytest.raises(error, match=message):
        bootstrap(counts, **options)


def test_pairs_of_different_sequences():
    with pytest.raises(ValueError, match="must be of the same sequences, got 3 and 2"):
        paired_bootstrap(GOOD, SequenceCounts(np.ones(2), np.ones(2)))
