"""The interpreter ends while daemon threads are at work in kernels: quietly, with its own code."""

import subprocess
import sys

import pytest

START = """
import sys, threading, time
import numpy as np
from chordal import ChainCRF
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain, Grid

rng = np.random.default_rng(0)
X = [rng.normal(size=(40, 4)) for _ in range(200)]
y = [rng.integers(0, 3, 40).tolist() for _ in X]

def fit(**parameters):
    ChainCRF(tol=0, max_iter=10**7, **parameters).fit(X, y)

def predict():
    crf = ChainCRF(max_iter=3).fit(X, y)
    while True:
        crf.predict(X)

def sample():
    grid = Potentials(Grid([(40, 40)], 3), rng.normal(size=4800), rng.normal(size=9))
    while True:
        INFERENCE.resolve("gibbs").sample(grid, 1000, np.random.default_rng(0))

def decode():
    chain = Potentials(Chain([200_000], 20), rng.normal(size=4_000_000), rng.normal(size=400))
    while True:
        INFERENCE.resolve("chain").marginals(chain)

TASKS = {
    "sgd": lambda: fit(solver="sgd"),
    "lbfgs, two threads": lambda: fit(solver="lbfgs", n_jobs=2),
    "perceptron": lambda: fit(solver="averaged_perceptron"),
    "predict": predict,
    "sample": sample,
    "chain": decode,
}
for _ in range(3):
    threading.Thread(target=TASKS[sys.argv[1]], daemon=True).start()
time.sleep(float(sys.argv[2]))
print("end", flush=True)
sys.exit(7)
"""


@pytest.mark.parametrize("seconds", ["0.3", "0.41"])
@pytest.mark.parametrize(
    "task", ["sgd", "lbfgs, two threads", "perceptron", "predict", "sample", "chain"]
)
def test_daemon_threads_at_the_end(task, seconds):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START, task, seconds],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout) == (7, "end\n"), ran.stderr


LEFT = """
import threading, time
import numpy as np
from chordal import ChainCRF

rng = np.random.default_rng(0)
X = [rng.normal(size=(40, 4)) for _ in range(100)]
y = [rng.integers(0, 3, 40).tolist() for _ in X]

def fit():
    crf = ChainCRF(n_jobs=3, tol=0, max_iter=200).fit(X, y)
    print(len(crf.predict(X)), flush=True)

threading.Thread(target=fit).start()
time.sleep(0.1)
"""


def test_a_fit_in_threads_goes_on_when_the_main_thread_has_ended():
    """From then on Python starts no more tasks in pools of threads."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LEFT], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "100\n", "")
