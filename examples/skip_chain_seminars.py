"""Find speakers, places and times in announcements of seminars, with a chain and a skip-chain.

Run it by `python examples/skip_chain_seminars.py`; it reads the CMU seminar announcements from the
folder named by CHORDAL_DATA, and prints a table.

A linear chain labels each mention of a name by the words around it. A skip-chain adds an edge
between equal capitalised words of an announcement: what surrounds one mention ("Who: …") then
helps to label the others (Sutton and McCallum, 2004).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from chordal import ChainCRF, CliqueTemplate, TemplateCRF
from chordal.datasets import Seminars, load_seminars
from chordal.inference.loopy_bp import LoopyBPInference

Tokens = list[list[str]]  # the attributes of each token

SHAPES = [
    ("Xx", re.compile(r"[A-Z][a-z]+")),
    ("XX", re.compile(r"[A-Z][A-Z]+")),
    ("X", re.compile(r"[A-Z]")),
    ("XxXx", re.compile(r"[A-Z]+[a-z]+[A-Z]+[a-z]+")),
    ("x", re.compile(r"[a-z]+")),
    ("d", re.compile(r"[0-9]")),
    ("dd", re.compile(r"[0-9][0-9]")),
    ("d+", re.compile(r"[0-9]+")),
    ("xd", re.compile(r"[A-Za-z]+[0-9]+")),
    ("punct", re.compile(r"[^A-Za-z0-9]+")),
]
WINDOW = 4
RARE = 3
CAPITALISED = re.compile(r"[A-Z][A-Za-z'-]+")


class Lexicon:
    """Lists of words, made from the training announcements and their labels alone.

    `names` are the words of "PostedBy" lines, which hold people's names; `speakers` count the
    announcements in which a word is part of the speaker's name; `common` are words that were
    written in small letters. A word itself is an attribute only if `RARE` announcements have it:
    a chain that knows rare names by heart has no need to learn from what surrounds them.
    """

    def __init__(self, train: Seminars) -> None:
        self.names = {word.lower() for words in train.words for word in poster(words)}
        self.common = {word for words in train.words for word in words if word.islower()}
        self.speakers: Counter[str] = Counter()
        self.documents = Counter(w for words in train.words for w in {w.lower() for w in words})
        for words, tags in zip(train.words, train.y, strict=True):
            self.speakers.update(speaker_words(words, tags))

    def of(self, word: str, own: set[str]) -> Iterator[str]:
        """In which lists a word is; `own` are speakers of the announcement, which do not count."""
        word = word.lower()
        if self.documents[word] >= RARE:
            yield f"w={word}"
        if word in self.names:
            yield "name"
        if self.speakers[word] > (word in own):
            yield "speaker"
        if word in self.common:
            yield "common"


def poster(words: Sequence[str]) -> list[str]:
    """Who posted an announcement: the words from "PostedBy:" to "on"."""
    if "PostedBy" not in words:
        return []
    first = list(words).index("PostedBy") + 2
    rest = list(words[first : first + 6])
    return [w for w in rest[: rest.index("on")] if CAPITALISED.match(w)] if "on" in rest else []


def speaker_words(words: Sequence[str], tags: Sequence[str]) -> set[str]:
    return {w.lower() for w, tag in zip(words, tags, strict=True) if tag.endswith("speaker")}


def tokens(data: Seminars, lexicon: Lexicon, train: bool) -> list[Tokens]:
    """The attributes of every token: its own, and those of its neighbours."""
    made = []
    for words, starts, tags in zip(data.words, data.line_start, data.y, strict=True):
        own = speaker_words(words, tags) if train else set()
        texts = [[*shapes(word), *lexicon.of(word, own)] for word in words]
        plain = [[a for a in row if not a.startswith("w=")] for row in texts]
        headers, places = line_headers(words, starts)
        rows = []
        for t, word in enumerate(words):
            row = [f"{d}:{a}" for d in range(-WINDOW, WINDOW + 1) for a in at(texts, t + d)]
            row += [f"{end}={part}" for end, part in ends(word)]
            row += [f"line={headers[t]}", f"place={min(places[t], 6)}"]
            row += [f"line={headers[t]}|{look}" for look in plain[t]]
            row += [f"{a}|{b}" for a in at(plain, t - 1) for b in at(plain, t)]
            row += [f"{a}|{b}" for a in at(plain, t) for b in at(plain, t + 1)]
            rows.append(row)
        made.append(rows)
    return made


def at(rows: Sequence[list[str]], t: int) -> list[str]:
    return rows[t] if 0 <= t < len(rows) else ["outside"]


def shapes(word: str) -> list[str]:
    return [name for name, pattern in SHAPES if pattern.fullmatch(word)]


def ends(word: str) -> Iterator[tuple[str, str]]:
    """Prefixes and suffixes of up to four letters."""
    word = word.lower()
    for n in range(2, min(5, len(word))):
        yield "prefix", word[:n]
        yield "suffix", word[-n:]


def line_headers(words: Sequence[str], starts: Sequence[bool]) -> tuple[list[str], list[int]]:
    """What stands before the colon of each token's line, and the token's place in the line."""
    headers, places = [], []
    header, place = "", 0
    for t, (word, start) in enumerate(zip(words, starts, strict=True)):
        if start:
            place = 0
            following = list(words[t + 1 : t + 3])
            header = word.lower() if ":" in following else ""
        headers.append(header)
        places.append(place)
        place += 1
    return headers, places


def skip_edges(words: Sequence[str], most: int = 10) -> list[tuple[int, int]]:
    """Pairs of equal capitalised words, unless there are more than `most` of them."""
    where = defaultdict(list)
    for t, word in enumerate(words):
        if CAPITALISED.fullmatch(word):
            where[word.lower()].append(t)
    return [
        pair
        for places in where.values()
        if len(places) <= most
        for pair in combinations(places, 2)
        if pair[1] - pair[0] > 1
    ]


L2 = 4.0
FIELDS = ("stime", "etime", "location", "speaker")
Announcement = tuple[list[str], Tokens]  # words and their attributes


def skip_chain() -> TemplateCRF:
    """A chain whose equal capitalised words are joined; likelihood by loopy belief propagation."""

    def neighbours(x: Announcement) -> NDArray[np.int64]:
        return np.arange(len(x[0]) - 1)[:, None] + [0, 1]

    templates = [
        CliqueTemplate("tokens", features=lambda x: x[1]),
        CliqueTemplate("neighbours", neighbours, tables="full"),
        CliqueTemplate("skip", lambda x: np.array(skip_edges(x[0])).reshape(-1, 2), tables="full"),
    ]
    messages = LoopyBPInference(max_iter=10, tol=1e-3)
    l2 = {"tokens": L2, "skip": 1.0}
    return TemplateCRF(templates, inference=messages, l2=l2, max_iter=60, tol=1e-3)


def token_f1(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, float]:
    """F1 of each field, counting tokens, as Sutton and McCallum do."""
    scores = {}
    for field in FIELDS:
        true, said = (
            np.array([str(tag).endswith(field) for tags in y for tag in tags])
            for y in (gold, found)
        )
        scores[field] = float(2.0 * (true & said).sum() / max(1, true.sum() + said.sum()))
    return scores


def main() -> dict[str, dict[str, float]]:
    """F1 of every field, by model."""
    train, test = load_seminars("train"), load_seminars("test")
    lexicon = Lexicon(train)
    X, X_test = tokens(train, lexicon, train=True), tokens(test, lexicon, train=False)
    chain = ChainCRF(l2=L2, max_iter=80, tol=1e-3).fit(X, train.y)
    found = {"linear chain": token_f1(test.y, chain.predict(X_test))}
    pairs, pairs_test = (
        list(zip(d.words, x, strict=True)) for d, x in ((train, X), (test, X_test))
    )
    skip = skip_chain().fit(pairs, train.y)
    found["skip-chain"] = token_f1(test.y, skip.predict(pairs_test))
    table = Table(title="F1 by field, counting tokens", title_justify="left")
    for column in ("Model", *FIELDS, "mean"):
        table.add_column(column)
    for name, scores in found.items():
        values = [*scores.values(), float(np.mean(list(scores.values())))]
        table.add_row(name, *(f"{value:.3f}" for value in values))
    Console().print(table)
    return found


if __name__ == "__main__":
    main()
