"""Fits on a Dask cluster of local processes: against one worker, against threads, and what is sent.

    python -m benchmarks cluster                        # the requirements
    python -m benchmarks.cluster --measure FILE         # measurements for the page on clusters
    python -m benchmarks.cluster --page FILE docs/guide/cluster.md   # its tables

The cost model of the page: with T tokens, W weights and K workers of one thread,

    seconds = compute · T / K + latency · (1 + log₂ partitions) + weights · W · (1 + log₂ K)

where the last term stands for weights on their way out and gradients on their way back. The three
constants are fitted to the measurements by least squares.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._run import Part, Row, Run, seconds

N_LABELS, LENGTH, VOCABULARY = 12, 20, 50_000
EVALUATIONS = 6
PARTITIONS = 8


def tokens(seed: int, n: int) -> tuple[list[Any], list[list[str]]]:
    """Sentences of so many tokens with random attributes, some of which tell the label."""
    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.2, size=n), VOCABULARY).tolist()
    labels = rng.integers(N_LABELS, size=n)
    hints = ((labels + rng.integers(3, size=n)) % N_LABELS).tolist()
    cells = [
        [f"w={word}", f"s={word % 97}", f"h={hint}", f"wh={word % 5000}/{hint}"]
        for word, hint in zip(words, hints, strict=True)
    ]
    named = [f"L{v}" for v in labels.tolist()]
    cuts = range(0, n, LENGTH)
    return [cells[a : a + LENGTH] for a in cuts], [named[a : a + LENGTH] for a in cuts]


def settings(min_freq: int = 2) -> dict[str, Any]:
    """A fit of few evaluations."""
    return {"max_iter": EVALUATIONS - 1, "tol": 0.0, "min_freq": min_freq}


@contextmanager
def local_client(n_workers: int) -> Iterator[Any]:
    """A cluster of worker processes of one thread."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        yield client


def on_cluster(n_workers: int, n_tokens: int, min_freq: int = 2) -> dict[str, float]:
    """Seconds and bytes of an evaluation on so many workers."""
    from dask import delayed

    from chordal import ChainCRF
    from chordal.dask import fit

    share = n_tokens // PARTITIONS
    with local_client(n_workers) as client:
        parts = [delayed(tokens)(k, share) for k in range(PARTITIONS)]
        crf = fit(ChainCRF(**settings(min_freq)), parts, client=client)
        n_weights = len(crf.weights_)
    return {
        "workers": n_workers,
        "tokens": share * PARTITIONS,
        "weights": n_weights,
        "partitions": PARTITIONS,
        "seconds": crf.fit_report_.elapsed / crf.fit_report_.n_evaluations,
        "bytes": 8.0 * n_weights * (2 * n_workers),  # weights out, gradients back, of each worker
    }


def on_threads(n_threads: int, n_tokens: int) -> float:
    """Seconds of an evaluation in memory."""
    from chordal import ChainCRF

    share = n_tokens // PARTITIONS
    found = [tokens(k, share) for k in range(PARTITIONS)]
    X = [x for own, _ in found for x in own]
    y = [labels for _, own in found for labels in own]
    report = ChainCRF(**settings(), n_jobs=n_threads).fit(X, y).fit_report_
    return report.elapsed / report.n_evaluations


def _workers(run: Run) -> Iterator[Row]:
    """Two workers against one, and against two threads."""
    n = 40_000 if run.quick else 2_000_000
    run.say(f"one worker, {n:,} tokens")
    one = on_cluster(1, n)
    run.say(f"two workers, {n:,} tokens")
    two = on_cluster(2, n)
    run.say(f"two threads, {n:,} tokens")
    threads = on_threads(2, n)
    what = f"an evaluation of {n:,} tokens, {int(two['weights']):,} weights"
    yield run.speed(
        f"{what}: two Dask workers beside one", one["seconds"], two["seconds"], at_least=1.6
    )
    more = two["seconds"] / threads - 1.0
    yield Row(
        f"{what}: two Dask workers beside two threads",
        peer=seconds(threads),
        ours=seconds(two["seconds"]),
        ratio=f"{100 * more:+.0f}%",
        requirement="< 15% more",
        met=run.judged(more < 0.15),
    )
    yield Row(f"{what}: sent, at most", ours=f"{two['bytes'] / 1e6:.1f} MB")


ORDER = 10
PARTS: dict[str, Part] = {"workers": _workers}


# The page.


def measure(path: Path, quick: bool) -> None:
    """Measurements over workers, tokens and weights, written to a file."""
    sizes = (20_000, 80_000) if quick else (200_000, 1_000_000, 2_000_000)
    found = []
    for n_workers in (1, 2):
        for n_tokens in sizes:
            for min_freq in (2, 20):
                begun = time.perf_counter()
                found.append(on_cluster(n_workers, n_tokens, min_freq))
                print(found[-1], f"{time.perf_counter() - begun:.1f} s", flush=True)
    path.write_text(json.dumps({"quick": quick, "found": found}, indent=1))


def terms(n_tokens: float, n_weights: float, n_workers: float, n_partitions: float) -> list[float]:
    """What the three constants of the model are multiplied by."""
    rounds = ceil(n_partitions / n_workers) / (n_partitions / n_workers)  # uneven shares
    return [
        rounds * n_tokens / n_workers,
        1.0 + log2(max(n_partitions, 1.0)),
        n_weights * (1.0 + log2(n_workers)),
    ]


def fitted(found: Sequence[dict[str, float]]) -> list[float]:
    """The constants of the model, none below zero: seconds per token, per level, per weight."""
    from scipy.optimize import nnls

    rows = np.array(
        [terms(own["tokens"], own["weights"], own["workers"], own["partitions"]) for own in found]
    )
    times = np.array([own["seconds"] for own in found])
    scale = 1.0 / times  # relative errors count
    size = np.abs(rows).max(axis=0)
    constants, _ = nnls(rows / size * scale[:, None], times * scale)
    return (constants / size).tolist()


def tables(path: Path) -> str:
    """The measurements, the model beside them, and where it leads, as Markdown."""
    given = json.loads(path.read_text())
    found, constants = given["found"], fitted(given["found"])

    def predicted(*sizes: float) -> float:
        return float(np.dot(constants, terms(*sizes)))

    lines = ["| workers | tokens | weights | seconds measured | model |", "|---|---|---|---|---|"]
    for own in found:
        model = predicted(own["tokens"], own["weights"], own["workers"], own["partitions"])
        lines.append(
            f"| {own['workers']} | {own['tokens']:,} | {own['weights']:,} | "
            f"{own['seconds']:.3f} | {model:.3f} |"
        )
    names = ("a million tokens on one worker", "a level of the tree", "a million weights")
    factors = (1e6, 1.0, 1e6)
    told = ", ".join(
        f"{factor * value:.3g} s for {name}"
        for name, factor, value in zip(names, factors, constants, strict=True)
    )
    note = " These are figures of a quick run: its sizes are small." if given["quick"] else ""
    lines += ["", f"Fitted: {told}.{note}", ""]
    lines += [
        "| tokens | weights | 1 worker | 10 | 100 | 1,000 | most that pay |",
        "|---|---|---|---|---|---|---|",
    ]
    for n_tokens in (1e7, 1e8, 1e9):
        for n_weights in (1e5, 1e6, 1e7):
            row = [predicted(n_tokens, n_weights, k, max(8, k)) for k in (1, 10, 100, 1000)]
            most = paying(n_tokens, n_weights, predicted)
            cells = " | ".join(f"{own:.3g} s" for own in row)
            lines.append(f"| {n_tokens:.0e} | {n_weights:.0e} | {cells} | {most:,} |")
    return "\n".join(lines)


def paying(n_tokens: float, n_weights: float, predicted: Any) -> int:
    """Workers up to which twice as many still take less than 0.7 of the time."""
    k = 1
    while k < 2**14:
        now = predicted(n_tokens, n_weights, k, max(8, k))
        if predicted(n_tokens, n_weights, 2 * k, max(8, 2 * k)) > 0.7 * now:
            break
        k *= 2
    return k


def write_page(measured: Path, page: Path) -> None:
    """Put the tables between the marks of the page."""
    text = page.read_text()
    made = f"<!-- measured:cluster -->\n{tables(measured)}\n<!-- end -->"
    page.write_text(
        re.sub(r"<!-- measured:cluster -->.*?<!-- end -->", lambda _: made, text, flags=re.S)
    )


def main() -> None:
    """Measure, or write the tables of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--page", type=Path, nargs=2, metavar=("MEASURED", "PAGE"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, given.quick)
    if given.page:
        write_page(*given.page)


if __name__ == "__main__":
    main()
