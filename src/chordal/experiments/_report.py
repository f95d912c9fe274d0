"""Running experiments, and what is written about them: one page and one JSON file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import chordal
from chordal.experiments._base import Experiment, Finished, Row, Setup
from chordal.experiments._page import page


def reproduce(
    experiments: Sequence[tuple[str, Experiment]],
    out: str | Path,
    setup: Setup | None = None,
    started: Callable[[str, Experiment], None] = lambda name, experiment: None,
    ended: Callable[[Finished], None] = lambda finished: None,
) -> list[Finished]:
    """Run experiments in turn; `out` gets index.html and results.json, renewed after each.

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
            outcome = experiment.run(setup)
            if setup.quick:
                outcome.rows = [replace(row, judged=False) for row in outcome.rows]
        except (FileNotFoundError, ImportError) as error:
            problem = str(error)
        finished = Finished(name, experiment, outcome, problem, time.perf_counter() - begin)
        done.append(finished)
        ended(finished)
        _write(folder / "results.json", json.dumps(results(done, setup), indent=1) + "\n")
        _write(folder / "index.html", page(done, setup))
    return done


def results(done: Sequence[Finished], setup: Setup) -> dict[str, Any]:
    """All figures, for programs. Only `seconds` differ from run to run."""
    return {
        "chordal": chordal.__version__,
        "quick": setup.quick,
        "experiments": {
            finished.name: {
                "title": finished.experiment.title,
                "data": finished.experiment.data,
                "split": finished.experiment.split,
                "model": finished.experiment.model,
                "source": finished.experiment.source,
                "seed": finished.experiment.seed,
                "problem": finished.problem,
                "rows": [_row(row) for row in finished.outcome.rows] if finished.outcome else [],
                "tables": [
                    {"title": t.title, "head": list(t.head), "rows": [_cells(r) for r in t.rows]}
                    for t in (finished.outcome.tables if finished.outcome else [])
                ],
                "notes": finished.outcome.notes if finished.outcome else [],
                "seconds": round(finished.seconds, 1),
            }
            for finished in done
        },
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "what": row.what,
        "ours": row.ours,
        "spread": row.spread,
        "published": row.published,
        "must": row.must,
        "better": "lower" if row.lower else "higher",
        "verdict": row.verdict,
        "why": row.why,
    }


def _cells(row: Sequence[Any]) -> list[Any]:
    return [cell.item() if hasattr(cell, "item") else cell for cell in row]


def _write(path: Path, text: str) -> None:
    """Write beside the file, then take its place: a page that is open stays whole."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
