"""Parts of speech: a chain CRF beside an HMM and a model without links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal import HMM, ChainCRF
from chordal.datasets import TaggedText, load_ud_english
from chordal.experiments._base import Experiment, Outcome, Row, Setup
from chordal.experiments._pictures import confusion, heat_map, samples, training
from chordal.metrics import paired_bootstrap, sequence_counts, token_accuracy, zero_one_accuracy
from chordal.preprocessing import default_template

LONGEST = 14  # words of a sentence that is shown


@final
class POS(Experiment):
    """The seeds' oldest example, on a free treebank."""

    title: ClassVar[str] = "Parts of speech (UD English)"
    about: ClassVar[str] = (
        "Tags of words in web text. The HMM sees words alone, with all rare words as one; the "
        "CRF sees affixes and shapes of the word and its neighbours; without transitions, it "
        "shows what these are worth by themselves."
    )
    data: ClassVar[str] = "Universal Dependencies, English Web Treebank: 17 tags"
    split: ClassVar[str] = "as given: 12,544 sentences to train on, 2,077 to test"
    model: ClassVar[str] = "default template for parts of speech, likelihood, l2 = 1"
    source: ClassVar[str] = "no published figure; HMM and unary model beside it"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        train, test = load_ud_english("train"), load_ud_english("test")
        n = 400 if setup.quick else len(train.X)
        X, y = train.X[:n], train.y[:n]
        setup.say("HMM")
        known = _frequent(X)
        hmm = HMM(alpha=0.1).fit(_words(X, known), y)
        found: dict[str, Any] = {"HMM": hmm.predict(_words(test.X, known))}
        template = default_template("pos", 1)
        models = {
            "unary model": ChainCRF(
                feature_template=_without_links(template), l2=1.0, n_jobs=setup.n_jobs
            ),
            "chain CRF": ChainCRF(feature_template=template, l2=1.0, n_jobs=setup.n_jobs),
        }
        for name, model in models.items():
            setup.say(name)
            found[name] = model.fit(X, y).predict(test.X)
        outcome = Outcome()
        self._rows(outcome, test.y, found)
        self._pictures(outcome, test, models["chain CRF"], found)
        return outcome

    def _rows(
        self, outcome: Outcome, truth: Sequence[Sequence[str]], found: dict[str, Any]
    ) -> None:
        scores = {name: token_accuracy(truth, labels) for name, labels in found.items()}
        for name, labels in found.items():
            must, why = None, ""
            if name == "chain CRF":
                must = max(scores["HMM"], scores["unary model"])
                counts = [
                    sequence_counts("token_accuracy", truth, found[one])
                    for one in (name, "unary model")
                ]
                gain = paired_bootstrap(*counts, seed=self.seed)
                why = (
                    "the better of the other two; the gain over the unary model is between "
                    f"{gain.low:.4f} and {gain.high:.4f} (95%, bootstrap)"
                )
            outcome.rows += [
                Row(f"tags right, {name}", scores[name], must=must, digits=4, why=why),
                Row(f"sentences right, {name}", zero_one_accuracy(truth, labels)),
            ]

    def _pictures(
        self, outcome: Outcome, test: TaggedText, crf: ChainCRF, found: dict[str, Any]
    ) -> None:
        outcome.pictures += [
            confusion(
                "What is taken for what", "Percent of each true tag.", test.y, found["chain CRF"]
            ),
            heat_map(
                "Weights of transitions",
                "From the row's tag to the column's: what follows what, beyond what the words say.",
                crf.transitions_,
                crf.classes_,
            ),
            training("Training of the chain", "L-BFGS on the likelihood.", crf.fit_report_),
        ]
        texts = [[word for (word,) in sentence] for sentence in test.X]
        short = [k for k, words in enumerate(texts) if 6 <= len(words) <= LONGEST]
        alone, chain = (
            np.array([list(test.y[k]) == list(found[name][k]) for k in short])
            for name in ("unary model", "chain CRF")
        )
        pick = np.random.default_rng(self.seed).permutation(len(short))
        for which, title, caption in (
            (chain & ~alone, "Where the links help", "Sentences that only the chain gets right."),
            (~chain, "Where the chain fails", "Sentences with a mistake of it."),
        ):
            chosen = [short[k] for k in pick if which[k]][:4]
            outcome.samples.append(
                samples(title, f"{caption} Drawn at random.", texts, test.y, found, chosen)
            )


def _frequent(X: Sequence[Sequence[Sequence[str]]]) -> set[str]:
    """Words that were seen twice."""
    once: set[str] = set()
    twice: set[str] = set()
    for sentence in X:
        for (word,) in sentence:
            (twice if word in once else once).add(word)
    return twice


def _words(X: Sequence[Sequence[Sequence[str]]], known: set[str]) -> list[list[str]]:
    """Words, with a shape for those that are rare."""
    return [[word if word in known else _shape(word) for (word,) in sentence] for sentence in X]


def _shape(word: str) -> str:
    if any(c.isdigit() for c in word):
        return "<digits>"
    return "<capital>" if word[0].isupper() else f"<{word[-2:]}>"


def _without_links(template: str) -> str:
    """The lines of a template that do not look at pairs of labels."""
    return "\n".join(line for line in template.splitlines() if not line.startswith("B"))
