"""Costs: how wrong a labelling is. Each file is one cost."""

from chordal._registry import Registry
from chordal.costs._base import Cost
from chordal.costs._matrix import CostMatrix, cost_matrix

COSTS = Registry("chordal.costs", Cost, "cost")

__all__ = ["COSTS", "Cost", "CostMatrix", "cost_matrix"]
