"""Brute force over all labellings: the reference for tests of all other methods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._limits import check_time
from chordal._validate import check_number
from chordal.inference._answers import ByCost, Decoded, Labels, Marginals, Ranked, Spans
from chordal.inference._base import Inference
from chordal.potentials import Floats, Potentials, refuse_infeasible, refuse_other_shape
from chordal.structures import Structure


@final
class ExhaustiveInference(Inference):
    """Exact on any structure with few labellings, by listing them all.

    Parameters
    ----------
    max_labellings : int, default=1_000_000
        Maximum number of labellings of an example; more are an error.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[0, 0, 0, 0])
    >>> ExhaustiveInference().entropy(p).round(4)
    array([1.3863])
    """

    answers: ClassVar[frozenset[str]] = frozenset(
        {
            "log_partition",
            "marginals",
            "marginals_derivative",
            "map",
            "map_by_cost",
            "k_best",
            "sample",
            "entropy",
            "span_log_probability",
        }
    )

    def __init__(
        self,
        max_labellings: int = 1_000_000,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("max_labellings", max_labellings, minimum=1, integer=True)
        self.max_labellings = max_labellings

    def supports(self, structure: Structure) -> bool:
        """Structures whose examples have at most `max_labellings` labellings."""
        sizes = np.log(structure.label_counts.astype(float))
        per_example = np.add.reduceat(np.append(sizes, 0.0), structure.variable_offsets[:-1])
        per_example[np.diff(structure.variable_offsets) == 0] = 0.0
        return bool((per_example <= np.log(self.max_labellings) + 1e-9).all())

    def exact_on(self, structure: Structure) -> bool:
        """Exact on every supported structure."""
        return self.supports(structure)

    @property
    def copies(self) -> float:
        """Labellings, where more than usual are allowed."""
        return max(1.0, self.max_labellings / 1e4)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """All labellings of an example, some numbers for each, and those asked for."""
        if not self.supports(structure):
            return 0.0  # which is refused anyway
        most, asked = 0.0, n * (4.0 * structure.n_variables + 8.0 * structure.n_examples)
        for first, last in zip(
            *(structure.variable_offsets[k:][: structure.n_examples] for k in (0, 1)), strict=True
        ):
            counts = structure.label_counts[first:last]
            most = max(most, math.prod(counts.tolist()) * (4.0 * len(counts) + 64.0))
        return most + asked

    def log_partition(self, potentials: Potentials) -> Floats:
        """log Z, summed over all labellings."""
        self.require("log_partition", potentials.structure)
        return np.array([_log_sum(scores) for _, _, scores in _listed(potentials)])

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Marginals, summed over all labellings."""
        self.require("marginals", potentials.structure)
        log_partition = self.log_partition(potentials)
        refuse_infeasible(log_partition)
        parts = potentials.zeros()
        for example, labellings, scores in _listed(potentials):
            probability = _shares(scores)
            if weight is not None:
                probability = probability * weight[example]
            _accumulate(parts, example, labellings, probability)
        return Marginals(log_partition, parts)

    def marginals_derivative(
        self,
        potentials: Potentials,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The derivative, by covariances over all labellings."""
        self.require("marginals_derivative", potentials.structure)
        refuse_other_shape(potentials, direction)
        log_partition = self.log_partition(potentials)
        refuse_infeasible(log_partition)
        parts = potentials.zeros()
        both = zip(_listed(potentials), _listed(direction), strict=True)
        for (example, labellings, scores), (_, _, change) in both:
            probability = _shares(scores)
            covariance = probability * (change - probability @ change)
            if weight is not None:
                covariance = covariance * weight[example]
            _accumulate(parts, example, labellings, covariance)
        return parts

    def map(self, potentials: Potentials) -> Decoded:
        """The best of all labellings."""
        ranked = self.k_best(potentials, 1)
        return Decoded(ranked.labels[0], ranked.score[:, 0])

    def map_by_cost(self, potentials: Potentials, price: NDArray[np.int64]) -> ByCost:
        """The best of all labellings of every cost."""
        structure = potentials.structure
        self.require("map_by_cost", structure)
        found, at = ByCost.empty(structure, price), 0
        for example, labellings, scores in _listed(potentials):
            first, last = structure.variable_offsets[example : example + 2]
            of_labels = price[structure.state_offsets[first:last] + labellings].sum(axis=1)
            begin, end = found.offsets[example : example + 2]
            for cost in range(end - begin):
                same = np.flatnonzero(of_labels == cost)
                if len(same) and scores[same].max() > -np.inf:
                    best = same[np.argmax(scores[same])]
                    found.score[begin + cost] = scores[best]
                    found.labels[at : at + last - first] = labellings[best]
                at += last - first
        refuse_infeasible(np.maximum.reduceat(found.score, found.offsets[:-1]))
        return found

    def k_best(self, potentials: Potentials, k: int) -> Ranked:
        """The best of all labellings, in order."""
        structure = potentials.structure
        self.require("k_best", structure)
        labels = np.zeros((k, structure.n_variables), dtype=np.int32)
        score = np.full((structure.n_examples, k), -np.inf)
        for example, labellings, scores in _listed(potentials):
            order = np.argsort(-scores, kind="stable")[:k]
            order = order[scores[order] > -np.inf]
            first, last = structure.variable_offsets[example : example + 2]
            labels[: len(order), first:last] = labellings[order]
            score[example, : len(order)] = scores[order]
        refuse_infeasible(score[:, 0])
        return Ranked(labels, score)

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """Exact draws from the list of all labellings."""
        self.require("sample", potentials.structure)
        log_partition = self.log_partition(potentials)
        refuse_infeasible(log_partition)
        out = np.zeros((n, potentials.structure.n_variables), dtype=np.int32)
        for example, labellings, scores in _listed(potentials):
            probability = _shares(scores)
            chosen = rng.choice(len(scores), size=n, p=probability / probability.sum())
            first, last = potentials.structure.variable_offsets[example : example + 2]
            out[:, first:last] = labellings[chosen]
        return out

    def entropy(self, potentials: Potentials) -> Floats:
        """The entropy, summed over all labellings."""
        self.require("entropy", potentials.structure)
        log_partition = self.log_partition(potentials)
        refuse_infeasible(log_partition)
        out = np.zeros(len(log_partition))
        for example, _, scores in _listed(potentials):
            log_probability = (scores - log_partition[example])[scores > -np.inf]
            out[example] = -(np.exp(log_probability) * log_probability).sum()
        return out

    def span_log_probability(self, potentials: Potentials, spans: Spans) -> Floats:
        """log probabilities of labels on spans, summed over labellings."""
        structure = potentials.structure
        self.require("span_log_probability", structure)
        refuse_infeasible(self.log_partition(potentials))
        spans.in_order(structure)
        listed = {example: (y, s) for example, y, s in _listed(potentials)}
        out, at = np.empty(len(spans.example)), 0
        for k, example in enumerate(spans.example):
            labellings, scores = listed[int(example)]
            inside = np.ones(len(scores), dtype=bool)
            for t in range(spans.start[k], spans.start[k] + spans.length[k]):
                size = structure.label_counts[structure.variable_offsets[example] + t]
                inside &= spans.allowed[at : at + size].astype(bool)[labellings[:, t]]
                at += size
            out[k] = min(0.0, _log_sum(scores[inside]) - _log_sum(scores))
        return out


def _listed(potentials: Potentials) -> Iterator[tuple[int, Labels, Floats]]:
    """For each example: its index, all labellings (rows, in lexicographic order), their scores."""
    s = potentials.structure
    for example in range(s.n_examples):
        first, last = s.variable_offsets[example : example + 2]
        counts = s.label_counts[first:last]
        n = math.prod(counts.tolist())
        labellings = np.empty((n, len(counts)), dtype=np.int32)
        rest = np.arange(n)
        for v in reversed(range(len(counts))):  # the digits of each number, the last fastest
            check_time()
            rest, labellings[:, v] = np.divmod(rest, counts[v])
        scores = np.zeros(n)
        for v in range(first, last):
            check_time()
            scores += potentials.unary[s.state_offsets[v] + labellings[:, v - first]]
        for clique in range(s.clique_offsets[example], s.clique_offsets[example + 1]):
            check_time()
            columns = labellings[:, s.scope(clique) - first]
            scores += potentials.table(clique)[tuple(columns.T)]
        yield example, labellings, scores


def _accumulate(parts: Potentials, example: int, labellings: Labels, probability: Floats) -> None:
    s = parts.structure
    first, last = s.variable_offsets[example : example + 2]
    for v in range(first, last):
        check_time()
        np.add.at(parts.unary, s.state_offsets[v] + labellings[:, v - first], probability)
    for clique in range(s.clique_offsets[example], s.clique_offsets[example + 1]):
        check_time()
        columns = labellings[:, s.scope(clique) - first]
        np.add.at(parts.table(clique), tuple(columns.T), probability)


def _shares(scores: Floats) -> Floats:
    """Probabilities of labellings; at least one must be allowed."""
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def _log_sum(scores: Floats) -> float:
    highest = scores.max(initial=-np.inf)
    if highest == -np.inf:
        return -np.inf
    return float(highest + np.log(np.exp(scores - highest).sum()))
