"""A search for the best labelling of one example, by moves of large subgraphs."""

from __future__ import annotations

import numpy as np

from chordal import _kernels
from chordal.inference._answers import Labels
from chordal.inference._cliques import forbids
from chordal.inference._subgraphs import Subgraph, crossed, regrets
from chordal.inference.annealing import typical_range
from chordal.potentials import Floats, Potentials

#: Subgraphs that are kept, and how many of them a round replaces.
POOL, FRESH = 8, 2
#: Cells of a subgraph's tables at most, and log2 of one table's.
MAX_CELLS, NARROW, WIDE = 1_500_000, 4.0, 16.0
#: Temperatures of a round, and where they begin, in typical ranges of a variable's scores (log10).
STEPS, COLDEST, HOTTEST = 8, -4.0, -0.5
COOLING = 0.15
#: Temperatures of a walk's beginning at random labels, and the rounds of a walk.
LONG, WALK = 40, 20
#: The price of freeing variables where scores are lost, beside that of others.
FOCUS = 0.3
#: Gains below this share of a score are rounding.
ROUNDING = 1e-12
#: By how much rounds that change nothing, or too large a share of labels, move these limits.
LEARNING, TOO_MANY = 0.1, 0.6


def softened(potentials: Potentials) -> Potentials:
    """The same model with finite penalties for −inf, larger than any gain in score."""
    if not forbids(potentials) and potentials.unary.min(initial=0.0) > -np.inf:
        return potentials
    s = potentials.structure
    spans = _spans(potentials.tables, potentials.table_offsets)[potentials.table_of_clique].sum()
    price = 1.0 + spans + _spans(potentials.unary, s.state_offsets).sum()
    low = -price - max(0.0, -float(potentials.bound().min()))
    return potentials.like(_raised(potentials.unary, low), _raised(potentials.tables, low))


def _raised(scores: Floats, low: float) -> Floats:
    return np.where(scores == -np.inf, low, scores)


def _spans(scores: Floats, offsets: np.ndarray) -> Floats:
    """Largest minus smallest finite score of each block."""
    out = np.zeros(len(offsets) - 1)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        finite = scores > -np.inf
        high = np.maximum.reduceat(np.where(finite, scores, -np.inf), offsets[filled])
        low = np.minimum.reduceat(np.where(finite, scores, np.inf), offsets[filled])
        out[filled] = np.where(high >= low, high - low, 0.0)
    return out


class SubgraphSearch:
    """Rounds of perturbing the best labelling, improving it, and keeping the better pieces.

    A perturbation draws labels at falling temperatures, or forces one variable to another label for
    a while. Every second round belongs to a separate walk that starts at random labels.

    A move frees all variables except a few, such that the rest is solved exactly: see `Subgraph`.
    After each round the best labelling takes those pieces of the new one that score better. Scores
    of −inf become finite penalties, so the search can pass through forbidden labellings.

    potentials : Potentials of one example
    labels : starting labels
    rng : source of all random numbers
    """

    def __init__(self, potentials: Potentials, labels: Labels, rng: np.random.Generator) -> None:
        self._soft = softened(potentials)
        self.labels = labels.copy()
        self._rng = rng
        self._range = typical_range(potentials)
        self._pool: list[Subgraph] = []
        self._narrow, self._wide = NARROW, WIDE
        self._cold, self._hot = COLDEST, HOTTEST
        self._rounds, self._left = 0, 0
        self._wanderer: Labels | None = None

    def offer(self, labels: Labels) -> None:
        """Take the better pieces of another labelling."""
        self.labels = crossed(self._soft, self.labels, labels)

    def descend(self) -> None:
        """Best labels of one subgraph after another, until none gains."""
        self._refill()
        self.offer(self._descended(self.labels))

    def round(self) -> bool:
        """A round of the best labelling or of the separate walk; returns whether the best
        gained.
        """
        self._pool = self._pool[FRESH:] if len(self._pool) >= POOL else self._pool
        self._refill()
        before = self._score(self.labels)
        self._rounds += 1
        if self._rounds % 4 == 1:
            labels = self._forced()
        elif self._rounds % 2:
            heat = self._rng.uniform(self._cold, self._hot)
            labels = self._descended(self._drawn(self.labels, heat, STEPS))
            self._learn(heat, float((labels != self.labels).mean()))
        else:
            labels = self._wandered()
        self.offer(labels)
        return self._score(self.labels) > before + ROUNDING * max(1.0, abs(before))

    def _forced(self) -> Labels:
        """The best labelling after one variable was forced to another label for a while."""
        labels, counts = self.labels.copy(), self._soft.structure.label_counts
        k = int(self._rng.integers(len(self._pool))) if self._pool else -1
        held = np.ones(len(counts), dtype=bool)
        if k >= 0:
            held[self._pool[k].free] = False
        places = np.flatnonzero(held & (counts > 1))
        if len(places) == 0:
            return self._descended(self._drawn(labels, self._hot, STEPS))
        v = int(self._rng.choice(places))
        labels[v] = (labels[v] + self._rng.integers(1, counts[v])) % counts[v]
        for move in self._pool[k:] + self._pool[:k]:
            if v not in move.free:
                move.improve(labels)
        return self._descended(labels)

    def _wandered(self) -> Labels:
        """The next stop of a walk from one labelling that no move improves to another."""
        if self._wanderer is None:
            counts = self._soft.structure.label_counts
            start = (self._rng.random(len(counts)) * counts).astype(np.int32)
            self._wanderer = self._descended(self._drawn(start, HOTTEST, LONG))
            self._left = WALK
            return self._wanderer
        heat = self._rng.uniform(self._cold, self._hot)
        labels = self._descended(self._drawn(self._wanderer, heat, STEPS))
        gain = self._score(labels) - self._score(self._wanderer)
        temperature = COOLING * self._range * 10.0**heat
        if gain >= 0.0 or self._rng.random() < np.exp(gain / temperature):
            self._wanderer = labels
        self._left -= 1
        if self._left == 0:
            self._wanderer = None
        return labels

    def _drawn(self, labels: Labels, heat: float, steps: int) -> Labels:
        """Labels drawn at falling temperatures, starting from these."""
        labels, hot = labels.copy(), self._range * 10.0**heat
        cold = hot * COOLING if steps == STEPS else self._range * 10.0**self._cold
        for temperature in np.geomspace(hot, cold, steps):
            for k in self._rng.permutation(len(self._pool))[:2]:
                self._pool[k].draw(labels, float(temperature), self._rng)
        return labels

    def _score(self, labels: Labels) -> float:
        return float(self._soft.score(labels)[0])

    def _learn(self, heat: float, changed: float) -> None:
        """Adapt temperatures, between changing nothing and changing too much."""
        if changed == 0.0:
            self._cold += LEARNING * max(0.0, min(heat, self._hot - 0.5) - self._cold)
        elif changed > TOO_MANY:
            self._hot -= LEARNING * max(0.0, self._hot - max(heat, self._cold + 0.5))

    def _descended(self, labels: Labels) -> Labels:
        labels = labels.copy()
        score, idle = self._score(labels), 0
        while idle < len(self._pool):
            for k in self._rng.permutation(len(self._pool)):
                self._pool[k].improve(labels)
                now = self._score(labels)
                idle = 0 if now > score + ROUNDING * max(1.0, abs(score)) else idle + 1
                score = max(score, now)
                if idle >= len(self._pool):
                    break
        return labels

    def _prices(self) -> Floats:
        """Low for variables in cliques whose present score is far below their best."""
        s, lost = self._soft.structure, regrets(self._soft, self.labels)
        unhappy = np.zeros(s.n_variables)
        np.add.at(unhappy, s.scopes, np.repeat(lost, s.orders))
        worst = unhappy.max(initial=0.0)
        if worst == 0.0:
            return np.ones(s.n_variables)
        chosen = unhappy > worst * 10.0 ** -self._rng.uniform(0.0, 3.0)
        return np.where(chosen, FOCUS, 1.0)

    def _refill(self) -> None:
        tries = 0
        while len(self._pool) < POOL and tries < 4 * POOL:
            tries += 1
            limit = float(self._rng.uniform(self._narrow, self._wide))
            seed = int(self._rng.integers(2**62))
            price = self._prices() if tries % 2 else np.ones(self._soft.structure.n_variables)
            topology = self._soft.structure.topology
            free = _kernels.bounded_subgraph(topology, price=price, limit=limit, seed=seed)
            made = Subgraph(self._soft, free.astype(bool), limit)
            if made.works and made.cells <= MAX_CELLS:
                self._pool.append(made)
            elif len(made.free) == 0:
                self._narrow = limit
                self._wide = max(self._wide, self._narrow + 1.0)
            else:
                beyond = np.log2(made.cells / MAX_CELLS) if made.works else 1.0
                self._wide = max(self._narrow, limit - max(0.25, beyond))
