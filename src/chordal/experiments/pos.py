"""Parts of speech: a chain CRF beside an HMM and a model without links."""

from __future__ import annotations

from typing import Any, ClassVar, final

from chordal import HMM, ChainCRF, plots
from chordal.datasets import load_ud_english
from chordal.experiments._base import Experiment, Outcome, Row, Setup
from chordal.features.default_template import default_template
from chordal.metrics import token_accuracy, zero_one_accuracy


@final
class Pos(Experiment):
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
        train, test = load_ud_english("train"), load_ud_english("test")
        n = 400 if setup.quick else len(train.X)
        X, y = train.X[:n], train.y[:n]
        outcome = Outcome()
        setup.say("HMM")
        known = _frequent(X)
        hmm = HMM(alpha=0.1).fit(_words(X, known), y)
        found: dict[str, Any] = {"HMM": hmm.predict(_words(test.X, known))}
        template = default_template("pos", 1)
        models = {
            "unary model": ChainCRF(template=_without_links(template), l2=1.0, n_jobs=setup.n_jobs),
            "chain CRF": ChainCRF(template=template, l2=1.0, n_jobs=setup.n_jobs),
        }
        for name, model in models.items():
            setup.say(name)
            found[name] = model.fit(X, y).predict(test.X)
        scores = {name: token_accuracy(test.y, labels) for name, labels in found.items()}
        for name, labels in found.items():
            must = None
            if name == "chain CRF":
                must = max(scores["HMM"], scores["unary model"])
            outcome.rows.append(Row(f"tags right, {name}", scores[name], must=must, digits=4))
            sentences = zero_one_accuracy(test.y, labels)
            outcome.rows.append(Row(f"sentences right, {name}", sentences))
        figure, ax = plots.subplots(size=(7.4, 6.4))
        plots.confusion(test.y, found["chain CRF"], ax=ax)
        outcome.draw("What is taken for what", "Rows are true tags.", figure)
        return outcome


def _frequent(X: Any) -> set[str]:
    """Words that were seen twice."""
    once: set[str] = set()
    twice: set[str] = set()
    for sentence in X:
        for (word,) in sentence:
            (twice if word in once else once).add(word)
    return twice


def _words(X: Any, known: set[str]) -> list[list[str]]:
    """Words, with a shape for those that are rare."""
    return [[word if word in known else _shape(word) for (word,) in sentence] for sentence in X]


def _shape(word: str) -> str:
    if any(c.isdigit() for c in word):
        return "<digits>"
    return "<capital>" if word[0].isupper() else f"<{word[-2:]}>"


def _without_links(template: str) -> str:
    """The lines of a template that do not look at pairs of labels."""
    return "\n".join(line for line in template.splitlines() if not line.startswith("B"))
