"""Word alignment: matchings, trained by perceptron and by structural SVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal import MatchingModel, plots
from chordal.datasets import ParallelSample, make_parallel_sample
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import WIDTH, curves, training
from chordal.inference import INFERENCE
from chordal.metrics import alignment_error_rate
from chordal.potentials import matching_potentials
from chordal.preprocessing import AlignmentFeatures
from chordal.solvers.averaged_perceptron import AveragedPerceptron

N_ASSOCIATION = 4  # features that are scores of association; two of distance and spelling follow
GROUPS = {"association": slice(4), "association and distance": slice(6), "all": slice(None)}
MODELS: dict[str, Callable[[int], MatchingModel]] = {
    "averaged perceptron": lambda seed: MatchingModel(
        solver=AveragedPerceptron(max_iter=10, random_state=seed)
    ),
    "structural SVM": lambda seed: MatchingModel(solver="frank_wolfe", tol=0.01),
}


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
        """Everything, from the data to the figures."""
        n = 200 if setup.quick else 1000
        sizes = [10, 40] if setup.quick else [10, 25, 50, 100]
        n_train, n_test = sizes[-1], 80 if setup.quick else 400
        sample = make_parallel_sample(n, random_state=self.seed)
        setup.say("association")
        features = AlignmentFeatures().fit(sample.X)
        arrays = [features(*pair) for pair in sample.X[: n_train + n_test]]
        train, test = slice(n_train), slice(n_train, n_train + n_test)
        outcome = Outcome()
        baselines = {
            f"association: {name}": _by_association(sample, arrays, column, train, test)
            for column, name in enumerate(features.names[:N_ASSOCIATION])
        }
        best = min(baselines.values())
        outcome.rows.append(Row("alignment error rate, association alone", best, lower=True))
        errors: dict[str, list[float]] = {}
        for name, make in MODELS.items():
            setup.say(name)
            errors[name] = []
            for size in sizes:
                model = make(self.seed).fit(arrays[:size], sample.y[:size])
                found = model.predict(arrays[test])
                errors[name].append(_error(sample, test, found))
            what = f"alignment error rate, {name}"
            outcome.rows.append(Row(what, errors[name][-1], must=best, lower=True))
        table = [*baselines.items(), *((name, values[-1]) for name, values in errors.items())]
        outcome.tables.append(Table("Alignment error rates", ["model", "AER"], table))
        setup.say("groups of features")
        self._by_features(outcome, sample, arrays, train, test)
        self._curves(outcome, sizes, errors, best)
        self._sentence(outcome, sample, n_train, found)
        self._weights(outcome, model, features.names)
        return outcome

    def _by_features(
        self,
        outcome: Outcome,
        sample: ParallelSample,
        arrays: Sequence[Any],
        train: slice,
        test: slice,
    ) -> None:
        """What each group of features is worth to the structural SVM."""
        rows = []
        for group, columns in GROUPS.items():
            chosen = [x[..., columns] for x in arrays]
            model = MODELS["structural SVM"](self.seed).fit(chosen[train], sample.y[train])
            rows.append([group, _error(sample, test, model.predict(chosen[test]))])
        title = "The structural SVM, by its features"
        outcome.tables.append(Table(title, ["features", "AER"], rows))

    def _curves(
        self, outcome: Outcome, sizes: list[int], errors: dict[str, list[float]], best: float
    ) -> None:
        outcome.pictures.append(
            curves(
                "Error rate by the number of linked sentences",
                "The association score needs links only for its threshold.",
                {**errors, "association alone": [best] * len(sizes)},
                sizes,
                xlabel="sentences with links",
                ylabel="alignment error rate",
                log="x",
            )
        )

    def _sentence(
        self, outcome: Outcome, sample: ParallelSample, first: int, found: Sequence[Any]
    ) -> None:
        lengths = [len(words) for words in sample.source[first : first + len(found)]]
        k = int(np.argsort(lengths)[-len(lengths) // 10])
        source, target = sample.source[first + k], sample.target[first + k]
        image = np.zeros((len(source), len(target)))
        for links, shade in ((sample.possible[first + k], 0.3), (sample.sure[first + k], 0.6)):
            for i, j in links:
                image[i, j] = shade
        chosen = [(i, j) for i, j in enumerate(found[k]) if j >= 0]
        figure, ax = plots.subplots(size=(WIDTH, WIDTH))
        ax.imshow(image, cmap="Greys", vmin=0.0, vmax=1.0)
        ax.plot([j for _, j in chosen], [i for i, _ in chosen], "o", color="#d55e00", ms=6)
        ax.set_xticks(range(len(target)), target, rotation=90, fontsize=8)
        ax.set_yticks(range(len(source)), source, fontsize=8)
        right = sum(image[i, j] > 0.0 for i, j in chosen)
        outcome.draw(
            "A sentence and its translation",
            "Sure links are dark, possible ones light; dots are what the structural SVM found.",
            figure,
            f"Links of {len(source)} words: {right} of {len(chosen)} found links are among the "
            "given ones.",
        )

    def _weights(self, outcome: Outcome, model: MatchingModel, names: Sequence[str]) -> None:
        figure, ax = plots.subplots(size=(WIDTH, 3.2))
        ax.barh(list(names)[::-1], model.coef_[::-1])
        ax.tick_params(labelsize=9)
        largest = names[int(np.abs(model.coef_).argmax())]
        outcome.draw(
            "Weights of the structural SVM",
            "What speaks for a link, and what against.",
            figure,
            f"Bars of {len(names)} weights; the largest is that of {largest}.",
        )
        outcome.pictures.append(
            training("Training of the structural SVM", "Frank–Wolfe.", model.fit_report_)
        )


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
