"""Brute force over labellings, computed from what a fitted model shows of its weights."""

import itertools
from functools import cached_property

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp


class Listing:
    """Every labelling of one sequence with its score.

    unary [length, n_classes] and tables [length − 1, n_classes, n_classes] are in the order of
    `classes`, and so are the answers.
    """

    def __init__(self, classes, unary, tables, legal=None):
        length, n_classes = unary.shape
        every = itertools.product(range(n_classes), repeat=length)
        self.classes, self._parts = list(classes), (unary, tables)
        kept = [z for z in every if legal is None or legal(tuple(self.classes[k] for k in z))]
        self.numbers = np.array(kept, dtype=int).reshape(-1, length)
        inner = np.arange(length - 1)
        self.scores = unary[np.arange(length), self.numbers].sum(axis=1)
        self.scores += tables[inner, self.numbers[:, :-1], self.numbers[:, 1:]].sum(axis=1)

    def restricted(self, legal):
        """The labellings for which legal(labels) holds, and no others."""
        return Listing(self.classes, *self._parts, legal)

    @cached_property
    def labellings(self):
        return [[self.classes[k] for k in z] for z in self.numbers]

    @cached_property
    def log_partition(self):
        return logsumexp(self.scores)

    @cached_property
    def probabilities(self):
        return np.exp(self.scores - self.log_partition)

    @cached_property
    def best(self):
        return self.labellings[int(np.argmax(self.scores))]

    @cached_property
    def ranked(self):
        order = np.argsort(-self.scores, kind="stable")
        return [(self.labellings[k], self.probabilities[k]) for k in order]

    @cached_property
    def marginals(self):
        out = np.zeros(self._parts[0].shape)
        for z, p in zip(self.numbers, self.probabilities, strict=True):
            out[np.arange(len(z)), z] += p
        return out

    @cached_property
    def transition_marginals(self):
        out = np.zeros(self._parts[1].shape)
        for z, p in zip(self.numbers, self.probabilities, strict=True):
            out[np.arange(len(z) - 1), z[:-1], z[1:]] += p
        return out

    @cached_property
    def entropy(self):
        return -float((self.probabilities * (self.scores - self.log_partition)).sum())

    def log_probability(self, y):
        where = self.labellings.index(list(y))
        return self.scores[where] - self.log_partition

    def probability(self, event):
        """P(event(labels))."""
        return sum(p for y, p in zip(self.labellings, self.probabilities, strict=True) if event(y))


def node_scores(crf, x):
    """Scores of the labels of one sequence, without transitions."""
    if isinstance(x, np.ndarray) or sp.issparse(x):
        unary = x @ np.asarray(crf.coef_).T
    else:
        column = {c: k for k, c in enumerate(crf.classes_.tolist())}
        weights = {(name, column[c]): w for name, c, w in crf.top_features(n=10**9)}
        tokens = [t if isinstance(t, dict) else dict.fromkeys(t, 1.0) for t in x]
        unary = np.array([
            [sum(v * weights.get((a, k), 0.0) for a, v in t.items()) for k in range(len(column))]
            for t in tokens
        ])  # fmt: skip
    unary = unary + crf.intercept_
    unary[0] += crf.start_
    unary[-1] += crf.end_
    return unary


@pytest.fixture(scope="session")
def listing():
    """listing(crf, x): all labellings of x; `edge` adds to the tables of transitions."""

    def of(crf, x, edge=0.0):
        unary = node_scores(crf, x)
        n = len(crf.classes_)
        tables = np.broadcast_to(crf.transitions_, (len(unary) - 1, n, n)) + edge
        return Listing(crf.classes_.tolist(), unary, tables)

    return of


LENGTHS = (4, 1, 5, 3, 2, 4, 3, 1, 5, 4)


@pytest.fixture(scope="session")
def dense_problem():
    """Ten short sequences of three real features, three labels that like to repeat."""
    rng = np.random.default_rng(7)
    X = [rng.normal(size=(n, 3)) for n in LENGTHS]
    y = []
    for x in X:
        labels = ["abc"[int(np.argmax(x[0] + rng.normal(size=3)))]]
        for row in x[1:]:
            stays = rng.random() < 0.4
            labels.append(labels[-1] if stays else "abc"[int(np.argmax(row + rng.normal(size=3)))])
        y.append(labels)
    return X, y


@pytest.fixture(scope="session")
def attribute_problem():
    """Forty short sequences of attribute strings, four labels, with noise."""
    rng = np.random.default_rng(11)
    X, y = [], []
    for _ in range(40):
        labels = rng.integers(4, size=rng.integers(1, 6)).tolist()
        y.append([f"L{k}" for k in labels])
        X.append([
            [f"w={(k + rng.integers(3)) % 7}", f"s={rng.integers(6)}", *(["rare"] * (k == 3))]
            for k in labels
        ])  # fmt: skip
    return X, y
