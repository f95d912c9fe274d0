"""What a fitted chain model says about sequences."""

from __future__ import annotations

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
from chordal.estimators._chain_model import ChainModel, length_of
from chordal.estimators._constraints import Constraints
from chordal.estimators._estimator import generator_from
from chordal.estimators._spans import segment_spans
from chordal.estimators._training import execution_for, shard_limits
from chordal.execution import effective_n_jobs
from chordal.inference import Spans, most_probable_labels
from chordal.potentials import Floats, Potentials
from chordal.structures import offsets_of


class ChainPrediction(ChainModel):
    """Labels, probabilities and samples of new sequences."""

    def predict(
        self,
        X: Sequence[Any],
        *,
        method: str = "map",
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Any = None,
    ) -> list[Any]:
        """The labels of each sequence, in the type in which `fit` got them.

        Parameters
        ----------
        method : {"map", "mpm"}
            The best labelling as a whole (Viterbi), or the best label of each position by its
            marginal probability.
        allowed_labels : list, optional
            For each sequence None, or for each position None, the labels allowed there, or
            flags in the order of `classes_`.
        allowed_transitions : {"bio", "iobes"}, matrix or pairs, optional
            Only these: legal tags of a scheme, a boolean matrix [from, to] in the order of
            `classes_`, or pairs (from, to) of labels.
        """
        lengths, numbers = self._best(X, method, allowed_labels, allowed_transitions)
        return self._labels.decode(numbers, lengths)

    def predict_codes(
        self,
        X: Sequence[Any],
        *,
        method: str = "map",
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Any = None,
    ) -> NDArray[np.int32]:
        """What `predict` finds, as indices into `classes_`, one sequence after another.

        An array of numbers takes a fraction of the time of lists of labels.
        """
        _, numbers = self._best(X, method, allowed_labels, allowed_transitions)
        return np.argsort(self._labels.order).astype(np.int32)[numbers]

    def _best(
        self,
        X: Sequence[Any],
        method: str,
        allowed_labels: Sequence[Any] | None,
        allowed_transitions: Any,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Lengths of the sequences, and numbers of their labels."""
        check_choice("method", method, ["map", "mpm"])

        def answer(potentials: Potentials) -> NDArray[np.int32]:
            if method == "map":
                return self.inference_.map(potentials).labels
            return most_probable_labels(self.inference_.marginals(potentials, overwrite=True).parts)

        lengths, found = self._ask(X, answer, allowed_labels, allowed_transitions)
        return lengths, np.concatenate(found)

    def predict_marginals(
        self,
        X: Sequence[Any],
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Any = None,
    ) -> list[Floats]:
        """P(y_t | x) of each sequence, arrays [length, n_classes] in the order of `classes_`."""
        n, order = len(self._fitted_labels()), self._labels.order

        def answer(potentials: Potentials) -> Floats:
            parts = self.inference_.marginals(potentials, overwrite=True).parts
            return parts.unary.reshape(-1, n)[:, order]

        lengths, found = self._ask(X, answer, allowed_labels, allowed_transitions)
        return np.split(np.concatenate(found), offsets_of(lengths)[1:-1])

    def node_scores(self, X: Sequence[Any]) -> list[Floats]:
        """Scores of labels before any link counts, arrays [length, n_classes].

        What the observations of a position give to each label, with biases and ends: features of
        a second model, such as one with more links.

        Examples
        --------
        >>> from chordal import ChainCRF
        >>> model = ChainCRF(transitions="none").fit([[["a"], ["b"]]], [["A", "B"]])
        >>> scores = model.node_scores([[["b"], ["a"], ["?"]]])[0]
        >>> model.classes_[scores[:2].argmax(axis=1)].tolist(), scores[2].tolist()
        (['B', 'A'], [0.0, 0.0])
        """
        n, order = len(self._fitted_labels()), self._labels.order

        def answer(potentials: Potentials) -> Floats:
            return potentials.unary.reshape(-1, n)[:, order]

        lengths, found = self._ask(X, answer)
        return np.split(np.concatenate(found), offsets_of(lengths)[1:-1])

    def predict_transition_marginals(self, X: Sequence[Any]) -> list[Floats]:
        """P(y_t, y_{t+1} | x), arrays [length − 1, n_classes, n_classes]."""
        n, order = len(self._fitted_labels()), self._labels.order

        def answer(potentials: Potentials) -> Floats:
            parts = self.inference_.marginals(potentials.untied(), overwrite=True).parts
            return parts.tables.reshape(-1, n, n)[:, order][:, :, order]

        lengths, found = self._ask(X, answer)
        return np.split(np.concatenate(found), offsets_of(np.maximum(lengths - 1, 0))[1:-1])

    def k_best(
        self,
        X: Sequence[Any],
        k: int = 5,
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Any = None,
    ) -> list[list[tuple[Any, float]]]:
        """For each sequence up to k labellings with their probabilities, best first."""
        check_number("k", k, minimum=1, integer=True)
        self._fitted_labels()

        def answer(potentials: Potentials) -> list[list[tuple[Any, float]]]:
            labels, score = self.inference_.k_best(potentials, k)
            lengths = np.diff(potentials.structure.variable_offsets)
            chance = np.exp(score - self.inference_.log_partition(potentials)[:, None])
            ranked = [self._labels.decode(row, lengths) for row in labels]
            return [
                [(ranked[r][i], float(chance[i, r])) for r in range(k) if score[i, r] > -np.inf]
                for i in range(len(lengths))
            ]

        _, found = self._ask(X, answer, allowed_labels, allowed_transitions)
        return [ranked for shard in found for ranked in shard]

    def sample(
        self,
        X: Sequence[Any],
        n_samples: int = 1,
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Any = None,
    ) -> list[list[Any]]:
        """For each sequence n exact samples from p(y | x)."""
        check_number("n_samples", n_samples, minimum=1, integer=True)
        self._fitted_labels()
        rng = generator_from(self.random_state)

        def answer(potentials: Potentials) -> list[list[Any]]:
            lengths = np.diff(potentials.structure.variable_offsets)
            drawn = self.inference_.sample(potentials, n_samples, rng)
            decoded = [self._labels.decode(row, lengths) for row in drawn]
            return [list(of_sequence) for of_sequence in zip(*decoded, strict=True)]

        _, found = self._ask(X, answer, allowed_labels, allowed_transitions, serial=True)
        return [samples for shard in found for samples in shard]

    def log_likelihood(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """log p(y | x) of each sequence."""
        y = check_sequences(y, "y")
        gold = self._fitted_labels().encode(y)

        def answer(potentials: Potentials, begin: int) -> Floats:
            rows = slice(begin, begin + potentials.structure.n_variables)
            return potentials.score(gold[rows]) - self.inference_.log_partition(potentials)

        _, found = self._ask(X, answer, y=y, rows=True)
        return np.concatenate(found)

    def entropy(self, X: Sequence[Any]) -> Floats:
        """The entropy of p(y | x) of each sequence, in nats: how unsure the model is."""
        self._fitted_labels()
        _, found = self._ask(X, lambda potentials: self.inference_.entropy(potentials))
        return np.concatenate(found)

    def span_probabilities(
        self, X: Sequence[Any], spans: Sequence[Sequence[tuple[int, int, Any]]]
    ) -> list[Floats]:
        """The probability that a segment is exactly this entity.

        Parameters
        ----------
        spans : for each sequence, a list of (start, end, label)
            `end` is exclusive. With BIO or IOBES tags the label is the type ("PER"); with plain
            labels it is the label of a run that cannot be extended.
        """
        labels = self._fitted_labels()
        X = self._sequences(X)
        if len(spans) != len(X):
            raise ValueError(f"spans must have one list per sequence ({len(X)}), got {len(spans)}")
        lengths = np.array([length_of(x) for x in X], dtype=np.int64)
        limits = shard_limits(lengths, self._cells_per_row())
        queries = iter([segment_spans(labels, spans[a:b], lengths[a:b], a) for a, b in limits])

        def answer(potentials: Potentials) -> Floats:
            query: Spans = next(queries)
            return np.exp(self.inference_.span_log_probability(potentials, query))

        _, found = self._ask(X, answer, serial=True)
        flat = np.concatenate(found)
        return np.split(flat, offsets_of([len(s) for s in spans])[1:-1])

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:
        """The share of positions that `predict` labels right; unseen labels count as wrong."""
        y = check_sequences(y, "y")
        predicted = self.predict(X)
        check_same_lengths(np.array([len(p) for p in predicted]), y)
        weight = check_sample_weight(sample_weight, len(y))
        right = np.array([
            sum(bool(a == b) for a, b in zip(p, t, strict=True))
            for p, t in zip(predicted, y, strict=True)
        ])  # fmt: skip
        total = np.array([len(t) for t in y])
        if weight is None:
            weight = np.ones(len(y))
        if not total.any():
            raise ValueError("every sequence is empty: there is nothing to score")
        if not (weight * total).any():
            raise ValueError("sample_weight must be above 0 for some sequence that is not empty")
        return float((weight * right).sum() / (weight * total).sum())

    def _cells_per_row(self) -> int:
        return self.features_.n_labels ** (1 if self.features_.edge is None else 2)

    def _ask(
        self,
        X: Sequence[Any],
        answer: Callable[..., Any],
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Any = None,
        *,
        y: Sequence[Any] | None = None,
        rows: bool = False,
        serial: bool = False,
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Answers of inference to a question, shard by shard, and the sequences' lengths."""
        self._check_fitted()
        X = self._sequences(X)
        node_rows, edge_rows = self._read(X, self._inputs, grow=False)
        lengths = node_rows.lengths
        if y is not None:
            check_same_lengths(lengths, y)
        if allowed_labels is not None and len(allowed_labels) != len(X):
            raise ValueError(
                f"allowed_labels must have one entry per sequence ({len(X)}), "
                f"got {len(allowed_labels)}"
            )
        constraints = Constraints(self._labels, allowed_labels, allowed_transitions)
        features, first_row = self.features_, offsets_of(lengths)
        expanded = self._expanded_weights()

        def ask(limits: tuple[int, int]) -> Any:
            shard = features.compile(node_rows, edge_rows, *limits, once=True)
            potentials = features.potentials(shard, expanded)
            if allowed_labels is not None or allowed_transitions is not None:
                potentials = constraints.apply(potentials, limits[0])
            try:
                if rows:
                    return answer(potentials, int(first_row[limits[0]]))
                return answer(potentials)
            except InfeasibleError as error:
                raise error.moved(limits[0]) from None

        n_jobs = 1 if serial else effective_n_jobs(self.n_jobs)
        with execution_for(n_jobs) as mapper:
            return lengths, mapper.map(ask, shard_limits(lengths, self._cells_per_row()))
