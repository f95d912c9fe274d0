"""Data on disk beside data in memory: time per evaluation, memory, and how fast data are prepared.

Labels are drawn from a fitted model. Each measurement runs in a process of its own, which tells the
largest memory that it had.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._run import ROOT, Part, Row, Run, megabytes, seconds

TEMPLATE = "\n".join(
    [
        *(f"U{k:02d}:%x[{k},0]" for k in range(-2, 3)),
        *(f"U1{k + 2}:%x[{k},1]" for k in range(-2, 3)),
        "U20:%x[-1,0]/%x[0,0]",
        "U21:%x[0,0]/%x[1,0]",
        "U22:%x[-1,1]/%x[0,1]",
        "U23:%x[0,1]/%x[1,1]",
        "B",
    ]
)
SETTINGS = {"l2": 1.0, "max_iter": 10, "tol": 0.0, "min_freq": 2, "n_jobs": 2}
N_WORDS, N_SHAPES, N_LABELS = 20_000, 30, 12


def _rows(rng: np.random.Generator, n: int) -> list[list[list[str]]]:
    """Sentences of so many tokens in all, each token a frequent or rare word and its shape."""
    words = np.minimum(rng.zipf(1.25, size=n), N_WORDS)
    cells = [[f"w{word}", f"s{word % N_SHAPES}"] for word in words.tolist()]
    cuts = np.arange(0, n + 1, 22)
    return [cells[a:b] for a, b in pairwise(cuts.tolist())]


def write_corpus(path: Path, n_tokens: int) -> None:
    """A file of columns whose labels are drawn from a model that was fitted to a small one."""
    from chordal import ChainCRF
    from chordal.text import Columns

    rng = np.random.default_rng(0)
    X = _rows(rng, 20_000)
    y = [
        [f"L{int(word[1:]) % (7 if i % 3 else N_LABELS)}" for i, (word, _) in enumerate(x)]
        for x in X
    ]
    crf = ChainCRF(feature_template=TEMPLATE, max_iter=20, random_state=0).fit(X, y)
    with path.open("w") as file:
        for _ in range(0, n_tokens, 100_000):
            rows = _rows(rng, 100_000)
            drawn = crf.sample(Columns.from_sequences(rows))
            for sentence, (labels,) in zip(rows, drawn, strict=True):
                pairs = zip(sentence, labels, strict=True)
                lines = [f"{word} {shape} {label}\n" for (word, shape), label in pairs]
                file.write("".join(lines) + "\n")


def _resident(what: str) -> int:
    """Bytes that this process has in memory (VmRSS), or had at most (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1000 * int(line.split()[1])
    return 0


def measure(mode: str, corpus: str, folder: str, solver: str) -> dict[str, Any]:
    """Prepare, or fit from the file in memory or from the data set; what a worker prints."""
    from chordal import ChainCRF
    from chordal.formats.conll import CoNLL

    crf = ChainCRF(solver=solver, feature_template=TEMPLATE, random_state=0, **SETTINGS)
    begin, work, before = time.perf_counter(), time.process_time(), _resident("VmRSS")
    found: dict[str, Any] = {}
    if mode == "prepare":
        from chordal.cli._data import Reading
        from chordal.cli.prepare import all_batches

        crf.prepare(folder, all_batches([corpus], Reading(), columns=True))
    elif mode == "memory":
        columns = CoNLL().load(corpus)
        crf.fit(columns.drop(-1), columns.column(-1))
    else:
        crf.fit(folder)
    if mode != "prepare":
        report = crf.fit_report_
        passes = report.n_evaluations if solver == "lbfgs" else report.n_iter
        found["evaluation"] = report.elapsed / passes
        found["objective"], found["weights"] = float(report.objective), len(crf.weights_)
    beyond = _resident("VmHWM") - before
    return {
        **found,
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - work,
        "beyond": beyond,
    }


def _worker(mode: str, corpus: Path, folder: Path, solver: str = "lbfgs") -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.out_of_core", mode]
    done = subprocess.run(
        [*command, str(corpus), str(folder), solver],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _chains(run: Run) -> Iterator[Row]:
    """The same data from the file of columns and from the data set made of it."""
    n = 200_000 if run.quick else 20_000_000
    corpus, folder = run.folder / "corpus.txt", run.folder / "data"
    run.say(f"drawing {n:,} tokens")
    write_corpus(corpus, n)
    run.say("preparing")
    prepared = _worker("prepare", corpus, folder)
    rate = n / prepared["seconds"]
    yield Row(
        f"chordal prepare, {n:,} tokens of 14 attributes",
        ours=f"{rate / 1e6:.2f} M tokens/s",
        requirement="≥ 1 M tokens/s",
        met=run.judged(rate >= 1e6),
    )
    what = {"lbfgs": "evaluation", "averaged_perceptron": "pass of the averaged perceptron"}
    for solver, name in what.items():
        run.say(f"{solver}: fit from disk")
        disk = _worker("disk", corpus, folder, solver)
        run.say(f"{solver}: fit in memory")
        memory = _worker("memory", corpus, folder, solver)
        times, weights = disk["evaluation"] / memory["evaluation"], 8 * disk["weights"]
        yield Row(
            f"{name} from disk, {n:,} tokens, {disk['weights']:,} weights; beside memory",
            peer=seconds(memory["evaluation"]),
            ours=seconds(disk["evaluation"]),
            ratio=f"{times:.2f} times as long",
            requirement="≤ 1.3 times",
            met=run.judged(times <= 1.3 and disk["objective"] == memory["objective"]),
        )
        yield Row(
            "… memory of the whole fit beyond the weights; beside memory's",
            peer=megabytes(memory["beyond"] - weights),
            ours=megabytes(disk["beyond"] - weights),
            requirement="< 1 GB",
            met=run.judged(disk["beyond"] - weights < 1e9),
        )


ORDER = 9
PARTS: dict[str, Part] = {"chains": _chains}

if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:5])))
