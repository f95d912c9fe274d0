"""Confidence intervals of metrics, by bootstrap over the sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.metrics._accuracy import SequenceCounts

Floats = NDArray[np.float64]

#: The largest count; sums and squares of larger ones could overflow.
LARGEST = 1e100


class BootstrapInterval(NamedTuple):
    """A metric, and the percentile interval and standard deviation over the samples."""

    value: float
    low: float
    high: float
    standard_error: float


class BootstrapDifference(NamedTuple):
    """The first metric minus the second, its interval, and the two-sided p-value."""

    value: float
    low: float
    high: float
    p_value: float


def bootstrap(
    counts: SequenceCounts, *, n: int = 1000, confidence: float = 0.95, seed: int = 0
) -> BootstrapInterval:
    """Confidence interval of a metric, from samples of the sequences with replacement.

    Parameters
    ----------
    counts : SequenceCounts
        From `sequence_counts`.
    n : int
        Number of samples.
    confidence : float
        Confidence level, above 0 and below 1.
    seed : int
        The same seed gives the same interval.

    Examples
    --------
    >>> from chordal.metrics import sequence_counts
    >>> y_true = [["a", "b"], ["a"], ["b", "b", "a"]]
    >>> y_pred = [["a", "b"], ["b"], ["b", "b", "a"]]
    >>> interval = bootstrap(sequence_counts("token_accuracy", y_true, y_pred))
    >>> round(interval.value, 3), interval.low < interval.value < interval.high
    (0.833, True)
    """
    checked = _check(counts, "counts")
    values = _samples([checked], n, seed)[0]
    low, high = _percentiles(values, confidence)
    return BootstrapInterval(checked.value, low, high, float(values.std(ddof=1)))


def paired_bootstrap(
    first: SequenceCounts,
    second: SequenceCounts,
    *,
    n: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> BootstrapDifference:
    """Test whether two predictions of the same sequences differ significantly.

    Both metrics use the same samples. The p-value is the share of samples whose difference is at
    least as far from the measured one as that is from zero (Berg-Kirkpatrick, Burkett and Klein
    2012, two-sided). With n samples it is at least 1 / (n + 1).

    >>> from chordal.metrics import sequence_counts
    >>> y_true = [["a", "b"]] * 50
    >>> good = sequence_counts("token_accuracy", y_true, y_true)
    >>> bad = sequence_counts("token_accuracy", y_true, [["a", "a"], ["a", "b"]] * 25)
    >>> difference = paired_bootstrap(good, bad)
    >>> difference.value, difference.p_value < 0.01
    (0.25, True)
    """
    both = [_check(first, "first"), _check(second, "second")]
    sizes = [len(counts.numerator) for counts in both]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"first and second must be of the same sequences, got {sizes[0]} and {sizes[1]}"
        )
    values = _samples(both, n, seed)
    differences = values[0] - values[1]
    value = both[0].value - both[1].value
    low, high = _percentiles(differences, confidence)
    extreme = np.abs(differences - value) >= abs(value)
    return BootstrapDifference(value, low, high, float((1 + extreme.sum()) / (n + 1)))


def _samples(metrics: list[SequenceCounts], n: int, seed: int) -> Floats:
    """[n_metrics, n]: each metric on n samples; all metrics see the same ones."""
    check_number("n", n, minimum=2, integer=True)
    check_number("seed", seed, integer=True)
    rng = np.random.default_rng(seed)
    columns = np.array([column for counts in metrics for column in counts]).T  # [sequences, 2 × m]
    size = len(columns)
    sums = np.empty((n, columns.shape[1]))
    for sample in sums:  # one at a time: the memory does not grow with n × sequences
        times = np.bincount(rng.integers(0, size, size), minlength=size).astype(np.float64)
        np.dot(times, columns, out=sample)
    numerator, denominator = sums[:, 0::2].T, sums[:, 1::2].T
    zeros = np.zeros_like(numerator)
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0)


def _percentiles(values: Floats, confidence: float) -> tuple[float, float]:
    check_number("confidence", confidence, strict=True)
    if confidence >= 1:
        raise ValueError(f"confidence must be below 1, such as 0.95, got {confidence!r}")
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _check(counts: SequenceCounts, name: str) -> SequenceCounts:
    """Counts of any two arrays that have the same length and make sense."""
    try:
        numerator, denominator = (np.asarray(column, dtype=np.float64) for column in counts)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be the result of sequence_counts, got {counts!r}") from None
    if numerator.ndim != 1 or numerator.shape != denominator.shape or not len(numerator):
        raise ValueError(
            f"{name} must hold two numbers for each sequence, "
            f"got shapes {numerator.shape} and {denominator.shape}"
        )
    for column in (numerator, denominator):
        if not np.isfinite(column).all() or (column < 0).any():
            raise ValueError(f"{name} must be finite and not negative")
        if column.max() > LARGEST:
            raise ValueError(f"{name} must be at most {LARGEST:g}, got {column.max():g}")
    return SequenceCounts(numerator, denominator)
