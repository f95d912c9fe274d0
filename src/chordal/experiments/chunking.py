"""CoNLL-2000: chunks of text by a chain CRF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np

from chordal import ChainCRF
from chordal.datasets import load_conll2000
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import confusion, heat_map, samples, training
from chordal.metrics import bootstrap, chunk_scores, sequence_counts
from chordal.preprocessing import default_template

LONGEST = 16  # words of a sentence that is shown


@final
class Chunking(Experiment):
    """The default template on the shared task's own split."""

    title: ClassVar[str] = "Chunking (CoNLL-2000)"
    about: ClassVar[str] = (
        "Text is divided into noun, verb and other phrases. What `chordal train --task chunking` "
        "does, beside the figures of CRFsuite on the same task, and Sha and Pereira's for noun "
        "phrases, whose second-order chain and features were chosen by hand."
    )
    data: ClassVar[str] = "CoNLL-2000 shared task, 8,936 and 2,012 sentences"
    split: ClassVar[str] = "as given"
    model: ClassVar[str] = "chain CRF with the default template of the task, likelihood, l2 = 1"
    source: ClassVar[str] = "CRFsuite's tutorial (93.6 to 93.8); Sha and Pereira (2003): 94.3 (NP)"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        train, test = load_conll2000("train"), load_conll2000("test")
        n = 300 if setup.quick else len(train.X)
        n_test = 300 if setup.quick else len(test.X)
        setup.say("training")
        template = default_template("chunking", 2)
        crf = ChainCRF(feature_template=template, l2=1.0, n_jobs=setup.n_jobs)
        crf.fit(train.X[:n], train.y[:n])
        setup.say("testing")
        truth, found = test.y[:n_test], crf.predict(test.X[:n_test])
        scores = chunk_scores(truth, found)
        outcome = Outcome()
        interval = bootstrap(sequence_counts("chunk_f1", truth, found), seed=self.seed)
        of_np = scores.types["NP"]
        outcome.rows += [
            Row(
                "F1 of all chunks",
                100.0 * scores.overall.f1,
                93.8,
                digits=2,
                why=f"bootstrap interval {100 * interval.low:.2f} to {100 * interval.high:.2f}",
            ),
            Row(
                "F1 of noun phrases (NP)",
                100.0 * of_np.f1,
                94.3,
                digits=2,
                why="one chain for all kinds of chunks; theirs was trained for NP alone",
            ),
        ]
        outcome.tables.append(
            Table(
                "By kind of chunk",
                ["kind", "precision", "recall", "F1", "chunks"],
                [[kind, s.precision, s.recall, s.f1, s.true] for kind, s in scores.types.items()],
            )
        )
        self._pictures(outcome, crf, truth, found)
        texts = [[str(token[0]) for token in sentence] for sentence in test.X[:n_test]]
        self._samples(outcome, texts, truth, found)
        return outcome

    def _pictures(
        self,
        outcome: Outcome,
        crf: ChainCRF,
        truth: Sequence[Sequence[str]],
        found: Sequence[Sequence[str]],
    ) -> None:
        common = ["B-NP", "I-NP", "B-VP", "I-VP", "B-PP", "B-ADVP", "B-SBAR", "B-ADJP", "I-ADJP"]
        common = [label for label in [*common, "O"] if label in set(crf.classes_)]
        order = [list(crf.classes_).index(label) for label in common]
        outcome.pictures += [
            heat_map(
                "Weights of transitions",
                "The most frequent tags: I follows B of its own kind, and little else.",
                crf.transitions_[order][:, order],
                common,
            ),
            confusion(
                "What is taken for what",
                "Percent of each true tag, of the most frequent ones.",
                truth,
                found,
                common,
            ),
            training("Training", "L-BFGS on the likelihood.", crf.fit_report_),
        ]

    def _samples(
        self,
        outcome: Outcome,
        texts: Sequence[Sequence[str]],
        truth: Sequence[Sequence[str]],
        found: Sequence[Sequence[str]],
    ) -> None:
        """Sentences with a mistake and without one, as often as they are drawn."""
        short = [k for k, words in enumerate(texts) if 6 <= len(words) <= LONGEST]
        chosen = np.random.default_rng(self.seed).permutation(short)[:6]
        title, caption = "Six test sentences", "Drawn at random of the short ones."
        outcome.samples.append(samples(title, caption, texts, truth, {"CRF": found}, chosen))
