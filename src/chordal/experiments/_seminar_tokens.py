"""Attributes of tokens in announcements of seminars, and pairs of words that may be one name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from chordal.datasets import Seminars

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
