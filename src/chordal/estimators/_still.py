"""A consistent snapshot of a fitted model, while other threads may fit it again.

`fit` stores all results in the estimator in one step, and a prediction takes them all in one step.
So it never mixes the reader of one fit with the weights of another. Both steps are single dict
operations, which are atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])


def still(model: M) -> M:
    """A snapshot of the model, which later fits do not change; a snapshot returns itself."""
    held = vars(model).copy()
    if "_is_still" in held:
        return model
    held["_is_still"] = True
    made = object.__new__(type(model))
    vars(made).update(held)
    return made


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """An error leaves the estimator as it was."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        for name in vars(estimator).keys() - before.keys():
            del vars(estimator)[name]
        vars(estimator).update(before)
        raise


def of_one_moment(question: F) -> F:
    """Make a method work on a snapshot of its model."""

    @wraps(question)
    def ask(self: object, *arguments: object, **options: object) -> Any:
        return question(still(self), *arguments, **options)

    return cast("F", ask)
