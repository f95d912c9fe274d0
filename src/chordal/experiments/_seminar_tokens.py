"""Attributes of tokens in announcements of seminars, and pairs of words that may be one name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from chordal.datasets import Seminars

Tokens = list[list[str]]  # the attributes of each token
Lists = dict[str, set[str]]

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
#: Other announcements that have a word which is an attribute by itself.
KNOWN = 2
CAPITALISED = re.compile(r"[A-Z][A-Za-z'-]+")
#: A time of the day, in words with a space between them.
CLOCK = re.compile(
    r"(?<!\S)(?:(?:[01]?\d|2[0-4])(?: : \d\d(?: (?:am|pm|noon|[ap] \. m(?: \.)?))?"
    r"| (?:am|pm|noon|[ap] \. m(?: \.)?))|noon|midnight)(?!\S)"
)
UNTIL = {"-", "to", "until", "till"}
#: What Sutton and McCallum see of a word's letters.
PUBLISHED_SHAPES = [
    re.compile(pattern)
    for pattern in (
        r"[A-Z][a-z]+",
        r"[A-Z][A-Z]+",
        r"[A-Z]",
        r"[A-Z]+",
        r"[A-Z]+[a-z]+[A-Z]+[a-z]+",
    )
]
HONORIFICS = {"dr", "mr", "mrs", "ms", "phd", "prof", "professor", "sir"}
DATE = re.compile(
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|may|june?|july?|sept?"
    r"|(?:jan|febr)(?:uary)?|feb|mar(?:ch)?|apr(?:il)?|aug(?:ust)?"
    r"|(?:septem|octo|novem|decem)ber|oct|nov|dec"
)


class Lexicon:
    """Lists of words with the number of training announcements that put a word there.

    `word` are all words, `common` those in small letters, `name` those of "PostedBy" lines, which
    hold people's names, `speaker` those of speakers. What an announcement itself put there does
    not count in its own attributes: a word of an announcement to be labelled has no such help.
    """

    def __init__(self, train: Seminars) -> None:
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, tags in zip(train.words, train.y, strict=True):
            for name, found in _lists(words, tags).items():
                self.counts[name].update(found)

    def of(self, word: str, own: Lists) -> Iterator[str]:
        """In which lists of other announcements a word is."""
        word = word.lower()
        for name, least in (("word", KNOWN), ("name", 1), ("speaker", 1), ("common", 1)):
            if self.counts[name][word] - (word in own.get(name, ())) >= least:
                yield f"w={word}" if name == "word" else name


def _lists(words: Sequence[str], tags: Sequence[str]) -> Lists:
    """What an announcement puts into the lists."""
    tagged = zip(words, tags, strict=True)
    return {
        "word": {word.lower() for word in words},
        "common": {word for word in words if word.islower()},
        "name": poster(words),
        "speaker": {w.lower() for w, t in tagged if t.endswith("speaker") and w[0].isalpha()},
    }


def poster(words: Sequence[str]) -> set[str]:
    """Who posted an announcement: the words from "PostedBy:" to "on"."""
    if "PostedBy" not in words:
        return set()
    first = list(words).index("PostedBy") + 2
    rest = list(words[first : first + 6])
    names = rest[: rest.index("on")] if "on" in rest else []
    return {word.lower() for word in names if CAPITALISED.match(word)}


def tokens(data: Seminars, lexicon: Lexicon, train: bool) -> list[Tokens]:
    """The attributes of every token: its own, and those of its neighbours."""
    made = []
    for words, starts, tags in zip(data.words, data.line_start, data.y, strict=True):
        own = _lists(words, tags) if train else {}
        posters, clock = poster(words), clocks(words)
        texts = [[*_shapes(word), *lexicon.of(word, own)] for word in words]
        for word, text in zip(words, texts, strict=True):
            if word.lower() in posters:
                text.append("poster")
        plain = [[a for a in row if not a.startswith("w=")] for row in texts]
        rows = []
        for t, (header, place) in enumerate(line_headers(words, starts)):
            row = _window(texts, t)
            row += [f"line={header}", f"place={min(place, 6)}"]
            row += [f"line={header}|{look}" for look in plain[t]]
            row += [f"{a}|{b}" for a in _at(plain, t - 1) for b in _at(plain, t)]
            row += [f"{a}|{b}" for a in _at(plain, t) for b in _at(plain, t + 1)]
            row += [text for look in clock[t] for text in (look, f"{look}|{header}")]
            rows.append(row)
        made.append(rows)
    return made


def published_tokens(
    data: Seminars, lexicon: Lexicon, train: bool, speech: Sequence[Sequence[str]]
) -> list[Tokens]:
    """What Sutton and McCallum list: words, shapes, lists, times, dates and parts of speech.

    All of these for the token and for four to each side. `speech` are the parts of speech. The
    published lists of names are not available; names of the training texts are used instead.
    """
    made = []
    for words, tags, parts in zip(data.words, data.y, speech, strict=True):
        own = _lists(words, tags) if train else {}
        texts = []
        for word, part, clock in zip(words, parts, clocks(words), strict=True):
            text = [f"s{k}" for k, shape in enumerate(PUBLISHED_SHAPES) if shape.fullmatch(word)]
            text += [look for look in lexicon.of(word, own) if look != "common"]
            text += [look for look in clock if look in ("clock-", "-clock")]
            text += ["honorific"] * (word.lower() in HONORIFICS)
            text += ["date"] * bool(DATE.fullmatch(word.lower()))
            texts.append([*text, f"T={part}"])
        made.append([_window(texts, t) for t in range(len(words))])
    return made


def _window(texts: Tokens, t: int) -> list[str]:
    return [f"{d}:{a}" for d in range(-WINDOW, WINDOW + 1) for a in _at(texts, t + d)]


def _at(rows: Sequence[list[str]], t: int) -> list[str]:
    return rows[t] if 0 <= t < len(rows) else ["outside"]


def _shapes(word: str) -> list[str]:
    return [name for name, pattern in SHAPES if pattern.fullmatch(word)]


def clocks(words: Sequence[str]) -> Tokens:
    """Of tokens that are part of a time: whether it is the first, begins or ends a range."""
    looks: Tokens = [[] for _ in words]
    text = " ".join(words).lower()
    for k, found in enumerate(CLOCK.finditer(text)):
        first = text.count(" ", 0, found.start())
        last = first + found[0].count(" ")
        of_all = ["clock"]
        if last + 1 < len(words) and words[last + 1].lower() in UNTIL:
            of_all.append("clock-")
        if first > 0 and words[first - 1].lower() in UNTIL:
            of_all.append("-clock")
        if k == 0:
            of_all.append("first clock")
        for t in range(first, last + 1):
            looks[t] = of_all
    return looks


def line_headers(words: Sequence[str], starts: Sequence[bool]) -> list[tuple[str, int]]:
    """What stands before the colon of each token's line, and the token's place in the line."""
    made = []
    header, place = "", 0
    for t, (word, start) in enumerate(zip(words, starts, strict=True)):
        if start:
            header, place = word.lower() if ":" in words[t + 1 : t + 3] else "", 0
        made.append((header, place))
        place += 1
    return made


def skip_edges(words: Sequence[str]) -> list[tuple[int, int]]:
    """Each capitalised word and its next mention in the text, unless they stand side by side."""
    where = defaultdict(list)
    for t, word in enumerate(words):
        if CAPITALISED.fullmatch(word):
            where[word.lower()].append(t)
    return [(i, j) for places in where.values() for i, j in pairwise(places) if j - i > 1]


def joined(words: Sequence[str], rows: Tokens, edges: Iterable[tuple[int, int]]) -> Tokens:
    """What is seen of each pair of mentions.

    The single attributes at either of them, but for words; and whether they follow, or precede,
    equal words.
    """
    single = [{a for a in row if "|" not in a and ":w=" not in a} for row in rows]
    around = ["", *(word.lower() for word in words), ""]  # one further than the words
    made = []
    for i, j in edges:
        seen = single[i] | single[j]
        seen |= {"equal before"} if around[i] == around[j] else set()
        seen |= {"equal after"} if around[i + 2] == around[j + 2] else set()
        made.append(sorted(seen))
    return made
