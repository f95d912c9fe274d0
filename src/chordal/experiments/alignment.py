"""Word alignment: matchings, trained by perceptron and by structural SVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal import MatchingModel, plots
from chordal.datasets import ParallelSample, make_parallel_sample
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.features import AlignmentFeatures, matching_potentials
from chordal.inference import INFERENCE
from chordal.metrics import alignment_error_rate
from chordal.solvers.averaged_perceptron import AveragedPerceptron


@final
class Alignment(Experiment):
    """Association alone, and learned weights of many features."""

    title: ClassVar[str] = "Word alignment by matching"
    about: ClassVar[str] = (
        "Which word of a sentence belongs to which of its translation? A score of association is "
        "learned from sentences without links. The baseline takes the best matching by that "
        "score alone; perceptron and structural SVM learn, from few linked sentences, how to "
        "weigh it with distance and spelling."
    )
    data: ClassVar[str] = "sentences in two invented languages, with sure and possible links"
    split: ClassVar[str] = (
        "all sentences, without links, for association; 100 with links to learn from, 400 to test"
    )
    model: ClassVar[str] = "bipartite matching, nine features of word pairs"
    source: ClassVar[str] = "Taskar, Lacoste-Julien and Klein (2005), on other sentences"

    def run(self, setup: Setup) -> Outcome:
        n = 200 if setup.quick else 1000
        n_train, n_test = (40, 80) if setup.quick else (100, 400)
        sample = make_parallel_sample(n, random_state=self.seed)
        setup.say("association")
        features = AlignmentFeatures().fit(sample.X)
        arrays = [features(*pair) for pair in sample.X[: n_train + n_test]]
        train, test = slice(n_train), slice(n_train, n_train + n_test)
        outcome, table = Outcome(), []
        baselines = {}
        for column, name in enumerate(features.names[:4]):
            baselines[name] = _by_association(sample, arrays, column, train, test)
            table.append([f"association: {name}", baselines[name]])
        best = min(baselines.values())
        models = {
            "averaged perceptron": MatchingModel(
                solver=AveragedPerceptron(max_iter=10, random_state=self.seed)
            ),
            "structural SVM": MatchingModel(solver="frank_wolfe", tol=0.01),
        }
        outcome.rows.append(Row("alignment error rate, association alone", best, lower=True))
        found: list[Any] = []
        for name, model in models.items():
            setup.say(name)
            model.fit(arrays[train], sample.y[train])
            found = model.predict(arrays[test])
            error = _error(sample, test, found)
            outcome.rows.append(Row(f"alignment error rate, {name}", error, must=best, lower=True))
            table.append([name, error])
        outcome.tables.append(Table("Alignment error rates", ["model", "AER"], table))
        self._picture(outcome, sample, n_train, found, models["structural SVM"], features)
        return outcome

    def _picture(
        self,
        outcome: Outcome,
        sample: ParallelSample,
        first: int,
        found: Sequence[Any],
        model: MatchingModel,
        features: AlignmentFeatures,
    ) -> None:
        lengths = [len(words) for words in sample.source[first : first + len(found)]]
        k = int(np.argsort(lengths)[-len(lengths) // 10])
        source, target = sample.source[first + k], sample.target[first + k]
        image = np.zeros((len(source), len(target)))
        for i, j in sample.possible[first + k]:
            image[i, j] = 0.3
        for i, j in sample.sure[first + k]:
            image[i, j] = 0.6
        figure, (left, right) = plots.subplots(1, 2, size=(10.0, 4.4))
        left.imshow(image, cmap="Greys", vmin=0.0, vmax=1.0)
        chosen = [(i, j) for i, j in enumerate(found[k]) if j >= 0]
        left.plot([j for _, j in chosen], [i for i, _ in chosen], "o", color="#d55e00", ms=6)
        left.set_xticks(range(len(target)), target, rotation=90)
        left.set_yticks(range(len(source)), source)
        left.set_title("sure (dark) and possible links; found")
        right.barh(features.names[::-1], model.coef_[::-1], color="#0072b2")
        right.set_title("weights of the structural SVM")
        outcome.draw("A sentence, and what was learned", "", figure)


def _by_association(
    sample: ParallelSample, arrays: Sequence[Any], column: int, train: slice, test: slice
) -> float:
    """The error rate of one score alone; the score of no link is chosen on training sentences."""

    def matched(part: slice, threshold: float) -> list[Any]:
        chosen = arrays[part]
        potentials = matching_potentials(
            [x[..., column] for x in chosen], [np.full(len(x), threshold) for x in chosen]
        )
        labels = INFERENCE.resolve("matching").map(potentials).labels
        structure = potentials.structure
        labels = np.where(labels == structure.label_counts - 1, -1, labels)
        return list(np.split(labels, structure.variable_offsets[1:-1]))

    thresholds = np.linspace(0.0, 0.6, 13)
    best = min(thresholds, key=lambda t: _error(sample, train, matched(train, t)))
    return _error(sample, test, matched(test, best))


def _error(sample: ParallelSample, part: slice, found: Sequence[Any]) -> float:
    return float(alignment_error_rate(sample.sure[part], found, sample.possible[part]))
