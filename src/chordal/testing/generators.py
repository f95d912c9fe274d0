"""Small random models with one hazard each; brute force can list their labellings.

Every generator is a function of a random generator and is found by its name: `MODELS` holds those
with at least one labelling, `INFEASIBLE` those where some example has none. A contract that runs
over these dicts meets a new hazard as soon as it is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials, matching_potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Structure, Tree, offsets_of

#: Makes one random model.
Generator = Callable[[np.random.Generator], Potentials]

MODELS: dict[str, Generator] = {}
INFEASIBLE: dict[str, Generator] = {}


def model(function: Generator) -> Generator:
    """List a generator of models with at least one labelling."""
    MODELS[function.__name__] = function
    return function


def infeasible(function: Generator) -> Generator:
    """List a generator of models in which some example has no labelling."""
    INFEASIBLE[function.__name__] = function
    return function


def feasible_labels(potentials: Potentials, rng: np.random.Generator) -> NDArray[np.int32]:
    """A random labelling of a small model; its score is not −inf.

    >>> rng = np.random.default_rng(0)
    >>> p = chain_forbidden_transitions(rng)
    >>> bool(np.isfinite(p.score(feasible_labels(p, rng))).all())
    True
    """
    allowed = potentials.like(
        np.where(potentials.unary == -np.inf, -np.inf, 0.0),
        np.where(potentials.tables == -np.inf, -np.inf, 0.0),
    )
    return ExhaustiveInference().sample(allowed, 1, rng)[0]


@model
def chain_tied(rng: np.random.Generator) -> Potentials:
    """Chains that share one transition table."""
    return _tied(rng, [5, 3], n_labels=3)


@model
def chain_per_clique(rng: np.random.Generator) -> Potentials:
    """A separate table for every transition, as observation-dependent features give."""
    return _per_clique(rng, Chain([4, 5], n_labels=3))


@model
def chain_some_tied(rng: np.random.Generator) -> Potentials:
    """Three tables that seven transitions share, one of them unused within a chain."""
    chain = Chain([5, 4], n_labels=2)
    return Potentials(chain, rng.normal(size=18), rng.normal(size=12), [0, 2, 0, 2, 1, 1, 1])


@model
def chain_varied_labels(rng: np.random.Generator) -> Potentials:
    """Label counts that differ between neighbours, one label among them."""
    return _per_clique(rng, Chain([5, 4], n_labels=[2, 5, 1, 3, 2, 4, 4, 2, 6]))


@model
def chain_varied_labels_tied(rng: np.random.Generator) -> Potentials:
    """Label counts that differ, and tables that transitions between equal counts share."""
    chain = Chain([5], n_labels=[2, 3, 2, 3, 3])
    index = [0, 1, 0, 2]
    cells = [6, 6, 9]
    return Potentials(chain, rng.normal(size=13), rng.normal(size=21), index, offsets_of(cells))


@model
def chain_batch(rng: np.random.Generator) -> Potentials:
    """Lengths 0 and 1 before, between and after longer ones."""
    return _tied(rng, [0, 1, 4, 0, 1, 3, 1, 0], n_labels=3)


@model
def chain_batch_of_ones(rng: np.random.Generator) -> Potentials:
    """No transition anywhere."""
    chain = Chain([1, 0, 1], n_labels=[4, 3])
    return Potentials(chain, rng.normal(size=7), [])


@model
def chain_one_label(rng: np.random.Generator) -> Potentials:
    """One label only: nothing to choose."""
    return _tied(rng, [4, 1], n_labels=1)


@model
def chain_many_labels(rng: np.random.Generator) -> Potentials:
    """More labels than the compiled loops keep in registers, and not a multiple of a vector."""
    return _tied(rng, [2, 1, 2], n_labels=int(rng.integers(29, 36)))


@model
def chain_extreme_scores(rng: np.random.Generator) -> Potentials:
    """Scores of ±10,000: probabilities that no floating-point number holds."""
    p = _tied(rng, [5, 4], n_labels=3)
    return p.like(rng.choice([-1e4, 0.0, 1e4], 27) + p.unary, 1e4 * p.tables)


@model
def chain_constant_offsets(rng: np.random.Generator) -> Potentials:
    """Ordinary differences between scores far from zero."""
    p = _tied(rng, [5, 4], n_labels=3)
    return p.like(p.unary - 9_000.0, p.tables + 7_000.0)


@model
def chain_wide_range(rng: np.random.Generator) -> Potentials:
    """Finite scores far apart: products of two or three underflow, yet nothing is impossible.

    The first chain cannot avoid its worst transitions: only label 1 leads on without loss, and
    no transition leads to label 1 without. The others have random tables.
    """
    worst = -float(rng.choice([150.0, 300.0, 450.0, 590.0]))
    trap = [worst, worst, 0.0, worst]
    tables = [trap, *(worst * rng.choice([0.0, 0.5, 1.0], size=(2, 4)))]
    index = np.repeat([0, 1, 2], [6, 5, 4])
    return Potentials(Chain([7, 6, 5], n_labels=2), 0.1 * rng.normal(size=36), tables, index)


@model
def chain_forbidden_labels(rng: np.random.Generator) -> Potentials:
    """−inf among the unary scores."""
    return _forbid(rng, _tied(rng, [5, 1, 4], n_labels=3), of_unary=0.5, of_tables=0.0)


@model
def chain_forbidden_transitions(rng: np.random.Generator) -> Potentials:
    """−inf in a shared table, as for legal BIO sequences."""
    return _forbid(rng, _tied(rng, [5, 4], n_labels=3), of_unary=0.0, of_tables=0.5)


@model
def chain_forbidden_per_clique(rng: np.random.Generator) -> Potentials:
    """−inf in unary scores and in tables of single transitions."""
    return _forbid(rng, _per_clique(rng, Chain([5, 4], 3)), of_unary=0.3, of_tables=0.4)


@model
def chain_last_resort(rng: np.random.Generator) -> Potentials:
    """The only labelling that the last position allows looks impossible before it.

    A label is kept for the whole chain: the other transitions are −inf. The scores favour label 0
    so strongly that label 1 underflows. But the last position forbids label 0.
    """
    length, strength = 9, float(rng.uniform(20.0, 110.0))
    unary = rng.normal(size=(length, 2)) - [0.0, strength]
    unary[-1] = [-np.inf, 0.0]
    tables = np.where(np.eye(2) == 1.0, 0.0, -np.inf)
    return Potentials(Chain([length], n_labels=2), unary, tables)


@model
def chain_late_constraint(rng: np.random.Generator) -> Potentials:
    """Unlikely, wide but finite scores first; the only −inf comes at the end."""
    chain = Chain([5], n_labels=2)
    unary = rng.normal(size=(5, 2)) - [0.0, float(rng.uniform(50.0, 500.0))]
    unary[-1, 0] = -np.inf
    return Potentials(chain, unary, [0.0, -90.0, -90.0, 0.0])


@model
def chain_unreachable_label(rng: np.random.Generator) -> Potentials:
    """A label that no labelling reaches, though all that would follow it is far better."""
    length, gain = 8, float(rng.uniform(104.0, 112.0))
    unary = 0.1 * rng.normal(size=(length, 3)) + [0.0, gain, 0.0]
    unary[0, 1] = -np.inf
    tables = 0.1 * rng.normal(size=(3, 3))
    tables[[0, 2], 1] = -np.inf
    return Potentials(Chain([length], n_labels=3), unary, tables)


@model
def chain_one_labelling(rng: np.random.Generator) -> Potentials:
    """Constraints that leave exactly one labelling."""
    return _forbid(rng, _per_clique(rng, Chain([4, 3], 3)), of_unary=1.0, of_tables=1.0)


@model
def chain_ties(rng: np.random.Generator) -> Potentials:
    """Few different integer scores: many labellings are equally good."""
    p = _tied(rng, [4, 3], n_labels=3)
    return p.like(
        rng.integers(0, 2, 21).astype(np.float64), rng.integers(0, 2, 9).astype(np.float64)
    )


@model
def chain_uniform(rng: np.random.Generator) -> Potentials:
    """The same score for every label and transition."""
    value = float(rng.normal())
    return Potentials(Chain([4, 2], n_labels=3), np.full(18, value), np.full(9, -value))


@model
def tree_of_seven(rng: np.random.Generator) -> Potentials:
    """A tree with branches, and one of a single node."""
    return _random(rng, Tree([[-1, 0, 0, 1, 1, 2, 5], [-1]], n_labels=2))


@model
def forest(rng: np.random.Generator) -> Potentials:
    """Several trees, isolated nodes, an example without nodes; label counts differ, also 1."""
    graphs = Graph([6, 0, 3], [[(4, 1), (1, 0), (3, 1)], [], []], [2, 3, 1, 2, 4, 2, 3, 1, 2])
    return _random(rng, graphs)


@model
def star(rng: np.random.Generator) -> Potentials:
    """One node in the middle of all others, which share a table."""
    return _random(rng, Graph([7], [[(0, k) for k in range(1, 7)]], n_labels=2), tied=True)


@model
def tree_forbidden(rng: np.random.Generator) -> Potentials:
    """−inf among the scores of a tree."""
    potentials = _random(rng, Tree([[1, 4, 1, 2, -1, 4], [-1, 0]], n_labels=3))
    return _forbid(rng, potentials, of_unary=0.3, of_tables=0.4)


@model
def tree_extreme_scores(rng: np.random.Generator) -> Potentials:
    """Scores of ±10,000 on a tree."""
    p = _random(rng, Tree([[-1, 0, 0, 2, 2]], n_labels=3))
    return p.like(rng.choice([-1e4, 0.0, 1e4], len(p.unary)) + p.unary, 1e4 * p.tables)


@model
def tree_of_triplets(rng: np.random.Generator) -> Potentials:
    """Cliques of one to three variables without a loop."""
    cliques = [[[0, 1, 2], [2, 3], [3, 4, 5], [4]], [[1, 0]]]
    return _random(rng, FactorGraph([6, 2], cliques, [2, 3, 2, 2, 1, 2, 2, 2]))


@model
def loop_of_three(rng: np.random.Generator) -> Potentials:
    """Three variables that all depend on each other: not a tree."""
    return _random(rng, Graph([3], [[(0, 1), (1, 2), (0, 2)]], n_labels=[2, 3, 2]))


@model
def loop_frustrated(rng: np.random.Generator) -> Potentials:
    """A ring of five in which neighbours prefer to differ: not all of them can."""
    ring = [(k, (k + 1) % 5) for k in range(5)]
    tables = [-1.5, 1.5, 1.5, -1.5]
    return Potentials(Graph([5], [ring], n_labels=2), 0.2 * rng.normal(size=10), tables)


@model
def graphs_of_all_kinds(rng: np.random.Generator) -> Potentials:
    """Loops, trees and isolated nodes in one batch, edges in both directions."""
    square = [(0, 1), (2, 1), (2, 3), (3, 0), (0, 2)]
    graphs = Graph([4, 1, 3], [square, [], [(2, 0)]], n_labels=[2, 3, 2, 2, 4, 2, 1, 3])
    return _random(rng, graphs)


@model
def graph_forbidden(rng: np.random.Generator) -> Potentials:
    """−inf among the scores of a graph with loops."""
    square = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    return _forbid(rng, _random(rng, Graph([4], [square], 3)), of_unary=0.2, of_tables=0.3)


@model
def graph_extreme_scores(rng: np.random.Generator) -> Potentials:
    """Scores of ±10,000 on a graph with a loop."""
    p = _random(rng, Graph([4], [[(0, 1), (1, 2), (2, 3), (3, 0)]], n_labels=2))
    return p.like(rng.choice([-1e4, 0.0, 1e4], len(p.unary)) + p.unary, 1e4 * p.tables)


@model
def grid_attractive(rng: np.random.Generator) -> Potentials:
    """Two labels that like to be among their own: what graph cuts solve."""
    potentials = _random(rng, Grid([(3, 3), (1, 2)], n_labels=2), tied=True)
    strength = float(rng.uniform(0.3, 1.2))
    return potentials.like(potentials.unary, np.array([strength, 0.0, 0.0, strength]))


@model
def grid_potts(rng: np.random.Generator) -> Potentials:
    """Three labels, a reward for equal neighbours that differs from edge to edge."""
    potentials = _random(rng, Grid([(2, 3)], n_labels=3))
    reward = rng.uniform(0.2, 1.0, size=(potentials.structure.n_cliques, 1, 1))
    return potentials.like(potentials.unary, (reward * np.eye(3)).ravel())


@model
def grid_of_eight_neighbours(rng: np.random.Generator) -> Potentials:
    """Diagonals too, and a table for each direction."""
    grid = Grid([(2, 3), (3, 1)], n_labels=2, neighbours=8)
    tables = 0.5 * rng.normal(size=(len(grid.directions), 4))
    return Potentials(grid, rng.normal(size=grid.n_states), tables, grid.direction_of_clique)


@model
def grid_of_voxels(rng: np.random.Generator) -> Potentials:
    """A cube of eight."""
    return _random(rng, Grid([(2, 2, 2)], n_labels=2, neighbours=6), tied=True)


@model
def triplets(rng: np.random.Generator) -> Potentials:
    """Cliques of three variables that share one table, in two examples."""
    graph = FactorGraph([4, 3], [[(0, 1, 2), (1, 2, 3)], [(0, 1, 2)]], n_labels=2)
    return _random(rng, graph, tied=True)


@model
def cliques_of_every_size(rng: np.random.Generator) -> Potentials:
    """One to four variables, in any order, the same ones twice."""
    cliques = [[[0], [3, 1], [1, 3], [2, 0, 4], [4, 1, 2, 3]], [[1, 0], [1, 0], [1]]]
    return _random(rng, FactorGraph([5, 2], cliques, [2, 3, 2, 2, 2, 3, 2]))


@model
def cliques_forbidden(rng: np.random.Generator) -> Potentials:
    """−inf among the scores of cliques of three."""
    graph = FactorGraph([5], [[(0, 1, 2), (2, 3, 4), (4, 0, 1)]], n_labels=2)
    return _forbid(rng, _random(rng, graph), of_unary=0.2, of_tables=0.4)


@model
def matching(rng: np.random.Generator) -> Potentials:
    """Source items that may not share a target; none on one side, one, and more on either."""
    shapes = [(3, 2), (0, 2), (2, 3), (1, 1), (2, 0)]
    scores = [rng.normal(size=shape) for shape in shapes]
    return matching_potentials(scores, [0.5 * rng.normal(size=n) for n, _ in shapes])


@model
def matching_forbidden(rng: np.random.Generator) -> Potentials:
    """Pairs that are forbidden, and a source item that needs a target."""
    scores = rng.normal(size=(3, 3))
    scores[np.tril_indices(3, -1)] = -np.inf
    return matching_potentials([scores], [[0.0, 0.0, -np.inf]])


@infeasible
def no_label(rng: np.random.Generator) -> Potentials:
    """One variable of one example has no label left."""
    p = _tied(rng, [3, 4, 2], n_labels=2)
    p.unary[8:10] = -np.inf
    return p


@infeasible
def no_transition(rng: np.random.Generator) -> Potentials:
    """Every label is allowed, but no way leads from the first to the last position."""
    return Potentials(
        Chain([3], n_labels=2), [0.0, -np.inf, 0.0, 0.0, -np.inf, 0.0], [0.0, -np.inf, -np.inf, 0.0]
    )


@infeasible
def no_single_variable(rng: np.random.Generator) -> Potentials:
    """An example of one variable without a label, among extreme scores."""
    p = _tied(rng, [2, 1], n_labels=2)
    return p.like(np.array([1e4, -1e4, 0.0, 1e4, -np.inf, -np.inf]), p.tables)


@infeasible
def no_colouring(rng: np.random.Generator) -> Potentials:
    """Three neighbours with two colours: every edge alone could be satisfied."""
    differ = np.array([-np.inf, 0.0, 0.0, -np.inf])
    graph = Graph([2, 3], [[(0, 1)], [(0, 1), (1, 2), (2, 0)]], n_labels=2)
    return Potentials(graph, rng.normal(size=10), differ)


@infeasible
def no_label_in_a_tree(rng: np.random.Generator) -> Potentials:
    """A tree whose leaves ask their parent for different labels."""
    same = np.array([0.0, -np.inf, -np.inf, 0.0])
    return Potentials(Tree([[-1], [-1, 0, 0]], 2), [0, 0, 0, 0, -np.inf, 0, 0, -np.inf], same)


@infeasible
def no_matching(rng: np.random.Generator) -> Potentials:
    """Two source items that both need the only target."""
    return matching_potentials([rng.normal(size=(2, 1))], [[-np.inf, -np.inf]])


def _random(rng: np.random.Generator, structure: Structure, tied: bool = False) -> Potentials:
    """Normal scores, with a table for every clique or one for all."""
    sizes = structure.table_sizes
    tables = rng.normal(size=sizes[0] if tied else sizes.sum())
    index = np.zeros(len(sizes)) if tied else np.arange(len(sizes))
    return Potentials(structure, rng.normal(size=structure.n_states), tables, index)


def _tied(rng: np.random.Generator, lengths: Sequence[int], n_labels: int) -> Potentials:
    chain = Chain(lengths, n_labels)
    tables = rng.normal(size=n_labels**2)
    return Potentials(chain, 1.5 * rng.normal(size=chain.n_states), tables)


def _per_clique(rng: np.random.Generator, chain: Chain) -> Potentials:
    return Potentials(
        chain, 1.5 * rng.normal(size=chain.n_states), rng.normal(size=chain.table_sizes.sum())
    )


def _forbid(
    rng: np.random.Generator, potentials: Potentials, of_unary: float, of_tables: float
) -> Potentials:
    """−inf in these shares of the scores, except on one labelling of each example."""
    labels = feasible_labels(potentials, rng)
    kept = potentials.zeros()
    kept.add_indicators(labels)
    forbid_unary = (rng.random(len(kept.unary)) < of_unary) & (kept.unary == 0.0)
    forbid_tables = (rng.random(len(kept.tables)) < of_tables) & (kept.tables == 0.0)
    return potentials.like(
        np.where(forbid_unary, -np.inf, potentials.unary),
        np.where(forbid_tables, -np.inf, potentials.tables),
    )
