"""Trains one model in a process of its own, so that its time and memory are its own.

`python -m benchmarks._worker '{"tool": "chordal", …}'` prints JSON, one object a line: an
"iteration" now and then, a "result" at the end. Neither tool's process imports the other, and
both do the same before and after.
"""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import conll2000

Task = dict[str, Any]
Fitted = tuple[dict[str, Any], Callable[[conll2000.Sentences], conll2000.Tags]]


def emit(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def memory() -> tuple[int, int]:
    """Bytes of memory now, and the most so far.

    `ru_maxrss` starts, on Linux, with what the parent process had; VmHWM does not.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak *= 1 if sys.platform == "darwin" else 1024
        return peak, peak
    fields = dict(line.split(":", 1) for line in status.splitlines())
    now, peak = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def train_crfsuite(task: Task, X: conll2000.Sentences, y: conll2000.Tags) -> Fitted:
    import pycrfsuite

    from benchmarks._crfsuite import TimedTrainer

    trainer = TimedTrainer(task["c1"], task["c2"], task["max_iter"])
    trainer.on_iteration = lambda i: emit(iteration=i.number, objective=i.loss)
    start = time.perf_counter()
    trainer.append_all(X, y)
    trainer.train(task["model"])
    result = {
        "seconds": trainer.optimised - start,  # without writing the model
        "peak": memory()[1],
        "objective": trainer.iterations[-1].loss,
        "iterations": len(trainer.iterations),
        "evaluations": 1 + sum(i.evaluations for i in trainer.iterations),
        "nonzero": trainer.n_nonzero,
        "status": trainer.ending,
    }
    tagger = pycrfsuite.Tagger()
    tagger.open(task["model"])
    return result, lambda X: [tagger.tag(x) for x in X]


def train_chordal(task: Task, X: conll2000.Sentences, y: conll2000.Tags) -> Fitted:
    from chordal import ChainCRF

    crf = ChainCRF(
        l1=task["c1"],
        l2=2.0 * task["c2"],
        max_iter=task["max_iter"] or 1000,
        n_jobs=task["n_jobs"],
    )
    start = time.perf_counter()
    crf.fit(X, y, callback=lambda i: emit(iteration=i.iteration, objective=i.value))
    elapsed = time.perf_counter() - start
    report = crf.fit_report_
    result = {
        "seconds": elapsed,
        "peak": memory()[1],
        "objective": crf.objective_,
        "iterations": crf.n_iter_,
        "evaluations": report.n_evaluations,
        "nonzero": report.n_nonzero,
        "status": report.status.value,
        "weights": hashlib.sha256(crf.weights_.tobytes()).hexdigest(),
    }
    with open(task["model"], "wb") as file:
        pickle.dump(crf, file)
    return result, crf.predict


def main(task: Task) -> None:
    X, y = conll2000.load("train", task["train_limit"])
    gc.collect()
    before = memory()[0]
    train = {"crfsuite": train_crfsuite, "chordal": train_chordal}[task["tool"]]
    result, predict = train(task, X, y)
    result["inputs"] = before
    X, y = conll2000.load("test", task["test_limit"])
    result["f1"] = conll2000.f1(y, predict(X))
    emit(result=result)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
