"""What a model of cliques is made of, and what it says about examples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import InfeasibleError
from chordal._validate import (
    check_choice,
    check_number,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
)
from chordal.estimators._clique_reading import read_batch
from chordal.estimators._estimator import Estimator, generator_from
from chordal.estimators._labels import SequenceLabels
from chordal.estimators._training import execution_for, shard_limits
from chordal.estimators.clique_template import CliqueTemplate
from chordal.execution import effective_n_jobs
from chordal.features import CliqueFeatures, Input
from chordal.inference import INFERENCE, Inference, choose, most_probable_labels
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure, offsets_of

Answer = Callable[[Potentials, Inference], Any]


class CliqueModel(Estimator):
    """The state of a model after `fit`, and labels, probabilities and samples of examples."""

    inference: str | Inference
    n_jobs: int | None
    random_state: Any
    void: Any

    classes_: NDArray[Any]
    features_: CliqueFeatures
    inference_: Inference
    weights_: Floats
    _templates: list[CliqueTemplate]
    _inputs: list[Input | None]
    _labels: SequenceLabels

    @abstractmethod
    def _examples(self, X: Any, name: str = "X", known: bool = False) -> Sequence[Any]:
        """What users gave as a list of examples, checked; `known` for a fitted model."""

    def _flat(self, y: Any, X: Sequence[Any], name: str = "y") -> Sequence[Any]:
        """Labels of every example as a sequence."""
        return check_sequences(y, name)

    def _shaped(self, values: Any, x: Any) -> Any:
        """What concerns the variables of x, in the shape that its labels have."""
        return values

    def predict(self, X: Sequence[Any], *, method: str | None = None) -> list[Any]:
        """The labels of each example, in the type in which `fit` got them.

        Parameters
        ----------
        method : {"map", "mpm"}, optional
            The best labelling as a whole, or the best label of each variable by its marginal
            probability. By default the first, or the second where `inference` is a method such as
            "mean_field", which has marginals only.
        """
        if method is not None:
            check_choice("method", method, ["map", "mpm"])
        question = {"map": "map", "mpm": "marginals", None: self._decoding()}[method]

        def answer(potentials: Potentials, inference: Inference) -> NDArray[np.int32]:
            return decoded(potentials, inference, question)

        X, sizes, found = self._ask(X, question, answer)
        labels = self._labels.decode(np.concatenate(found), sizes)
        return [self._shaped(own, x) for own, x in zip(labels, X, strict=True)]

    def predict_marginals(self, X: Sequence[Any]) -> list[Floats]:
        """P(y_v | x) of the variables of each example, arrays [n_variables, n_classes] in the
        order of `classes_`.
        """
        self._check_fitted()
        n, order = len(self._labels), self._labels.order

        def answer(potentials: Potentials, inference: Inference) -> Floats:
            parts = inference.marginals(potentials, overwrite=True).parts
            return parts.unary.reshape(-1, n)[:, order]

        X, sizes, found = self._ask(X, "marginals", answer)
        split = np.split(np.concatenate(found), offsets_of(sizes)[1:-1])
        return [self._shaped(own, x) for own, x in zip(split, X, strict=True)]

    def k_best(self, X: Sequence[Any], k: int = 5) -> list[list[tuple[Any, float]]]:
        """For each example up to k labellings with their probabilities, best first."""
        check_number("k", k, minimum=1, integer=True)

        def answer(potentials: Potentials, inference: Inference) -> Any:
            labels, score = inference.k_best(potentials, k)
            chance = np.exp(score - inference.log_partition(potentials)[:, None])
            return self._each(labels, potentials.structure), np.where(score > -np.inf, chance, -1)

        X, _, found = self._ask(X, "k_best", answer)
        labels = [own for shard, _ in found for own in shard]
        chances = np.concatenate([chance for _, chance in found])
        return [
            [(self._shaped(y, x), float(p)) for y, p in zip(own, chance, strict=True) if p >= 0]
            for x, own, chance in zip(X, labels, chances, strict=True)
        ]

    def sample(self, X: Sequence[Any], n_samples: int = 1) -> list[list[Any]]:
        """For each example n samples from p(y | x); exact where the inference method is."""
        check_number("n_samples", n_samples, minimum=1, integer=True)
        rng = generator_from(self.random_state)

        def answer(potentials: Potentials, inference: Inference) -> list[list[Any]]:
            drawn = inference.sample(potentials, n_samples, rng)
            return self._each(drawn, potentials.structure)

        X, _, found = self._ask(X, "sample", answer, serial=True)
        labels = [own for shard in found for own in shard]
        return [[self._shaped(y, x) for y in own] for x, own in zip(X, labels, strict=True)]

    def _each(self, labellings: NDArray[np.int32], structure: Structure) -> list[list[Any]]:
        """For each example its labels in each of the labellings of the batch."""
        sizes = np.diff(structure.variable_offsets)
        decoded = [self._labels.decode(row, sizes) for row in labellings]
        return [list(of_example) for of_example in zip(*decoded, strict=True)]

    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """log p(y | x) of each example; as good as the log Z of the inference method."""
        self._check_fitted()
        X = self._examples(X)
        labels = self._flat(y, X)
        gold = iter(np.split(self._labels.encode(labels), np.cumsum([len(own) for own in labels])))

        def answer(potentials: Potentials, inference: Inference) -> Floats:
            own = [next(gold) for _ in range(potentials.structure.n_examples)]
            score = potentials.score(np.concatenate(own))
            return score - inference.log_partition(potentials)

        _, _, found = self._ask(X, "log_partition", answer, y=labels, serial=True)
        return np.concatenate(found)

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:
        """The share of labels that `predict` gets right; those that are not observed are left
        out, unseen ones count as wrong.
        """
        X = self._examples(X)
        given = self._flat(y, X)
        predicted = self._flat(self.predict(X), X)
        check_same_lengths(np.array([len(p) for p in predicted]), given)
        weight = check_sample_weight(sample_weight, len(given))
        right, total = np.zeros(len(given)), np.zeros(len(given))
        for i, (p, t) in enumerate(zip(predicted, given, strict=True)):
            seen = self._observed(t)
            total[i] = seen.sum()
            right[i] = sum(bool(a == b) for a, b, s in zip(p, t, seen, strict=True) if s)
        weight = np.ones(len(given)) if weight is None else weight
        if not (weight * total).any():
            raise ValueError("there is nothing to score: no label with a weight is observed")
        return float((weight * right).sum() / (weight * total).sum())

    def _observed(self, labels: Any) -> NDArray[np.bool_]:
        """Which labels are given: not None, and not the label that stands for none."""
        if isinstance(labels, np.ndarray) and labels.dtype != object:
            return (
                np.asarray(labels != self.void)
                if self.void is not None
                else np.ones(len(labels), dtype=bool)
            )
        return np.array(
            [v is not None and v is not self.void and v != self.void for v in labels], dtype=bool
        )

    def template_weights(self, name: str) -> dict[str, NDArray[Any]]:
        """The weights of a template, with labels in the order of `classes_`.

        Returns
        -------
        dict
            "features": array [n_features, n_classes, …], an axis of classes for each variable of a
            clique; "bias": array [n_classes, …]. Only those that the template has.
        """
        self._check_fitted()
        known = {layout.name: layout for layout in self.features_.layouts}
        check_choice("name", name, known)
        layout, own = known[name], self.weights_[self.features_.slices[name]]
        n, tables, out = layout.n_row_weights, layout.tables, {}
        axes = np.ix_(*[self._labels.order] * tables.order)
        shape = (tables.n_labels,) * tables.order
        if layout.rows is not None:
            keys = layout.rows.keys()
            source = self._inputs[list(known).index(name)]
            table = np.zeros((0 if source is None else source.n_columns, tables.n_outputs))
            table[keys.column, keys.output] = own[:n]
            cells = tables.filled(table).reshape(-1, *shape)
            out["features"] = np.stack([cell[axes] for cell in cells]) if len(cells) else cells
        if layout.bias:
            out["bias"] = tables.filled(own[None, n:]).reshape(shape)[axes]
        return out

    def _decoding(self) -> str:
        """The question whose answer has the labels to predict."""
        if self.inference == "auto":
            return "map"
        answers = INFERENCE.resolve(self.inference).answers
        return "marginals" if "marginals" in answers and "map" not in answers else "map"

    def _method(self, question: str, potentials: Potentials) -> Inference:
        """What answers a question about these graphs."""
        if self.inference == "auto":
            return choose(potentials, question)
        method = INFERENCE.resolve(self.inference)
        method.require(question, potentials.structure)
        return method

    def _ask(
        self,
        X: Sequence[Any],
        question: str,
        answer: Answer,
        *,
        y: Sequence[Any] | None = None,
        serial: bool = False,
    ) -> tuple[Sequence[Any], NDArray[np.int64], list[Any]]:
        """Examples, their sizes, and answers of inference to a question, shard by shard."""
        self._check_fitted()
        X = self._examples(X, known=True)
        batch = read_batch(self._templates, self._inputs, X, grow=False)
        if y is not None:
            check_same_lengths(batch.sizes, y)
        features, expanded = self.features_, self.features_.expand(self.weights_)

        def ask(limits: tuple[int, int]) -> Any:
            shard = features.compile(batch, *limits)
            potentials = features.potentials(shard, expanded)
            try:
                return answer(potentials, self._method(question, potentials))
            except InfeasibleError as error:
                raise error.moved(limits[0]) from None

        n_jobs = 1 if serial else effective_n_jobs(self.n_jobs)
        limits = shard_limits(batch.cells(features.n_labels), 1)
        with execution_for(n_jobs) as mapper:
            return X, batch.sizes, mapper.map(ask, limits)


def decoded(potentials: Potentials, inference: Inference, question: str) -> NDArray[np.int32]:
    """The best labels by the answer to "map" or to "marginals"; may overwrite the potentials."""
    if question == "map":
        return inference.map(potentials).labels
    return most_probable_labels(inference.marginals(potentials, overwrite=True).parts)
