"""The table: in the terminal, and in a Markdown file."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from benchmarks._run import Row

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
COLUMNS = ("what", "peer", "chordal", "ratio", "requirement")


def cells(row: Row) -> tuple[str, ...]:
    if row.problem:
        return (row.what, "", "", "", row.problem)
    return (row.what, row.peer, row.ours, row.ratio, row.verdict)


def terminal_table(rows: Sequence[Row]) -> Table:
    table = Table(*COLUMNS)
    for row in rows:
        bad = bool(row.problem) or row.met is False
        style = "bold red" if bad else "green" if row.met else None
        table.add_row(*map(escape, cells(row)), style=style)
    return table


def setting() -> list[str]:
    """Versions and machine."""
    packages = ("chordal", "python-crfsuite", "numpy", "scipy", "scikit-learn")
    versions = [f"Python {platform.python_version()}", *(f"{p} {_version(p)}" for p in packages)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        ", ".join(versions),
        f"{_cpu()}, {cores} cores, {platform.system()} {platform.machine()}, "
        f"compiled loops for {_instruction_set()}",
    ]


def load_warning() -> str | None:
    """What to say when other programs are using the processor."""
    if not hasattr(os, "getloadavg"):
        return None
    load = os.getloadavg()[0]
    if load < 0.5:
        return None
    return f"Other programs were running at the start (load average {load:.1f}): times are noisy."


def markdown(rows: Sequence[Row], notes: Sequence[str]) -> str:
    facts = [f"Measured on {datetime.date.today():%Y-%m-%d}", *setting(), *notes]
    lines = [*(f"- {fact}" for fact in facts), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---|--:|--:|--:|---|"]
    for row in rows:
        line = [cell.replace("|", "\\|").replace("\n", " ") for cell in cells(row)]
        if row.met is False or row.problem:
            line[-1] = f"**{line[-1]}**"
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines)


def rewrite(path: Path, block: str) -> None:
    """Replace what stands between the marks; everything else in the file stays."""
    text = path.read_text(encoding="utf-8")
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(f"{text[:before]}\n{block}\n{text[after:]}", encoding="utf-8")


def check_marks(path: Path) -> None:
    """Complain before hours of measuring, not after."""
    if not path.is_file():
        raise ValueError(f"{path} is not a file")
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(
            f"{path} must hold the lines {BEGIN!r} and {END!r}, once and in this order"
        )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def _instruction_set() -> str:
    from chordal import _kernels

    return str(_kernels.instruction_set())
