"""Features of word pairs for alignment: association, distance, spelling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sentence = Sequence[str]


@final
class AlignmentFeatures:
    """Features [n_source, n_target, 9] of the word pairs of two sentences.

    Association is learned by `fit` from sentence pairs without any links: Dice's coefficient of
    the sentences that hold both words, and the posterior probabilities of links by IBM Model 1 in
    both directions, with their product. The others look at the pair alone: how far both words
    are from the diagonal, and how alike their spelling is.

    Parameters
    ----------
    n_iter : int
        Rounds of EM for IBM Model 1.

    Attributes
    ----------
    names : tuple of str

    References
    ----------
    Brown et al. (1993), The mathematics of statistical machine translation; Taskar,
    Lacoste-Julien and Klein (2005), A discriminative matching approach to word alignment.

    Examples
    --------
    >>> pairs = [(["the", "house"], ["la", "casa"]), (["the", "book"], ["el", "libro"]),
    ...          (["a", "house"], ["una", "casa"])]
    >>> features = AlignmentFeatures().fit(pairs)
    >>> features(["house"], ["una", "casa"])[0, :, 0]  # Dice's coefficients
    array([0.66666667, 1.        ])
    """

    names = (
        "dice",
        "model1",
        "model1_reverse",
        "model1_both",
        "distance",
        "distance_squared",
        "equal",
        "common_letters",
        "common_prefix",
    )

    def __init__(self, n_iter: int = 8) -> None:
        check_number("n_iter", n_iter, minimum=1, integer=True)
        self.n_iter = n_iter

    def fit(self, pairs: Iterable[tuple[Sentence, Sentence]]) -> AlignmentFeatures:
        """Learn which words go together from sentence pairs."""
        bitext = [(list(source), list(target)) for source, target in pairs]
        if not bitext:
            raise ValueError("pairs is empty: give at least one pair of sentences")
        self._dice = _dice(bitext)
        self._forward = _model_one(bitext, self.n_iter)
        self._backward = _model_one([(t, s) for s, t in bitext], self.n_iter)
        return self

    def __call__(self, source: Sentence, target: Sentence) -> Floats:
        """The features of all pairs of words."""
        if not hasattr(self, "_dice"):
            raise ValueError("the association of words is not known yet: call fit first")
        out = np.zeros((len(source), len(target), len(self.names)))
        if out.size == 0:
            return out
        forward = _posterior(self._forward, source, target)
        backward = _posterior(self._backward, target, source).T
        distance = np.abs(_places(source)[:, None] - _places(target)[None, :])
        out[..., 0] = [[self._dice.get((s, t), 0.0) for t in target] for s in source]
        out[..., 1], out[..., 2] = forward, backward
        out[..., 3] = np.sqrt(forward * backward)
        out[..., 4], out[..., 5] = distance, distance**2
        out[..., 6:] = [[_spelling(s, t) for t in target] for s in source]
        return out


def _places(words: Sentence) -> Floats:
    """Where each word is, from 0 to 1."""
    return (np.arange(len(words)) + 0.5) / len(words)


def _dice(bitext: Sequence[tuple[Sentence, Sentence]]) -> dict[tuple[str, str], float]:
    """2 n(s, t) / (n(s) + n(t)), counting sentences."""
    of_source: Counter[str] = Counter()
    of_target: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, target in bitext:
        sources, targets = set(source), set(target)
        of_source.update(sources)
        of_target.update(targets)
        together.update((s, t) for s in sources for t in targets)
    return {(s, t): 2.0 * n / (of_source[s] + of_target[t]) for (s, t), n in together.items()}


#: t(target word | source word); the source word None generates words that have no origin.
Table = dict[tuple[str | None, str], float]


def _model_one(bitext: Sequence[tuple[Sentence, Sentence]], n_iter: int) -> Table:
    """EM: every target word comes from one of the source words, whichever explains it best."""
    number: dict[tuple[str | None, str], int] = {}
    pair, word = [], []  # of every candidate: its pair of words, and the target word it explains
    n_words = 0
    for source, target in bitext:
        for t in target:
            for s in (None, *source):
                pair.append(number.setdefault((s, t), len(number)))
                word.append(n_words)
            n_words += 1
    pairs, words = np.array(pair, dtype=np.int64), np.array(word, dtype=np.int64)
    origin = _numbers([s for s, _ in number])
    table = np.ones(len(number))
    for _ in range(n_iter):
        share = table[pairs]
        share /= np.bincount(words, share)[words]
        counts = np.bincount(pairs, share, minlength=len(number))
        table = counts / np.bincount(origin, counts)[origin]
    return dict(zip(number, table.tolist(), strict=True))


def _numbers(names: Sequence[str | None]) -> Ints:
    known: dict[str | None, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _posterior(table: Table, source: Sentence, target: Sentence) -> Floats:
    """p(target word j comes from source word i) [n_source, n_target]; unknown words: 0."""
    scores = np.array([[table.get((s, t), 0.0) for t in target] for s in (None, *source)])
    return np.asarray(scores / np.maximum(scores.sum(axis=0), 1e-12))[1:]


@lru_cache(maxsize=100_000)
def _spelling(a: str, b: str) -> tuple[float, float, float]:
    """Equal words; the longest common subsequence and prefix as shares of the longer word."""
    a, b = a.lower(), b.lower()
    longest = max(len(a), len(b))
    if longest == 0 or a == b:
        return float(a == b), float(a == b), float(a == b)
    prefix = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), -1)
    prefix = min(len(a), len(b)) if prefix < 0 else prefix
    return 0.0, _common_letters(a, b) / longest, prefix / longest


def _common_letters(a: str, b: str) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b):
            kept = row[j + 1]
            row[j + 1] = before + 1 if x == y else max(kept, row[j])
            before = kept
    return row[-1]
