"""Objectives: the losses that training minimises. Each file is one objective."""

from chordal._registry import Registry
from chordal.objectives._base import TARGETS, Evaluation, MarginObjective, Objective

OBJECTIVES = Registry("chordal.objectives", Objective, "objective")

__all__ = ["OBJECTIVES", "TARGETS", "Evaluation", "MarginObjective", "Objective"]
