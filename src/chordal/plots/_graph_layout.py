"""Where the variables of a graph stand in a picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 300  # of stress majorization


def places_of(n: int, scopes: Sequence[tuple[int, ...]]) -> Floats:
    """Places [n, 2]: neighbours are about one unit apart, others as far as paths between them.

    Stress majorization (Gansner, Koren and North, 2004): the sum over pairs of
    (‖a − b‖ − d)² / d² falls with every step. A path is drawn as a straight line.

    >>> places_of(3, [(0, 1), (1, 2)]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    """
    near: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            near[v] |= set(scope) - {v}
    if all(own <= {v - 1, v + 1} for v, own in enumerate(near)):
        return np.stack([np.arange(n, dtype=np.float64), np.zeros(n)], axis=1)
    distance = _distances(near)
    angle = 2.0 * np.pi * np.arange(n) / n
    # Not quite a circle: from an exact one, a symmetric graph would not unfold.
    radius = 1.0 + 0.05 * np.cos(3.0 * np.arange(n))
    places = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) * n / 6.0
    pull = np.where(distance > 0.0, 1.0 / np.maximum(distance, 1.0) ** 2, 0.0)
    laplacian = np.diag(pull.sum(axis=1)) - pull
    inverse = np.linalg.pinv(laplacian)
    for _ in range(STEPS):
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        wanted = pull * distance / np.maximum(apart, 1e-9)
        np.fill_diagonal(wanted, 0.0)
        places = inverse @ ((np.diag(wanted.sum(axis=1)) - wanted) @ places)
    return _turned(places)


def _turned(places: Floats) -> Floats:
    """Turned so that the picture is wide rather than tall."""
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]
    return places @ axes.T


def _distances(near: Sequence[set[int]]) -> Floats:
    """Lengths of shortest paths; parts that are not joined stand beside each other."""
    n = len(near)
    far = np.full((n, n), np.inf)
    for start in range(n):
        far[start, start] = 0.0
        queue = deque([start])
        while queue:
            v = queue.popleft()
            for w in near[v]:
                if far[start, w] == np.inf:
                    far[start, w] = far[start, v] + 1.0
                    queue.append(w)
    longest = far[np.isfinite(far)].max(initial=1.0)
    far[np.isinf(far)] = longest + 1.0
    return far
