"""Ctrl-C ends cuts, moves and chains within a moment, in threads too."""

import subprocess
import sys

import pytest

SCRIPT = """
import signal, sys, time
import numpy as np
from chordal.inference.alpha_expansion import AlphaExpansionInference
from chordal.inference.annealing import AnnealingInference
from chordal.inference.gibbs import GibbsInference
from chordal.potentials import Potentials
from chordal.structures import Grid

grid = Grid([(400, 400)], 6)
p = Potentials(grid, np.random.default_rng(0).normal(size=grid.n_states), 0.8 * np.eye(6))
grid.cliques_of_variable
call = {
    "expansion": lambda: [AlphaExpansionInference().map(p) for _ in range(1000)],
    "annealing": lambda: AnnealingInference(n_sweeps=10**6).map(p),
    "annealing in threads": lambda: AnnealingInference(n_sweeps=10**6, n_jobs=2).map(p),
    "chains in threads": lambda: GibbsInference(burn_in=10**6, n_jobs=2).marginals(p),
    "colours in threads":
        lambda: GibbsInference(1, burn_in=10**6, blocks="chromatic", n_jobs=2).marginals(p),
    "trees": lambda: GibbsInference(burn_in=10**6, blocks="tree").marginals(p),
}[sys.argv[1]]
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.5)
started = time.perf_counter()
try:
    call()
except KeyboardInterrupt:
    print(time.perf_counter() - started - 0.5)
"""
CALLS = [
    "expansion",
    "annealing",
    "annealing in threads",
    "chains in threads",
    "colours in threads",
    "trees",
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c(call):
    command = [sys.executable, "-c", SCRIPT, call]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert float(done.stdout) < 3.0
    assert done.stderr == ""
