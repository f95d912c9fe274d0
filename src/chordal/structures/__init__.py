"""Structures: the variables and cliques of a batch of examples."""

from chordal._registry import Registry
from chordal.structures._base import Ints, Structure, check_scopes, offsets_of, read_only
from chordal.structures.chain import Chain
from chordal.structures.factor_graph import FactorGraph
from chordal.structures.graph import Graph, repeated_edge
from chordal.structures.grid import Grid
from chordal.structures.matching import Matching
from chordal.structures.tree import Tree

STRUCTURES = Registry("chordal.structures", Structure, "structure")

__all__ = [
    "STRUCTURES",
    "Chain",
    "FactorGraph",
    "Graph",
    "Grid",
    "Ints",
    "Matching",
    "Structure",
    "Tree",
    "check_scopes",
    "offsets_of",
    "read_only",
    "repeated_edge",
]
