"""Assignment 7, part 2: words of three letters by a chain CRF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
from scipy.ndimage import gaussian_filter

from chordal import ChainCRF, plots
from chordal.datasets import Pa7, distorted, load_pa7
from chordal.experiments._base import Experiment, Outcome, Row, Setup
from chordal.solvers.sgd import Sgd


@final
class Pa7Crf(Experiment):
    """The assignment's training, then one idea after another."""

    title: ClassVar[str] = "Words of three letters (assignment 7, part 2)"
    about: ClassVar[str] = (
        "Letters of 8 × 4 pixels, three to a word. The assignment's training is five passes of "
        "stochastic gradient descent; its text suggests more: λ by cross-validation, L-BFGS, "
        "distorted images. Each row adds an idea to the row before."
    )
    data: ClassVar[str] = "assignment 7's own words, 100 to train on and 80 to test"
    split: ClassVar[str] = "as given; settings by cross-validation on training words"
    model: ClassVar[str] = "chain CRF, 2,366 weights: pixel values, bias and transitions by label"
    source: ClassVar[str] = "Stanford PGM course, assignment 7: CRF learning for OCR (2012)"

    def run(self, setup: Setup) -> Outcome:
        data, outcome = load_pa7(), Outcome()
        setup.say("the assignment's training")
        X, test = ([_pixels(i) for i in words] for words in (data.images_train, data.images_test))
        solver = Sgd(5, 0.0, schedule="inverse", shuffle=False, keep_best=False)
        crf = ChainCRF(solver=solver, l2=0.003 * len(X), transitions="all", bias=True)
        crf.fit(X, data.y_train)
        outcome.rows += [
            Row("training letters, 5 passes, λ = 0.003", crf.score(X, data.y_train), 0.73),
            Row("test letters, 5 passes, λ = 0.003", crf.score(test, data.y_test), 0.62),
        ]
        ideas = [
            ("L-BFGS to the optimum, l2 by cross-validation", _pixels, 0),
            ("… with pairs of neighbouring pixels and blurred ones", _views, 0),
            ("… with distorted copies of the training images", _views, 2 if setup.quick else 12),
        ]
        best: Any = None
        for what, features, copies in ideas:
            setup.say(what.lstrip("… "))
            l2 = self._l2(data, features, copies, setup)
            best = _fitted(data, features, copies, l2, self.seed, range(len(X)), setup.n_jobs)
            score = best.score([features(i) for i in data.images_test], data.y_test)
            why = f"l2 = {l2:g}"
            outcome.rows.append(Row(f"test letters, {what}", score, must=0.62, why=why))
        self._pictures(outcome, data, best)
        return outcome

    def _l2(self, data: Pa7, features: Any, copies: int, setup: Setup) -> float:
        """The best of a few by cross-validation over words; copies stay with their word."""
        if setup.quick:
            return 1.0
        n = len(data.images_train)
        groups = _groups(data.images_train)
        folds = np.random.default_rng(self.seed).permutation(groups.max() + 1)[groups] % 4
        scores = {}
        for l2 in (0.3, 1.0, 3.0):
            right = 0.0
            for fold in range(4):
                train = np.flatnonzero(folds != fold)
                crf = _fitted(data, features, min(copies, 4), l2, self.seed, train, setup.n_jobs)
                test = np.flatnonzero(folds == fold)
                right += len(test) * crf.score(
                    [features(data.images_train[i]) for i in test], [data.y_train[i] for i in test]
                )
            scores[l2] = right / n
        return max(scores, key=lambda l2: scores[l2])

    def _pictures(self, outcome: Outcome, data: Pa7, crf: ChainCRF) -> None:
        found = crf.predict([_views(images) for images in data.images_test])
        figure, axes = plots.subplots(3, 8, size=(9.0, 4.6))
        for ax, images, truth, read in zip(
            axes.flat, data.images_test, data.y_test, found, strict=False
        ):
            ax.imshow(np.concatenate(list(images), axis=1), cmap="Greys")
            ax.set_axis_off()
            wrong = list(truth) != list(read)
            ax.set_title(f"{''.join(truth)} → {''.join(read)}" if wrong else "".join(truth))
        outcome.draw("Test words", "True letters, and what was read where that differs.", figure)
        figure, ax = plots.subplots(size=(5.6, 5.0))
        plots.confusion(data.y_test, found, ax=ax)
        outcome.draw("What is taken for what", "Rows are true letters.", figure)


def _fitted(
    data: Pa7,
    features: Any,
    copies: int,
    l2: float,
    seed: int,
    words: Sequence[int] | Any,
    n_jobs: int,
) -> ChainCRF:
    """The model of these training words and distorted copies of them, which count an eighth."""
    rng = np.random.default_rng(seed)
    images = [data.images_train[i] for i in words]
    X, y, weight = (
        [features(i) for i in images],
        [data.y_train[i] for i in words],
        [1.0] * len(images),
    )
    for _ in range(copies):
        for word, labels in zip(images, list(y)[: len(images)], strict=True):
            X.append(features(distorted(word, rng, order=1) > 0.5))
            y.append(labels)
            weight.append(1.0 / 8.0)
    crf = ChainCRF(l2=l2, transitions="all", bias=True, n_jobs=n_jobs)
    return crf.fit(X, y, sample_weight=weight)


def _groups(images: Sequence[Any]) -> Any:
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


def _pixels(images: Any) -> Any:
    """A column for each pixel and value [3, 64]."""
    return np.eye(2)[np.asarray(images, dtype=int).reshape(len(images), -1)].reshape(3, -1)


def _views(images: Any) -> Any:
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
