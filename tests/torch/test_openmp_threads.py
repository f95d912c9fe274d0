"""PyTorch's threads: no more than there are cores, and one in a process made by fork."""

import os
import subprocess
import sys
from threading import Event, Thread

import pytest
import torch

from chordal.execution import effective_n_jobs
from chordal.torch._threads import threads

FORKED = """
import faulthandler, os, sys
import numpy as np
import torch
from chordal.torch import NeuralCRF

rng = np.random.default_rng(0)
X = [rng.normal(size=(2000, 20)) for _ in range(4)]
y = [rng.integers(3, size=2000).tolist() for _ in X]
crf = NeuralCRF("mlp", hidden=64, max_iter=1, n_jobs=2, random_state=0).fit(X, y)
expected = crf.predict(X)
assert torch.get_num_threads() > 1, "the parent has to use threads"
torch.ones(3_000_000).tanh()
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    same = crf.predict(X) == expected
    crf.fit(X, y)
    os._exit(0 if same else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.skipif(effective_n_jobs(-1) < 2, reason="one core: PyTorch has no threads")
def test_a_forked_process_predicts_and_fits():
    """It waited for the threads of its parent for ever."""
    one = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # Dask says 1 in these
    environment = {**os.environ, **dict.fromkeys(one, "2")}
    command = [sys.executable, "-c", FORKED]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr


def test_no_more_threads_than_cores():
    """A model file may ask for 512; one that the system refuses would end the process."""
    before = torch.get_num_threads()
    with threads(10**6):
        assert torch.get_num_threads() == effective_n_jobs(-1)
    assert torch.get_num_threads() == before


def test_two_blocks_at_once():
    """Each has its number of threads, and what begins later has that of before, here 2."""
    usual, found = torch.get_num_threads(), []
    warm, inside, asked, left = (Event() for _ in range(4))

    def first():
        warm.wait()
        with threads(1):
            inside.set()
            asked.wait()
        left.set()

    def second():
        torch.set_num_threads(2)
        warm.set()
        inside.wait()
        with threads(1):
            found.append(torch.get_num_threads())
            asked.set()
            left.wait()

    run_at_once(first, second)
    run_at_once(lambda: found.append(torch.get_num_threads()))
    run_at_once(lambda: torch.set_num_threads(usual))
    assert found == [1, 2]


def run_at_once(*functions):
    running = [Thread(target=own) for own in functions]
    for own in running:
        own.start()
    for own in running:
        own.join()
