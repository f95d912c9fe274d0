"""Why a model predicts what it does, and how predictions look.

`explain` and `show` are also `chordal.explain` and `chordal.show`. Importing
`chordal.explanation.eli5` makes eli5's `explain_weights` work on our estimators.
"""

from chordal.explanation._explain import explain
from chordal.explanation._explanation import Contribution, Explanation, Flip
from chordal.explanation._image import LabelledImage
from chordal.explanation._show import show
from chordal.explanation._text import LabelledText, Span

__all__ = [
    "Contribution",
    "Explanation",
    "Flip",
    "LabelledImage",
    "LabelledText",
    "Span",
    "explain",
    "show",
]
