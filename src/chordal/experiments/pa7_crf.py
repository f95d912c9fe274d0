"""Assignment 7, part 2: words of three letters by a chain CRF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from scipy.ndimage import gaussian_filter

from chordal import ChainCRF, CliqueTemplate, TemplateCRF, plots
from chordal.datasets import PA7, distorted, load_pa7
from chordal.experiments._base import Array, Experiment, Outcome, Row, Setup
from chordal.experiments._pictures import WIDTH, confusion, heat_map, training
from chordal.solvers.sgd import SGD

#: Of cross-validation: λ of stochastic gradient descent, l2 at the optimum, l2 of triplets.
LAMBDAS, L2S, TRIPLET_L2S = (0.001, 0.003, 0.01, 0.03), (0.3, 1.0, 3.0), (0.03, 0.1, 0.3)
FOLDS = 4


class Idea(NamedTuple):
    """A way of training: what is seen of a letter, distorted copies of words, triplets or not."""

    what: str
    features: Callable[[Any], Any]
    copies: int = 0
    triplets: bool = False


@final
class PA7CRF(Experiment):
    """The assignment's training, then what each of its ideas gains."""

    title: ClassVar[str] = "Words of three letters (assignment 7, part 2)"
    about: ClassVar[str] = (
        "Letters of 8 × 4 pixels, three to a word. The assignment's training is five passes of "
        "stochastic gradient descent; its text suggests λ by cross-validation, L-BFGS, distorted "
        "images, and features of three letters. Each has its own row, with what it gains over the "
        "row that it is added to; then they come together."
    )
    data: ClassVar[str] = "assignment 7's own words, 220 to train on and 80 to test"
    split: ClassVar[str] = "as given; settings by cross-validation on training words"
    model: ClassVar[str] = (
        "chain CRF, 2,366 weights: pixel values, bias and transitions by label; with triplets "
        "17,576 more, a clique of three letters with exact inference"
    )
    source: ClassVar[str] = "Stanford PGM course, assignment 7: CRF learning for OCR (2012)"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        data, outcome = load_pa7(), Outcome()
        first = self._assignment(data, outcome, setup)
        copies, few = (1, 1) if setup.quick else (12, 3)
        run = partial(self._row, outcome, data, setup)
        base, plain = run(
            Idea("L-BFGS to the optimum", _pixels), first, "the assignment's training"
        )
        than = "L-BFGS alone"
        run(Idea("distorted copies of the training images", _pixels, copies), base, than)
        _, model = run(Idea("triplets of letters", _pixels, triplets=True), base, than)
        views, _ = run(Idea("pairs of neighbouring pixels and blurred ones", _views), base, than)
        bent, _ = run(Idea("… and distorted copies", _views, copies), views, "the row before")
        every = Idea("… and triplets", _views, few, triplets=True)
        _, best = run(every, bent, "the row before", model.l2["triplets"])
        n = sum(map(len, data.y_test))
        outcome.notes.append(
            f"There are {n} test letters: the standard error of a share of 0.7 is "
            f"{(0.7 * 0.3 / n) ** 0.5:.3f}, so that single gains are to be read with care."
        )
        self._pictures(outcome, data, plain, best)
        return outcome

    def _assignment(self, data: PA7, outcome: Outcome, setup: Setup) -> float:
        """Five passes with the λ that was given, then with one by cross-validation."""
        setup.say("the assignment's training")
        X, test = ([_pixels(i) for i in words] for words in (data.images_train, data.images_test))
        crf = _by_sgd(X, data.y_train, 0.003)
        first = crf.score(test, data.y_test)
        outcome.rows += [
            Row("training letters, 5 passes, λ = 0.003", crf.score(X, data.y_train), 0.73),
            Row("test letters, 5 passes, λ = 0.003", first, 0.62),
        ]
        scores = self._validated(
            data,
            LAMBDAS,
            lambda train, lam: _by_sgd(
                [X[i] for i in train], [data.y_train[i] for i in train], lam
            ),
            _pixels,
        )
        lam = max(scores, key=lambda value: scores[value])
        score = _by_sgd(X, data.y_train, lam).score(test, data.y_test)
        why = f"λ = {lam:g}; gain {score - first:+.3f} over λ = 0.003"
        outcome.rows.append(Row("test letters, λ by cross-validation", score, must=0.62, why=why))
        return first

    def _row(
        self,
        outcome: Outcome,
        data: PA7,
        setup: Setup,
        idea: Idea,
        before: float,
        than: str,
        l2: float | None = None,
    ) -> tuple[float, Any]:
        """Train by an idea, with l2 by cross-validation; its figure and what it gains."""
        setup.say(idea.what.lstrip("… "))
        grid = TRIPLET_L2S if idea.triplets else L2S
        if l2 is None and setup.quick:
            l2 = grid[1]
        if l2 is None:
            few = idea._replace(copies=min(idea.copies, 4))
            scores = self._validated(
                data,
                grid,
                lambda train, l2: _fitted(data, few, l2, self.seed, train, setup),
                idea.features,
            )
            l2 = max(scores, key=lambda value: scores[value])
        model = _fitted(data, idea, l2, self.seed, range(len(data.y_train)), setup)
        score = model.score([idea.features(i) for i in data.images_test], data.y_test)
        of = " of triplets" if idea.triplets else ""
        why = f"l2{of} = {l2:g}; gain {score - before:+.3f} over {than}"
        outcome.rows.append(Row(f"test letters, {idea.what}", score, must=0.62, why=why))
        return score, model

    def _validated(
        self,
        data: PA7,
        grid: Sequence[float],
        fitted: Callable[..., Any],
        features: Callable[[Array], Array],
    ) -> dict[float, float]:
        """Letters right at each value, over folds of words; copies stay with their word."""
        groups = _groups(data.images_train)
        folds = np.random.default_rng(self.seed).permutation(groups.max() + 1)[groups] % FOLDS
        scores = {}
        for value in grid:
            right = 0.0
            for fold in range(FOLDS):
                model = fitted(np.flatnonzero(folds != fold), value)
                test = np.flatnonzero(folds == fold)
                X = [features(data.images_train[i]) for i in test]
                right += len(test) * model.score(X, [data.y_train[i] for i in test])
            scores[value] = right / len(folds)
        return scores

    def _pictures(
        self, outcome: Outcome, data: PA7, plain: ChainCRF, best: ChainCRF | TemplateCRF
    ) -> None:
        found = best.predict([_views(images) for images in data.images_test])
        figure, axes = plots.subplots(4, 4, size=(WIDTH, 4.2))
        for ax, images, truth, read in zip(
            axes.flat, data.images_test, data.y_test, found, strict=False
        ):
            ax.imshow(np.concatenate(list(images), axis=1), cmap="Greys")
            ax.set_axis_off()
            wrong = list(truth) != list(read)
            title = f"{''.join(truth)} → {''.join(read)}" if wrong else "".join(truth)
            ax.set_title(title, fontsize=9)
        shown = len(list(axes.flat))
        right = sum(
            list(truth) == list(read)
            for truth, read in zip(data.y_test, found[:shown], strict=False)
        )
        outcome.draw(
            "Test words",
            "True letters, and what was read where that differs.",
            figure,
            f"Images of the first {shown} test words, {right} of them read without a mistake.",
        )
        outcome.pictures += [
            confusion(
                "What is taken for what",
                "Percent of each true letter.",
                data.y_test,
                found,
                sorted(set(np.concatenate(data.y_test))),
            ),
            heat_map(
                "Weights of transitions",
                "From the row's letter to the column's; L-BFGS on pixels.",
                plain.transitions_,
                plain.classes_,
            ),
            training("Training to the optimum", "L-BFGS on pixels.", plain.fit_report_),
        ]


def _by_sgd(X: Sequence[Any], y: Sequence[Any], lam: float) -> ChainCRF:
    """The assignment's training: five passes in order, steps 1 / (1 + 0.05 k)."""
    solver = SGD(5, 0.0, schedule="inverse", shuffle=False, keep_best=False)
    return ChainCRF(solver=solver, l2=lam * len(X), transitions="all", fit_intercept=True).fit(X, y)


def _fitted(
    data: PA7, idea: Idea, l2: float, seed: int, words: Sequence[int] | Array, setup: Setup
) -> ChainCRF | TemplateCRF:
    """The model of these training words and distorted copies of them, which count an eighth."""
    rng = np.random.default_rng(seed)
    images = [data.images_train[i] for i in words]
    X, y, weight = (
        [idea.features(i) for i in images],
        [data.y_train[i] for i in words],
        [1.0] * len(images),
    )
    for _ in range(idea.copies):
        for word, labels in zip(images, list(y)[: len(images)], strict=True):
            X.append(idea.features(distorted(word, rng, order=1) > 0.5))
            y.append(labels)
            weight.append(1.0 / 8.0)
    model: ChainCRF | TemplateCRF
    if idea.triplets:
        model = _with_triplets(l2, setup)
    else:
        model = ChainCRF(l2=l2, transitions="all", fit_intercept=True, n_jobs=setup.n_jobs)
    return model.fit(X, y, sample_weight=weight)


def _with_triplets(l2: float, setup: Setup) -> TemplateCRF:
    """The same chain, and a weight for every three letters in a row."""

    def runs(x: Array, n: int) -> Array:
        return np.arange(len(x) - n + 1)[:, None] + np.arange(n)

    templates = [
        CliqueTemplate("letters", features=lambda x: x),
        CliqueTemplate("pairs", lambda x: runs(x, 2)),
        CliqueTemplate("triplets", lambda x: runs(x, 3), order=3),
    ]
    return TemplateCRF(
        templates,
        l2={"triplets": l2},
        max_iter=3 if setup.quick else 60,
        n_jobs=setup.n_jobs,
    )


def _groups(images: Sequence[Any]) -> Array:
    """Words that share an image of a letter are in one group."""
    seen: dict[bytes, int] = {}
    group = list(range(len(images)))

    def root(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for i, word in enumerate(images):
        for letter in word:
            group[root(i)] = root(seen.setdefault(letter.tobytes(), i))
    return np.unique([root(i) for i in range(len(images))], return_inverse=True)[1]


def _pixels(images: Array) -> Array:
    """A column for each pixel and value [3, 64]."""
    return np.eye(2)[np.asarray(images, dtype=int).reshape(len(images), -1)].reshape(3, -1)


def _views(images: Array) -> Array:
    """Pixels, pairs of neighbours, 2 × 2 blocks, and the image blurred."""
    p, n = np.asarray(images, dtype=int), len(images)
    pairs = [
        2 * p[:, :, :-1] + p[:, :, 1:],
        2 * p[:, :-1] + p[:, 1:],
        2 * p[:, :-1, :-1] + p[:, 1:, 1:],
        2 * p[:, :-1, 1:] + p[:, 1:, :-1],
    ]
    blocks = 4 * pairs[0][:, :-1] + pairs[0][:, 1:]
    coded = [(p, 2), *((pair, 4) for pair in pairs), (blocks, 16)]
    hot = [np.eye(k)[codes.reshape(n, -1)].reshape(n, -1) for codes, k in coded]
    blurred = 2.0 * gaussian_filter(p.astype(float), (0.0, 0.7, 0.7))
    return np.concatenate([*hot, blurred.reshape(n, -1)], axis=1)
