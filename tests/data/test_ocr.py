"""Taskar's OCR letters: pixels, a bias, start and end biases; folds 1–9 train, fold 0 tests."""

import numpy as np
import pytest

from chordal import ChainCRF
from chordal.datasets import load_ocr_letters

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def letters(require):
    return load_ocr_letters(require("ocr/letter.data.gz"))


def test_the_letters_are_those_of_the_packed_copy(letters, require):
    assert len(letters.y) == 6877
    assert sum(map(len, letters.y)) == 52_152
    with np.load(require("ocr/taskar_ocr_letters.npz"), allow_pickle=False) as packed:
        pixels = np.unpackbits(packed["pixels_packed"], axis=1)
        np.testing.assert_array_equal(np.concatenate(letters.images).reshape(-1, 128), pixels)
        np.testing.assert_array_equal(letters.folds, packed["fold"])


@pytest.mark.slow
def test_the_likelihood(letters):
    X = letters.X
    train, test = (np.flatnonzero(chosen) for chosen in (letters.folds > 0, letters.folds == 0))
    crf = ChainCRF(l2=1.0, fit_intercept=True, ends=True, transitions="all", tol=1e-7, n_jobs=2)
    crf.fit([X[i] for i in train], [letters.y[i] for i in train])
    assert crf.fit_report_.n_weights == 4082
    assert crf.objective_ == pytest.approx(15_251.908, abs=0.01)
    right = crf.score([X[i] for i in test], [letters.y[i] for i in test])
    assert right == pytest.approx(0.882, abs=0.0005)
