"""Rules by which single examples change the weights: in Python, and compiled for chains."""

from chordal.oracle.rules._base import DualLearner, DualRule, Examples, Learner, Mistake, Rule
from chordal.oracle.rules._mistakes import MistakeRule
from chordal.oracle.rules.exponentiated_gradient import ExponentiatedRule
from chordal.oracle.rules.frank_wolfe import FrankWolfeRule
from chordal.oracle.rules.gradient import GradientRule

__all__ = [
    "DualLearner",
    "DualRule",
    "Examples",
    "ExponentiatedRule",
    "FrankWolfeRule",
    "GradientRule",
    "Learner",
    "Mistake",
    "MistakeRule",
    "Rule",
]
