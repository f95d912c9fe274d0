"""Running experiments, and what is written about them: one page and one JSON file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any

import chordal
from chordal.execution import one_blas_thread
from chordal.experiments._base import Experiment, Finished, Outcome, Row, Setup
from chordal.experiments._page import page

FACTS = ("title", "about", "data", "split", "model", "source", "seed")


def reproduce(
    experiments: Sequence[tuple[str, Experiment]],
    out: str | Path,
    setup: Setup | None = None,
    started: Callable[[str, Experiment], None] = lambda name, experiment: None,
    ended: Callable[[Finished], None] = lambda finished: None,
) -> list[Finished]:
    """Run experiments in turn; `out` gets index.html and results.json, renewed after each.

    The page holds its pictures; they are also files in the folder images.
    Matrix products take one thread: their threads wait for each other in busy loops, and beside
    other work that takes many times longer than one alone.
    An experiment without its data is reported as such, and the others go on.
    """
    setup = setup or Setup()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    done: list[Finished] = []
    for name, experiment in experiments:
        started(name, experiment)
        begin, problem, outcome = time.perf_counter(), "", None
        try:
            with one_blas_thread():
                outcome = experiment.run(setup)
            if setup.quick:
                outcome.rows = [replace(row, judged=False) for row in outcome.rows]
        except (FileNotFoundError, ImportError) as error:
            problem = str(error)
        finished = Finished(name, experiment, outcome, problem, time.perf_counter() - begin)
        done.append(finished)
        ended(finished)
        for picture, file in zip(
            outcome.pictures if outcome else [], _files(finished), strict=True
        ):
            (folder / file).parent.mkdir(exist_ok=True)
            _write(folder / file, picture.png)
        found = json.dumps(results(done, setup), indent=1) + "\n"
        _write(folder / "results.json", found.encode())
        _write(folder / "index.html", page(done, setup).encode())
    return done


def results(done: Sequence[Finished], setup: Setup) -> dict[str, Any]:
    """All that was found, for programs. Only `seconds` differ from run to run."""
    return {
        "chordal": chordal.__version__,
        "quick": setup.quick,
        "experiments": {finished.name: _finished(finished) for finished in done},
    }


def _finished(finished: Finished) -> dict[str, Any]:
    e, outcome = finished.experiment, finished.outcome or Outcome()
    return {
        **{fact: getattr(e, fact) for fact in FACTS},
        "problem": finished.problem,
        "rows": [_row(row) for row in outcome.rows],
        "tables": [
            {"title": t.title, "head": list(t.head), "rows": [_cells(r) for r in t.rows]}
            for t in outcome.tables
        ],
        "pictures": [
            {"title": p.title, "caption": p.caption, "alt": p.alt, "file": file}
            for p, file in zip(outcome.pictures, _files(finished), strict=True)
        ],
        "samples": [asdict(samples) for samples in outcome.samples],
        "notes": outcome.notes,
        "seconds": round(finished.seconds, 1),
    }


def _files(finished: Finished) -> list[str]:
    """Where pictures are, within the folder of the report."""
    pictures = finished.outcome.pictures if finished.outcome else []
    return [f"images/{finished.name}-{k + 1}.png" for k in range(len(pictures))]


def _row(row: Row) -> dict[str, Any]:
    return {
        "what": row.what,
        **{k: _number(getattr(row, k)) for k in ("ours", "spread", "published", "must")},
        "better": "lower" if row.lower else "higher",
        "digits": row.digits,
        "verdict": row.verdict,
        "why": row.why,
    }


def _number(value: float | None) -> float | None:
    """JSON has no infinity: a figure that was never reached is null."""
    return None if value is None or not isfinite(value) else float(value)


def _cells(row: Sequence[Any]) -> list[Any]:
    return [cell.item() if hasattr(cell, "item") else cell for cell in row]


def _write(path: Path, content: bytes) -> None:
    """Write a new file, then replace the old one: an open page is never half written."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.replace(path)
