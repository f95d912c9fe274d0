"""The command line beside crf_learn, wapiti and crfsuite: from a file to a model, and to tags.

Their programs are looked for in the folder $CHORDAL_PEERS, then on the PATH.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import conll2000
from benchmarks._run import Part, Row, Run, megabytes

TEMPLATE = """\
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
B
"""
QUICK_SENTENCES = 300


class MissingProgramError(Exception):
    """A program that is not here."""


@dataclass(frozen=True)
class Finished:
    seconds: float
    bytes: float  # peak memory
    text: str


def program(name: str) -> str:
    folder = os.environ.get("CHORDAL_PEERS")
    found = shutil.which(name, path=folder) if folder else None
    found = found or shutil.which(name)
    if found is None:
        raise MissingProgramError(
            f"{name} is not installed; set CHORDAL_PEERS to the folder that holds it"
        )
    return found


def _environment(folder: Path) -> dict[str, str]:
    """As after an installation: Python's bytecode is compiled once, and kept."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def run_program(arguments: list[str], folder: Path, output: Path | None = None) -> Finished:
    """Run to the end; what it prints is kept, or goes to a file."""
    script = (
        "import resource, subprocess, sys\n"
        "code = subprocess.call(sys.argv[1:])\n"
        "print('MAXRSS', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    with open(output or os.devnull, "wb") as file:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            stdout=file if output else subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=_environment(folder),
        )
        seconds = time.perf_counter() - start
    text = (done.stdout or b"").decode(errors="replace") + done.stderr.decode(errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"{arguments[0]} failed: {text[-500:]}")
    peak = int(re.findall(r"MAXRSS (\d+)", text)[-1])
    return Finished(seconds, peak * (1 if sys.platform == "darwin" else 1024), text)


def _files(run: Run) -> dict[str, Path]:
    """Plain text files, as all tools read them."""
    files = {name: run.folder / f"{name}.txt" for name in ("train", "test", "large", "template")}
    for name in ("train", "test"):
        with gzip.open(conll2000.path(name), "rt", encoding="utf-8") as file:
            sentences = file.read().strip().split("\n\n")
        sentences = sentences[: QUICK_SENTENCES if run.quick else None]
        files[name].write_text("\n\n".join(sentences) + "\n\n", encoding="utf-8")
    files["large"].write_text(
        files["test"].read_text(encoding="utf-8") * (2 if run.quick else 30), encoding="utf-8"
    )
    files["template"].write_text(TEMPLATE, encoding="utf-8")
    return files


def _chordal(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "chordal", *arguments]


def _training(run: Run) -> Iterator[Row]:
    files = _files(run)
    train, template = str(files["train"]), str(files["template"])
    model = {k: str(run.folder / f"{k}.model") for k in ("chordal", "crf++", "wapiti")}
    run.say("chordal train")
    ours = run_program(
        _chordal(
            *("train", "-t", template, "--l2", "1", "--pairs", "all", "-j", "2", "--json"),
            *(train, model["chordal"]),
        ),
        run.folder,
    )
    objective = _number(r'"objective": ([0-9.]+)', ours.text)
    peers: list[tuple[str, float, float, list[str], str]] = [
        (
            "wapiti",
            3,
            6,
            [
                *("train", "-p", template, "--algo", "l-bfgs", "--rho1", "0", "--rho2", "1"),
                # Its own rule, the error rate of five iterations, stops at 8,263: not yet there.
                *("--stopwin", "0", "--stopeps", "0.0002"),
                *("--nthread", "2", train, model["wapiti"]),
            ],
            r"obj=([0-9.]+)",
        ),
        (
            "crf_learn",
            10,
            15,
            ["-c", "1", "-p", "2", template, train, model["crf++"]],
            r"obj=([0-9.]+)",
        ),
    ]
    for name, at_least, goal, arguments, pattern in peers:
        run.say(f"{name}: minutes")
        what = f"training from a file, all pairs, 2 threads, beside {name}"
        try:
            theirs = run_program([program(name), *arguments], run.folder)
        except MissingProgramError as error:
            yield Row(what, problem=str(error))
            continue
        yield run.speed(what, theirs.seconds, ours.seconds, at_least=at_least, goal=goal)
        reached = _number(pattern, theirs.text)
        yield Row(
            "… objective",
            f"{reached:,.1f}",
            f"{objective:,.1f}",
            f"{objective / reached:.4f}",
            "≤ 1.001",
            run.judged(objective <= 1.001 * reached),
        )
        yield Row(
            "… peak memory",
            megabytes(theirs.bytes),
            megabytes(ours.bytes),
            f"{ours.bytes / theirs.bytes:.2f}×",
            "≤ 1×",
            run.judged(ours.bytes <= theirs.bytes),
        )


def _number(pattern: str, text: str) -> float:
    return float(re.findall(pattern, text)[-1].replace(",", ""))


def _tagging(run: Run) -> Iterator[Row]:
    files = _files(run)
    train, template, large = (str(files[k]) for k in ("train", "template", "large"))
    model = {k: str(run.folder / f"{k}.model") for k in ("chordal", "crf++", "wapiti", "crfsuite")}
    iterations = "5" if run.quick else "40"
    run.say("training models to tag with")
    for command in (
        _chordal("train", "-t", template, "--max-iter", iterations, "-q", train, model["chordal"]),
        _chordal("convert", model["chordal"], model["crfsuite"], "--to", "crfsuite"),
    ):
        run_program(command, run.folder)
    items = run.folder / "large.crfsuite"
    _write_items(files["large"], items)
    tasks: dict[str, Callable[[], list[str]]] = {
        "chordal": lambda: _chordal("tag", "-j", "1", model["chordal"], large),
        "crfsuite tag": lambda: [program("crfsuite"), "tag", "-m", model["crfsuite"], str(items)],
        "wapiti label": lambda: [program("wapiti"), "label", "-m", model["wapiti"], large],
        "crf_test": lambda: [program("crf_test"), "-m", model["crf++"], large],
    }
    makers = {
        "wapiti label": lambda: [
            *(program("wapiti"), "train", "-p", template, "--rho1", "1", "--rho2", "0.01"),
            *("--maxiter", iterations, "--nthread", "2", train, model["wapiti"]),
        ],
        "crf_test": lambda: [
            *(program("crf_learn"), "-f", "3", "-m", iterations, "-p", "2"),
            *(template, train, model["crf++"]),
        ],
    }
    n = sum(1 for line in files["large"].open(encoding="utf-8") if line.strip())
    problems: dict[str, str] = {}
    for name, maker in makers.items():
        run.say(f"training a model for {name}")
        try:
            run_program(maker(), run.folder)
        except MissingProgramError as error:
            problems[name] = str(error)
    best: dict[str, float] = {}
    out = run.folder / "tags.txt"
    for i in range(2 if run.quick else 4):
        run.say(f"tagging, round {i + 1}")
        for name, task in tasks.items():
            if name in problems:
                continue
            try:
                seconds = run_program(task(), run.folder, out).seconds
                best[name] = min(seconds, best.get(name, 1e9))
            except MissingProgramError as error:
                problems[name] = str(error)
    for name in list(tasks)[1:]:
        what = f"tagging a file of {n:,} tokens, start-up included, 1 thread, beside {name}"
        if name in problems:
            yield Row(what, problem=problems[name])
            continue
        rates = [n / best[k] / 1e3 for k in (name, "chordal")]
        yield run.ratio(
            what,
            f"{rates[0]:,.0f} k tokens/s",
            f"{rates[1]:,.0f} k tokens/s",
            rates[1] / rates[0],
            at_least=3,
        )


def _write_items(columns: Path, items: Path) -> None:
    """The attributes of the template in CRFsuite's own format."""
    from chordal import FeatureTemplate
    from chordal.formats import FORMATS, Record

    template = FeatureTemplate(TEMPLATE)
    records = (
        Record(template.attributes(record.rows), record.labels)
        for record in FORMATS.resolve("conll").read(str(columns))
    )
    FORMATS.resolve("crfsuite").write(records, str(items))


def _start(run: Run) -> Iterator[Row]:
    files = _files(run)
    model = str(run.folder / "start.model")
    run_program(
        _chordal(
            *("train", "-t", str(files["template"]), "--max-iter", "3", "-q"),
            *(str(files["train"]), model),
        ),
        run.folder,
    )
    empty = run.folder / "empty.txt"
    empty.write_text("")
    for what, arguments, limit in (
        ("chordal --help", ["--help"], 0.3),
        ("chordal tag, empty input", ["tag", model, str(empty)], 0.5),
    ):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run(
                _chordal(*arguments),
                check=True,
                stdout=subprocess.DEVNULL,
                env=_environment(run.folder),
            )
            times.append(time.perf_counter() - start)
        yield Row(
            what, "", f"{min(times):.2f} s", "", f"< {limit} s", run.judged(min(times) < limit)
        )


ORDER = 5
PARTS: dict[str, Part] = {"training": _training, "tagging": _tagging, "start": _start}
