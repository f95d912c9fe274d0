"""Ctrl-C ends long calls within a moment, in threads too; see also tools/interrupt_times.py."""

import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import signal, sys
import numpy as np
from chordal.execution import execution_for
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain, Graph, Grid

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)

def model(structure, table=None):
    n = structure.label_counts[0]
    table = rng.normal(size=(n, n)) if table is None else table
    return Potentials(structure, rng.normal(size=structure.n_states), table)

def ask(method, question, p, *rest, **options):
    return getattr(INFERENCE.resolve(method, **options), question)(p, *rest)

def far(n):
    return -0.5 * np.minimum(np.abs(np.subtract.outer(np.arange(n), np.arange(n))), 5.0)

grid = model(Grid([(400, 400)], 6), 0.8 * np.eye(6))
grid.structure.cliques_of_variable
six = [(i, j) for i in range(6) for j in range(i)]
made = {
    "expansion": lambda: grid,
    "swap": lambda: model(Grid([(500, 500)], 20), far(20)),
    "icm": lambda: model(Grid([(1000, 1000)], 20), far(20)),
    "ad3": lambda: model(Grid([(400, 400)], 15), far(15)),
    "chain k_best": lambda: model(Chain([500], 60)),
    "chain by cost": lambda: model(Chain([1000], 30)),
    "junction tree": lambda: model(Graph([6], [six], 20)),
    "junction tree, samples": lambda: model(Graph([6], [six], 15)),
    "linear program": lambda: model(Grid([(60, 60)], 6)),
    "linear program, long": lambda: model(Grid([(90, 90)], 6)),
    "milp": lambda: model(Grid([(40, 40)], 5)),
    "milp, limit": lambda: model(Grid([(70, 70)], 6)),
    "long chain": lambda: model(Chain([1_000_000], 40)),
    "long chain, marginals": lambda: model(Chain([1_000_000], 40)),
    "chain of many labels": lambda: model(Chain([100], 4000)),
    "messages": lambda: model(Grid([(500, 500)], 20), far(20)),
    "constraints": lambda: model(Grid([(300, 300)], 60), np.where(far(60) > -2.5, 0, -np.inf)),
    "mean field": lambda: model(Grid([(500, 500)], 20), far(20)),
    "cut": lambda: model(Grid([(1500, 1500)], 2), 0.6 * np.eye(2)),
    "chains in a pool": lambda: model(Chain([300_000], 40)),
}.get(sys.argv[1], lambda: grid)
p = made()
pool = execution_for(2)
pairs = np.stack([np.arange(199_999), np.arange(1, 200_000)], axis=1)

def again(method, question):
    for _ in range(1000):
        ask(method, question, p)

price = rng.integers(0, 5, p.structure.n_states)
call = {
    "expansion": lambda: [ask("alpha_expansion", "map", p) for _ in range(1000)],
    "swap": lambda: ask("alpha_beta_swap", "map", p),
    "icm": lambda: [ask("icm", "map", p) for _ in range(1000)],
    "ad3": lambda: ask("ad3", "map", p, max_iter=10**6),
    "chain k_best": lambda: ask("chain", "k_best", p, 20_000),
    "chain by cost": lambda: [ask("chain", "map_by_cost", p, price) for _ in range(100)],
    "junction tree": lambda: [ask("junction_tree", "marginals", p) for _ in range(100)],
    "junction tree, samples": lambda: ask("junction_tree", "sample", p, 10**6, rng),
    "linear program": lambda: ask("linear_program", "map", p),
    "linear program, long": lambda: ask("linear_program", "map", p),
    "milp": lambda: ask("milp", "map", p),
    "milp, limit": lambda: ask("milp", "map", p, time_limit=100.0),
    "long chain": lambda: again("chain", "map"),
    "long chain, marginals": lambda: again("chain", "marginals"),
    "chain of many labels": lambda: again("chain", "marginals"),
    "messages": lambda: again("loopy_bp", "map"),
    "constraints": lambda: again("loopy_bp", "marginals"),
    "mean field": lambda: again("mean_field", "marginals"),
    "cut": lambda: again("max_flow", "map"),
    "graph": lambda: [Graph([200_000], [pairs], 3).incidence for _ in range(1000)],
    "chains in a pool": lambda: pool.map(lambda _: again("chain", "marginals"), range(2)),
    "annealing": lambda: ask("annealing", "map", p, n_sweeps=10**6),
    "annealing in threads": lambda: ask("annealing", "map", p, n_sweeps=10**6, n_jobs=2),
    "chains in threads": lambda: ask("gibbs", "marginals", p, burn_in=10**6, n_jobs=2),
    "colours in threads": lambda: ask(
        "gibbs", "marginals", p, n_chains=1, burn_in=10**6, blocks="chromatic", n_jobs=2
    ),
    "trees": lambda: ask("gibbs", "marginals", p, burn_in=10**6, blocks="tree"),
}
print("ready", flush=True)
try:
    call[sys.argv[1]]()
except KeyboardInterrupt:
    print("interrupted")
"""
#: Seconds after the call at which Ctrl-C comes.
CALLS = {
    "expansion": 0.5,
    "swap": 1.0,
    "icm": 1.0,
    "ad3": 1.0,
    "chain k_best": 1.0,
    "chain by cost": 0.5,
    "junction tree": 1.0,
    "junction tree, samples": 1.0,
    "linear program": 1.0,
    "linear program, long": 6.0,  # by then in a process of its own
    "milp": 1.0,
    "milp, limit": 3.0,
    "long chain": 0.1,
    "long chain, marginals": 0.5,
    "chain of many labels": 0.1,
    "messages": 0.1,
    "constraints": 0.1,
    "mean field": 0.5,
    "cut": 0.1,
    "graph": 0.5,
    "chains in a pool": 0.5,
    "annealing": 0.5,
    "annealing in threads": 0.5,
    "chains in threads": 0.5,
    "colours in threads": 0.5,
    "trees": 0.5,
}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c(call):
    command = [sys.executable, "-c", SCRIPT, call]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(CALLS[call])
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=3.0)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)
