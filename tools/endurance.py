"""Memory and determinism, counted: ``python tools/endurance.py WHAT [--times N]``.

    leaks         fits, predictions, saves, loads, failing calls, over and over: memory that stays
    limits        work under a limit on memory (RLIMIT_AS): an answer or MemoryError, never a crash
    determinism   weights by n_jobs, by the size of parts of a prepared data set, by PYTHONHASHSEED:
                  bit for bit; with and without AVX2: the largest difference

Each prints what it has counted, and exits with 1 if something failed.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np

import chordal
from chordal import ChainCRF

GROWTH = 4 << 20  # bytes that may stay after all repetitions: the allocator's own
WORDS = [[[f"w={k % 50}", f"p={k % 7}"] for k in range(i, i + 20)] for i in range(20)]
TAGS = [[f"label{(k * k) % 5}" for k in range(i, i + 20)] for i in range(20)]


def resident() -> int:
    """Bytes of memory that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def leaks(times: int) -> int:
    """Memory that stays after each kind of work was repeated."""
    crf = ChainCRF(max_iter=2).fit(WORDS, TAGS)
    with tempfile.TemporaryDirectory() as folder:
        path, bad = os.path.join(folder, "model"), os.path.join(folder, "bad")
        chordal.save(crf, path)
        with open(path, "rb") as file, open(bad, "wb") as copy:
            copy.write(file.read()[:-9])

        def fail() -> None:
            for call in (
                lambda: chordal.load(bad),
                lambda: crf.predict([[1, 2]]),
                lambda: ChainCRF(l2=-1).fit(WORDS, TAGS),
                lambda: ChainCRF().fit(WORDS, TAGS[:-1]),
            ):
                with suppress(ValueError, TypeError):
                    call()
                    raise AssertionError("a call that must fail did not")

        works: dict[str, Callable[[], object]] = {
            "fit": lambda: ChainCRF(max_iter=2).fit(WORDS, TAGS),
            "predict": lambda: crf.predict(WORDS),
            "marginals": lambda: crf.predict_marginals(WORDS),
            "save": lambda: chordal.save(crf, path),
            "load": lambda: chordal.load(path),
            "failing calls": fail,
        }
        failed = 0
        for name, work in works.items():
            for _ in range(max(50, times // 10)):  # caches and the allocator's pools fill up
                work()
            gc.collect()
            before = resident()
            for _ in range(times):
                work()
            gc.collect()
            grown = resident() - before
            failed += grown > GROWTH
            print(f"{name}: {times} times, {grown / 2**20:+.1f} MB", flush=True)
    return failed


LIMITED = """
import resource, sys
import numpy as np
from chordal import ChainCRF
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain, Grid
rng = np.random.default_rng(0)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    n = 300_000
    p = Potentials(Chain([n], 5), rng.normal(size=5 * n), np.zeros(25), np.zeros(n - 1, np.int32))
    INFERENCE.resolve("chain").marginals(p)
    INFERENCE.resolve("chain").k_best(p, 4)
    grid = Potentials(Grid([(12, 400)], 2), rng.normal(size=9600), rng.normal(size=4))
    INFERENCE.resolve("junction_tree").marginals(grid)
    X = [rng.normal(size=(50, 30)) for _ in range(400)]
    ChainCRF(max_iter=3).fit(X, [rng.integers(0, 9, 50).tolist() for _ in X])
    print("done")
except (MemoryError, ValueError) as error:
    print("refused", type(error).__name__)
"""


def limits(times: int) -> int:
    """Work with less and less memory."""
    ended: dict[str, int] = {}
    failed = 0
    for k in range(times):
        megabytes = 2 + k * 1500 // times
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", LIMITED, str(megabytes)],
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        said = ran.stdout.strip() or f"exit code {ran.returncode}"
        ended[said] = ended.get(said, 0) + 1
        if ran.returncode:
            failed += 1
            print(f"{megabytes} MB: exit code {ran.returncode}: {ran.stderr[-300:]}")
    print(f"limits: {times} limits, {ended}, {failed} failures")
    return failed


FIT = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from endurance import fitted
weights = fitted(sys.argv[2]).weights_
sys.stdout.buffer.write(weights.tobytes())
"""


def fitted(solver: str, n_jobs: int = 1) -> ChainCRF:
    """A model of words."""
    crf = ChainCRF(solver=solver, n_jobs=n_jobs, max_iter=30, random_state=0)
    return crf.fit(WORDS * 3, TAGS * 3)


def _elsewhere(solver: str, **environment: str) -> bytes:
    command = [sys.executable, "-W", "ignore", "-c", FIT, os.path.dirname(__file__), solver]
    return subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, **environment}
    ).stdout


def determinism(times: int) -> int:
    """The same weights in every way that must not matter."""
    failed = compared = 0
    largest = 0.0
    for solver in ("lbfgs", "sgd", "averaged_perceptron", "frank_wolfe", "owlqn"):
        expected = fitted(solver).weights_
        for n_jobs in (2, 3, 7):
            compared += 1
            failed += fitted(solver, n_jobs).weights_.tobytes() != expected.tobytes()
        for seed in range(times):
            compared += 1
            failed += _elsewhere(solver, PYTHONHASHSEED=str(seed)) != expected.tobytes()
        baseline = np.frombuffer(_elsewhere(solver, CHORDAL_BASELINE="1"))
        difference = float(np.abs(baseline - expected).max() / np.abs(expected).max())
        print(f"{solver}: without AVX2, weights differ by {difference:.1e} of the largest")
        largest = max(largest, difference)
    with tempfile.TemporaryDirectory() as folder:
        whole = ChainCRF(max_iter=30).fit(WORDS, TAGS).weights_.tobytes()
        for size in (1, 3, 7, 20):
            pairs = [(WORDS[k : k + size], TAGS[k : k + size]) for k in range(0, 20, size)]
            data = ChainCRF().prepare(os.path.join(folder, str(size)), iter(pairs))
            compared += 1
            failed += ChainCRF(max_iter=30).fit(data).weights_.tobytes() != whole
    print(f"determinism: {compared} fits compared bit for bit, {failed} differ")
    return failed


WORK = {"leaks": (leaks, 10_000), "limits": (limits, 60), "determinism": (determinism, 4)}


def main() -> None:
    """Do what the command line names, or everything."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[[], *WORK], default=[])
    parser.add_argument("--times", type=int, help="repetitions; there are defaults")
    options = parser.parse_args()
    failed = 0
    for name in options.what or WORK:
        work, default = WORK[name]
        failed += work(options.times or default)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
