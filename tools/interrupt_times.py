"""How long Ctrl-C takes: seconds from SIGINT to the end of the process, for each slow call.

    python tools/interrupt_times.py                  all cases
    python tools/interrupt_times.py chain milp       those whose names have one of the words
    python tools/interrupt_times.py --at 0.5 2       seconds after the call at which SIGINT is sent

Every case runs in a process of its own for each moment. A call that ends before the signal is shown
as "-": its problem is too small for this machine.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time

#: What the cases share.
SETUP = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain, Graph, Grid, Tree

rng = np.random.default_rng(0)
def ask(method, question, p, *rest, **options):
    made = INFERENCE.resolve(method, **options)
    return lambda: getattr(made, question)(p, *rest)
def random(structure):
    n = structure.label_counts[0]
    return Potentials(structure, rng.normal(size=structure.n_states), rng.normal(size=(n, n)))
def potts(structure, strength=1.0):
    n = structure.label_counts[0]
    return Potentials(structure, rng.normal(size=structure.n_states), strength * np.eye(n))
def truncated(structure):
    n = structure.label_counts[0]
    far = -np.minimum(np.abs(np.subtract.outer(np.arange(n), np.arange(n))), 5.0)
    return Potentials(structure, 3 * rng.normal(size=structure.n_states), far)
def grid(height, width, n_labels):
    return Grid([(height, width)], n_labels)
def complete(n, n_labels):
    edges = [(i, j) for i in range(n) for j in range(i)]
    return Graph([n], [edges], n_labels)
def tree(n, n_labels):
    parent = [-1] + [int(rng.integers(max(0, k - 50), k)) for k in range(1, n)]
    return Tree([parent], n_labels)
def ready():
    print("ready", flush=True)
"""

_CHAIN = "random(Chain([400_000], 40))"
_LONG = "random(Chain([2_000_000], 40))"
_GRID = "truncated(grid(500, 500, 20))"
_TREE = "random(tree(500_000, 20))"
_WIDE = "random(complete(6, 20))"  # one table of 64 million cells
_MANY = "random(grid(10, 150, 3))"  # tables of 3^10 cells and more
_TEXT = """
words = [f"w{k}" for k in range(50_000)]
X = [[{"word": words[k], "next": words[k // 2]} for k in rng.integers(0, 50_000, 20)]
     for _ in range(8_000)]
y = [[f"L{k}" for k in rng.integers(0, 12, 20)] for _ in range(8_000)]
from chordal import ChainCRF
"""
_BUILD = """
pairs = np.unique(rng.integers(0, 400_000, (2_000_000, 2)), axis=0)
pairs = pairs[pairs[:, 0] < pairs[:, 1]]
"""

#: Name: what is prepared, and the call.
CASES: dict[str, tuple[str, str]] = {
    "alpha_beta_swap map": (f"p = {_GRID}", "ask('alpha_beta_swap', 'map', p)"),
    "alpha_beta_swap potts": (
        "p = potts(grid(500, 500, 20), 3.0)",
        "ask('alpha_beta_swap', 'map', p)",
    ),
    "alpha_expansion map": (f"p = {_GRID}", "ask('alpha_expansion', 'map', p)"),
    "max_flow map": ("p = potts(grid(2000, 2000, 2), 0.6)", "ask('max_flow', 'map', p)"),
    "qpbo map": ("p = random(grid(1500, 1500, 2))", "ask('qpbo', 'map', p)"),
    "icm map": ("p = truncated(grid(1500, 1500, 20))", "ask('icm', 'map', p)"),
    "annealing map": (f"p = {_GRID}", "ask('annealing', 'map', p)"),
    "gibbs marginals": (f"p = {_GRID}", "ask('gibbs', 'marginals', p)"),
    "gibbs sample": (f"p = {_GRID}", "ask('gibbs', 'sample', p, 100, rng)"),
    "gibbs marginals, threads": (f"p = {_GRID}", "ask('gibbs', 'marginals', p, n_jobs=2)"),
    "trw_s map": (f"p = {_GRID}", "ask('trw_s', 'map', p)"),
    "ad3 map": (f"p = {_GRID}", "ask('ad3', 'map', p)"),
    "loopy_bp map": (f"p = {_GRID}", "ask('loopy_bp', 'map', p)"),
    "loopy_bp marginals": (f"p = {_GRID}", "ask('loopy_bp', 'marginals', p)"),
    "tree_reweighted marginals": (f"p = {_GRID}", "ask('tree_reweighted', 'marginals', p)"),
    "mean_field marginals": (f"p = {_GRID}", "ask('mean_field', 'marginals', p)"),
    "structured_mean_field marginals": (
        f"p = {_GRID}",
        "ask('structured_mean_field', 'marginals', p)",
    ),
    "chain map": (f"p = {_LONG}", "ask('chain', 'map', p)"),
    "chain log_partition": (f"p = {_LONG}", "ask('chain', 'log_partition', p)"),
    "chain marginals": (f"p = {_LONG}", "ask('chain', 'marginals', p)"),
    "chain entropy": (f"p = {_LONG}", "ask('chain', 'entropy', p)"),
    "chain k_best": (f"p = {_CHAIN}", "ask('chain', 'k_best', p, 50)"),
    "chain k_best, large k": (
        "p = random(Chain([300], 100))",
        "ask('chain', 'k_best', p, 100_000)",
    ),
    "chain sample": (f"p = {_CHAIN}", "ask('chain', 'sample', p, 200, rng)"),
    "chain map_by_cost": (
        "p = random(Chain([1_000], 30))\nprice = rng.integers(0, 5, p.structure.n_states)",
        "ask('chain', 'map_by_cost', p, price)",
    ),
    "chain marginals, 5000 labels": (
        "p = random(Chain([300], 5_000))",
        "ask('chain', 'marginals', p)",
    ),
    "tree map": (f"p = {_TREE}", "lambda: [ask('tree', 'map', p)() for _ in range(9)]"),
    "tree marginals": (f"p = {_TREE}", "lambda: [ask('tree', 'marginals', p)() for _ in range(9)]"),
    "junction_tree log_partition": (f"p = {_WIDE}", "ask('junction_tree', 'log_partition', p)"),
    "junction_tree marginals": (f"p = {_WIDE}", "ask('junction_tree', 'marginals', p)"),
    "junction_tree map": (f"p = {_WIDE}", "ask('junction_tree', 'map', p)"),
    "junction_tree k_best": (f"p = {_WIDE}", "ask('junction_tree', 'k_best', p, 5)"),
    "junction_tree sample": (f"p = {_WIDE}", "ask('junction_tree', 'sample', p, 100_000, rng)"),
    "junction_tree entropy": (f"p = {_WIDE}", "ask('junction_tree', 'entropy', p)"),
    "junction_tree marginals, many tables": (
        f"p = {_MANY}",
        "ask('junction_tree', 'marginals', p, memory_limit=3e9)",
    ),
    "junction_tree derivative": (
        f"p = {_WIDE}",
        "ask('junction_tree', 'marginals_derivative', p, p)",
    ),
    "junction_tree k_best, many tables": (
        f"p = {_MANY}",
        "ask('junction_tree', 'k_best', p, 1_000_000, memory_limit=3e9)",
    ),
    "elimination marginals": ("p = random(grid(13, 60, 3))", "ask('elimination', 'marginals', p)"),
    "plan, grid": (
        "s = grid(180, 180, 2)",
        "lambda: INFERENCE.resolve('junction_tree', memory_limit=1e17).supports(s)",
    ),
    "plan, search": (
        "e = np.unique(rng.integers(0, 2000, (5000, 2)), axis=0)\n"
        "s = Graph([2000], [e[e[:, 0] < e[:, 1]]], 2)",
        "lambda: INFERENCE.resolve('junction_tree', order='search', memory_limit=1e30).supports(s)",
    ),
    "linear_program map": ("p = random(grid(60, 60, 6))", "ask('linear_program', 'map', p)"),
    "milp map": ("p = random(grid(40, 40, 5))", "ask('milp', 'map', p)"),
    "matching map": (
        "from chordal.potentials import matching_potentials\n"
        "n = 500; p = matching_potentials([rng.normal(size=(n, n))] * 100, [np.zeros(n)] * 100)",
        "lambda: [ask('matching', 'map', p)() for _ in range(100)]",
    ),
    "exhaustive marginals": ("p = random(complete(19, 2))", "ask('exhaustive', 'marginals', p)"),
    "structure of a graph": (_BUILD, "lambda: [Graph([400_000], [pairs], 3) for _ in range(9)]"),
    "incidence of a graph": (
        _BUILD,
        "lambda: [Graph([400_000], [pairs], 3).incidence for _ in range(9)]",
    ),
    "fit lbfgs": (_TEXT, "lambda: ChainCRF().fit(X, y)"),
    "fit lbfgs, threads": (_TEXT, "lambda: ChainCRF(n_jobs=2).fit(X, y)"),
    "fit block_frank_wolfe": (
        _TEXT,
        "lambda: ChainCRF('hinge', solver='block_frank_wolfe').fit(X, y)",
    ),
    "fit one_slack": (_TEXT, "lambda: ChainCRF('hinge', solver='one_slack').fit(X, y)"),
    "fit exponentiated_gradient": (
        _TEXT,
        "lambda: ChainCRF(solver='exponentiated_gradient').fit(X, y)",
    ),
    "fit sgd": (_TEXT, "lambda: ChainCRF(solver='sgd').fit(X, y)"),
    "fit arow": (_TEXT, "lambda: ChainCRF(solver='arow').fit(X, y)"),
    "fit pseudo_likelihood": (_TEXT, "lambda: ChainCRF('pseudo_likelihood').fit(X, y)"),
}

_RUN = """
call = {call}
ready()
try:
    call()
    print("done", flush=True)
except KeyboardInterrupt:
    pass
"""


def seconds_to_end(name: str, moment: float) -> float | None:
    """Seconds from SIGINT, sent so long after the call began, to the end; None if it came late."""
    prepare, call = CASES[name]
    command = [sys.executable, "-W", "ignore", "-c", SETUP + prepare + _RUN.format(call=call)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(moment)
        if child.poll() is not None:
            return None
        child.send_signal(signal.SIGINT)
        began = time.perf_counter()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
        return time.perf_counter() - began


def main() -> None:
    """Print the table; the exit code is 1 if anything took longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="cases whose names have one of these words")
    parser.add_argument("--at", nargs="+", type=float, default=[0.3, 1.5], metavar="SECONDS")
    parser.add_argument("--limit", type=float, default=0.3, help="seconds (0.3)")
    given = parser.parse_args()
    slow = False
    print(f"{'seconds to the end, SIGINT at':40}" + "".join(f"{at:8g}" for at in given.at))
    for name in CASES:
        if given.words and not any(word in name for word in given.words):
            continue
        times = [seconds_to_end(name, at) for at in given.at]
        slow |= any(t is not None and t > given.limit for t in times)
        cells = "".join(f"{'-':>8}" if t is None else f"{t:8.2f}" for t in times)
        print(f"{name:40}{cells}", flush=True)
    sys.exit(slow)


if __name__ == "__main__":
    main()
