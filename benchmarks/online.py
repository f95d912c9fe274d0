"""Learning from one sentence after another on CoNLL-2000, beside CRFsuite: passes, and F1."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks import conll2000
from benchmarks._run import Part, Row, Run

PASSES = 4  # timed; the first is left out: weights come into the caches
REQUIRED_SPEED = 5


class Learner(NamedTuple):
    """One algorithm on both sides."""

    what: str
    peer: str
    solver: str
    settings: dict[str, Any]  # of the run whose F1 is measured
    f1: float  # CRFsuite's, with its own defaults


LEARNERS = [
    Learner("averaged perceptron", "ap", "averaged_perceptron", {"max_iter": 50}, 93.29),
    Learner("passive–aggressive", "pa", "passive_aggressive", {"max_iter": 50}, 93.44),
    Learner("AROW", "arow", "arow", {"max_iter": 50}, 91.71),
    Learner("SGD", "l2sgd", "sgd", {}, 93.63),
]
AVERAGED = {"max_iter": 10, "tol": 0.0, "average_after": 5}
AVERAGED_F1 = 93.7


def _peer_passes(learner: Learner, X: list[Any], y: conll2000.Tags) -> list[float]:
    """Seconds of CRFsuite's passes after the first."""
    import pycrfsuite

    ended: list[float] = []

    class Timed(pycrfsuite.BaseTrainer):
        def message(self, message: str) -> None:
            if message.strip().startswith("***** "):  # a pass has ended
                ended.append(time.perf_counter())

    trainer = Timed(learner.peer)
    trainer.set("max_iterations", PASSES)
    for tokens, tags in zip(X, y, strict=True):
        trainer.append(tokens, tags)
    trainer.train("")
    return [b - a for a, b in pairwise(ended[-PASSES:])]


def _fitted(
    learner: Learner, X: Any, y: conll2000.Tags, ended: list[float], **settings: Any
) -> Any:
    from chordal import ChainCRF
    from chordal.solvers import SOLVERS

    solver = SOLVERS.resolve(learner.solver, random_state=0, **settings)
    crf = ChainCRF(solver=solver)
    return crf.fit(X, y, callback=lambda _: ended.append(time.perf_counter()))


def _conll2000(run: Run) -> Iterator[Row]:
    run.say("reading CoNLL-2000")
    X, y = conll2000.load("train", 500 if run.quick else None)
    test_X, test_y = conll2000.load("test", 200 if run.quick else None)
    for learner in LEARNERS:
        peer: list[float] = []
        ours: list[float] = []
        gc.collect()
        for i in range(1 if run.quick else 3):
            run.say(f"{learner.what}: CRFsuite, round {i + 1}")
            peer += _peer_passes(learner, X, y)
            run.say(f"{learner.what}: chordal, round {i + 1}")
            ended: list[float] = []
            _fitted(learner, X, y, ended, max_iter=PASSES, tol=-1.0)
            ours += [b - a for a, b in pairwise(ended)]
        yield run.speed(f"one pass, {learner.what}", min(peer), min(ours), at_least=REQUIRED_SPEED)
        yield _f1(run, learner, learner.settings, learner.f1, X, y, test_X, test_y)
    sgd = LEARNERS[-1]._replace(what="averaged SGD")
    yield _f1(run, sgd, AVERAGED, AVERAGED_F1, X, y, test_X, test_y)


def _f1(
    run: Run,
    learner: Learner,
    settings: dict[str, Any],
    required: float,
    X: Any,
    y: conll2000.Tags,
    test_X: Any,
    test_y: conll2000.Tags,
) -> Row:
    run.say(f"{learner.what}: chordal's F1")
    crf = _fitted(learner, X, y, [], **settings)
    found = round(conll2000.f1(test_y, crf.predict(test_X)), 2)
    return Row(
        f"… test chunk F1, {learner.what}, {crf.n_iter_} passes",
        f"{learner.f1}",
        f"{found}",
        f"{found - learner.f1:+.2f}",
        f"≥ {required}",
        run.judged(found >= required),
    )


ORDER = 6
PARTS: dict[str, Part] = {"conll2000": _conll2000}
