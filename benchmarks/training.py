"""Whole training on CoNLL-2000, from lists of strings to a model: time, memory, optimum, F1."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import conll2000
from benchmarks._run import ROOT, Part, Row, Run, megabytes

Result = dict[str, Any]

TEST_LIMIT_QUICK = 200
TOOLS = {"CRFsuite": ("crfsuite", 1), "1": ("chordal", 1), "2": ("chordal", 2)}
TOLERANCE = 0.0005  # of an objective, relatively


def trained(run: Run, tool: str, n_jobs: int, c1: float, c2: float) -> Result:
    """Train in a fresh process; the model stays in the run's folder."""
    task = {
        "tool": tool,
        "n_jobs": n_jobs,
        "c1": c1,
        "c2": c2,
        "max_iter": 30 if run.quick else None,
        "train_limit": 500 if run.quick else None,
        "test_limit": TEST_LIMIT_QUICK if run.quick else None,
        "model": str(model_path(run, tool, c1, c2)),
    }
    conll2000.path("train"), conll2000.path("test")  # a missing file is said here
    name = "CRFsuite" if tool == "crfsuite" else f"chordal, {n_jobs} thread(s)"
    run.say(f"training {name}: reading CoNLL-2000")
    command = [sys.executable, "-m", "benchmarks._worker", json.dumps(task)]
    result: Result | None = None
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                message = json.loads(line)
                result = message.get("result")
                # Shown every tenth time: the terminal must not take a core's time.
                if message.get("iteration", 1) % 10 == 0:
                    run.say(
                        f"training {name}: iteration {message['iteration']}, "
                        f"objective {message['objective']:,.2f}"
                    )
        except BaseException:
            process.kill()
            raise
        code = process.wait()
        if code != 0 or result is None:
            errors.seek(0)
            raise RuntimeError(f"training {name} ended with status {code}:\n{errors.read()}")
    return result


def model_path(run: Run, tool: str, c1: float, c2: float) -> Path:
    return run.folder / f"{tool}-c1={c1:g}-c2={c2:g}.model"


def models(run: Run, c1: float, c2: float) -> tuple[Path, Path]:
    """Files with CRFsuite's model and ours, trained unless this run has done so before."""
    for tool in ("crfsuite", "chordal"):
        if not model_path(run, tool, c1, c2).exists():
            trained(run, tool, 2, c1, c2)
    return model_path(run, "crfsuite", c1, c2), model_path(run, "chordal", c1, c2)


def _rounds(run: Run, n: int, c1: float, c2: float) -> dict[str, list[Result]]:
    """Results of each tool, round by round, one after another."""
    results: dict[str, list[Result]] = {name: [] for name in TOOLS}
    for _ in range(n):
        for name, (tool, n_jobs) in TOOLS.items():
            results[name].append(trained(run, tool, n_jobs, c1, c2))
    return results


def _optimum(
    run: Run, what: str, results: dict[str, list[Result]], objective: float
) -> Iterator[Row]:
    """Rows that say whether both reach the same optimum, and how good the model is."""
    peer, ours = results["CRFsuite"][0], results["2"][0]
    difference = ours["objective"] / objective - 1.0
    yield Row(
        f"{what}: objective",
        f"{peer['objective']:,.2f}",
        f"{ours['objective']:,.2f}",
        f"{ours['objective'] / peer['objective'] - 1.0:+.3%}",
        f"{objective:,.2f} ± {TOLERANCE:.2%}",
        run.judged(abs(difference) <= TOLERANCE),
    )
    yield Row(
        f"{what}: test chunk F1",
        f"{peer['f1']:.2f}",
        f"{ours['f1']:.2f}",
        f"{ours['f1'] - peer['f1']:+.2f}",
        "≥ 93.6",
        run.judged(ours["f1"] >= 93.6),
    )


def _same_weights(what: str, results: dict[str, list[Result]]) -> Row:
    """Ours, of every round: the number of threads must not change a bit."""
    n = len({r["weights"] for name in ("1", "2") for r in results[name]})
    return Row(
        f"{what}: weights with 1 and 2 threads",
        ours="equal, bit for bit" if n == 1 else f"{n} different results",
        requirement="equal",
        met=n == 1,
    )


def _counts(result: Result) -> str:
    return f"{result['iterations']:,} ({result['evaluations']:,} evaluations)"


def _times(
    run: Run, what: str, results: dict[str, list[Result]], at_least: float | None = None
) -> Iterator[Row]:
    best = {name: min(r["seconds"] for r in found) for name, found in results.items()}
    yield run.speed(f"{what}: whole training, 1 thread", best["CRFsuite"], best["1"])
    yield run.speed(
        f"{what}: whole training, 2 threads", best["CRFsuite"], best["2"], at_least=at_least
    )


def _l2(run: Run) -> Iterator[Row]:
    results = _rounds(run, 1 if run.quick else 2, 0.0, 1.0)
    what = "CoNLL-2000, L2"
    yield from _times(run, what, results, at_least=6)
    peer, ours = (max(results[name], key=lambda r: r["peak"]) for name in ("CRFsuite", "2"))
    yield Row(
        f"{what}: peak memory of the process, 2 threads",
        megabytes(peer["peak"]),
        megabytes(ours["peak"]),
        f"{ours['peak'] / peer['peak']:.2f}",
        "≤ CRFsuite's",
        run.judged(ours["peak"] <= peer["peak"]),
    )
    beyond = [r["peak"] - r["inputs"] for r in (peer, ours)]
    yield Row(
        "… of that beyond the input lists (imports included)",
        megabytes(beyond[0]),
        megabytes(beyond[1]),
        f"{beyond[1] / beyond[0]:.2f}",
    )
    yield from _optimum(run, what, results, 13_139.36)
    yield _same_weights(what, results)
    peer, ours = results["CRFsuite"][0], results["2"][0]
    yield Row(f"{what}: iterations", _counts(peer), _counts(ours))


def _l1(run: Run) -> Iterator[Row]:
    results = _rounds(run, 1, 1.0, 0.0)
    what = "CoNLL-2000, L1"
    yield from _times(run, what, results)
    yield from _optimum(run, what, results, 16_889.4)
    yield _same_weights(what, results)
    peer, ours = results["CRFsuite"][0], results["2"][0]
    yield Row(
        f"{what}: non-zero weights",
        f"{peer['nonzero']:,}",
        f"{ours['nonzero']:,}",
        f"{ours['nonzero'] / peer['nonzero']:.2f}",
        "≤ 9,700",
        run.judged(ours["nonzero"] <= 9_700),
    )
    yield Row(
        f"{what}: iterations",
        _counts(peer),
        _counts(ours),
        f"{ours['iterations'] / peer['iterations']:.2f}",
        "≤ 309",
        run.judged(ours["iterations"] <= 309),
    )


ORDER = 2  # before tagging, which uses its models
PARTS: dict[str, Part] = {"l2": _l2, "l1": _l1}
