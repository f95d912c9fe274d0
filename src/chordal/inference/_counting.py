"""Cliques over many variables that depend only on how many of them have a label.

A table over n variables has at least 2^n cells. Here only a count matters. Extra variables hold how
many of the first k variables have the label, up to a limit. They are joined by n small tables in
all, so every inference method can use them. A labelling of the other variables determines the
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.potentials import Floats, Potentials
from chordal.structures import FactorGraph, Structure, offsets_of

Ints = NDArray[np.int64]

#: A label, several that count alike, or one of these for each variable.
Counting = int | Sequence[Any]


@final
@dataclass(frozen=True)
class Count:
    """A score for how many of some variables have a label; −inf makes it a hard constraint.

    Parameters
    ----------
    variables : list of int
        Distinct numbers within the example. Exact methods are cheapest if this order follows
        the edges between them, as along a chain.
    scores : list of float
        The score of count 0, 1, 2, …; the last one is also that of all larger counts.
    labels : int or list, default=1
        What is counted: a label, or for each variable a label or a set of labels.
    example : int
        The number of the example in the batch.

    Examples
    --------
    >>> Count([0, 1, 2], [0.0, 0.0, -5.0])  # a second one costs 5, a third no more
    Count(variables=[0, 1, 2], scores=[0.0, 0.0, -5.0], labels=1, example=0)
    >>> Count.at_most_one([0, 1, 2]).scores
    [0.0, 0.0, -inf]
    """

    variables: Sequence[int]
    scores: Sequence[float]
    labels: Counting = 1
    example: int = 0

    @classmethod
    def exactly_one(
        cls,
        variables: Sequence[int],
        labels: Counting = 1,
        *,
        penalty: float = np.inf,
        example: int = 0,
    ) -> Count:
        """Exactly one variable has the label (XOR); anything else costs `penalty`."""
        return cls(variables, [-penalty, 0.0, -penalty], labels, example)

    @classmethod
    def at_most_one(
        cls,
        variables: Sequence[int],
        labels: Counting = 1,
        *,
        penalty: float = np.inf,
        example: int = 0,
    ) -> Count:
        """At most one variable has the label; more cost `penalty`."""
        return cls(variables, [0.0, 0.0, -penalty], labels, example)

    @classmethod
    def at_least_one(
        cls,
        variables: Sequence[int],
        labels: Counting = 1,
        *,
        penalty: float = np.inf,
        example: int = 0,
    ) -> Count:
        """At least one variable has its label (OR, a clause); otherwise it costs `penalty`.

        The rule "0 and 1 imply 2" is ``at_least_one([0, 1, 2], labels=[0, 0, 1])``.
        """
        return cls(variables, [-penalty, 0.0], labels, example)

    @classmethod
    def between(
        cls,
        variables: Sequence[int],
        low: int,
        high: int,
        labels: Counting = 1,
        *,
        penalty: float = np.inf,
        example: int = 0,
    ) -> Count:
        """Between `low` and `high` variables have the label; anything else costs `penalty`."""
        check_number("low", low, integer=True)
        check_number("high", high, minimum=low, integer=True)
        return cls(
            variables,
            [0.0 if low <= k <= high else -penalty for k in range(high + 2)],
            labels,
            example,
        )


@final
@dataclass(frozen=True)
class Counted:
    """A model with counts, and the map to the variables of the model without them.

    potentials : Potentials
            Potentials for any inference method. log Z, scores and the best labellings of the other
            variables are those of the model with all counts.
    variables : int64 [n_variables]
        The variables of the model without counts, by their numbers in `potentials`.
    """

    potentials: Potentials
    variables: Ints

    def labels(self, found: NDArray[Any]) -> NDArray[Any]:
        """Labellings [..., all variables] without the counting variables."""
        return found[..., self.variables]

    def unary(self, parts: Potentials) -> Floats:
        """Marginals [n_states] without those of the counting variables."""
        return parts.unary[_states(parts.structure, self.variables)]

    def extended(self, labels: Sequence[int] | NDArray[Any]) -> NDArray[np.int32]:
        """A labelling extended by the values of the counting variables, for `score`."""
        structure = self.potentials.structure
        out = np.full(structure.n_variables, -1, dtype=np.int32)
        out[self.variables] = labels
        for k in range(structure.n_cliques):
            scope = structure.scope(k)
            if out[scope[-1]] < 0:  # a number that follows from what stands before it
                table = self.potentials.table(k)[tuple(out[scope[:-1]])]
                out[scope[-1]] = int(np.argmax(table))
        return out


def with_counts(potentials: Potentials, counts: Iterable[Count]) -> Counted:
    """The same model with cliques that count labels, without tables of 2^n cells.

    A count over n variables adds n − 2 variables and n − 1 small tables, of 8 cells if two labels
    are counted up to one. Methods for pairs raise an error for them. Methods that change one
    variable at a time (`icm`, `gibbs`, `annealing`) rarely move between labellings.

    Parameters
    ----------
    potentials : Potentials
        Potentials of a batch, for example from `potentials(X)` of an estimator.
    counts : list of Count

    Examples
    --------
    Four variables prefer label 1, but exactly one may have it:

    >>> from chordal.inference import INFERENCE
    >>> alone = FactorGraph([4], [[]], n_labels=2)
    >>> p = Potentials(alone, [0, 1, 0, 3, 0, 2, 0, 1], [])
    >>> model = with_counts(p, [Count.exactly_one([0, 1, 2, 3])])
    >>> model.labels(INFERENCE.resolve("junction_tree").map(model.potentials).labels)
    array([0, 1, 0, 0], dtype=int32)
    >>> found = INFERENCE.resolve("loopy_bp").marginals(model.potentials)
    >>> model.unary(found.parts)[1::2].round(3)  # each of being 1: a softmax
    array([0.083, 0.61 , 0.225, 0.083])

    At most one verb in a sentence, on a fitted model:

    >>> from chordal import ChainCRF
    >>> X = [[["the"], ["dog"], ["runs"]], [["runs"], ["dog"]]]
    >>> crf = ChainCRF(l2=0.1).fit(X, [["D", "N", "V"], ["V", "N"]])
    >>> verb = crf.classes_.tolist().index("V")
    >>> p = crf.potentials([[["runs"], ["dog"], ["runs"]]])
    >>> model = with_counts(p, [Count.at_most_one([0, 1, 2], verb)])
    >>> best = model.labels(INFERENCE.resolve("junction_tree").map(model.potentials).labels)
    >>> crf.classes_[best].tolist()
    ['D', 'N', 'V']
    """
    s = potentials.structure
    sizes, made = np.diff(s.variable_offsets), _Added(s)
    unary = potentials.unary.copy()
    for c, count in enumerate(counts):
        made.add(count, f"counts[{c}]", unary)
    extra = np.array([len(own) for own in made.labels], dtype=np.int64)
    first = s.variable_offsets[:-1] + offsets_of(extra)[:-1]  # where examples begin
    variables = np.arange(s.n_variables) + np.repeat(offsets_of(extra)[:-1], sizes)
    label_counts = np.zeros(int((sizes + extra).sum()), dtype=np.int64)
    label_counts[variables] = s.label_counts
    label_counts[np.delete(np.arange(len(label_counts)), variables)] = _joined(made.labels)

    example = _joined(
        [np.repeat(np.arange(s.n_examples), np.diff(s.clique_offsets)), made.examples]
    )
    orders = _joined([s.orders, [len(scope) for scope in made.scopes]])
    numbered = [first[e] + scope for e, scope in zip(made.examples, made.scopes, strict=True)]
    scopes, order = _joined([variables[s.scopes], *numbered]), np.argsort(example, kind="stable")
    lengths = orders[order]
    cells = np.repeat(offsets_of(orders)[order] - offsets_of(lengths)[:-1], lengths)
    graph = FactorGraph.from_arrays(
        sizes + extra,
        scopes[cells + np.arange(len(scopes))],
        lengths,
        np.bincount(example, minlength=s.n_examples),
        label_counts,
    )
    n_tables = len(potentials.table_offsets) - 1
    index = _joined([potentials.table_of_clique, n_tables + np.arange(len(made.tables))])[order]
    table_sizes = _joined([np.diff(potentials.table_offsets), [t.size for t in made.tables]])
    scores = np.zeros(graph.n_states)
    scores[_states(graph, variables)] = unary
    tables = np.concatenate([potentials.tables, *(t.ravel() for t in made.tables)])
    whole = Potentials(graph, scores, tables, index, offsets_of(table_sizes))
    return Counted(whole, variables)


class _Added:
    """The variables, cliques and tables of counts, example by example."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.labels: list[list[int]] = [[] for _ in range(structure.n_examples)]  # how many each
        self.examples: list[int] = []  # of each clique
        self.scopes: list[Ints] = []  # by numbers within the example
        self.tables: list[Floats] = []

    def add(self, count: Count, where: str, unary: Floats) -> None:
        """Add the cliques of a count; for one variable, its scores."""
        s, (chosen, flags) = self.structure, _members(count, self.structure, where)
        scores = _checked_scores(count, where)
        if len(chosen) == 1:
            at = int(s.state_offsets[s.variable_offsets[count.example] + chosen[0]])
            unary[at : at + len(flags[0])] += scores[np.minimum(flags[0], len(scores) - 1)]
            return
        size = int(np.diff(s.variable_offsets)[count.example])
        tables, left, own = _tables(flags, scores), chosen[0], self.labels[count.example]
        for variable, table in zip(chosen[1:], tables, strict=True):
            scope = [left, variable]
            if table.ndim == 3:
                left = size + len(own)
                own.append(table.shape[2])
                scope.append(left)
            self.examples.append(count.example)
            self.scopes.append(np.array(scope, dtype=np.int64))
            self.tables.append(table)


def _tables(flags: Sequence[Ints], scores: Floats) -> list[Floats]:
    """Tables (count before, variable, count after), and last (count before, variable) with
    scores.
    """
    allowed = np.flatnonzero(scores > -np.inf)
    open_ended = bool(scores[-1] > -np.inf)
    most = len(scores) - 1 if open_ended else int(allowed[-1])  # beyond it: the same, or forbidden
    so_far, tables = flags[0], []
    for k, own in enumerate(flags[1:], start=2):
        sums = so_far[:, None] + own
        if k == len(flags):
            tables.append(scores[np.minimum(sums, len(scores) - 1)])
            break
        now = np.minimum(sums, most) if open_ended else sums
        so_far = np.arange(min(k, most) + 1)
        tables.append(np.where(now[..., None] == so_far, 0.0, -np.inf))
    return tables


def _members(count: Count, s: Structure, where: str) -> tuple[list[int], list[Ints]]:
    """The variables of a count, and for each label of each whether it counts."""
    if not isinstance(count, Count):
        raise TypeError(f"{where} must be a Count, got {count!r}")
    check_number(f"example of {where}", count.example, integer=True)
    if count.example >= s.n_examples:
        raise ValueError(f"{where} is for example {count.example}, but there are {s.n_examples}")
    first, last = s.variable_offsets[count.example : count.example + 2].tolist()
    chosen = [int(v) for v in count.variables]
    if not chosen or min(chosen) < 0 or max(chosen) >= last - first:
        raise ValueError(
            f"variables of {where} must be some of 0 to {last - first - 1}, got {count.variables!r}"
        )
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"variables of {where} must differ, got {count.variables!r}")
    given = count.labels
    each = [given] * len(chosen) if isinstance(given, (int, np.integer)) else list(given)
    if len(each) != len(chosen):
        raise ValueError(f"labels of {where} must be one for each of {len(chosen)} variables")
    flags = []
    for v, own in zip(chosen, each, strict=True):
        n = int(s.label_counts[first + v])
        named = [own] if isinstance(own, (int, np.integer)) else list(own)
        if not all(isinstance(k, (int, np.integer)) and 0 <= k < n for k in named):
            raise ValueError(
                f"labels of {where} must be numbers from 0 to {n - 1} for variable {v}, got {own!r}"
            )
        counts = np.zeros(n, dtype=np.int64)
        counts[[int(k) for k in named]] = 1
        flags.append(counts)
    return chosen, flags


def _checked_scores(count: Count, where: str) -> Floats:
    scores = np.asarray(count.scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) == 0 or not (scores < np.inf).all():
        raise ValueError(f"scores of {where} must be numbers or -inf, got {count.scores!r}")
    if (scores == -np.inf).all():
        raise ValueError(f"scores of {where} must allow some number of labels: all are -inf")
    return scores


def _states(structure: Structure, variables: Ints) -> Ints:
    """The state numbers of these variables in the structure."""
    counts = structure.label_counts[variables]
    first = structure.state_offsets[variables] - offsets_of(counts)[:-1]
    return np.repeat(first, counts) + np.arange(counts.sum())


def _joined(parts: Iterable[Any]) -> Ints:
    return np.concatenate([np.zeros(0, dtype=np.int64), *map(_integers, parts)])


def _integers(part: Any) -> Ints:
    return np.asarray(part, dtype=np.int64)
