"""A fitted model, opened: what it reads in one example, and what it has learned."""

from chordal.estimators.opened._example import OpenExample, Term, opened
from chordal.estimators.opened._learned import NamedWeights, named_weights, top_weights
from chordal.estimators.opened._places import Place, Places

__all__ = [
    "NamedWeights",
    "OpenExample",
    "Place",
    "Places",
    "Term",
    "named_weights",
    "opened",
    "top_weights",
]
