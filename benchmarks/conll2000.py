"""CoNLL-2000 chunking with the attributes of CRFsuite's chunking example, and its F1.

Nothing but the standard library is imported here: this file is part of every measured process.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

Sentences = list[list[list[str]]]  # sentence, token, attribute
Tags = list[list[str]]

# Words and part-of-speech tags in a window of ±2, their bigrams, and trigrams of tags.
_W, _POS = 0, 1
_TEMPLATES: list[list[tuple[int, int]]] = [
    *([(_W, i)] for i in range(-2, 3)),
    *([(_W, i), (_W, i + 1)] for i in (-1, 0)),
    *([(_POS, i)] for i in range(-2, 3)),
    *([(_POS, i), (_POS, i + 1)] for i in range(-2, 2)),
    *([(_POS, i), (_POS, i + 1), (_POS, i + 2)] for i in range(-2, 1)),
]


class MissingFileError(Exception):
    """A data file that a benchmark needs is not there."""


def path(part: str) -> Path:
    """Where the part "train" or "test" lies."""
    folder = os.environ.get("CHORDAL_DATA")
    name = f"conll2000/{part}.txt.gz"
    if not folder:
        raise MissingFileError(f"$CHORDAL_DATA/{name} is missing: CHORDAL_DATA is not set")
    file = Path(folder) / name
    if not file.is_file():
        raise MissingFileError(f"{file} is missing (CHORDAL_DATA={folder})")
    return file


def load(part: str, limit: int | None = None) -> tuple[Sentences, Tags]:
    """Attributes and chunk tags of the first `limit` sentences."""
    X, y = [], []
    for columns in _sentences(path(part)):
        if len(X) == limit:
            break
        X.append(attributes(columns))
        y.append([row[2] for row in columns])
    return X, y


def _sentences(file: Path) -> Iterator[list[list[str]]]:
    rows: list[list[str]] = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                rows.append(line.split())
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows


def attributes(rows: list[list[str]]) -> list[list[str]]:
    """The attributes of each token of a sentence given as rows (word, tag, …).

    >>> attributes([["He", "PRP"], ["left", "VBD"]])[1][:3]
    ['w[-1]=He', 'w[0]=left', 'w[-1]|w[0]=He|left']
    """
    n = len(rows)
    tokens: list[list[str]] = [[] for _ in rows]
    for template in _TEMPLATES:
        prefix = "|".join(f"{('w', 'pos')[column]}[{offset}]" for column, offset in template) + "="
        first, last = template[0][1], template[-1][1]
        for t in range(max(0, -first), n - max(0, last)):
            values = [rows[t + offset][column] for column, offset in template]
            tokens[t].append(prefix + "|".join(values))
    tokens[0].append("__BOS__")
    tokens[-1].append("__EOS__")
    return tokens


def chunks(tags: Iterable[str]) -> set[tuple[int, int, str]]:
    """(start, end, type) of each chunk, by the rules of conlleval: a chunk begins at B, or at an
    I that continues nothing.

    >>> sorted(chunks(["B-NP", "I-NP", "I-VP", "O", "I-NP", "B-NP"]))
    [(0, 2, 'NP'), (2, 3, 'VP'), (4, 5, 'NP'), (5, 6, 'NP')]
    """
    found = set()
    start, current = 0, ""
    for t, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        if current and (prefix != "I" or kind != current):
            found.add((start, t, current))
            current = ""
        if not current and prefix != "O":
            start, current = t, kind
    return found


def f1(true: Tags, predicted: Tags) -> float:
    """Chunk F1 in percent: a chunk is right when its limits and its type are."""
    n_true = n_predicted = n_right = 0
    for gold, guess in zip(true, predicted, strict=True):
        a, b = chunks(gold), chunks(guess)
        n_true, n_predicted, n_right = n_true + len(a), n_predicted + len(b), n_right + len(a & b)
    return 200.0 * n_right / max(n_true + n_predicted, 1)
