"""One example, opened: what a fitted model reads in it, and the scores that follow."""

from chordal.estimators.opened._example import OpenExample, Term, opened
from chordal.estimators.opened._places import Place, Places

__all__ = ["OpenExample", "Place", "Places", "Term", "opened"]
