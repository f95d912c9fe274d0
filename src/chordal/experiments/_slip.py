"""The published training of noisy chains, with its slip: why its figures are lower than ours.

A pair's expectation at position t is made of forward scores α_{t−1}, transitions and backward
scores β_t. The published code differs in three points. It takes the same formula at the first
position, where it reads α_{t−1} from the end of the table. It reads pairs' marginals with the two
labels exchanged. And a pass ends when 30 test chains are 96% right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
N_LABELS, BATCH, PASSES, RATE, ENOUGH, WATCHED = 3, 16, 3, 0.03, 0.96, 30


def trained_with_slip(
    X: ArrayLike, y: ArrayLike, X_test: ArrayLike, y_test: ArrayLike, seed: int
) -> NDArray[np.int64]:
    """Labels of the test chains [n, length], by weights that were trained as published."""
    X, X_test = np.asarray(X, dtype=np.float64), np.asarray(X_test, dtype=np.float64)
    y, watched = np.asarray(y), np.asarray(y_test)[:WATCHED]
    random = np.random.default_rng(seed)
    weights = random.uniform(-0.5, 0.5, N_LABELS**2 + N_LABELS**3)
    mean, square, right = np.zeros_like(weights), np.zeros_like(weights), 0.0
    for epoch in range(PASSES):
        order = random.permutation(len(X))
        for k in range(0, len(X), BATCH):
            batch = order[k : k + BATCH]
            gradient = _gradient(weights, X[batch], y[batch])
            step = len(X) // BATCH * epoch + k // 4 + 1  # the published count
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            root = np.sqrt(square / (1.0 - 0.999**step)) + 1e-7
            weights = weights - RATE * mean / (1.0 - 0.9**step) / root
            if k // BATCH % 5 == 0:
                right = float((_best(_scores(weights, X_test[:WATCHED])) == watched).mean())
            if right >= ENOUGH:
                break
    return _best(_scores(weights, X_test))


def _sums(X: Floats) -> Floats:
    """x_t + x_{t−1}, where what comes before the first is zero."""
    return X + np.concatenate([np.zeros_like(X[:, :1]), X[:, :-1]], axis=1)


def _scores(weights: Floats, X: Floats) -> Floats:
    """[n, t, label, label before]; before the first position is label 0."""
    unary, pairs = weights[: N_LABELS**2], weights[N_LABELS**2 :]
    own = X @ unary.reshape(N_LABELS, N_LABELS).T
    linked = np.einsum("ijd,ntd->ntij", pairs.reshape((N_LABELS,) * 3), _sums(X))
    linked[:, 0, :, 1:] = 0.0
    return own[:, :, :, None] + linked


def _gradient(weights: Floats, X: Floats, y: NDArray[np.int64]) -> Floats:
    """Expected minus counted features, the slip included."""
    scores = _scores(weights, X)
    n, length = y.shape
    forward, backward = np.empty((2, n, length, N_LABELS))
    forward[:, 0] = scores[:, 0, :, 0]
    for t in range(1, length):
        forward[:, t] = _log_sum(scores[:, t] + forward[:, t - 1, None, :], 2)
    backward[:, -1] = 0.0
    for t in range(length - 2, -1, -1):
        backward[:, t] = _log_sum(scores[:, t + 1] + backward[:, t + 1, :, None], 1)
    log_z = _log_sum(forward[:, -1], 1)[:, None, None, None]
    before = np.roll(forward, 1, axis=1)  # at the first position: the last one's
    joint = np.exp(scores + before[:, :, None, :] + backward[:, :, :, None] - log_z)
    counted = np.zeros_like(joint)
    rows, places = np.ogrid[:n, :length]
    counted[rows, places, y, np.roll(y, 1, axis=1)] = 1.0
    parts = joint.swapaxes(2, 3) - counted
    pairs = parts.copy()
    pairs[:, 0, :, 1:] = 0.0
    unary = np.einsum("ntij,ntd->id", parts, X)
    return np.concatenate([unary.ravel(), np.einsum("ntij,ntd->ijd", pairs, _sums(X)).ravel()])


def _log_sum(scores: Floats, axis: int) -> Floats:
    highest = scores.max(axis=axis, keepdims=True)
    total: Floats = np.log(np.exp(scores - highest).sum(axis=axis)) + highest.squeeze(axis)
    return total


def _best(scores: Floats) -> NDArray[np.int64]:
    """The labellings of highest score."""
    best, back = scores[:, 0, :, 0], []
    for t in range(1, scores.shape[1]):
        total = scores[:, t] + best[:, None, :]
        back.append(total.argmax(axis=2))
        best = total.max(axis=2)
    labels = [best.argmax(axis=1)]
    for pointer in reversed(back):
        labels.append(pointer[np.arange(len(pointer)), labels[-1]])
    return np.stack(labels[::-1], axis=1)
