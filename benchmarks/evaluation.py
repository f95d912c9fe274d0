"""Time per value-and-gradient evaluation on CoNLL-2000, beside CRFsuite."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from benchmarks import conll2000
from benchmarks._run import Part, Row, Run, seconds

# The solvers keep 6 (CRFsuite) and 8 pairs of vectors: later iterations all cost the same.
SKIP = 9


def per_evaluation(
    run: Run, X: list[Any], y: list[list[str]], rounds: int
) -> tuple[dict[str, float], int]:
    """Least seconds of "peer", and of ours with 1 and 2 threads ("1", "2": with the solver's
    part, as CRFsuite's; "1 alone", "2 alone": value_grad only); and the number of weights."""
    from benchmarks._chordal import timed_fit
    from benchmarks._crfsuite import TimedTrainer

    peer = TimedTrainer(c2=1.0, max_iterations=SKIP + 5)
    run.say("handing the data to CRFsuite")
    peer.append_all(X, y)
    gc.collect()
    found: dict[str, list[float]] = defaultdict(list)
    n_weights = 0
    for i in range(rounds):
        run.say(f"round {i + 1} of {rounds}: CRFsuite")
        peer.train("")
        found["peer"] += peer.seconds_per_evaluation(SKIP)
        for n_jobs in (1, 2):
            run.say(f"round {i + 1} of {rounds}: chordal, {n_jobs} thread(s)")
            times = timed_fit(X, y, l2=2.0, n_jobs=n_jobs, max_iter=SKIP + 15, skip=SKIP)
            found[f"{n_jobs}"] += times.iterations
            found[f"{n_jobs} alone"] += times.evaluations
            n_weights = times.n_weights
    if n_weights != peer.n_weights:
        raise RuntimeError(f"{n_weights} weights here, {peer.n_weights} in CRFsuite")
    return {name: min(times) for name, times in found.items()}, n_weights


def _conll2000(run: Run) -> Iterator[Row]:
    run.say("reading CoNLL-2000")
    X, y = conll2000.load("train", 500 if run.quick else None)
    best, n_weights = per_evaluation(run, X, y, rounds=2 if run.quick else 6)
    what = f"one evaluation, CoNLL-2000 ({n_weights:,} weights), %s"
    yield run.speed(what % "1 thread", best["peer"], best["1"], at_least=4, goal=6)
    yield run.speed(what % "2 threads", best["peer"], best["2"], at_least=7, goal=11)
    for n_jobs in ("1", "2"):
        alone, thread = best[f"{n_jobs} alone"], "thread" if n_jobs == "1" else "threads"
        yield Row(f"… without our solver's share, {n_jobs} {thread}", ours=seconds(alone))


ORDER = 1
PARTS: dict[str, Part] = {"conll2000": _conll2000}
