"""Fits and questions about one estimator from several threads: each sees one fit or another."""

import subprocess
import sys

import pytest

from chordal import ChainCRF
from chordal.estimators import _asking
from chordal.text import FeatureTemplate

FIRST = ([[["a"], ["b"]]] * 2, [["A", "B"]] * 2)
SECOND = ([[[f"w{k}"] for k in range(500)]], [["A", "C"] * 250])
TEMPLATE = FeatureTemplate("U0:%x[0,0]\nB")


@pytest.mark.parametrize("template", [TEMPLATE, None])
@pytest.mark.parametrize("question", ["predict", "predict_marginals", "k_best", "log_likelihood"])
def test_a_fit_between_reading_and_answering(question, template, monkeypatch):
    """Words that only the new fit knows must not meet the old weights, nor the other way round."""
    crf = ChainCRF(feature_template=template, warm_start=True, max_iter=3).fit(*FIRST)
    read, words = _asking.read, [[["w499"], ["w3"]]] * 2

    def and_fit(model, X):
        found = read(model, X)
        crf.fit(*SECOND)
        return found

    asked = {
        "predict": (words,),
        "predict_marginals": (words,),
        "k_best": (words, 2),
        "log_likelihood": (words, [["A", "B"]] * 2),
    }[question]
    expected = getattr(crf, question)(*asked)
    monkeypatch.setattr(_asking, "read", and_fit)
    found = getattr(crf, question)(*asked)
    monkeypatch.undo()
    assert repr(found) == repr(expected)
    assert set(crf.classes_) == {"A", "B", "C"}  # the fit came through
    assert crf.predict([[["w499"]]]) == [["C"]]


STRESS = """
import collections, threading, warnings
import numpy as np
from chordal import ChainCRF
from chordal.text import FeatureTemplate

warnings.simplefilter("ignore")
TEMPLATE = FeatureTemplate("U0:%x[0,0]\\nU1:%x[-1,0]/%x[0,0]\\nB")


def data(seed, n):
    rng = np.random.default_rng(seed)
    X = [[[f"w{k}"] for k in rng.integers(400 * (1 + seed % 7), size=12)] for _ in range(n)]
    return X, [[f"l{len(row[0]) % 3}{t % (2 + seed % 4)}" for t, row in enumerate(x)] for x in X]


crf = ChainCRF(feature_template=TEMPLATE, warm_start=True, max_iter=2).fit(*data(0, 30))
errors, over = collections.Counter(), False


def repeat(work, k):
    for i in range(8) if work is fit else iter(lambda: over, True):
        try:
            work(k, i)
        except Exception as error:
            errors[repr(error)[:200]] += 1


def fit(k, i):
    crf.fit(*data(20 * k + i, 30))


def ask(k, i):
    X, y = data(1000 + 100 * k, 4)
    assert [len(labels) for labels in crf.predict(X)] == [12] * 4
    assert len(crf.predict(X[:1])[0]) == 12
    assert all(abs(p.sum(axis=1) - 1.0).max() < 1e-9 for p in crf.predict_marginals(X))


fitters = [threading.Thread(target=repeat, args=(fit, k)) for k in range(3)]
readers = [threading.Thread(target=repeat, args=(ask, k)) for k in range(5)]
for thread in fitters + readers:
    thread.start()
for thread in fitters:
    thread.join()
over = True
for thread in readers:
    thread.join()
crf.fit(*data(3, 30)).predict(data(3, 30)[0])
print(dict(errors))
"""


def test_three_threads_fit_and_five_predict():
    ran = subprocess.run(
        [sys.executable, "-c", STRESS],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "{}\n"
