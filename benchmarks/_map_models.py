"""Models of whose best labellings we ask: random ones of many kinds, and the files of `uai`.

The random ones come from fixed seeds. A name is "kind:size:seed"; tune on other seeds than those
that are measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid

Rng = np.random.Generator


def _graph(counts: Sequence[int], scopes: Sequence[Sequence[int]]) -> FactorGraph:
    return FactorGraph([len(counts)], [[tuple(map(int, scope)) for scope in scopes]], counts)


def _joined(
    unary: list[np.ndarray], factors: list[tuple[tuple[int, ...], np.ndarray]]
) -> Potentials:
    graph = _graph([len(row) for row in unary], [scope for scope, _ in factors])
    tables = [np.ravel(table) for _, table in factors]
    return Potentials(
        graph,
        np.concatenate(unary),
        np.concatenate(tables) if tables else np.zeros(0),
        np.arange(len(tables)),
        np.cumsum([0, *map(len, tables)]),
    )


def potts(size: str, rng: Rng) -> Potentials:
    """A grid whose neighbours like to be equal."""
    rows, columns, labels = map(int, size.split("x"))
    grid = Grid([(rows, columns)], n_labels=labels)
    unary = rng.normal(size=rows * columns * labels)
    strength = rng.uniform(0.0, 1.5, size=grid.n_cliques)
    return Potentials(grid, unary, np.multiply.outer(strength, np.eye(labels)).ravel())


def spin_glass(size: str, rng: Rng) -> Potentials:
    """A grid of two labels with couplings of either sign, and weak fields."""
    rows, columns = map(int, size.split("x"))
    grid = Grid([(rows, columns)], n_labels=2)
    field = rng.normal(scale=0.1, size=rows * columns)
    coupling = rng.normal(size=grid.n_cliques)
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    unary = np.stack([field, -field], axis=1).ravel()
    return Potentials(grid, unary, np.multiply.outer(coupling, signs).ravel())


def mixed_grid(size: str, rng: Rng) -> Potentials:
    """A grid with any scores in its tables."""
    rows, columns, labels = map(int, size.split("x"))
    grid = Grid([(rows, columns)], n_labels=labels)
    unary = rng.normal(size=rows * columns * labels)
    return Potentials(grid, unary, rng.normal(size=grid.n_cliques * labels**2))


def protein(size: str, rng: Rng) -> Potentials:
    """Few variables with many labels, most pairs of which interact; some pairs clash."""
    n, labels = map(int, size.split("x"))
    place = rng.normal(size=(n, 3))
    far = np.linalg.norm(place[:, None] - place[None], axis=2)
    counts = rng.integers(max(2, labels // 4), labels + 1, size=n)
    shape = [rng.normal(size=(count, 3)) for count in counts]
    unary = [-rng.gamma(2.0, 2.0, size=count) for count in counts]
    factors = []
    for a, b in combinations(range(n), 2):
        if far[a, b] > 2.2:
            continue
        between = place[a] - place[b]
        gap = np.linalg.norm(between + 0.5 * (shape[a][:, None] - shape[b][None]), axis=2)
        energy = np.where(gap < 0.6, 30.0, 4.0 * ((0.9 / gap) ** 6 - (0.9 / gap) ** 3))
        factors.append(((a, b), -np.clip(energy, -10.0, 100.0)))
    return _joined(unary, factors)


def noisy_or(size: str, rng: Rng) -> Potentials:
    """Diseases and findings, as in Promedas: noisy-or of up to eight causes, a triple at a time."""
    diseases, findings = map(int, size.split("x"))
    unary = []
    for prior in np.exp(rng.uniform(np.log(0.001), np.log(0.1), size=diseases)):
        unary.append(np.log([1.0 - prior, prior]))
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    for _ in range(findings):
        causes = rng.choice(diseases, size=rng.integers(2, 9), replace=False)
        before = -1
        leak = rng.uniform(0.001, 0.02)
        for step, cause in enumerate(causes):
            inhibited = rng.uniform(0.05, 0.95)
            last = step == len(causes) - 1
            now = len(unary)
            if not last:
                unary.append(np.zeros(2))
            off = np.zeros((2, 2))  # P(this link is off | the one before, the cause)
            for other in (0, 1):
                for on in (0, 1):
                    quiet = (1.0 - leak) if step == 0 else float(other == 0)
                    off[other, on] = quiet * (inhibited if on else 1.0)
            table = np.stack([off, 1.0 - off], axis=2)
            seen = int(rng.random() < 0.5)
            with np.errstate(divide="ignore"):
                table = np.log(table)
            if last:
                table = table[:, :, seen]
            if step == 0:
                table = table[0]
            scope = [cause] if step == 0 else [before, cause]
            factors.append(((*scope, *([] if last else [now])), table))
            before = now
    return _joined(unary, factors)


def clauses(size: str, rng: Rng) -> Potentials:
    """Clauses of three variables: some must hold, as they do in a hidden labelling; most count."""
    n, soft, hard = map(int, size.split("x"))
    hidden = rng.integers(2, size=n)
    factors = []
    for k in range(soft + hard):
        scope = tuple(rng.choice(n, size=3, replace=False).tolist())
        wrong = rng.integers(2, size=3)
        if k >= soft and (wrong == hidden[list(scope)]).all():
            wrong[rng.integers(3)] ^= 1
        table = np.zeros((2, 2, 2))
        table[tuple(wrong)] = -np.inf if k >= soft else -float(rng.integers(1, 6))
        factors.append((scope, table))
    return _joined([np.zeros(2) for _ in range(n)], factors)


def frequencies(size: str, rng: Rng) -> Potentials:
    """Links that need distant frequencies: some of them exactly or at least, others for a price."""
    n, labels, links = map(int, size.split("x"))
    frequency = np.arange(labels) * 14 + 16 + 100 * (np.arange(labels) >= labels // 2)
    hidden = rng.integers(labels, size=n)
    gap = np.abs(frequency[:, None] - frequency[None])
    factors, seen = [], set()
    for a in range(0, n - 1, 2):  # the two ends of a link
        distance = abs(int(frequency[hidden[a]] - frequency[hidden[a + 1]]))
        factors.append(((a, a + 1), np.where(gap == distance, 0.0, -np.inf)))
        seen.add((a, a + 1))
    while len(factors) < links:
        a, b = sorted(rng.choice(n, size=2, replace=False).tolist())
        if (a, b) in seen:
            continue
        seen.add((a, b))
        least = float(rng.choice([14, 28, 60, 100, 180]))
        met = abs(frequency[hidden[a]] - frequency[hidden[b]]) > least
        price = -np.inf if met and rng.random() < 0.3 else -float(rng.choice([1, 10, 100, 1000]))
        factors.append(((a, b), np.where(gap > least, 0.0, price)))
    return _joined([np.zeros(labels) for _ in range(n)], factors)


def relational(size: str, rng: Rng) -> Potentials:
    """A random graph whose neighbours mostly agree, with classes seen through noise."""
    n, edges, labels = map(int, size.split("x"))
    pairs = set()
    while len(pairs) < edges:
        a, b = sorted(rng.choice(n, size=2, replace=False).tolist())
        pairs.add((a, b))
    unary = rng.normal(scale=1.5, size=n * labels)
    base = np.eye(labels) * 0.8 + rng.normal(scale=0.4, size=(labels, labels))
    return Potentials(Graph([n], [sorted(pairs)], n_labels=labels), unary, base + base.T)


def dense_binary(size: str, rng: Rng) -> Potentials:
    """All pairs of some variables of two labels, with any coupling."""
    n = int(size)
    pairs = list(combinations(range(n), 2))
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    tables = np.multiply.outer(rng.normal(size=len(pairs)), signs).ravel()
    return Potentials(Graph([n], [pairs], n_labels=2), rng.normal(size=2 * n), tables)


def triples(size: str, rng: Rng) -> Potentials:
    """Random triples with any scores in their tables."""
    n, cliques, labels = map(int, size.split("x"))
    scopes = [rng.choice(n, size=3, replace=False) for _ in range(cliques)]
    return _joined(
        [rng.normal(size=labels) for _ in range(n)],
        [(tuple(scope.tolist()), rng.normal(size=labels**3)) for scope in scopes],
    )


KINDS: dict[str, Callable[[str, Rng], Potentials]] = {
    made.__name__: made
    for made in (
        potts,
        spin_glass,
        mixed_grid,
        protein,
        noisy_or,
        clauses,
        frequencies,
        relational,
        dense_binary,
        triples,
    )
}
#: Kind and size of the models that are measured.
SIZES = (
    ("potts", ("30x30x5", "60x60x10", "150x150x3", "40x40x25")),
    ("spin_glass", ("18x18", "30x30", "60x60", "120x120")),
    ("mixed_grid", ("12x12x6", "25x25x4", "40x40x8", "80x80x3")),
    ("protein", ("12x20", "20x30", "30x40", "50x20")),
    ("noisy_or", ("100x60", "200x150", "400x300", "600x300")),
    ("clauses", ("60x200x60", "100x350x100", "200x500x300", "1000x3000x1000")),
    ("frequencies", ("16x44x60", "30x30x120", "60x36x250", "100x40x500")),
    ("relational", ("100x300x3", "300x900x5", "1000x4000x7", "3000x8000x4")),
    ("dense_binary", ("25", "50", "100", "200")),
    ("triples", ("40x60x3", "80x120x4", "200x400x2", "500x1500x3")),
)


def model(name: str) -> Potentials:
    """The model of a name: "kind:size:seed", or a file of models beside its evidence."""
    if ":" in name:
        kind, size, seed = name.split(":")
        return KINDS[kind](size, np.random.default_rng([int(seed), *size.encode()]))
    from chordal.formats.uai import condition_on, read_evidence, read_model

    potentials = read_model(name)
    stem = name.removesuffix(".gz")
    for evidence in (f"{stem}.evid", f"{stem.removesuffix('.uai')}.evid"):
        if Path(evidence).exists():
            samples = read_evidence(evidence)
            return condition_on(potentials, samples[0] if samples else {})
    return potentials


def random_names(seed: int) -> Iterator[str]:
    """The names of one model of each kind and size."""
    for kind, sizes in SIZES:
        for size in sizes:
            yield f"{kind}:{size}:{seed}"


def files() -> list[str]:
    """The files of models in `$CHORDAL_DATA/uai`, if there are any."""
    folder = Path(os.environ.get("CHORDAL_DATA", "")) / "uai"
    found = [p for p in sorted(folder.glob("*/*")) if p.name.endswith((".uai", ".uai.gz", ".fg"))]
    return [str(path) for path in found]
