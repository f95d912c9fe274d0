"""Structures: what depends on what, for a batch of examples."""

from chordal._registry import Registry
from chordal.structures._base import Structure, offsets_of, read_only
from chordal.structures.chain import Chain

STRUCTURES = Registry("chordal.structures", Structure, "structure")

__all__ = ["STRUCTURES", "Chain", "Structure", "offsets_of", "read_only"]
