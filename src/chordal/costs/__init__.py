"""Costs: how wrong a labelling is. One file is one cost."""

from chordal._registry import Registry
from chordal.costs._base import Cost

COSTS = Registry("chordal.costs", Cost, "cost")

__all__ = ["COSTS", "Cost"]
