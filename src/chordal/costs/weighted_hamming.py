"""Weighted Hamming cost: some errors cost more than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from chordal.costs._base import Cost, Floats, Ints, Labels, Prices, shares
from chordal.potentials import Potentials
from chordal.structures import Structure


@final
class WeightedHamming(Cost):
    """The sum over variables of a cost for each pair (gold, predicted label).

    Parameters
    ----------
    costs : array [n_labels, n_labels] or dict, optional
        A matrix [gold, label] with 0 on the diagonal, in the order of the estimator's `classes_`.
        Or a dict {(gold, label): cost}, or {gold: cost} for all errors on this gold label. Errors
        that are not named cost 1; by default all do.
    normalize : bool, default=False
        Whether to divide by the number of variables.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([3], n_labels=2), np.zeros(6), np.zeros(4))
    >>> missed_ones = WeightedHamming([[0, 1], [5, 0]])
    >>> missed_ones.of(p, np.array([1, 0, 1]), np.array([0, 1, 1]))
    array([6.])
    """

    def __init__(
        self, costs: ArrayLike | Mapping[Any, float] | None = None, normalize: bool = False
    ) -> None:
        self.costs = costs
        self.normalize = normalize
        self._matrix: Floats | None = None
        if costs is not None and not isinstance(costs, Mapping):
            self._matrix = _checked(costs)

    def add(self, potentials: Potentials, labels: Labels) -> Potentials:
        """Add the cost of each pair (gold, label) to the scores."""
        structure = potentials.structure
        prices = self._of_states(structure, labels)
        if self.normalize:
            states = np.diff(structure.state_offsets[structure.variable_offsets])
            prices = prices * np.repeat(shares(structure), states)
        potentials.unary += prices
        return potentials

    @property
    def in_units(self) -> bool:
        """Whether all costs are whole numbers."""
        if isinstance(self.costs, Mapping):
            return all(price == int(price) for price in self.costs.values())
        return self._matrix is None or bool((self._matrix == np.rint(self._matrix)).all())

    def prices(self, structure: Structure, labels: Labels) -> Prices:
        """The costs of each variable, given its gold label."""
        if not self.in_units:
            return super().prices(structure, labels)  # refuses
        unit = shares(structure) if self.normalize else np.ones(structure.n_examples)
        return Prices(self._of_states(structure, labels).astype(np.int64), unit)

    def for_labels(self, labels: Sequence[Any], order: Ints) -> WeightedHamming:
        """The same cost, with costs in the order of label numbers."""
        n = len(labels)
        if self.costs is None:
            costs = 1.0 - np.eye(n)
        elif self._matrix is not None:
            if len(self._matrix) != n:
                raise ValueError(
                    f"costs must be a matrix of the {n} classes, got {len(self._matrix)} rows"
                )
            costs = np.zeros((n, n))
            costs[np.ix_(order, order)] = self._matrix
        else:
            costs = _translated(self.costs, labels)
        return WeightedHamming(costs, self.normalize)

    def with_class_weight(self, weight: Floats) -> WeightedHamming:
        """The same cost, with the costs of each gold label multiplied by its weight."""
        costs = 1.0 - np.eye(len(weight)) if self._matrix is None else self._matrix
        return WeightedHamming(weight[:, None] * costs, self.normalize)

    def _of_states(self, structure: Structure, labels: Labels) -> Floats:
        """The cost of every label of every variable."""
        counts, matrix = structure.label_counts, self._matrix
        if isinstance(self.costs, Mapping):
            raise ValueError("costs by label name need the numbers of labels: call for_labels")
        if matrix is None:
            prices = np.ones(structure.n_states)
            prices[structure.state_offsets[:-1] + labels] = 0.0
            return prices
        if len(counts) and counts.max() > len(matrix):
            raise ValueError(
                f"costs must be a matrix of all labels ({counts.max()}), got {len(matrix)} rows"
            )
        gold = np.repeat(np.asarray(labels), counts)
        label = np.arange(structure.n_states) - np.repeat(structure.state_offsets[:-1], counts)
        return np.asarray(matrix[gold, label])


def _checked(costs: ArrayLike) -> Floats:
    try:
        matrix = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"costs must be a matrix of numbers or a dict, got {costs!r}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"costs must be a square matrix [gold, label], got shape {matrix.shape}")
    if not np.isfinite(matrix).all() or (matrix < 0.0).any():
        raise ValueError("costs must be finite and not negative")
    if np.diagonal(matrix).any():
        raise ValueError("costs must be 0 on the diagonal: the gold label is not an error")
    return matrix


def _translated(costs: Any, labels: Sequence[Any]) -> Floats:
    """A matrix by number from a dict by label; costs of pairs override those of gold labels."""
    number = {label: k for k, label in enumerate(labels)}
    matrix = np.ones((len(labels), len(labels)))
    pairs = {}
    for key, price in costs.items():
        if key in number:
            matrix[number[key]] = price
        elif isinstance(key, tuple) and len(key) == 2 and key[0] in number and key[1] in number:
            pairs[number[key[0]], number[key[1]]] = price
        else:
            raise ValueError(
                f"costs names {key!r}, which is neither a label nor a pair (gold, label) of "
                f"labels; there are: {', '.join(map(repr, labels[:20]))}"
            )
    for pair, price in pairs.items():
        matrix[pair] = price
    if any(a == b and price for (a, b), price in pairs.items()):
        raise ValueError("costs must be 0 for a label against itself")
    np.fill_diagonal(matrix, 0.0)
    return matrix
