"""What Ctrl-C does to a fit: one press keeps the best weights so far, a second one stops all."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WHOLE: ContextVar[bool] = ContextVar("whole_fits", default=False)
_AGAIN = 5.0  # seconds in which another Ctrl-C is a second one, though it meets another fit
_last = float("-inf")


class InterruptedFitWarning(UserWarning):
    """Ctrl-C ended a fit, which returned the model with the best weights so far."""


@contextmanager
def whole_fits() -> Iterator[None]:
    """Within this, Ctrl-C in a fit raises KeyboardInterrupt: half a fit is of no use here.

    Searches compare finished models, and stages build on each other: one press must end it all.

    >>> with whole_fits():
    ...     pass
    """
    token = _WHOLE.set(True)
    try:
        yield
    finally:
        _WHOLE.reset(token)


def keep_or_raise(n_iter: int, learned: bool) -> None:
    """After Ctrl-C: warn that the model has the best weights so far, or raise KeyboardInterrupt."""
    global _last
    before, _last = _last, time.monotonic()
    if not learned or _WHOLE.get() or _last - before < _AGAIN or _in_search():
        raise KeyboardInterrupt
    warnings.warn(
        f"Ctrl-C ended the fit after {n_iter} iterations: the model has the best weights so far "
        "(fit_report_.status is INTERRUPTED); warm_start=True and another fit go on from them. "
        "Press Ctrl-C twice to stop the program",
        InterruptedFitWarning,
        stacklevel=4,
    )


def _in_search() -> bool:
    """Whether scikit-learn's searches or validation called: they would compare this model."""
    if "sklearn.model_selection" not in sys.modules:
        return False
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            return True
        frame = frame.f_back
    return False
