"""Microseconds per call on one short sequence, as taggers that ship in other programs are used."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._run import Part, Row, Run

LENGTHS = (1, 2, 6, 20, 80)
N_ATTRIBUTES = 14
LABELS = {12: 1.5, 36: 1.5, 233: 5.0}  # how many, and how much faster we must be
GOAL = 3.0


def _sequence(rng: random.Random, length: int, as_dicts: bool = False) -> list[Any]:
    """Tokens with a few rare attributes and many frequent ones."""
    names = [
        [f"f{k}={rng.randrange(2000 if k < 3 else 40)}" for k in range(N_ATTRIBUTES)]
        for _ in range(length)
    ]
    if not as_dicts:
        return names
    return [dict(name.split("=") for name in own) | {"digits": False} for own in names]


def _model(folder: Path, n_labels: int, quick: bool) -> Path:
    """A CRFsuite model of random text with this many labels."""
    from chordal.compat.pycrfsuite import Trainer

    rng = random.Random(n_labels)
    labels = [f"label{k}" for k in range(n_labels)]
    trainer = Trainer(params={"max_iterations": 20}, verbose=False)
    for k in range(100 if quick else 1000):
        x = _sequence(rng, 10, as_dicts=k % 2 == 0)
        trainer.append(x, [rng.choice(labels) for _ in x])
    path = folder / f"short{n_labels}.crfsuite"
    trainer.train(str(path))
    return path


def _everything(tagger: Any, x: list[Any]) -> float:
    """What usaddress and ingredient-parser ask: labels, their probability, their marginals."""
    tagger.set(x)
    y = tagger.tag()
    return float(tagger.probability(y)) + sum(tagger.marginal(v, t) for t, v in enumerate(y))


def _medians(tasks: list[Callable[[], object]], seconds: float) -> list[float]:
    """The median time of a call of each; they take turns."""
    found: list[list[float]] = [[] for _ in tasks]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for task, times in zip(tasks, found, strict=True):
            for _ in range(20):
                start = time.perf_counter()
                task()
                times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in found]


def _tagger(run: Run) -> Iterator[Row]:
    import pycrfsuite

    from chordal.compat import pycrfsuite as ours

    for n_labels, required in LABELS.items():
        run.say(f"training a model of {n_labels} labels")
        path = str(_model(run.folder, n_labels, run.quick))
        taggers = [pycrfsuite.Tagger(), ours.Tagger()]
        for tagger in taggers:
            tagger.open(path)
        rng = random.Random(1)
        budget = 0.2 if run.quick else 2.0
        for length in LENGTHS:
            run.say(f"{n_labels} labels, {length} tokens")
            x = _sequence(rng, length)
            if taggers[0].tag(x) != taggers[1].tag(x):
                raise RuntimeError(f"{n_labels} labels, {length} tokens: other tags")
            tasks = [partial(tagger.tag, x) for tagger in taggers]
            peer, mine = _medians(tasks, budget)
            what = f"`Tagger.tag`, {n_labels} labels, {length} tokens"
            yield run.speed(what, peer, mine, at_least=required, goal=max(GOAL, required))
        x = _sequence(rng, 6, as_dicts=True)
        difference = abs(_everything(taggers[0], x) - _everything(taggers[1], x))
        if difference > 1e-9:
            raise RuntimeError(f"{n_labels} labels: probabilities differ by {difference}")
        peer, mine = _medians([partial(_everything, tagger, x) for tagger in taggers], budget)
        what = f"… `set`, `tag`, `probability`, marginals of 6 dicts, {n_labels} labels"
        yield run.speed(what, peer, mine, at_least=3.0)


ORDER = 4
PARTS: dict[str, Part] = {"tagger": _tagger}
