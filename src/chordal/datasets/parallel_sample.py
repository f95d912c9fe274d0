"""Sentences in two invented languages, with the words that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number

Links = set[tuple[int, int]]

ONSETS = [*"bdfgklmnprstvz", "br", "dr", "gr", "kl", "pr", "sk", "st", "tr"]
NUCLEI = [*"aeiou", "ai", "au", "ei"]
CODAS = ["", "", "", "n", "r", "s", "l", "m"]
#: How the target language spells words that both have from the same root.
RESPELLED = (("sk", "sh"), ("k", "c"), ("ei", "e"), ("au", "o"), ("z", "ts"), ("v", "w"))
#: Kinds of words: how many, the share that both languages have in common, and an ending each.
KINDS = {
    "noun": (160, 0.3, "", "a"),
    "verb": (70, 0.2, "en", "ir"),
    "adjective": (60, 0.3, "ik", "ico"),
    "adverb": (24, 0.0, "", ""),
    "preposition": (8, 0.0, "", ""),
    "name": (40, 1.0, "", ""),
}
ARTICLES, AND, OBJECT, NOT, NEVER = ("da", "ein"), ("und", "y"), "wo", ("ni", "pat"), "naka"


@dataclass(frozen=True)
class ParallelSample:
    """Sentence pairs with links (position in source, position in target).

    Attributes
    ----------
    source, target : list of lists of str
    sure : list of sets of pairs
        Links that an alignment should have: no word has two of them.
    possible : list of sets of pairs
        Links that it may have, the sure ones included.
    """

    source: list[list[str]]
    target: list[list[str]]
    sure: list[Links]
    possible: list[Links]

    @property
    def X(self) -> list[tuple[list[str], list[str]]]:
        """The pairs of sentences."""
        return list(zip(self.source, self.target, strict=True))

    @property
    def y(self) -> list[NDArray[np.int64]]:
        """For each word of the source, the place of the word it is surely linked to, or −1."""
        out = []
        for words, links in zip(self.source, self.sure, strict=True):
            targets = np.full(len(words), -1)
            for i, j in links:
                targets[i] = j
            out.append(targets)
        return out


def make_parallel_sample(
    n_sentences: int = 1000, random_state: int | np.random.Generator | None = 0
) -> ParallelSample:
    """Random sentences in an invented language and their translation into another.

    The second language puts the verb last, adjectives behind nouns and prepositions behind their
    nouns. It marks objects by a particle, drops most articles, and negates by one word instead of
    two. It may swap two sentences joined by "and". Some words are spelled alike, some have two
    translations, and some share a translation. Words are few and frequent, or many and rare, as in
    real text.

    Parameters
    ----------
    n_sentences : int
    random_state : int or Generator
        The same seed makes the same sentences.

    Examples
    --------
    >>> sample = make_parallel_sample(2, random_state=0)
    >>> len(sample.source), sorted(sample.sure[0])[:2] <= sorted(sample.possible[0])
    (2, True)
    """
    check_number("n_sentences", n_sentences, minimum=0, integer=True)
    rng = np.random.default_rng(random_state)
    languages = _Languages(rng)
    pairs = [languages.sentence() for _ in range(n_sentences)]
    columns = zip(*pairs, strict=True) if pairs else ([], [], [], [])
    return ParallelSample(*(list(column) for column in columns))


class _Word(NamedTuple):
    """A word of a sentence; words of both sides with one key are linked."""

    text: str
    key: int = 0  # 0: no link
    sure: bool = True


class _Phrase(NamedTuple):
    source: list[_Word]
    target: list[_Word]


class _Languages:
    """The dictionary and the grammar."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._used, self._keys = rng, set(ARTICLES + AND + NOT), 0
        self._used |= {OBJECT, NEVER}
        self._words = {kind: list(self._dictionary(kind)) for kind in KINDS}

    def _dictionary(self, kind: str) -> Iterator[tuple[str, list[str]]]:
        """Words of the source and their translations, the more frequent ones first."""
        count, alike, ending, its_ending = KINDS[kind]
        for k in range(count):
            root = self._root(2 if kind in ("adverb", "preposition") or k < count // 4 else 3)
            translations = [self._root(2 if k < count // 4 else 3) + its_ending]
            if self._rng.random() < alike:
                translations = [_respelled(root) + its_ending if kind != "name" else root]
            elif self._rng.random() < 0.25 and kind != "preposition":
                translations.append(self._root(3) + its_ending)
            yield root + ending, translations

    def _root(self, syllables: int) -> str:
        while True:
            parts = (self._pick(part) for _ in range(syllables) for part in (ONSETS, NUCLEI, CODAS))
            word = "".join(parts)
            if word not in self._used:
                self._used.add(word)
                return word

    def _pick(self, options: list[str] | tuple[str, ...]) -> str:
        return options[int(self._rng.integers(len(options)))]

    def _chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def _key(self) -> int:
        self._keys += 1
        return self._keys

    def _pair(self, kind: str) -> tuple[_Word, _Word]:
        """A word of this kind and its translation; the k-th is 1 / (k + 2) as frequent."""
        words, key = self._words[kind], self._key()
        frequency = 1.0 / (np.arange(len(words)) + 2.0)
        k = int(self._rng.choice(len(words), p=frequency / frequency.sum()))
        text, translations = words[k]
        return _Word(text, key), _Word(self._pick(translations), key)

    def _noun_phrase(self) -> tuple[_Phrase, int]:
        """The phrase, and the key of its noun."""
        if self._chance(0.15):
            name, its_name = self._pair("name")
            return _Phrase([name], [its_name]), name.key
        noun, its_noun = self._pair("noun")
        source, target = [noun], [its_noun]
        if self._chance(0.4):
            adjective, its_adjective = self._pair("adjective")
            source.insert(0, adjective)
            target.append(its_adjective)
        if self._chance(0.7):
            key = self._key()
            article = int(self._rng.integers(2))
            source.insert(0, _Word(ARTICLES[article], key))
            if self._chance(0.3):
                target.insert(0, _Word(("el", "un")[article], key))
        return _Phrase(source, target), noun.key

    def _clause(self) -> _Phrase:
        subject, _ = self._noun_phrase()
        verb, its_verb = self._pair("verb")
        source, target, at_end = [*subject.source, verb], [*subject.target], [its_verb]
        if self._chance(0.2):
            key = self._key()
            source[-1:] = [_Word(NOT[0], key), verb, _Word(NOT[1], key, sure=False)]
            at_end.insert(0, _Word(NEVER, key))
        if self._chance(0.8):
            thing, key = self._noun_phrase()
            source += thing.source
            target += [*thing.target, _Word(OBJECT, key, sure=False)]
        if self._chance(0.4):
            place, _ = self._noun_phrase()
            preposition, behind = self._pair("preposition")
            source += [preposition, *place.source]
            target += [*place.target, behind]
        if self._chance(0.35):
            adverb, its_adverb = self._pair("adverb")
            source.insert(0 if self._chance(0.5) else len(source), adverb)
            target.insert(0 if self._chance(0.5) else len(target), its_adverb)
        return _Phrase(source, target + at_end)

    def sentence(self) -> tuple[list[str], list[str], Links, Links]:
        """Words of both languages, sure and possible links."""
        source, target = self._clause()
        if self._chance(0.3):
            second, key = self._clause(), self._key()
            joint = [_Word(AND[1], key)]
            turned = self._chance(0.3)
            target = (
                [*second.target, *joint, *target] if turned else [*target, *joint, *second.target]
            )
            source = [*source, _Word(AND[0], key), *second.source]
        full_stop = self._key()
        source, target = [*source, _Word(".", full_stop)], [*target, _Word(".", full_stop)]
        possible = {
            (i, j): a.sure and b.sure
            for i, a in enumerate(source)
            for j, b in enumerate(target)
            if a.key == b.key
        }
        sure = {link for link, certain in possible.items() if certain}
        return [w.text for w in source], [w.text for w in target], sure, set(possible)


def _respelled(word: str) -> str:
    for old, new in RESPELLED:
        word = word.replace(old, new)
    return word
