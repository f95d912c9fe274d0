"""The log-odds of two labels of a variable, split into terms that add up to them.

Let s(y) be the score of a labelling y, v the variable, and a, b two of its labels. The score is a
sum over the observations of v and over the cliques that hold it, so both log-odds are sums:

marginal
    log P(y_v = a | x) − log P(y_v = b | x) = s_v(a) − s_v(b) + Σ_C [log Z_C(a) − log Z_C(b)]

    C runs over the parts into which the rest of the graph falls without v. Z_C(l) sums over all
    labels of C, with v = l in the cliques that link C to v. On a chain, the parts are what is
    before v and what is after it.
conditional
    log P(y_v = a | y_rest, x) − log P(y_v = b | y_rest, x)
        = s_v(a) − s_v(b) + Σ_c [θ_c(a, y_rest) − θ_c(b, y_rest)]

    c runs over the cliques that hold v, and θ_c is their table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import InfeasibleError
from chordal.estimators.opened import OpenExample, Term
from chordal.inference import Inference
from chordal.potentials import Floats, Potentials

Codes = NDArray[np.int32]


class Link(NamedTuple):
    """What cliques with other variables give to the log-odds."""

    cliques: Sequence[int]
    variables: Sequence[int]  # the neighbours, without v
    amount: float
    parts: Sequence[tuple[Term, float]] = ()  # of one clique that has observations
    labelled: bool = False  # whether the others have labels


class Split(NamedTuple):
    """Log-odds and what they are made of."""

    log_odds: float
    own: list[tuple[Term, float]]
    links: list[Link]


def minus(a: float, b: float) -> float:
    """a − b, where two labels that are both forbidden do not differ."""
    return 0.0 if a == b else float(a - b)


def own_terms(example: OpenExample, v: int, a: int, b: int) -> list[tuple[Term, float]]:
    """What the observations of a variable, and its labels as such, give."""
    return [(term, minus(term.scores[a], term.scores[b])) for term in example.terms(v)]


class MarginalOdds:
    """Log-odds of the marginals, by the inference method of the model."""

    kind = "marginal"

    def __init__(self, example: OpenExample) -> None:
        self.example = example
        structure = example.potentials.structure
        self.method: Inference = example.method("marginals")
        self.exact = self.method.exact_on(structure)
        if self.exact and "log_partition" not in self.method.answers:
            other = example.method("log_partition")
            self.exact = other.exact_on(structure)
            self.method = other if self.exact else self.method
        self._marginals: Floats | None = None

    def _all(self) -> Floats:
        """The marginals of all variables, found once."""
        if self._marginals is None:
            found = self.example.method("marginals").marginals(self.example.potentials)
            self._marginals = found.parts.unary
        return self._marginals

    def probabilities(self, v: int) -> Floats:
        """P(y_v | x), by the numbers of labels."""
        first, last = self.example.potentials.structure.state_offsets[v : v + 2]
        return self._all()[first:last]

    def predicted(self) -> Floats:
        """The probability of each variable's predicted label."""
        first = self.example.potentials.structure.state_offsets[:-1]
        return self._all()[first + self.example.predicted]

    def ranking(self, v: int) -> Floats:
        """A number for each label that is larger where the label is more probable."""
        chances = self.probabilities(v)
        if self.exact and np.count_nonzero(chances) < 2:  # too small for their logarithm
            every = range(len(chances))
            return np.array([self._log_partition(self.example.potentials, v, k) for k in every])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chances))

    def log_odds(self, v: int, a: int, b: int, example: OpenExample | None = None) -> float:
        """Those of a against b, of this example or of a changed one."""
        example = self.example if example is None else example
        if not self.exact:
            ranking = MarginalOdds(example).ranking(v)
            return minus(float(ranking[a]), float(ranking[b]))
        of_labels = [self._log_partition(example.potentials, v, k) for k in (a, b)]
        return minus(*of_labels)

    def split(self, v: int, a: int, b: int) -> Split:
        """The terms; without exact inference, one for all that is not the variable's own."""
        example, own = self.example, own_terms(self.example, v, a, b)
        total = self.log_odds(v, a, b)
        parts = parts_without(example, v)
        if not self.exact:
            cliques = [c for part, _ in parts for c in part]
            nearest = sorted({u for _, near in parts for u in near})
            rest = minus(total, float(sum(amount for _, amount in own)))
            return Split(total, own, [Link(cliques, nearest, rest)] if cliques else [])
        links = [Link(cliques, near, self._message(v, a, b, cliques)) for cliques, near in parts]
        return Split(total, own, links)

    def _message(self, v: int, a: int, b: int, cliques: Sequence[int]) -> float:
        """log Z_C(a) − log Z_C(b) of the part C that these cliques link to v."""
        whole = self.example.potentials
        tables, unary = whole.tables.copy(), whole.unary.copy()
        first, last = whole.structure.state_offsets[v : v + 2]
        unary[first:last] = 0.0
        for c in set(self.example.cliques_at(v)) - set(cliques):
            begin = whole.table_offsets[c]
            tables[begin : begin + whole.structure.table_sizes[c]] = 0.0
        alone = whole.like(unary, tables)
        return minus(*(self._log_partition(alone, v, k) for k in (a, b)))

    def _log_partition(self, potentials: Potentials, v: int, label: int) -> float:
        """log of the sum over all labellings in which v has this label."""
        first, last = potentials.structure.state_offsets[v : v + 2]
        unary = potentials.unary.copy()
        unary[first:last] = -np.inf
        unary[first + label] = potentials.unary[first + label]
        try:
            return float(self.method.log_partition(potentials.like(unary, potentials.tables))[0])
        except InfeasibleError:
            return -np.inf


class ConditionalOdds:
    """Log-odds given the labels of all other variables: those that the model predicts."""

    kind = "conditional"
    exact = True

    def __init__(self, example: OpenExample) -> None:
        self.example, self.labels = example, example.predicted

    def scores(self, v: int, example: OpenExample | None = None) -> Floats:
        """The score of each label of v beside the others' labels."""
        example = self.example if example is None else example
        return np.asarray(
            example.scores_at(v)
            + sum(self._column(example.potentials.table(c), c, v) for c in example.cliques_at(v))
        )

    ranking = scores

    def probabilities(self, v: int) -> Floats:
        """P(y_v | the others, x), by the numbers of labels."""
        scores = self.scores(v)
        shares = np.exp(scores - scores.max())
        return np.asarray(shares / shares.sum())

    def predicted(self) -> Floats:
        """The probability of each variable's predicted label."""
        return np.array([self.probabilities(v)[k] for v, k in enumerate(self.labels)])

    def log_odds(self, v: int, a: int, b: int, example: OpenExample | None = None) -> float:
        """Those of a against b, of this example or of a changed one beside the same labels."""
        scores = self.scores(v, example)
        return minus(float(scores[a]), float(scores[b]))

    def split(self, v: int, a: int, b: int) -> Split:
        """The terms, one for each clique that holds v."""
        example, links = self.example, []
        for c in example.cliques_at(v):
            column = self._column(example.potentials.table(c), c, v)
            near = [int(u) for u in example.potentials.structure.scope(c) if u != v]
            terms = [(t, self._column(t.scores, c, v)) for t in example.link_terms(c)]
            named = any(term.name is not None for term, _ in terms)
            parts = [(term, minus(own[a], own[b])) for term, own in terms] if named else []
            links.append(Link([c], near, minus(column[a], column[b]), parts, True))
        return Split(self.log_odds(v, a, b), own_terms(example, v, a, b), links)

    def _column(self, table: Floats, clique: int, v: int) -> Floats:
        """The scores of v's labels in a clique whose other variables have their labels."""
        scope = self.example.potentials.structure.scope(clique)
        at = tuple(slice(None) if u == v else int(self.labels[u]) for u in scope)
        return np.asarray(table[at])


def parts_without(example: OpenExample, v: int) -> list[tuple[list[int], list[int]]]:
    """The parts into which the rest of the graph falls without v.

    Returns
    -------
    list of (cliques, variables)
        Of each part that is linked to v: the cliques that link it, and its variables in these.
    """
    structure = example.potentials.structure
    parent = list(range(structure.n_variables))

    def root(u: int) -> int:
        while parent[u] != u:
            parent[u] = parent[parent[u]]
            u = parent[u]
        return u

    scopes, offsets = structure.scopes.tolist(), structure.scope_offsets.tolist()
    for c in range(structure.n_cliques):
        others = [u for u in scopes[offsets[c] : offsets[c + 1]] if u != v]
        for u in others[1:]:
            parent[root(u)] = root(others[0])
    parts: dict[int, tuple[list[int], set[int]]] = {}
    for c in example.cliques_at(v):
        others = [int(u) for u in structure.scope(c) if u != v]
        cliques, near = parts.setdefault(root(others[0]), ([], set()))
        cliques.append(c)
        near.update(others)
    return [(cliques, sorted(near)) for cliques, near in parts.values()]
