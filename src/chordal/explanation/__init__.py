"""Why a model predicts what it does, and how predictions look.

`explain` and `show` are also `chordal.explain` and `chordal.show`. Importing
`chordal.explanation.eli5` makes eli5's `explain_weights` work on our estimators.
"""

from chordal.explanation._explain import explain
from chordal.explanation._explanation import Contribution, Explanation, Flip

__all__ = ["Contribution", "Explanation", "Flip", "explain"]
