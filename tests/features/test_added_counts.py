"""Counts of keys are added piece by piece."""

from collections import Counter

import numpy as np
import pytest

from chordal.features import _base


@pytest.mark.parametrize("seed", range(20))
def test_they_are_the_sums_of_both(seed, monkeypatch):
    monkeypatch.setattr(_base, "PIECE", 3)
    rng = np.random.default_rng(seed)
    both = []
    for size in rng.integers(0, 30, size=2):
        keys = np.unique(rng.integers(0, 40, size=size))
        both.append((keys, rng.integers(1, 9, size=len(keys))))
    (a, times), (b, more) = both
    expected = Counter(dict(zip(a.tolist(), times.tolist(), strict=True)))
    expected.update(dict(zip(b.tolist(), more.tolist(), strict=True)))
    keys, sums = _base.added(a, times, b, more)
    assert list(zip(keys.tolist(), sums.tolist(), strict=True)) == sorted(expected.items())
