"""Real processes on small files; a model trained once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[1,0]\nU3:%x[0,1]\nU4:%x[-1,1]/%x[0,1]\nB\n"
SENTENCES = [
    [("He", "PRP", "B-NP"), ("reckons", "VBZ", "B-VP"), ("the", "DT", "B-NP"),
     ("current", "JJ", "I-NP"), ("deficit", "NN", "I-NP")],
    [("The", "DT", "B-NP"), ("deficit", "NN", "I-NP"), ("will", "MD", "B-VP"),
     ("narrow", "VB", "I-VP"), (".", ".", "O")],
    [("the", "DT", "B-NP"), ("pound", "NN", "I-NP"), ("is", "VBZ", "B-VP"), (".", ".", "O")],
]  # fmt: skip


def as_text(sentences, separator=" ", labels=True):
    rows = [[separator.join(r if labels else r[:2]) for r in s] for s in sentences]
    return "\n\n".join("\n".join(lines) for lines in rows) + "\n\n"


def run(*arguments, input=b"", **options):
    """A process; input and output are bytes."""
    return subprocess.run(
        [sys.executable, "-m", "chordal", *map(str, arguments)],
        input=input,
        capture_output=True,
        timeout=300,
        check=False,
        **options,
    )


@pytest.fixture(scope="session")
def chordal():
    """chordal("tag", …): a finished process that must succeed; its standard output."""

    def command(*arguments, input=b"", **options):
        done = run(*arguments, input=input, **options)
        assert done.returncode == 0, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done.stdout

    return command


@pytest.fixture(scope="session")
def refused():
    """refused("tag", …, code=1): the one line of standard error of a command that must fail."""

    def command(*arguments, input=b"", code=1, **options):
        done = run(*arguments, input=input, **options)
        message = done.stderr.decode()
        assert done.returncode == code, message
        lines = message.splitlines()
        assert len(lines) == 1, message
        assert lines[0].startswith("error: ")
        return lines[0]

    return command


@pytest.fixture(scope="session")
def files(tmp_path_factory, chordal):
    """A folder with train.txt, template, and the model of them."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "train.txt").write_text(as_text(SENTENCES))
    (folder / "template").write_text(TEMPLATE)
    chordal("train", "-q", "-t", folder / "template", folder / "train.txt", folder / "model")
    return folder


@pytest.fixture(scope="session")
def conll2000(tmp_path_factory):
    """The first sentences of CoNLL-2000, as files train.txt and test.txt."""
    import gzip

    data = os.environ.get("CHORDAL_DATA")
    if not data or not (Path(data) / "conll2000").exists():
        pytest.skip("CHORDAL_DATA names no folder with conll2000")
    folder = tmp_path_factory.mktemp("conll2000")
    for name, n in (("train", 800), ("test", 400)):
        text = gzip.decompress((Path(data) / "conll2000" / f"{name}.txt.gz").read_bytes())
        (folder / f"{name}.txt").write_bytes(b"\n\n".join(text.split(b"\n\n")[:n]) + b"\n\n")
    return folder
