"""A short trial of an installed chordal: the command line, a tagger, threads.

    python tools/smoke.py

It needs nothing but what chordal installs. It stops at the first thing that is wrong, and prints
which compiled module was tried.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SENTENCES = "Anna B-PER\nsleeps O\n\nParis B-LOC\nsleeps O\n\nOld B-LOC\nTown I-LOC\n\n" * 20


def _command_line(folder: Path) -> None:
    """Train, tag and evaluate, by the program that was installed beside this Python."""
    program = Path(sysconfig.get_path("scripts")) / "chordal"
    (folder / "train.txt").write_text(SENTENCES, encoding="utf-8")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode:
            sys.exit(f"chordal {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    run("train", "--task", "ner", "train.txt", "names.model")
    tagged = run("tag", "names.model", "train.txt")
    if tagged.count("B-LOC") < 40:
        sys.exit(f"chordal tag gave {tagged[:200]!r}")
    (folder / "tagged.txt").write_text(tagged, encoding="utf-8")
    if "100.00" not in run("evaluate", "tagged.txt"):
        sys.exit("chordal evaluate: a model does not know what it learned")


def _tagger(folder: Path) -> None:
    """One tagger's model, asked by many threads."""
    from chordal.compat.pycrfsuite import Tagger, Trainer

    trainer = Trainer(verbose=False)
    x, y = [["w=Zoë", "upper"], {"w": "sleeps", "n": 2.0}], ["NAME", "O"]
    for _ in range(10):
        trainer.append(x, y)
    trainer.train(str(folder / "tagger.crfsuite"))

    def ask(_: int) -> bool:
        tagger = Tagger()
        tagger.open(str(folder / "tagger.crfsuite"))
        tagger.set(x)
        return tagger.tag() == y and tagger.probability(y) > 0.5

    with ThreadPoolExecutor(8) as pool:
        if not all(pool.map(ask, range(64))):
            sys.exit("a tagger does not know what it learned")


def main() -> None:
    """Try what is installed."""
    import chordal
    from chordal import _kernels

    if "site-packages" not in chordal.__file__:
        sys.exit(f"{chordal.__file__} is not an installed package")
    with tempfile.TemporaryDirectory() as folder:
        _command_line(Path(folder))
        _tagger(Path(folder))
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if sysconfig.get_config_var("Py_GIL_DISABLED") and gil:
        sys.exit("chordal, or what it needs, has turned the GIL on")
    version = ".".join(map(str, sys.version_info[:2])) + ("" if gil else ", without the GIL")
    print(f"chordal works: Python {version}, {Path(_kernels.__file__).name}")


if __name__ == "__main__":
    main()
