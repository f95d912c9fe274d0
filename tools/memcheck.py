"""Kernels under valgrind: ``python tools/memcheck.py`` (``make valgrind``).

Memcheck watches a process that asks every inference method about the small models of
`chordal.testing`, evaluates every objective, fits every solver, and reads text. A new method,
model, objective or solver is found by its registry. Errors and memory that is lost count if
`_kernels` is in their stack; NumPy and Python have some of their own. Prints the functions that
were called, the errors and the leaks, and exits with 1 if there are any. ``--cases`` runs the cases
alone.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

import chordal
from chordal import ChainCRF, CRFClassifier, GraphCRF, GridCRF, UnsupportedError, _kernels
from chordal.formats import FORMATS
from chordal.formats.conll import append_column
from chordal.inference import INFERENCE
from chordal.objectives import OBJECTIVES
from chordal.solvers import SOLVERS
from chordal.testing import INFEASIBLE, MODELS, feasible_labels
from chordal.text import Columns, Items

#: What every method is asked, if it can answer.
QUESTIONS: dict[str, Callable[[Any, Any], object]] = {
    "log_partition": lambda method, p: method.log_partition(p),
    "marginals": lambda method, p: method.marginals(p),
    "map": lambda method, p: method.map(p),
    "k_best": lambda method, p: method.k_best(p, 2),
    "sample": lambda method, p: method.sample(p, 2, np.random.default_rng(0)),
    "entropy": lambda method, p: method.entropy(p),
    "relaxed_map": lambda method, p: method.relaxed_map(p),
}
REFUSED = (UnsupportedError, ValueError)


def cases() -> None:
    """Call the kernels on small input."""
    called, n = _counted(), 0
    warnings.simplefilter("ignore")
    for case in (*_questions(), *_objectives(), *_fits(), *_text()):
        n += 1
        with suppress(*REFUSED, ImportError):
            case()
    missing = [name for name, times in called.items() if not times]
    print(f"{n} cases, {len(called) - len(missing)} of {len(called)} functions called")
    print("not called:", ", ".join(missing) or "none")


def _counted() -> dict[str, int]:
    """Count calls of each function of the module, wherever it was imported."""
    calls: dict[str, int] = {}
    originals = {
        name: value
        for name, value in vars(_kernels).items()
        if type(value).__name__ == "nb_func" and not name.startswith("_")
    }

    def wrapper(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            calls[name] += 1
            return function(*args, **named)

        return call

    for name, function in originals.items():
        calls[name] = 0
        setattr(_kernels, name, wrapper(name, function))
    for module in [m for key, m in sys.modules.items() if key.startswith("chordal.")]:
        for key, value in list(vars(module).items()):
            if type(value).__name__ == "nb_func" and value in originals.values():
                setattr(module, key, getattr(_kernels, value.__name__, value))
    return calls


def _questions() -> Iterator[Callable[[], object]]:
    rng = np.random.default_rng(0)
    for make in (*MODELS.values(), *INFEASIBLE.values()):
        p = make(rng)
        for name in INFERENCE:
            if name in ("milp", "linear_program"):  # SciPy's own
                continue
            method = INFERENCE.resolve(name)
            for ask in QUESTIONS.values():
                yield lambda ask=ask, method=method, p=p: ask(method, p)
        for name in ("parallel", "residual"):
            yield lambda name=name, p=p: INFERENCE.get("loopy_bp")(schedule=name).map(p)
        price = np.ones(p.structure.n_states, dtype=np.int64)
        yield lambda p=p, price=price: INFERENCE.resolve("chain").map_by_cost(p, price)


def _objectives() -> Iterator[Callable[[], object]]:
    rng, brute = np.random.default_rng(1), INFERENCE.resolve("exhaustive")
    for make in MODELS.values():
        p = make(rng)
        gold = feasible_labels(p, rng)
        for name in OBJECTIVES:
            yield lambda name=name, p=p, gold=gold: OBJECTIVES.resolve(name).evaluate(
                p, gold, brute
            )


def _fits() -> Iterator[Callable[[], object]]:
    rng = np.random.default_rng(2)
    rows, tags = [rng.normal(size=(4, 2)) for _ in range(3)], [list("abab")] * 3
    words = [[["a", "b"], {"c": 0.5}], [["a"], ["d"]]]
    graph = (rows[0], np.array([(0, 1), (1, 2), (2, 3), (3, 0)]))
    for solver in ("auto", *SOLVERS):
        for objective in ("auto", "hinge"):
            for X, y in ((rows, tags), (words, [["A", "B"], ["A", "B"]])):

                def fit(solver=solver, objective=objective, X=X, y=y) -> None:
                    crf = ChainCRF(objective, solver, max_iter=2, random_state=0, n_jobs=2).fit(
                        X, y
                    )
                    for ask in (crf.predict, crf.predict_marginals, crf.entropy):
                        ask(X)
                    crf.k_best(X, 2)
                    crf.span_probabilities(X, [[(0, 1, crf.classes_[0])]] * len(X))
                    crf.quick()

                yield fit
        yield lambda solver=solver: GraphCRF(solver=solver, max_iter=2).fit([graph], [list("abab")])
        yield lambda solver=solver: CRFClassifier(solver=solver, max_iter=2).fit(
            rows[0], [0, 1, 0, 1]
        )
    image = rng.normal(size=(2, 2, 2))
    yield lambda: GridCRF(max_iter=2).fit([image], [np.array([[0, 1], [1, 0]])]).predict([image])
    soft = [[{"a": 0.5, "b": 0.5}, {"a": 1.0}, {"b": 1.0}, {"a": 0.2, "b": 0.8}]] * 3
    yield lambda: ChainCRF(max_iter=2).fit(rows, soft)
    yield lambda: GridCRF("pseudo_likelihood", max_iter=2).fit([image], [np.eye(2, dtype=int)])


def _text() -> Iterator[Callable[[], object]]:
    texts = {
        "conll": b"# x\nthe D\ncat N\n\nsees V\n",
        "crfsuite": b"D\tw=the\tp:0.5\nN\tw=cat\n\n",
        "jsonl": b'{"tokens": ["the"], "labels": ["D"]}\n',
        "conllu": b"1\tthe\t_\tDET\t_\t_\t0\troot\t_\t_\n\n",
    }
    for name, text in texts.items():
        yield lambda name=name, text=text: list(FORMATS.get(name)().read(io.BytesIO(text)))
        yield lambda name=name, text=text: list(FORMATS.get(name)().read(io.BytesIO(text[:-7])))
    rows, y = [[["the", "D"], ["cat", "N"]], [["a", "D"]]], [["x", "y"], ["x"]]
    template = 'U:%x[0,0]\nU:%m[-1,0,"^a.?\\\\d*"]\nB:%t[0,1,"D"]\n'

    def round_trip() -> None:
        crf = ChainCRF(feature_template=template, max_iter=2).fit(rows, y)
        with tempfile.TemporaryDirectory() as folder:
            chordal.save(crf, f"{folder}/model")
            chordal.load(f"{folder}/model").predict(Columns.from_sequences(rows))
            ChainCRF(max_iter=2).fit(ChainCRF().prepare(f"{folder}/set", [[["a"]]], [["x"]]))
        columns = Columns.from_sequences(rows)
        FORMATS.get("conll")().encode_columns(columns, y)
        for block, size in FORMATS.get("conll")().passages(io.BytesIO(texts["conll"])):
            append_column(block, size, np.zeros(block.n_rows, np.int32), [" X"])

    yield round_trip
    yield lambda: Items.parsed(texts["crfsuite"], True)
    yield lambda: Items.parsed(texts["crfsuite"][:-7], False)


def main() -> None:
    """Run the cases under valgrind, and count what it found in our module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", action="store_true", help="run the cases, without valgrind")
    if parser.parse_args().cases:
        cases()
        return
    if shutil.which("valgrind") is None:
        sys.exit("there is no valgrind: install it (on Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        command = ["valgrind", "--tool=memcheck", "--leak-check=full", "--num-callers=40",
                   "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
                   "--error-limit=no", "--xml=yes", f"--xml-file={report}"]  # fmt: skip
        ran = subprocess.run(
            [*command, sys.executable, __file__, "--cases"],
            env={**os.environ, "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"},
        )
        errors, others = found_in(report)
    print(f"in kernels: {len(errors)} errors and leaks; elsewhere, not counted: {others}")
    for error in errors[:10]:
        print(error)
    sys.exit(1 if errors or ran.returncode else 0)


def found_in(report: str) -> tuple[list[str], int]:
    """What valgrind found with a frame of our module, and how much without."""
    ours, others = [], 0
    for error in ElementTree.parse(report).iter("error"):
        frames = [(f.findtext("obj") or "", f.findtext("fn") or "?") for f in error.iter("frame")]
        if any("_kernels" in where for where, _ in frames):
            what = error.findtext("what") or error.findtext("xwhat/text")
            stack = " < ".join(name for _, name in frames[:8])
            ours.append(f"{error.findtext('kind')}: {what}: {stack}")
        else:
            others += 1
    return ours, others


if __name__ == "__main__":
    main()
