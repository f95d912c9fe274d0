"""Two models of announcements with the same attributes: a chain, and the chain with skip edges.

A `ChainCRF` learns what attributes tell of labels. Then a `TemplateCRF` learns how much these
scores and the labels of neighbours count: that is the linear chain. At last, with all other weights
fixed, it learns which labels joined words have: that is the skip-chain. Both learn from scores that
come from a chain trained on other texts. A chain that was trained on a text is sure and right about
it, and equal words would have nothing to tell each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal import ChainCRF, CliqueTemplate, TemplateCRF
from chordal.experiments._base import Setup
from chordal.experiments._seminar_scores import Labels
from chordal.experiments._seminar_tokens import Tokens, joined, skip_edges
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.potentials import Floats

FIRST, LINEAR, SKIP = "first stage alone", "linear chain", "skip-chain"
#: L2 of attributes in the first stage; of scores, neighbours and skip edges in the second.
L2_ATTRIBUTES, L2_SCORES, L2_SKIP = 0.3, 0.01, 10.0
FOLDS = 5


class Text(NamedTuple):
    """An announcement: words, and attributes of each."""

    words: Sequence[str]
    attributes: Tokens


class Scored(NamedTuple):
    """What the second stage sees: scores of labels, joined pairs, and attributes of pairs."""

    scores: Floats
    pairs: NDArray[np.int64]
    looks: list[list[str]]


def labelled(
    train: Sequence[Text], y: Labels, test: Sequence[Text], setup: Setup
) -> tuple[dict[str, Labels], TemplateCRF]:
    """What the models find in `test`; and the skip-chain."""
    chain, scores = first_stage([text.attributes for text in train], y, setup)
    new = chain.node_scores([text.attributes for text in test])
    # F1 counts tokens, so that the most probable label of each is asked for.
    found = {FIRST: chain.predict([text.attributes for text in test], method="mpm")}
    model = second_stage(setup).fit(unlinked(scores), y)
    found[LINEAR] = model.predict(unlinked(new), method="mpm")
    model.set_params(
        freeze=("tokens", "neighbours"),
        warm_start=True,
        inference=LoopyBPInference(max_iter=20, tol=1e-3),
    )
    found[SKIP] = model.fit(linked(train, scores), y).predict(linked(test, new), method="mpm")
    labels = {name: [[str(tag) for tag in tags] for tags in own] for name, own in found.items()}
    return labels, model


def first_stage(X: list[Tokens], y: Labels, setup: Setup) -> tuple[ChainCRF, list[Floats]]:
    """A chain of all texts; and scores of each text by a chain of texts in other folds."""

    def fitted(which: NDArray[np.int64]) -> ChainCRF:
        iterations = 10 if setup.quick else 300
        chain = ChainCRF(l2=L2_ATTRIBUTES, max_iter=iterations, tol=1e-4, n_jobs=setup.n_jobs)
        return chain.fit([X[i] for i in which], [y[i] for i in which])

    everyone = np.arange(len(X))
    chain = fitted(everyone)
    scores = [np.zeros((0, 0))] * len(X)
    order = np.random.default_rng(0).permutation(len(X))
    for fold in range(FOLDS):
        apart = order[fold::FOLDS]
        other = fitted(np.setdiff1d(everyone, apart))
        columns = np.searchsorted(chain.classes_, other.classes_)
        for i, own in zip(apart, other.node_scores([X[i] for i in apart]), strict=True):
            # A label that no other text has scores as the lowest.
            scores[i] = np.repeat(own.min(axis=1, keepdims=True), len(chain.classes_), axis=1)
            scores[i][:, columns] = own
    return chain, scores


def second_stage(setup: Setup) -> TemplateCRF:
    """A model of scores; without pairs it is a linear chain."""
    return TemplateCRF(
        [
            CliqueTemplate("tokens", features=lambda x: x.scores),
            CliqueTemplate("neighbours", lambda x: np.arange(len(x.scores) - 1)[:, None] + [0, 1]),
            CliqueTemplate("skip", lambda x: x.pairs, lambda x: x.looks, tables="symmetric"),
        ],
        l2={"tokens": L2_SCORES, "neighbours": L2_SCORES, "skip": L2_SKIP},
        max_iter=10 if setup.quick else 300,
        tol=1e-3,
        n_jobs=setup.n_jobs,
    )


def unlinked(scores: Sequence[Floats]) -> list[Scored]:
    """Texts for the second stage, as chains."""
    return [Scored(own, np.zeros((0, 2), dtype=np.int64), []) for own in scores]


def linked(texts: Sequence[Text], scores: Sequence[Floats]) -> list[Scored]:
    """Texts for the second stage, with the pairs of equal words."""
    made = []
    for text, own in zip(texts, scores, strict=True):
        pairs = np.array(skip_edges(text.words), dtype=np.int64).reshape(-1, 2)
        made.append(Scored(own, pairs, joined(text.words, text.attributes, pairs)))
    return made
