"""Handwritten words: distorted images and two-stage training."""

import numpy as np
import pytest

from chordal import ChainCRF, TwoStageCRF
from chordal.datasets import distorted

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture(scope="module")
def words(require):
    """words(fold): images [length, 128] and letters of its words."""
    data = np.load(require("ocr/taskar_ocr_letters.npz"), allow_pickle=False)
    pixels = np.unpackbits(data["pixels_packed"], axis=1).astype(float)
    offsets, labels, folds = data["offsets"], data["labels"], data["fold"]

    def of(fold):
        parts = [slice(offsets[i], offsets[i + 1]) for i in np.flatnonzero(folds == fold)]
        return [pixels[part] for part in parts], [labels[part] for part in parts]

    return of


def copies(X, n, **amounts):
    """Distorted copies of all words, n times."""
    images = np.concatenate(X).reshape(-1, 16, 8)
    limits = np.cumsum([len(x) for x in X])[:-1]
    return [
        word
        for seed in range(n)
        for word in np.split(distorted(images, seed, **amounts).reshape(-1, 128), limits)
    ]


def test_distorted_copies_raise_accuracy(words):
    X, y = words(1)
    X, y = X[::5], y[::5]  # 141 words
    test = words(0)
    plain = max(
        ChainCRF(l2=l2, fit_intercept=True, ends=True).fit(X, y).score(*test) for l2 in (1.0, 3.0)
    )
    more = X + copies(X, 4, shift=1.0, rotate=8.0, stretch=0.1)
    crf = ChainCRF(l2=5.0, fit_intercept=True, ends=True, max_iter=150).fit(more, y * 5)
    assert crf.score(*test) > plain + 0.02


def test_two_stages_come_near_to_one(words):
    X, y = words(1)
    X_test, y_test = words(0)
    crf = ChainCRF(l2=1.0, fit_intercept=True, ends=True, max_iter=150)
    unary = ChainCRF(
        transitions="none", l2=10.0, fit_intercept=True, max_iter=150
    )  # logistic regression
    model = TwoStageCRF(unary, crf, cv=3, scale=True, random_state=0).fit(X, y)
    alone = model.unary_.score(X_test, y_test)
    two, one = model.score(X_test, y_test), crf.fit(X, y).score(X_test, y_test)
    assert two > alone + 0.05
    assert two > one - 0.03
