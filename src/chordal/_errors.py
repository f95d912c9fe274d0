"""Errors with a meaning of their own; everything else is a ``ValueError`` or ``TypeError``."""

from __future__ import annotations

import sys
from typing import TypeVar

E = TypeVar("E", bound=Exception)


class InfeasibleError(ValueError):
    """The constraints (scores of −inf) leave no labelling of some example."""

    def __init__(self, example: int) -> None:
        self.example = example
        super().__init__(
            f"no labelling of example {example} is allowed: its scores of -inf (forbidden labels "
            "or transitions) exclude every one; allow more"
        )

    def __reduce__(self) -> tuple[type[InfeasibleError], tuple[int]]:
        return InfeasibleError, (self.example,)

    def moved(self, offset: int) -> InfeasibleError:
        """The same of an example counted from the beginning of a larger batch."""
        return InfeasibleError(self.example + offset)


class UnsupportedError(ValueError):
    """Two parts that cannot work together; the message names both and what is missing."""


class NotFittedError(ValueError, AttributeError):
    """Stands in for scikit-learn's class of this name: see `as_sklearn`."""


class CollapsedLabellingWarning(UserWarning):
    """Graphs with loops got one label everywhere, though their observations speak for several.

    `predict` warns where this is so of half or more of the graphs with at least 20 variables: a
    third or more of the variables would get another label by the scores of their own observations.
    It does not where some training example was of nearly one label (over nine tenths).
    """


class ConvergenceWarning(UserWarning):
    """Stands in for scikit-learn's class of this name: see `as_sklearn`."""


def as_sklearn(ours: type[E]) -> type[E]:
    """scikit-learn's class of the same name, if scikit-learn is imported; else ours.

    Code that catches scikit-learn's has imported it. All other code neither needs scikit-learn
    nor waits a second for it.
    """
    return getattr(sys.modules.get("sklearn.exceptions"), ours.__name__, ours)


def not_fitted(estimator: object) -> NotFittedError:
    """The error of an estimator that is asked before `fit`."""
    return as_sklearn(NotFittedError)(
        f"This {type(estimator).__name__} instance is not fitted yet; call 'fit' first"
    )


class FormatError(ValueError):
    """A file that is not what its format asks for; the message begins with path:line:column.

    >>> raise FormatError("train.txt", "expected 3 columns, found 2", line=7, column=10)
    Traceback (most recent call last):
    chordal._errors.FormatError: train.txt:7:10: expected 3 columns, found 2
    """

    def __init__(
        self, path: str, what: str, *, line: int | None = None, column: int | None = None
    ) -> None:
        self.path, self.what, self.line, self.column = path, what, line, column
        place = [path, *(str(n) for n in (line, column) if n is not None)]
        super().__init__(f"{':'.join(place)}: {what}")

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive a plain reduce.
        return _format_error, (self.path, self.what, self.line, self.column)


def _format_error(path: str, what: str, line: int | None, column: int | None) -> FormatError:
    return FormatError(path, what, line=line, column=column)
