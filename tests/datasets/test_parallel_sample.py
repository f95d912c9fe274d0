"""Invented sentences: the same seed, sound links, and what makes alignment hard."""

import numpy as np
import pytest

from chordal.datasets import make_parallel_sample


@pytest.fixture(scope="module")
def sample():
    return make_parallel_sample(400, random_state=0)


def test_the_same_seed_makes_the_same_sentences(sample):
    assert make_parallel_sample(400, random_state=0) == sample
    assert make_parallel_sample(400, random_state=1).source != sample.source
    assert make_parallel_sample(0).X == []


def test_links_are_a_matching_within_the_sentences(sample):
    for (source, target), sure, possible in zip(
        sample.X, sample.sure, sample.possible, strict=True
    ):
        assert sure <= possible
        assert all(i < len(source) and j < len(target) for i, j in possible)
        for side in (0, 1):
            assert len({link[side] for link in sure}) == len(sure)
    for y, sure in zip(sample.y, sample.sure, strict=True):
        assert {(i, j) for i, j in enumerate(y.tolist()) if j >= 0} == sure


def test_it_has_what_makes_alignment_hard(sample):
    y = np.concatenate(sample.y)
    assert 0.1 < (y == -1).mean() < 0.4  # words without a target
    crossed = [np.any(np.diff(t[t >= 0]) < 0) for t in sample.y]
    assert np.mean(crossed) > 0.8  # another order
    assert any(p - s for p, s in zip(sample.possible, sample.sure, strict=True))
    words = {}
    for (source, target), sure in zip(sample.X, sample.sure, strict=True):
        for i, j in sure:
            words.setdefault(source[i], set()).add(target[j])
    assert max(map(len, words.values())) > 1  # two translations
    alike = [s for s, ts in words.items() if s in ts and s != "."]
    assert alike  # names
