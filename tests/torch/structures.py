"""Small structures, random scores on them, and all labellings one by one."""

import itertools

import torch

from chordal.structures import Chain, FactorGraph, Graph, Grid, Tree
from chordal.torch import StructuredCRF

STRUCTURES = {
    "chain": Chain([3], n_labels=3),
    "tree": Tree([[-1, 0, 0, 2]], n_labels=3),
    "grid": Grid([(2, 3)], n_labels=2),
    "loop": Graph([5], [[(0, 1), (2, 1), (0, 2), (2, 3)]], n_labels=2),  # 4 is alone
    "no_edge": Graph([2], [[]], n_labels=3),
    "triples": FactorGraph([4], [[(0, 2, 1), (3, 1, 2)]], n_labels=2),
    "mixed": FactorGraph([4], [[(0, 1), (3, 1, 2), (2,), (1, 0)]], n_labels=2),
}
PAIRWISE = ("chain", "tree", "grid", "loop", "no_edge")
FORESTS = ("chain", "tree", "no_edge")


def draw(seed, *shape, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def layer(name, **settings):
    """A layer in float64 with random tables; every clique has one of its own where sizes differ."""
    settings.setdefault("tying", "each" if name == "mixed" else "all")
    crf = StructuredCRF(STRUCTURES[name], **settings).double()
    if crf.tables is not None:
        with torch.no_grad():
            crf.tables.copy_(draw(1, *crf.tables.shape))
    return crf


def labellings(structure):
    return list(
        itertools.product(range(int(structure.label_counts[0])), repeat=structure.n_variables)
    )


def scores_of(structure, unary, tables):
    """[number of labellings]: of one example; tables is a list with a table for each clique."""
    totals = []
    for y in labellings(structure):
        total = sum(unary[v, y[v]] for v in range(structure.n_variables))
        for k in range(structure.n_cliques):
            total = total + tables[k][tuple(y[v] for v in structure.scope(k))]
        totals.append(total)
    return torch.stack(totals)


def clique_tables(crf, structure, tables=None):
    """A list of each clique's table, from a layer's parameter or one example's tensor."""
    tables = crf.tables if tables is None else tables
    n_labels = crf.num_labels
    if tables.dim() > 1:
        return [tables[i] for i in crf.table_of_clique.tolist()]
    found = []
    for i, order in zip(crf.table_of_clique.tolist(), structure.orders.tolist(), strict=True):
        first = int(crf.table_offsets[i])
        found.append(tables[first : first + n_labels**order].reshape([n_labels] * order))
    return found
