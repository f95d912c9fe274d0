"""How well fields of announcements are found, and what equal words could add at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from chordal.experiments._seminar_tokens import CAPITALISED

FIELDS = ("stime", "etime", "location", "speaker")
Labels = list[list[str]]


def fields(y: Sequence[Sequence[str]]) -> Labels:
    """Tags without "B-" and "I-": mentions of a name differ in where it begins."""
    return [[tag.removeprefix("B-").removeprefix("I-") for tag in tags] for tags in y]


def f1(gold: Labels, found: Labels) -> list[float]:
    """F1 of each field in percent, counting tokens."""
    true, said = (np.array([tag for tags in y for tag in tags]) for y in (gold, found))
    scores = []
    for field in FIELDS:
        both = ((true == field) & (said == field)).sum()
        scores.append(float(200.0 * both / max(1, (true == field).sum() + (said == field).sum())))
    return scores


def inconsistent(words: Sequence[Sequence[str]], gold: Labels, found: Labels) -> list[int]:
    """Of each field, the tokens that are missed though an equal one of the text is found."""
    wrong = [0] * len(FIELDS)
    for text, true, said in zip(words, gold, found, strict=True):
        triples = list(zip(text, true, said, strict=True))
        right = {(word, a) for word, a, b in triples if a == b}
        for k, field in enumerate(FIELDS):
            wrong[k] += sum(a == field != b and (word, a) in right for word, a, b in triples)
    return wrong


def agreed(words: Sequence[Sequence[str]], gold: Labels, found: Labels) -> Labels:
    """What is found, but equal capitalised words of a text get the label that is best for them.

    The best is the one that most of them truly have, of those that were found for one of them:
    agreement alone can give no more. Where it would be worse, labels stay.
    """
    made = []
    for text, true, said in zip(words, gold, found, strict=True):
        labels, where = list(said), defaultdict(list)
        for t, word in enumerate(text):
            if CAPITALISED.fullmatch(word):
                where[word.lower()].append(t)
        for places in where.values():
            right = sum(true[t] == said[t] for t in places)
            offers = sorted({said[t] for t in places})
            best = max(offers, key=[true[t] for t in places].count)
            if sum(true[t] == best for t in places) > right:
                for t in places:
                    labels[t] = best
        made.append(labels)
    return made
