"""Chains with many labels: beside CRFsuite at 100, and how our own cost grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._run import ROOT, Part, Row, Run, seconds
from benchmarks.evaluation import per_evaluation

Sequences = tuple[list[list[list[str]]], list[list[str]]]
Curve = dict[int, dict[int, float]]  # threads → size → seconds

NOISE = 0.1  # of an exponent, between runs


def chains(n: int, n_labels: int, *, length: int = 20, per_token: int = 6) -> Sequences:
    """Random chains whose labels have few likely successors and attributes of their own."""
    rng = np.random.default_rng(0)
    n_successors = min(n_labels, 20)
    successors = np.array([rng.permutation(n_labels)[:n_successors] for _ in range(n_labels)])
    labels = np.empty((n, length), dtype=np.int64)
    labels[:, 0] = rng.integers(n_labels, size=n)
    for t in range(1, length):
        labels[:, t] = successors[labels[:, t - 1], rng.integers(n_successors, size=n)]
    # Half of a token's attributes tell its label, the other half are common to all; a few of
    # each are frequent and most are rare, as words are.
    shape = (n, length, per_token)
    own = labels[..., None] * 1000 + _rare(rng, 1000, shape)
    common = 1000 * n_labels + _rare(rng, 6000, shape)
    attributes = np.where(rng.random(shape) < 0.5, own, common)
    names = [f"a{i}" for i in range(1000 * n_labels + 6000)]
    X = [[[names[a] for a in token] for token in chain] for chain in attributes.tolist()]
    y = [[f"L{k}" for k in chain] for chain in labels.tolist()]
    return X, y


def _rare(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Numbers below n, the chance of k being about 1/k."""
    return (np.exp(rng.random(shape) * np.log(n + 1.0)) - 1.0).astype(np.int64)


def _hundred(run: Run) -> Iterator[Row]:
    n, n_labels = (150, 100) if run.quick else (2000, 100)
    run.say("making chains")
    X, y = chains(n, n_labels)
    best, n_weights = per_evaluation(run, X, y, rounds=2 if run.quick else 6)
    what = f"one evaluation, {n:,} chains of 20, {n_labels} labels ({n_weights:,} weights), %s"
    yield run.speed(what % "1 thread", best["peer"], best["1"])
    yield run.speed(what % "2 threads", best["peer"], best["2"], at_least=8)


def _scaling(run: Run) -> Iterator[Row]:
    if run.quick:
        label_counts, token_counts = [5, 10, 20, 40], [1_000, 2_000, 4_000, 8_000]
        n_chains, n_labels = 50, 20
    else:
        label_counts, token_counts = [5, 10, 20, 50, 100, 200], [5_000 * 2**k for k in range(6)]
        n_chains, n_labels = 1_000, 20
    by_labels = _curve(run, {k: chains(n_chains, k) for k in label_counts}, "labels")
    by_tokens = _curve(run, {k: chains(k // 20, n_labels) for k in token_counts}, "tokens")
    for n_jobs in (1, 2):
        threads = "1 thread" if n_jobs == 1 else "2 threads"
        yield _growth(run, by_labels[n_jobs], "labels", 2.0, threads)
        yield _growth(run, by_tokens[n_jobs], "tokens", 1.0, threads)
    if run.plots:
        folder = ROOT / "report" if run.quick else ROOT / "docs" / "images"
        _plot(by_labels, by_tokens, n_chains * 20, n_labels, folder / "scaling.png")


def _curve(run: Run, data: dict[int, Sequences], what: str) -> Curve:
    """Least seconds of an evaluation of each size, all sizes in turn in each round."""
    from benchmarks._chordal import timed_fit

    curve: Curve = {1: {}, 2: {}}
    rounds = 2 if run.quick else 4
    for i in range(rounds):
        for size, (X, y) in data.items():
            run.say(f"round {i + 1} of {rounds}: {size:,} {what}")
            for n_jobs, least in curve.items():
                times = timed_fit(X, y, l2=2.0, n_jobs=n_jobs, max_iter=8, skip=1)
                least[size] = min([*times.evaluations, least.get(size, np.inf)])
    return curve


def exponent(curve: dict[int, float]) -> tuple[float, float]:
    """p and c of seconds = c · size^p, by least squares in logarithms."""
    p, log_c = np.polyfit(np.log(list(curve)), np.log(list(curve.values())), 1)
    return float(p), float(np.exp(log_c))


def _growth(run: Run, curve: dict[int, float], what: str, most: float, threads: str) -> Row:
    """The exponent over all sizes, and between the two largest: the cost that is left when the
    constant parts no longer count. Neither may exceed `most`."""
    overall = exponent(curve)[0]
    sizes = list(curve)
    last = exponent({size: curve[size] for size in sizes[-2:]})[0]
    return Row(
        f"growth of an evaluation with {what}, {sizes[0]:,}–{sizes[-1]:,}, {threads}",
        ours=f"{seconds(curve[sizes[0]])} – {seconds(curve[sizes[-1]])}",
        ratio=f"{what}^{overall:.2f}; last step ^{last:.2f}",
        requirement=f"≤ {what}^{most:g} (± {NOISE:g})",
        met=run.judged(max(overall, last) <= most + NOISE),
    )


def _plot(by_labels: Curve, by_tokens: Curve, n_tokens: int, n_labels: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    panels = [
        (axes[0], by_labels, "labels", f"{n_tokens:,} tokens", 2),
        (axes[1], by_tokens, "tokens", f"{n_labels} labels", 1),
    ]
    for ax, curves, what, title, slope in panels:
        for n_jobs, color, marker in ((1, "#0072b2", "o"), (2, "#d55e00", "s")):
            curve = curves[n_jobs]
            p, c = exponent(curve)
            sizes = np.array(list(curve))
            name = "1 thread" if n_jobs == 1 else "2 threads"
            ax.plot(
                sizes,
                list(curve.values()),
                marker,
                color=color,
                label=f"{name}: {what}$^{{{p:.2f}}}$",
            )
            ax.plot(sizes, c * sizes**p, color=color, linewidth=1)
        end = curves[1][int(sizes[-1])]
        ax.plot(
            sizes,
            end * (sizes / sizes[-1]) ** slope,
            color="0.6",
            linestyle=":",
            label=f"slope {slope}",
        )
        ax.set(xscale="log", yscale="log", xlabel=f"number of {what}", title=title)
        ax.set_xticks(sizes)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.grid(True, color="0.9")
        ax.legend(frameon=False)
    axes[0].set_ylabel("seconds per evaluation")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


ORDER = 4
PARTS: dict[str, Part] = {"hundred": _hundred, "scaling": _scaling}
