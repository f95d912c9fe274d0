"""Inference on graphs, beside PGMax; and by label distances, beside the same tables cell by cell.

PGMax needs versions of its own of other packages: $CHORDAL_PGMAX_PYTHON names a Python that has it
(the present one by default).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._run import ROOT, Part, Row, Run
from benchmarks.conll2000 import MissingFileError

SWEEPS = 100
ROUNDS = 3


def _answer(python: str, script: str, path: Path) -> Any:
    """What a script says about a model, as a process of its own."""
    command = [python, str(ROOT / "benchmarks" / script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No module named 'pgmax'" in done.stderr:
        raise MissingFileError("PGMax is not installed; set CHORDAL_PGMAX_PYTHON")
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return json.loads(done.stdout.splitlines()[-1])


def _loopy_bp(run: Run) -> Iterator[Row]:
    """100 sweeps of sum-product on a grid of five labels with a table for every edge."""
    from chordal.inference import INFERENCE
    from chordal.potentials import Potentials
    from chordal.structures import Grid

    size, n_labels = (20 if run.quick else 100), 5
    rng = np.random.default_rng(0)
    grid = Grid([(size, size)], n_labels)
    unary = rng.normal(size=(size, size, n_labels))
    tables = 0.5 * rng.normal(size=(grid.n_cliques, n_labels, n_labels))
    method = INFERENCE.get("loopy_bp")(schedule="parallel", tol=0.0, max_iter=SWEEPS)
    potentials = Potentials(grid, unary, tables)
    path = run.folder / "model.npz"
    ends = grid.scopes.reshape(-1, 2)
    np.savez(path, unary=unary, tables=tables, ends=ends, iterations=SWEEPS)
    pgmax = os.environ.get("CHORDAL_PGMAX_PYTHON", sys.executable)
    peers, first, then = [], [], []
    for _ in range(1 if run.quick else ROUNDS):
        run.say("PGMax")
        peers.append(_answer(pgmax, "_pgmax.py", path))
        run.say("chordal")
        first.append(_answer(sys.executable, "_first_sweeps.py", path))
        for _ in range(3):
            start = time.perf_counter()
            found = method.marginals(potentials)
            then.append(time.perf_counter() - start)
    difference = np.abs(found.parts.unary - np.ravel(peers[0]["marginals"])).max()
    if not difference < 1e-3:
        raise RuntimeError(f"marginals differ by {difference:.1e}")
    what = f"{SWEEPS} sweeps of loopy BP, {size}×{size} grid, {n_labels} labels"
    yield run.speed(what, min(peer["then"] for peer in peers), min(then), at_least=5)
    theirs = min(peer["first"] for peer in peers)  # first runs of a process, on both sides
    yield run.speed(f"{what}, with building and compiling", theirs, min(first), at_least=50)


def _distances(run: Run) -> Iterator[Row]:
    """Ten sweeps through tables of label distances; one unit in the last place hides them."""
    from chordal.inference import INFERENCE
    from chordal.potentials import Potentials
    from chordal.structures import Grid

    size, n = (30 if run.quick else 300), 100
    rng = np.random.default_rng(0)
    grid, unary = Grid([(size, size)], n), rng.normal(size=(size, size, n))
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    method = INFERENCE.get("loopy_bp")(tol=0.0, max_iter=10)
    for name, table in (
        ("Potts", np.eye(n)),
        ("linear", -0.3 * steps),
        ("truncated linear", -0.3 * np.minimum(steps, 12)),
    ):
        hidden = table.copy()
        hidden[1, 1] = np.nextafter(hidden[1, 1], 10.0)
        for question, kind in (("log_partition", "sum"), ("map", "max")):
            taken = []
            for tables in (hidden, table):
                run.say(f"{name}, {kind}-product")
                p = Potentials(grid, unary, tables)
                start = time.perf_counter()
                getattr(method, question)(p)
                taken.append(time.perf_counter() - start)
            what = f"10 sweeps of loopy BP, {size}×{size}, {n} labels, {name}, {kind}-product"
            yield run.speed(f"{what} (cell by cell)", *taken)


ORDER = 7
PARTS: dict[str, Part] = {"loopy_bp": _loopy_bp, "distances": _distances}
