"""Labels of images by minimum cuts, beside PyMaxflow and thinqpbo (two labels) and gco (more)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._run import Part, Row, Run

REQUIRED_SPEED = 0.5  # of PyMaxflow's
STRENGTHS = (0.5, 1.0, 2.0)
N_LABELS, REWARD = 5, 1.0
STEP, MOST_STEPS = 0.2, 5  # the price of a step of disparity, and of how many at most
REPELLING, MIXED = 0.3, 0.6  # the share of edges that prefer different labels; their strength


def _image(size: int) -> Any:
    """Two regions with wavy borders, under noise as large as their difference."""
    rows, columns = np.mgrid[:size, :size]
    clean = np.sin(columns / 40) + np.sin(rows / 30) > 0
    return clean + np.random.default_rng(0).normal(size=(size, size)) - 0.5


def _least(measure: Callable[[], tuple[float, float]], rounds: int) -> tuple[float, float]:
    """The quickest of some rounds: its seconds, and the score it has found."""
    gc.collect()
    return min(measure() for _ in range(rounds))


def _score(gain: Any, labels: Any, strength: float) -> float:
    """Of label 1 by `gain`, and of equal neighbours."""
    same = (labels[1:] == labels[:-1]).sum() + (labels[:, 1:] == labels[:, :-1]).sum()
    return float(gain[labels == 1].sum() + strength * same)


def _pymaxflow(gain: Any, strength: float) -> tuple[float, float]:
    import maxflow

    start = time.perf_counter()
    graph = maxflow.Graph[float](gain.size, 2 * gain.size)
    nodes = graph.add_grid_nodes(gain.shape)
    graph.add_grid_edges(nodes, strength)
    graph.add_grid_tedges(nodes, np.maximum(gain, 0.0), np.maximum(-gain, 0.0))
    graph.maxflow()
    labels = 1 - graph.get_grid_segments(nodes)
    return time.perf_counter() - start, _score(gain, labels, strength)


def _ours(gain: Any, strength: float) -> tuple[float, float]:
    from chordal.inference import INFERENCE
    from chordal.potentials import Potentials
    from chordal.structures import Grid

    start = time.perf_counter()
    unary = np.zeros((*gain.shape, 2))
    unary[..., 1] = gain
    model = Potentials(Grid([gain.shape], n_labels=2), unary, strength * np.eye(2))
    labels = INFERENCE.get("max_flow")().map(model).labels.reshape(gain.shape)
    return time.perf_counter() - start, _score(gain, labels, strength)


def _binary(run: Run) -> Iterator[Row]:
    size = 100 if run.quick else 1000
    gain, rounds = _image(size), 1 if run.quick else 3
    for strength in STRENGTHS:
        run.say(f"two labels, strength {strength}: PyMaxflow")
        peer, expected = _least(lambda s=strength: _pymaxflow(gain, s), rounds)
        run.say(f"two labels, strength {strength}: chordal")
        ours, found = _least(lambda s=strength: _ours(gain, s), rounds)
        if not np.isclose(found, expected, rtol=1e-10):
            raise RuntimeError(f"scores differ: {found} and {expected}")
        what = f"best labels, {size}×{size} pixels, 2 labels, strength {strength:g} (PyMaxflow)"
        yield run.speed(what, peer, ours, at_least=REQUIRED_SPEED)


def _thinqpbo(unary: Any, tables: Any, ends: Any) -> tuple[float, float]:
    """The cut alone: the graph is built term by term from Python."""
    import thinqpbo

    graph = thinqpbo.QPBODouble()
    graph.add_node(len(unary))
    for v, costs in enumerate(-unary):
        graph.add_unary_term(v, *costs)
    for (i, j), costs in zip(ends, -tables, strict=True):
        graph.add_pairwise_term(i, j, *costs)
    start = time.perf_counter()
    graph.solve()
    graph.compute_weak_persistencies()
    return time.perf_counter() - start, -0.5 * graph.compute_twice_lower_bound()


def _mixed(run: Run) -> Iterator[Row]:
    from chordal.inference import INFERENCE
    from chordal.potentials import Potentials
    from chordal.structures import Grid

    size, rounds = 60 if run.quick else 300, 1 if run.quick else 3
    rng, grid = np.random.default_rng(0), Grid([(size, size)], 2)
    repels = rng.random(grid.n_cliques) < REPELLING
    tables = MIXED * np.where(repels[:, None], [0, 1, 1, 0], [1, 0, 0, 1])
    unary = rng.normal(size=(size * size, 2))

    def ours() -> tuple[float, float]:
        start = time.perf_counter()
        model = Potentials(Grid([(size, size)], 2), unary, tables)
        relaxed = INFERENCE.get("qpbo")().relaxed_map(model)
        return time.perf_counter() - start, float(relaxed.value[0])

    run.say("edges of both kinds: thinqpbo")
    ends = grid.scopes.reshape(-1, 2)
    peer, expected = _least(lambda: _thinqpbo(unary, tables, ends), rounds)
    run.say("edges of both kinds: chordal")
    seconds, found = _least(ours, rounds)
    if not np.isclose(found, expected, rtol=1e-9):
        raise RuntimeError(f"bounds differ: {found} and {expected}")
    what = (
        f"qpbo, {size}×{size} pixels, {REPELLING:.0%} of the edges repel (thinqpbo, the cut alone)"
    )
    yield run.speed(what, peer, seconds)
    run.say("edges of both kinds: the best labels")
    model = Potentials(grid, unary, tables)
    start = time.perf_counter()
    best = INFERENCE.get("qpbo")().map(model)
    took, other = time.perf_counter() - start, INFERENCE.get("trw_s")().map(model)
    yield Row(
        f"… the best labels, in {1000 * took:.0f} ms, and how much better some could be (TRW-S)",
        f"{other.score[0]:,.1f} + {other.gap[0]:,.1f}",
        f"{best.score[0]:,.1f} + {best.gap[0]:,.1f}",
    )


def _expansion(run: Run) -> Iterator[Row]:
    import gco

    from chordal.inference import INFERENCE
    from chordal.potentials import Potentials
    from chordal.structures import Grid

    size = 60 if run.quick else 300
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:size, :size]
    clean = (np.sin(columns / 20) + np.sin(rows / 15) + 2) / 4 * N_LABELS
    scores = 1.5 * np.eye(N_LABELS)[clean.astype(int)] + rng.normal(size=(size, size, N_LABELS))
    for name, peer_name in (("alpha_expansion", "expansion"), ("alpha_beta_swap", "swap")):
        run.say(f"{name}: gco")
        start = time.perf_counter()
        labels = gco.cut_grid_graph_simple(
            -scores, REWARD * (1 - np.eye(N_LABELS)), algorithm=peer_name
        )
        peer = time.perf_counter() - start
        run.say(f"{name}: chordal")
        start = time.perf_counter()
        model = Potentials(Grid([(size, size)], N_LABELS), scores, REWARD * np.eye(N_LABELS))
        found = INFERENCE.get(name)().map(model)
        ours = time.perf_counter() - start
        what = f"{name}, {size}×{size} pixels, {N_LABELS} labels (gco)"
        yield run.speed(what, peer, ours)
        expected, score = float(model.score(labels)[0]), float(found.score[0])
        share = f"{score / expected:.4f}"
        yield Row("… score of the labels", f"{expected:,.1f}", f"{score:,.1f}", share)
        if name == "alpha_expansion" and "trw_s" in INFERENCE.names():
            run.say("the bound of TRW-S")
            yield _gap(run, score, INFERENCE.get("trw_s")().map(model).bound)


def _gap(run: Run, score: float, bound: Any) -> Row:
    best = float(bound[0])
    share = 1.0 - score / best
    return Row(
        "… its distance from TRW-S's bound",
        f"{best:,.1f}",
        f"{score:,.1f}",
        f"{share:.3%}",
        "≤ 1%",
        run.judged(share <= 0.01),
    )


def _stereo_costs(size: int, n_labels: int) -> Any:
    """How badly each disparity fits each pixel of a made-up scene."""
    from chordal.datasets import make_stereo_scene

    scene = make_stereo_scene(size, size, n_labels, n_things=20, noise=0.05)
    costs = np.ones((size, size, n_labels))
    for d in range(n_labels):
        apart = np.abs(scene.left[:, d:] - scene.right[:, : size - d])
        costs[:, d:, d] = np.minimum(4.0 * apart, 1.0)
    return costs


def _stereo(run: Run) -> Iterator[Row]:
    """Many ordered labels: λ · min(|a - b|, cap), which messages pass by distances."""
    import gco

    from chordal.inference import INFERENCE
    from chordal.potentials import Potentials
    from chordal.structures import Grid

    size, n_labels = (60, 20) if run.quick else (300, 100)
    costs = _stereo_costs(size, n_labels)
    steps = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels)))
    prices = STEP * np.minimum(steps, MOST_STEPS)
    model = Potentials(Grid([(size, size)], n_labels), -costs, -prices)

    def peer() -> tuple[float, float]:
        start = time.perf_counter()
        labels = gco.cut_grid_graph_simple(costs, prices, algorithm="expansion")
        return time.perf_counter() - start, -float(model.score(labels)[0])

    def ours(name: str) -> tuple[float, float]:
        start = time.perf_counter()
        found = INFERENCE.get(name)().map(
            Potentials(Grid([(size, size)], n_labels), -costs, -prices)
        )
        return time.perf_counter() - start, -float(found.score[0])

    names = ("trw_s", "alpha_expansion")
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in ("gco", *names)}
    for _ in range(1 if run.quick else 3):
        run.say("stereo: gco")
        took["gco"].append(_least(peer, 1))
        for name in names:
            run.say(f"stereo: {name}")
            took[name].append(_least(lambda n=name: ours(n), 1))
    seconds, energy = min(took["gco"])
    for name in names:
        least, found = min(took[name])
        what = f"stereo by {name}, {size}×{size} pixels, {n_labels} labels (gco)"
        yield run.speed(what, seconds, least, at_least=1.0 if name == "trw_s" else None)
        share = f"{found / energy:.4f}"
        fair = run.judged(found < energy) if name == "trw_s" else None
        yield Row(
            "… energy",
            f"{energy:,.1f}",
            f"{found:,.1f}",
            share,
            "< gco's" if name == "trw_s" else "",
            fair,
        )


ORDER = 20
PARTS: dict[str, Part] = {
    "binary": _binary,
    "mixed": _mixed,
    "expansion": _expansion,
    "stereo": _stereo,
}
