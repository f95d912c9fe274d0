"""Real data, read from the folder that CHORDAL_DATA names, and how others read it."""

import gzip
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("CHORDAL_DATA")
    if not folder:
        pytest.skip("CHORDAL_DATA is not set: it names the folder with the data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def require(data_folder):
    """require("a/b"): the path of a data file, or skip."""

    def path(name):
        found = data_folder / name
        if not found.exists():
            pytest.skip(f"CHORDAL_DATA has no {name}")
        return found

    return path


# -------------------------------------------------------------------------------------- CoNLL-2000

# The templates of CRFsuite's chunking example: which columns at which offsets make an attribute.
TEMPLATES = [
    *[[("w", i)] for i in range(-2, 3)],
    [("w", -1), ("w", 0)],
    [("w", 0), ("w", 1)],
    *[[("pos", i)] for i in range(-2, 3)],
    *[[("pos", i), ("pos", i + 1)] for i in range(-2, 2)],
    *[[("pos", i), ("pos", i + 1), ("pos", i + 2)] for i in range(-2, 1)],
]


NAMES = ["|".join(f"{column}[{offset}]" for column, offset in t) for t in TEMPLATES]


def attributes(sentence):
    """Lists of attribute strings; a template that leaves the sentence is skipped."""
    columns = {"w": [row[0] for row in sentence], "pos": [row[1] for row in sentence]}
    n = len(sentence)
    tokens = [
        [
            f"{name}={'|'.join([columns[column][t + offset] for column, offset in template])}"
            for name, template in zip(NAMES, TEMPLATES, strict=True)
            if t + template[0][1] >= 0 and t + template[-1][1] < n
        ]
        for t in range(n)
    ]
    tokens[0].append("__BOS__")
    tokens[-1].append("__EOS__")
    return tokens


def read_sentences(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    return [[line.split(" ") for line in block.splitlines()] for block in blocks]


def load_conll2000(require, n_train=None, n_test=None):
    parts = {}
    for name, limit in (("train", n_train), ("test", n_test)):
        sentences = read_sentences(require(f"conll2000/{name}.txt.gz"))[:limit]
        parts[name] = [attributes(s) for s in sentences], [[row[2] for row in s] for s in sentences]
    (X, y), (test_X, test_y) = parts["train"], parts["test"]
    return SimpleNamespace(X=X, y=y, test_X=test_X, test_y=test_y)


@pytest.fixture(scope="session")
def conll2000(require):
    """X, y, test_X and test_y of the chunking task."""
    return load_conll2000(require)


@pytest.fixture(scope="session")
def conll2000_start(require):
    """Its first 500 sentences, and 200 to test on."""
    return load_conll2000(require, 500, 200)


def chunks(tags):
    """(start, end, type), as conlleval reads tags: a stray I-x begins a chunk too."""
    found, start, kind = set(), 0, None
    for t, tag in enumerate([*tags, "O"]):
        prefix, _, following = tag.partition("-")
        goes_on = prefix == "I" and following == kind
        if kind is not None and not goes_on:
            found.add((start, t, kind))
        if not goes_on:
            start, kind = t, following or None
    return found


@pytest.fixture(scope="session")
def chunk_f1():
    """conlleval's F1, in percent."""

    def of(gold, predicted):
        counts = Counter()
        for g, p in zip(gold, predicted, strict=True):
            true, found = chunks(g), chunks(p)
            counts.update(true=len(true), found=len(found), both=len(true & found))
        return 200.0 * counts["both"] / (counts["true"] + counts["found"])

    return of
