"""Faults, injected and counted: ``python tools/faults.py WHAT [--times N]``.

    signals     Ctrl-C at random moments of fit, predict, sample, infer and tune: how long each took
                to answer, and whether the model works afterwards
    terminated  SIGINT and SIGTERM to commands that train, tune, tag, evaluate, prepare and infer:
                exit code, a model that loads, no temporary file
    kills       processes killed while they save a model over and over: the file is whole
    disk        files that cannot grow beyond a limit, while a model, a data set and a checkpoint
                are written: what was there stays, and the error names the file
    exits       interpreters that end while daemon threads are in kernels: exit code
    forks       fork and spawn after use: the same answers in the child
    threads     threads that fit and ask one estimator at once: answers of one fit or another
    bombs       small files and requests that ask for much (tools/bombs.py): each refused, or read,
                within a second of the processor and 100 MB

Each prints the faults injected and the failures, and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bombs as catalogue
import numpy as np
from sklearn.model_selection import GridSearchCV

import chordal
from chordal import ChainCRF
from chordal.estimators._training.checkpoint import CheckpointWarning
from chordal.formats.uai import write_uai
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Grid

SLOW = 0.2  # seconds to answer a signal
Failures = list[str]


def data(n: int = 60, length: int = 25) -> tuple[list[Any], list[Any]]:
    """Sequences of rows with labels that follow from them, mostly."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 4)) for _ in range(n)]
    return X, [(x[:, 0] + rng.normal(size=length) > 0).astype(int).tolist() for x in X]


# ------------------------------------------------------------------------------------------ signals


def signals(times: int) -> tuple[int, Failures]:
    """Ctrl-C at random moments of work in this process."""
    X, y = data()
    crf = ChainCRF(max_iter=5).fit(X, y)
    expected = crf.predict(X)
    grid = Potentials(
        Grid([(40, 40)], 3), np.random.default_rng(1).normal(size=4800), np.eye(3).ravel()
    )
    tasks: dict[str, Callable[[], object]] = {
        "fit": lambda: ChainCRF(tol=0, max_iter=10**6).fit(X, y),
        "fit, two threads": lambda: ChainCRF(tol=0, max_iter=10**6, n_jobs=2).fit(X, y),
        "fit online": lambda: ChainCRF(solver="adam", tol=0, max_iter=10**6).fit(X, y),
        "predict": lambda: [crf.predict(X * 20) for _ in range(10**6)],
        "sample": lambda: INFERENCE.resolve("gibbs").sample(grid, 10**5, np.random.default_rng(0)),
        "infer": lambda: [INFERENCE.resolve("loopy_bp").marginals(grid) for _ in range(10**6)],
        "tune": lambda: GridSearchCV(
            ChainCRF(max_iter=200, tol=0), {"l2": [0.1, 1.0, 10.0] * 50}, cv=2
        ).fit(X, y),
    }
    rng, waits, failures = random.Random(0), [], []
    for k in range(times):
        name = list(tasks)[k % len(tasks)]
        wait = _interrupted(tasks[name], rng.uniform(0.0, 0.06))
        if wait is None:
            failures.append(f"{name}: Ctrl-C was not heard")
            continue
        waits.append(wait)
        if wait > SLOW:
            failures.append(f"{name}: answered after {wait:.3f} s")
        if k % 20 == 0 and crf.predict(X) != expected:
            failures.append(f"{name}: other answers afterwards")
    waits.sort()
    median, longest = waits[len(waits) // 2] * 1e3, waits[-1] * 1e3
    print(f"answered after {median:.1f} ms (median), {longest:.0f} ms (longest)")
    return times, failures


def _interrupted(task: Callable[[], object], delay: float) -> float | None:
    """Seconds from Ctrl-C to the end of a task; None if it did not end by it."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    heard = False
    try:
        timer.start()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            while not sent:
                task()
            heard = any("Ctrl-C" in str(w.message) for w in said)
            if not heard:
                time.sleep(0.05)  # it came after the end
    except KeyboardInterrupt:
        heard = True
    end = time.perf_counter()
    timer.join()
    return end - sent[0] if heard and sent else None


def _commands(folder: Path) -> dict[str, list[str]]:
    """Commands that would go on for hours, one for each kind of work, and the files they need."""
    (folder / "train").write_text("".join("a A\nb B\nc A\n\n" for _ in range(200)) + "a B\n")
    (folder / "template").write_text("U:%x[0,0]\nB\n")
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    chordal.save(ChainCRF(feature_template="U:%x[0,0]\n").fit(X, y), folder / "old")
    grid, rng = Grid([(60, 60)], 5), np.random.default_rng(0)
    tables = rng.normal(size=int(grid.table_sizes.sum()))
    write_uai(Potentials(grid, rng.normal(size=grid.n_states), tables), str(folder / "grid.uai"))
    endless = ["--tol", "0", "--max-iter", "100000000"]
    values = ",".join(f"{10 + k / 1000}" for k in range(5000))
    train = ["train", "train", "model", "-t", "template", "--solver", "adam", *endless]
    return {
        "train": train,
        "train with a checkpoint": [*train, "--checkpoint", "checkpoint"],
        "tune": ["tune", "train", "-t", "template", "-o", "model", "--l2", values],
        "tag": ["tag", "old"],
        "evaluate": ["evaluate", "-", "--model", "old"],
        "prepare": ["prepare", "-", "-o", "set", "-t", "template"],
        "infer": ["infer", "grid.uai", "-t", "MAR", "-m", "gibbs", "-o", "n_draws=10000000"],
        "infer, best labelling": ["infer", "grid.uai", "-t", "MAP", "--time-limit", "600"],
    }


def terminated(times: int) -> tuple[int, Failures]:
    """Signals to commands: each ends by its number, and leaves whole files or none."""
    rng, failures, waits = random.Random(1), [], []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        commands = _commands(place)
        before = set(os.listdir(place))
        for k in range(times):
            name = list(commands)[k // 2 % len(commands)]
            number, code = [(signal.SIGINT, 130), (signal.SIGTERM, 143)][k % 2]
            start = [sys.executable, "-c", "from chordal.cli import main; main()"]
            ran = subprocess.Popen(
                [*start, *commands[name]], cwd=folder, text=True, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
            time.sleep(rng.uniform(1.0, 3.0))
            ran.send_signal(number)
            sent = time.perf_counter()
            said = _said(ran)
            waits.append(time.perf_counter() - sent)
            what = f"{name}, {number.name}"
            if ran.returncode != code:
                failures.append(f"{what}: exit code {ran.returncode}, not {code}: {said[-200:]}")
            left = set(os.listdir(folder)) - before - {"model", "checkpoint"}
            if left:
                failures.append(f"{what}: left {left}")
            for path in (place / "model", place / "checkpoint"):
                if path.exists():
                    if path.name == "model":
                        chordal.load(path)
                    path.unlink()
    waits.sort()
    median, longest = waits[len(waits) // 2] * 1e3, waits[-1] * 1e3
    print(f"processes ended after {median:.0f} ms (median), {longest:.0f} ms (longest)")
    return times, failures


def _said(process: subprocess.Popen[str]) -> str:
    """What a process said until it ended; what it reads stays open until then."""
    assert process.stderr is not None
    assert process.stdin is not None
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
    said = process.stderr.read()
    process.stdin.close()
    process.stderr.close()
    return said


# -------------------------------------------------------------------------------------------- files

SAVING = """
import sys, chordal
model = chordal.load(sys.argv[1])
print("ready", flush=True)
while True:
    chordal.save(model, sys.argv[1])
"""


def kills(times: int) -> tuple[int, Failures]:
    """Processes killed while they save."""
    rng, failures, leftovers = random.Random(2), [], 0
    X, y = data()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        chordal.save(ChainCRF(max_iter=3).fit(X, y), path)
        before = Path(path).read_bytes()
        for _ in range(times):
            ran = subprocess.Popen([sys.executable, "-c", SAVING, path], stdout=subprocess.PIPE)
            assert ran.stdout is not None
            ran.stdout.readline()
            time.sleep(rng.uniform(0, 0.02))
            ran.kill()
            ran.communicate()
            if Path(path).read_bytes() != before:
                failures.append("the file is not whole")
            left = set(os.listdir(folder)) - {"model"}
            for name in left:
                os.remove(os.path.join(folder, name))
            leftovers += len(left)
    print(f"{leftovers} temporary files were left")
    return times, failures


def disk(times: int) -> tuple[int, Failures]:
    """Files that cannot grow beyond a limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    X, y = data(20)
    crf = ChainCRF(max_iter=3).fit(X, y)
    n, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")

        def prepare() -> None:
            ChainCRF().prepare(os.path.join(folder, "set"), X, y)

        def checkpoint() -> None:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", category=CheckpointWarning)
                kept = chordal.Checkpoint(path, interval=1)
                ChainCRF(max_iter=2, tol=0).fit(X, y, checkpoint=kept)  # written once

        tasks: dict[str, Callable[[], object]] = {
            "model": lambda: chordal.save(crf, path),
            "data set": prepare,
            "checkpoint": checkpoint,
        }
        for name, task in tasks.items():
            for limit in _limits(task, folder, times // len(tasks)):
                n += 1
                before = _contents(folder)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
                try:
                    task()
                    failures.append(f"{name}: no error at {limit} bytes")
                except (OSError, Warning) as error:
                    if folder not in str(error):
                        failures.append(f"{name}: {error!r} does not name the file")
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                if _contents(folder) != before:
                    failures.append(f"{name}: the folder has changed at {limit} bytes")
    return n, failures


def _limits(task: Callable[[], object], folder: str, n: int) -> Iterator[int]:
    """Sizes below that of the largest file that a task writes, which is removed again."""
    task()
    largest = max(len(content) for content in _contents(folder).values())
    for path in sorted(Path(folder).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for k in range(n):
        yield largest * k // n


def _contents(folder: str) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


# ---------------------------------------------------------------------------- processes, threads


def exits(times: int) -> tuple[int, Failures]:
    """Interpreters that end beside daemon threads."""
    source = Path(__file__).parents[1] / "tests" / "faults" / "test_interpreter_exit.py"
    names: dict[str, Any] = {"__name__": "exits"}
    exec(compile(source.read_text(), source, "exec"), names)
    tasks = ["sgd", "lbfgs, two threads", "perceptron", "predict", "sample", "chain"]
    rng, failures = random.Random(3), []
    for k in range(times):
        task = tasks[k % len(tasks)]
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            names["START"],
            task,
            f"{rng.uniform(0, 0.5)}",
        ]
        ran = subprocess.run(command, capture_output=True, timeout=120)
        if ran.returncode != 7:
            failures.append(f"{task}: exit code {ran.returncode}: {ran.stderr.decode()[-200:]}")
    return times, failures


def _answer(model: ChainCRF, X: list[Any], queue: Any) -> None:
    queue.put(model.predict(X))


def forks(times: int) -> tuple[int, Failures]:
    """Children by fork and spawn, after threads were used."""
    X, y = data(20)
    crf = ChainCRF(max_iter=3, n_jobs=2).fit(X, y)
    expected, failures = crf.predict(X), []
    for k in range(times):
        context = multiprocessing.get_context(["fork", "spawn"][k % 10 == 0])
        queue = context.SimpleQueue()
        child = context.Process(target=_answer, args=(crf, X, queue))
        child.start()
        child.join(60)
        if child.exitcode != 0 or queue.get() != expected:
            failures.append(f"exit code {child.exitcode}, or other answers")
    return times, failures


def threads(times: int) -> tuple[int, Failures]:
    """Two fitters and four readers of one estimator; answers are those of one of the fits."""
    X, y = data(20)
    other = [[1 - label for label in own] for own in y]
    legal = [ChainCRF(max_iter=3).fit(X, own).predict(X) for own in (y, other)]
    crf, failures, asked = ChainCRF(max_iter=3).fit(X, y), [], [0]

    def fit(own: list[Any]) -> None:
        while asked[0] < times:
            crf.fit(X, own)

    def ask() -> None:
        while asked[0] < times:
            if crf.predict(X) not in legal:
                failures.append("answers of no fit")
            asked[0] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workers = [threading.Thread(target=fit, args=(own,)) for own in (y, other)]
        workers += [threading.Thread(target=ask) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return asked[0], failures


def bombs(times: int) -> tuple[int, Failures]:
    """Files that ask for much; all of them, however many faults are wanted."""
    failures, slowest, largest, read, n = [], 0.0, 0.0, 0, 0
    for names in catalogue.groups().values():
        with tempfile.TemporaryDirectory() as folder:
            found = list(catalogue.exploded(names, Path(folder)))
        for name, (ended, seconds, megabytes) in zip(names, found, strict=True):
            print(f"{seconds:7.2f} s {megabytes:7.1f} MB  {name}: {ended}", flush=True)
            n, read = n + 1, read + (ended == "read")
            slowest, largest = max(slowest, seconds), max(largest, megabytes)
            if seconds > catalogue.SECONDS or megabytes > catalogue.MEGABYTES:
                failures.append(f"{name}: {ended}, {seconds:.2f} s, {megabytes:.0f} MB")
    print(f"{n - read} refused, {read} read; at most {slowest:.2f} s and {largest:.1f} MB")
    return n, failures


FAULTS = {
    "signals": (signals, 1000),
    "terminated": (terminated, 80),
    "kills": (kills, 100),
    "disk": (disk, 300),
    "exits": (exits, 60),
    "forks": (forks, 50),
    "threads": (threads, 2000),
    "bombs": (bombs, 0),
}


def main() -> None:
    """Inject what the command line names, or everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[[], *FAULTS], default=[])
    parser.add_argument("--times", type=int, help="faults of each kind; there are defaults")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    for name in options.what or FAULTS:
        inject, default = FAULTS[name]
        n, failures = inject(options.times or default)
        failed += len(failures)
        print(f"{name}: {n} faults injected, {len(failures)} failures", flush=True)
        for failure in sorted(set(failures))[:10]:
            print(f"  {failure}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
