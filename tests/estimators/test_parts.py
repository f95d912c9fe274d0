"""A fit on data in parts: the same model as of data in one place, whatever the parts."""

import pickle

import numpy as np
import pytest

from chordal import ChainCRF
from chordal._errors import UnsupportedError
from chordal.estimators import Given, fit_parts


class InTurn:
    """A crew of one, which pickles what goes to a part and what comes back, as machines would."""

    def __init__(self):
        self.sent = 0

    def map(self, function, parts, *shared, each=None):
        own = [()] * len(parts) if each is None else [(v,) for v in each]
        return [
            self._over(function(part, *self._over(shared), *last))
            for part, last in zip(parts, own, strict=True)
        ]

    def tree(self, function, parts):
        level = list(parts)
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [self._over(function(*p)) if len(p) == 2 else p[0] for p in pairs]
        return level[0]

    def join(self, function, parts, *shared):
        return self._over(function(list(parts), *self._over(shared)))

    def share(self, value):
        return value

    def fetch(self, handles):
        return list(handles)

    def take(self, handle):
        return handle

    def total(self, answer, plus, parts, vectors, *rest):
        leaves = [self._over(answer(part, vectors, *rest)) for part in parts]
        return self.tree(plus, leaves)

    def _over(self, value):
        data = pickle.dumps(value)
        self.sent += len(data)
        return pickle.loads(data)


def sentences(seed=0, n=40, labels=4):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        own = rng.integers(labels, size=length)
        X.append([[f"w={rng.zipf(1.5)}", f"s={(v + rng.integers(2)) % labels}"] for v in own])
        y.append([f"L{v}" for v in own])
    return X, y


def cut(n, cuts=(0, 7, 8, 20)):
    return list(zip(cuts, (*cuts[1:], n), strict=True))


def fitted_in_parts(estimator, X, y, weight=None, cuts=(0, 7, 8, 20), **options):
    n = len(y)
    parts = [
        Given(X[a:b], y[a:b], None if weight is None else weight[a:b]) for a, b in cut(n, cuts)
    ]
    return fit_parts(estimator, InTurn(), parts, **options)


def same(found, expected, rtol=1e-7):
    assert np.array_equal(found.classes_, expected.classes_)
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=rtol)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_chain():
    X, y = sentences()
    tight = {"tol": 1e-12, "max_iter": 300}
    same(fitted_in_parts(ChainCRF(**tight), X, y), ChainCRF(**tight).fit(X, y))
