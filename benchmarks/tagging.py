"""Tokens per second on one thread, from lists of strings to lists of tags."""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import conll2000, training
from benchmarks._run import Part, Row, Run

AGREEMENT = 0.999  # of tags: both models are at the optimum but for the solvers' tolerances


def _timed(task: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = task()
    return time.perf_counter() - start, answer


def _conll2000(run: Run) -> Iterator[Row]:
    import pycrfsuite

    theirs, ours = training.models(run, 0.0, 1.0)
    run.say("reading CoNLL-2000")
    X, y = conll2000.load("test", training.TEST_LIMIT_QUICK if run.quick else None)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(theirs))
    with open(ours, "rb") as file:
        crf = pickle.load(file)
    crf.set_params(n_jobs=1)
    some = X[:100]
    tasks = {
        "peer": lambda: [tagger.tag(x) for x in X],
        "ours": lambda: crf.predict(X),
        "peer, single": lambda: [tagger.tag(x) for x in some],
        "ours, single": lambda: [crf.predict([x])[0] for x in some],
    }
    best: dict[str, float] = {}
    tags: dict[str, conll2000.Tags] = {}
    gc.collect()
    rounds = 3 if run.quick else 10
    with threadpool_limits(1):
        for i in range(rounds):
            run.say(f"tagging, round {i + 1} of {rounds}")
            for name, task in tasks.items():
                seconds, tags[name] = _timed(task)
                best[name] = min(seconds, best.get(name, seconds))
    n = sum(map(len, y))
    n_some = sum(map(len, some))
    rate = {
        name: (n_some if "single" in name else n) / seconds / 1e3 for name, seconds in best.items()
    }
    yield run.ratio(
        f"tagging, {n:,} tokens, 1 thread",
        f"{rate['peer']:,.0f} k tokens/s",
        f"{rate['ours']:,.0f} k tokens/s",
        rate["ours"] / rate["peer"],
        at_least=4,
    )
    yield run.ratio(
        "… one sentence per call",
        f"{rate['peer, single']:,.0f} k tokens/s",
        f"{rate['ours, single']:,.1f} k tokens/s",
        rate["ours, single"] / rate["peer, single"],
    )
    if tags["ours, single"] != tags["ours"][: len(some)]:
        raise RuntimeError("a sentence alone is tagged differently from the same one in a batch")
    equal = sum(
        a == b
        for s, t in zip(tags["peer"], tags["ours"], strict=True)
        for a, b in zip(s, t, strict=True)
    )
    yield Row(
        "… equal tags (F1 of each)",
        f"F1 {conll2000.f1(y, tags['peer']):.2f}",
        f"F1 {conll2000.f1(y, tags['ours']):.2f}",
        f"{equal / n:.3%}",
        f"≥ {AGREEMENT:.1%}",
        run.judged(equal / n >= AGREEMENT),
    )


ORDER = 3
PARTS: dict[str, Part] = {"conll2000": _conll2000}
