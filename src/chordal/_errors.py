"""The error classes of chordal; all other errors are ``ValueError`` or ``TypeError``."""

from __future__ import annotations

import sys
from typing import TypeVar

E = TypeVar("E", bound=Exception)


class InfeasibleError(ValueError):
    """Some example has no allowed labelling: its constraints (scores of −inf) exclude all."""

    def __init__(self, example: int) -> None:
        self.example = example
        super().__init__(
            f"no labelling of example {example} is allowed: its scores of -inf (forbidden labels "
            "or transitions) exclude every one; allow more"
        )

    def __reduce__(self) -> tuple[type[InfeasibleError], tuple[int]]:
        return InfeasibleError, (self.example,)

    def moved(self, offset: int) -> InfeasibleError:
        """The same error with the example's number in a larger batch."""
        return InfeasibleError(self.example + offset)


class UnsupportedError(ValueError):
    """Two components cannot be combined; the message names both and what is missing."""


class NotFittedError(ValueError, AttributeError):
    """Replaces scikit-learn's class of this name if it is not imported: see `as_sklearn`."""


class CollapsedLabellingWarning(UserWarning):
    """Most graphs of a call got one label everywhere, although their observations favour several.

    `predict` warns if this happens to at least half of the graphs with 20 or more variables. A
    graph counts if a third of its variables would get another label from their own observations.
    There is no warning if some training example had one label on over nine tenths of its variables.
    """


class ConvergenceWarning(UserWarning):
    """Replaces scikit-learn's class of this name if it is not imported: see `as_sklearn`."""


def as_sklearn(ours: type[E]) -> type[E]:
    """scikit-learn's class of the same name, if scikit-learn is imported; else ours.

    Code that catches scikit-learn's class has already imported scikit-learn. All other code does
    not need to import it, which takes a second.
    """
    return getattr(sys.modules.get("sklearn.exceptions"), ours.__name__, ours)


def not_fitted(estimator: object) -> NotFittedError:
    """The error of an estimator that is used before `fit`."""
    return as_sklearn(NotFittedError)(
        f"This {type(estimator).__name__} instance is not fitted yet; call 'fit' first"
    )


class FormatError(ValueError):
    """A file violates its format; the message begins with path:line:column.

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
