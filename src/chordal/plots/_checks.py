"""Checks of what pictures are made from; each message says what is expected and what was given."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number, listed, numbers, whole_numbers

Floats = NDArray[np.float64]

ROUNDING = 1e-3  # by which sums of probabilities in float32 may be above 1


def label_list(values: Any, what: str) -> list[Any]:
    """The values as a list of labels, which is not empty."""
    labels = listed(values, what)
    try:
        hash(tuple(labels))
    except TypeError:
        raise TypeError(f"{what} must be a list of labels, got {reprlib.repr(labels)}") from None
    if not labels:
        raise ValueError(f"{what} is empty: give at least one label")
    return labels


def check_label(label: object, classes: list[Any]) -> None:
    """Raise an error for a label that is neither None nor one of the classes."""
    try:
        known = label is None or label in classes
    except ValueError:  # an array
        known = False
    if not known:
        raise ValueError(f"label must be one of the classes {classes}, got {reprlib.repr(label)}")


def check_shape(array: NDArray[Any], what: str, shape: tuple[int | str, ...]) -> None:
    """Raise an error for another shape; a name in `shape` allows any length.

    >>> check_shape(np.zeros((2, 3)), "places", ("n_variables", 2))
    Traceback (most recent call last):
    ValueError: places must be [n_variables, 2], got shape (2, 3)
    """
    fixed = [(own, n) for own, n in zip(array.shape, shape, strict=False) if isinstance(n, int)]
    if array.ndim != len(shape) or any(own != n for own, n in fixed):
        sides = ", ".join(map(str, shape))
        raise ValueError(f"{what} must be [{sides}], got shape {array.shape}")


def real(values: object, what: str, *shape: int | str, finite: bool = True) -> Floats:
    """The values as float64 of this shape."""
    array = numbers(values, what)
    check_shape(array, what, shape)
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite numbers, got NaN or infinity")
    return array


def probabilities(values: object, what: str, *shape: int | str) -> Floats:
    """The values as float64 of this shape, from 0 to 1."""
    array = real(values, what, *shape)
    outside = array[(array < 0.0) | (array > 1.0 + ROUNDING)]
    if outside.size:
        raise ValueError(f"{what} must be probabilities from 0 to 1, got {outside[0]:g}")
    return array


def places(
    values: object, what: str, *shape: int | str, low: int = 0, high: int | None = None
) -> NDArray[np.int64]:
    """The values as whole numbers of this shape, from `low` to `high`."""
    array = whole_numbers(values, what)
    check_shape(array, what, shape)
    outside = array[(array < low) | (array > (np.inf if high is None else high))]
    if outside.size:
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{what} must be {limits}, got {outside[0]}")
    return array.astype(np.int64, copy=False)


def check_count(what: str, n: object) -> None:
    """Raise an error unless n is an integer of at least 1."""
    check_number(what, n, minimum=1, integer=True)
