"""`python -m benchmarks.acceptance`: real projects, with python-crfsuite and with chordal.

Makes an environment, installs projects from PyPI and chordal from this folder, and lets each
answer the same inputs twice: with the real package, and after `chordal.compat.install()`. Answers
must be the same, probabilities within 1e-9. Needs nothing but Python, a compiler and the network.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._acceptance_projects import PROJECTS

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("_acceptance_projects.py")
SUITE = Path(__file__).with_name("_acceptance_suite.py")
SUITES = ("python-crfsuite", "sklearn-crfsuite")  # whose own tests must end alike
BEGIN, END = "<!-- acceptance: begin -->", "<!-- acceptance: end -->"


class Row(NamedTuple):
    """A case of a project: what was compared, and how it went."""

    project: str
    case: str
    inputs: int = 0
    same: int = 0
    difference: float | None = None
    seconds: tuple[float, float] = (0.0, 0.0)
    tolerance: float = 0.0
    ties: int = 0  # other answers of the same probability
    problem: str = ""

    @property
    def good(self) -> bool:
        if self.problem:
            return not self.problem.startswith("FAILED")
        return self.same + self.ties == self.inputs and (self.difference or 0.0) <= self.tolerance

    def cells(self) -> list[str]:
        if self.problem:
            return [self.project, self.case, "", "", "", "", "", self.problem]
        theirs, ours = self.seconds
        if theirs == ours == 0.0:
            return [self.project, self.case, str(self.inputs), str(self.same), "", "", "", ""]
        difference = "" if self.difference is None else f"{self.difference:.0e}"
        times = [f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.1f}×"]
        ties = f" and {self.ties} ties" if self.ties else ""
        counts = [f"{self.inputs:,}", f"{self.same:,}{ties}"] if self.inputs > 1 else ["", ""]
        return [self.project, self.case, *counts, difference, *times]


HEAD = [
    "project", "what", "inputs", "same answer", "largest difference of probabilities",
    "python-crfsuite, s", "chordal, s", "speed",
]  # fmt: skip


def main() -> int:
    known = ", ".join((*SUITES, *PROJECTS))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acceptance", description=__doc__)
    parser.add_argument("projects", nargs="*", help=f"of {known}; by default all")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-acceptance")
    parser.add_argument("--inputs", type=int, default=2000, help="for each case (2000)")
    parser.add_argument("--chordal", type=Path, help="a folder with chordal, not to be installed")
    parser.add_argument("--markdown", type=Path, help="write the table between the marks of a file")
    options = parser.parse_args()
    python = environment(options.venv)
    problem = "" if options.chordal else installed(python, str(ROOT))
    if problem:
        raise SystemExit(problem)
    rows: list[Row] = []
    for project in options.projects or (*SUITES, *PROJECTS):
        if project in SUITES:
            found = [suite(project, python, options.chordal)]
        else:
            found = compared(project, python, options.inputs, options.chordal)
        for row in found:
            print(" | ".join(row.cells()), "" if row.good else "  <-- DIFFERENT", flush=True)
        rows += found
    if options.markdown:
        replaced(options.markdown, table(rows, python))
    bad = sum(not row.good for row in rows)
    print(f"{len(rows)} cases, {bad} different" if bad else f"{len(rows)} cases, none different")
    return bool(bad)


def environment(folder: Path) -> Path:
    """The interpreter of an environment with the real packages."""
    if not folder.exists():
        venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    problem = installed(python, "python-crfsuite", "sklearn-crfsuite", "numpy", "joblib")
    if problem:
        raise SystemExit(problem)
    return python


def installed(python: Path, *requirements: str) -> str:
    """Install; returns what went wrong."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # A build of its own: the folder's may belong to an install that follows the sources.
    own = {**os.environ, "SKBUILD_BUILD_DIR": str(ROOT / "build" / "acceptance")}
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, env=own)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")]
    return f"skipped: pip install {requirements[0]}: {(lines or ['failed'])[-1]}"


def compared(project: str, python: Path, n: int, chordal: Path | None) -> list[Row]:
    """The rows of a project."""
    problem = installed(python, project)
    if problem:
        return [Row(project, "", problem=problem)]
    with tempfile.TemporaryDirectory() as name:
        for which in ("theirs", "ours"):
            problem = run(python, chordal, which, WORKER, project, which, str(n), name)
            if problem:
                return [Row(project, "", problem=problem)]
        return joined(project, *(lines(Path(name) / f"{w}.jsonl") for w in ("theirs", "ours")))


def run(python: Path, chordal: Path | None, which: str, *arguments: str | Path) -> str:
    """Run a script in the environment; returns what went wrong."""
    path = {"PYTHONPATH": str(chordal)} if chordal and which == "ours" else {}
    command = [str(python), *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **path}, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return f"FAILED with {which}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"


def suite(package: str, python: Path, chordal: Path | None) -> Row:
    """The package's own tests, from its source archive."""
    problem = installed(python, "pytest", "scikit-learn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", name, package]
        if problem or subprocess.run(command, capture_output=True).returncode:
            return Row(package, "", problem=problem or "skipped: no source archive")
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(folder / "all", filter="data")
        (sources,) = (folder / "all").iterdir()
        # The tests alone: next to them, the sources would be imported.
        shutil.copytree(sources / "tests", folder / "own" / "tests")
        found = []
        for which in ("theirs", "ours"):
            out = folder / f"{which}.json"
            problem = run(python, chordal, which, SUITE, which, folder / "own", out)
            if problem:
                return Row(package, "", problem=problem)
            found.append(json.loads(out.read_text("utf-8")))
    theirs, ours = found
    tests = theirs.keys() | ours.keys()
    same = sum(theirs.get(test) == ours.get(test) for test in tests)
    ends = ", ".join(f"{count} {end}" for end, count in Counter(theirs.values()).items())
    return Row(package, f"its own tests ({ends})", len(tests), same)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def joined(project: str, theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> list[Row]:
    rows = []
    for a, b in zip(theirs, ours, strict=True):
        if "skip" in a or "skip" in b:
            rows.append(Row(project, "", problem=f"skipped: {a.get('skip') or b.get('skip')}"))
            continue
        same = sum(x == y for x, y in zip(a["answers"], b["answers"], strict=True))
        difference = None
        if a["numbers"] is not None:
            pairs = zip(a["numbers"], b["numbers"], strict=True)
            difference = max(abs(p - q) for x, y in pairs for p, q in zip(x, y, strict=True))
        seconds = (a["seconds"], b["seconds"])
        n, tolerance = len(a["answers"]), a["tolerance"]
        rows.append(Row(project, a["case"], n, same, difference, seconds, tolerance, b["ties"]))
    return rows


def table(rows: list[Row], python: Path) -> str:
    """Markdown, with the versions."""
    projects = sorted({row.project.partition("<")[0] for row in rows} - set(SUITES))
    names = [*SUITES, *projects]
    script = (
        "import sys; from importlib.metadata import version as v, PackageNotFoundError as E\n"
        "for n in sys.argv[1:]:\n"
        "    try: print(n, v(n))\n"
        "    except E: pass"
    )
    done = subprocess.run([str(python), "-c", script, *names], capture_output=True, text=True)
    versions = ", ".join(done.stdout.strip().splitlines())
    written = [
        f"Python {platform.python_version()}; {versions}.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
        *("| " + " | ".join(row.cells()) + " |" for row in rows),
    ]
    return "\n".join(written)


def replaced(path: Path, text: str) -> None:
    """Put the text between the marks of a file."""
    old = path.read_text("utf-8")
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
