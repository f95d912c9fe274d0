"""Which files and functions of chordal one fit passes through.

    python tools/trace_fit.py           # totals
    python tools/trace_fit.py --list    # each function, by file, in the order of its first call

A first fit loads what is imported on the way; the second is traced, in its thread and in those
that it starts.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import chordal
from chordal import ChainCRF, GraphCRF

SOURCE = str(Path(chordal.__file__).parent)
Places = dict[str, dict[str, None]]  # file -> functions, in the order of their first calls


def traced(run: Callable[[], object]) -> Places:
    """The functions that `run` passes through."""
    found: Places = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        inline = code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
        if event == "call" and code.co_filename.startswith(SOURCE) and not inline:
            file = code.co_filename[len(SOURCE) + 1 :]
            found.setdefault(file, {})[getattr(code, "co_qualname", code.co_name)] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def fit_chain() -> None:
    """A ChainCRF on sequences of attributes."""
    X = [[["a"], ["b"], ["a"]], [["b"], ["b"]], [["a"]]]
    y = [["A", "B", "A"], ["B", "B"], ["A"]]
    ChainCRF().fit(X, y)


def fit_graph() -> None:
    """A GraphCRF on two cycles of four nodes, a graph that is not a tree."""
    rng = np.random.default_rng(0)
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    X = [(rng.normal(size=(4, 2)), edges) for _ in range(2)]
    y = [np.array([0, 1, 0, 1]), np.array([1, 0, 1, 1])]
    GraphCRF().fit(X, y)


def report(name: str, found: Places, listed: bool) -> None:
    """Print the totals, and with `listed` each function."""
    functions = sum(map(len, found.values()))
    print(f"{name}: {len(found)} files, {functions} functions")
    for file, names in found.items() if listed else ():
        print(f"  {file}")
        for function in names:
            print(f"    {function}")


def main() -> None:
    """Trace both fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name each function")
    listed = parser.parse_args().list
    warnings.simplefilter("error")  # a warning would add the files that give it
    for name, run in (("ChainCRF.fit", fit_chain), ("GraphCRF.fit", fit_graph)):
        run()
        report(name, traced(run), listed)


if __name__ == "__main__":
    main()
