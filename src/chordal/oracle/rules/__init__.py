"""Rules by which single examples change the weights: in Python, and compiled for chains."""

from chordal.oracle.rules._base import DualLearner, DualRule, Examples, Learner, Mistake, Rule
from chordal.oracle.rules._mistakes import MistakeRule
from chordal.oracle.rules.gradient import GradientRule

__all__ = [
    "DualLearner",
    "DualRule",
    "Examples",
    "GradientRule",
    "Learner",
    "Mistake",
    "MistakeRule",
    "Rule",
]
