"""`python -m benchmarks [name …]`: measures, prints a table, says what does not meet its mark."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
import traceback
from pathlib import Path

from rich.console import Console

import benchmarks
from benchmarks import _report
from benchmarks._run import Part, Row, Run
from benchmarks.conll2000 import MissingFileError
from chordal.progress import Progress, say_line


def parts() -> dict[str, Part]:
    """Every part of every subject, "training.l2" and so on: the files of this folder."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] != "_"]
    modules = [importlib.import_module(f"benchmarks.{name}") for name in names]
    subjects = [module for module in modules if hasattr(module, "PARTS")]
    subjects.sort(key=lambda subject: subject.ORDER)
    return {
        f"{subject.__name__.rpartition('.')[2]}.{name}": part
        for subject in subjects
        for name, part in subject.PARTS.items()
    }


def chosen(names: list[str], known: dict[str, Part]) -> dict[str, Part]:
    """The parts that the names mean: a subject or one part of it."""
    for name in names:
        if not any(name in (part, part.partition(".")[0]) for part in known):
            subjects = sorted({part.partition(".")[0] for part in known} | set(known))
            raise SystemExit(f"unknown benchmark {name!r}; there are: {', '.join(subjects)}")
    return {
        part: measure
        for part, measure in known.items()
        if not names or part in names or part.partition(".")[0] in names
    }


def measured(name: str, part: Part, run: Run) -> list[Row]:
    """The rows of a part; a failure becomes a row that says so."""
    rows: list[Row] = []
    try:
        rows.extend(part(run))
    except MissingFileError as error:
        rows.append(Row(name, problem=f"not measured: {error}"))
    except ModuleNotFoundError as error:
        rows.append(Row(name, problem=f"not measured: {error.name} is not installed"))
    except Exception as error:
        traceback.print_exc()
        reason = str(error).partition("\n")[0]
        rows.append(Row(name, met=False, problem=f"FAILED: {type(error).__name__}: {reason}"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="subjects, or parts of them")
    parser.add_argument("--quick", action="store_true", help="small sizes: tries, judges nothing")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="rewrite its table of results"
    )
    parser.add_argument(
        "--plots",
        action="store_true",
        help="draw docs/images/scaling.png (with --quick: report/scaling.png)",
    )
    parser.add_argument("--list", action="store_true", help="name the parts and stop")
    options = parser.parse_args()
    known = parts()
    if options.list:
        print("\n".join(known))
        return 0
    selected = chosen(options.names, known)
    if options.markdown:
        try:
            _report.check_marks(options.markdown)
        except ValueError as error:
            parser.error(str(error))

    notes = []
    if options.quick:
        notes.append("Quick run: small sizes, few repeats; not a measurement, nothing is judged.")
    if len(selected) < len(known):
        notes.append(f"Only {', '.join(selected)}.")
    if warning := _report.load_warning():
        notes.append(warning)
    rows: list[Row] = []
    # Drawn between timed sections only: ticks would take time from those measured.
    progress = Progress("benchmark", len(selected), "part")
    with progress, tempfile.TemporaryDirectory(prefix="chordal-benchmarks-") as folder:

        def say(text: str) -> None:
            progress.update(None, progress.figures[0], text, share=progress.share)

        run = Run(options.quick, options.plots, Path(folder), say)
        for k, (name, part) in enumerate(selected.items()):
            progress.update(k + 1, name, share=k / len(selected))
            found = measured(name, part, run)
            for row in found:  # now already: a long run may be interrupted
                say_line("  ".join(cell for cell in _report.cells(row) if cell))
            rows += found

    console = Console()
    console.print(*_report.setting(), *notes, sep="\n", highlight=False)
    console.print(_report.terminal_table(rows))
    missed = sum(row.met is False for row in rows)
    if missed:
        console.print(f"[bold red]{missed} not met")
    if options.markdown:
        _report.rewrite(options.markdown, _report.markdown(rows, notes))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
