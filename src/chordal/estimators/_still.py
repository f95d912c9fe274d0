"""A fitted model as it is at one moment, while other threads may fit it again.

`fit` puts all that it has learned into the estimator in one step. A question takes hold of it all,
in one step too, before it asks: it never sees the reader of one fit and the weights of another.
Both steps are single operations on a dict, which the interpreter does not divide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])


def still(model: M) -> M:
    """A model with the same attributes, which no later fit changes; of such a one, itself."""
    held = vars(model).copy()
    if "_is_still" in held:
        return model
    held["_is_still"] = True
    made = object.__new__(type(model))
    vars(made).update(held)
    return made


def of_one_moment(question: F) -> F:
    """The same method, which sees its model as it was when it was called."""

    @wraps(question)
    def ask(self: object, *arguments: object, **options: object) -> Any:
        return question(still(self), *arguments, **options)

    return cast("F", ask)
