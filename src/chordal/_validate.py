"""Checks of user input; each message says what is expected and what was given."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: A seed or source of random numbers; None for a fresh seed.
RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"


#: The largest sum of `sample_weight`, if all were as large as the largest.
LARGEST_WEIGHT = 1e200


def generator_from(random_state: RandomState) -> np.random.Generator:
    """A Generator from a seed, a Generator, a RandomState or None.

    >>> [int(generator_from(0).integers(100)) for _ in range(2)]
    [36, 36]
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        if not isinstance(random_state, np.random.RandomState):
            random_state = np.random.RandomState(random_state)
        return np.random.default_rng(random_state.randint(2**31))
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be an integer of at least 0, a numpy Generator or RandomState, or "
            f"None; got {random_state!r}"
        ) from None


def check_seed(random_state: object) -> None:
    """Raise an error for anything that `generator_from` would refuse, without drawing from it."""
    if random_state is None or isinstance(
        random_state, (np.random.Generator, np.random.RandomState)
    ):
        return
    if isinstance(random_state, bool) or not (
        isinstance(random_state, (int, np.integer)) and random_state >= 0
    ):
        raise ValueError(
            "random_state must be an integer of at least 0, a numpy Generator or RandomState, or "
            f"None; got {reprlib.repr(random_state)}"
        )


def check_number(
    name: str, value: object, *, minimum: float = 0.0, integer: bool = False, strict: bool = False
) -> None:
    """Raise an error unless the value is a finite number ≥ minimum (with `strict`, > minimum).

    >>> check_number("l2", -1)
    Traceback (most recent call last):
    ValueError: l2 must be a number of at least 0, got -1
    """
    kind = Integral if integer else Real
    good = isinstance(value, kind) and not isinstance(value, bool) and _is_finite(value)
    if not good or (isinstance(value, Real) and value < minimum) or (strict and value == minimum):
        noun = "an integer" if integer else "a number"
        bound = "above" if strict else "of at least"
        raise ValueError(f"{name} must be {noun} {bound} {minimum:g}, got {value!r}")


def _is_finite(value: Real) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def check_flag(name: str, value: object) -> None:
    """Raise an error unless the value is True or False.

    >>> check_flag("warm_start", "no")
    Traceback (most recent call last):
    TypeError: warm_start must be True or False, got 'no'
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {reprlib.repr(value)}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise an error unless the value is one of the names.

    >>> check_choice("states", "some", ["seen", "all"])
    Traceback (most recent call last):
    ValueError: states must be one of 'seen', 'all'; got 'some'
    """
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        got = reprlib.repr(value)  # a long list in its place is not shown whole
        raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}; got {got}")


def check_function(name: str, value: object, of: str) -> None:
    """Raise an error unless the value is a function or None; `of` names its argument."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function of {of}, or None; got {value!r}")


def is_sparse(x: object) -> TypeGuard[csr_array]:
    """Whether x is a SciPy sparse matrix or array; does not import SciPy to find out."""
    return type(x).__module__.startswith("scipy.sparse")


def numbers(values: object, what: str) -> NDArray[np.float64]:
    """The values as float64; an error if they are anything but real numbers.

    >>> numbers(["a"], "unary")
    Traceback (most recent call last):
    ValueError: unary must be numbers, got ['a']
    """
    array = array_of(values)
    if array.dtype.kind not in "biuf" and array.size:
        raise ValueError(f"{what} must be numbers, got {reprlib.repr(values)}")
    return array.astype(np.float64, copy=False)


def whole_numbers(values: object, what: str) -> NDArray[np.integer[Any]]:
    """The values as an array of integers; an error if they are anything else. 2.0 is whole.

    >>> whole_numbers([2.5], "lengths")
    Traceback (most recent call last):
    ValueError: lengths must be whole numbers, got [2.5]
    """
    array = array_of(values)
    if array.dtype.kind == "i":
        return array
    if array.dtype.kind == "u":  # beyond int64 is beyond any limit
        return np.minimum(array, np.iinfo(np.int64).max).astype(np.int64)
    if array.dtype.kind in "bf" or array.size == 0:
        with np.errstate(invalid="ignore"):  # NaN and what is beyond int64 differ afterwards
            whole = np.zeros(array.shape, np.int64) if array.size == 0 else array.astype(np.int64)
        if (whole == array).all():
            return whole
    raise ValueError(f"{what} must be whole numbers, got {reprlib.repr(values)}")


def array_of(values: object) -> NDArray[Any]:
    """An array of the values; an object of no dimension where NumPy cannot make one, as of lists
    of several lengths.
    """
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        return np.array(None)


def is_list(values: object) -> bool:
    """Whether the values are a list, tuple, array or another sequence; strings are none."""
    if isinstance(values, (str, bytes, Mapping)) or is_sparse(values):
        return False
    whole = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    return whole and getattr(values, "shape", None) != ()


def listed(values: Any, what: str, n: int | None = None, per: str = "") -> list[Any]:
    """The values as a list; an error if they are none, or if their number is not n.

    >>> listed("ab", "labels")
    Traceback (most recent call last):
    TypeError: labels must be a list, got 'ab'
    """
    if not is_list(values):
        raise TypeError(f"{what} must be a list, got {reprlib.repr(values)}")
    if n is not None and len(values) != n:
        raise ValueError(f"{what} must have one entry per {per} ({n}), got {len(values)}")
    return list(values)


def check_listed(values: object, what: str) -> None:
    """Raise an error unless the values are a list, tuple or array, with an entry per example."""
    listed = isinstance(values, (list, tuple)) or getattr(values, "shape", ()) != ()
    if not listed or is_sparse(values):
        raise TypeError(
            f"{what} must be a list with an entry per example, got {type(values).__name__}"
        )


def check_weight(weight: object, n_examples: int) -> None:
    """Raise an error for weights that compiled code could not read: None or float64 [n_examples].

    >>> check_weight(np.ones(2), 3)
    Traceback (most recent call last):
    ValueError: weight must be None or float64 of shape (3,), one per example; got float64 of \
shape (2,)
    """
    if weight is None or (
        isinstance(weight, np.ndarray) and weight.shape == (n_examples,) and weight.dtype == float
    ):
        return
    got = type(weight).__name__
    if isinstance(weight, np.ndarray):
        got = f"{weight.dtype} of shape {weight.shape}"
    raise ValueError(
        f"weight must be None or float64 of shape ({n_examples},), one per example; got {got}"
    )


def check_sequences(X: object, name: str = "X", empty: bool = False) -> Sequence[Any]:
    """Check a list of sequences; `empty` says whether it may be empty. Generators become lists;
    strings and scalars are errors.
    """
    no_list = isinstance(X, (str, bytes, dict)) or is_sparse(X)
    if no_list or not hasattr(X, "__iter__") or getattr(X, "shape", None) == ():
        raise TypeError(f"{name} must be a list of sequences, got {type(X).__name__}")
    sequences = X if isinstance(X, (list, tuple)) else list(X)
    if len(sequences) == 0 and not empty:
        raise ValueError(f"{name} is empty: give at least one sequence")
    return sequences


def check_same_lengths(x_lengths: NDArray[np.int64], y: Sequence[Any], prefix: str = "") -> None:
    """Raise an error if labels do not match their sequences; it names the first mismatch."""
    if len(y) != len(x_lengths):
        raise ValueError(
            f"{prefix}X and y must have the same number of sequences, "
            f"got {len(x_lengths)} and {len(y)}"
        )
    for i, (n, labels) in enumerate(zip(x_lengths, y, strict=True)):
        no_list = isinstance(labels, (str, bytes)) or is_sparse(labels)
        if no_list or not hasattr(labels, "__len__"):
            raise TypeError(f"{prefix}y[{i}] must be a list of labels, got {type(labels).__name__}")
        if len(labels) != n:
            raise ValueError(
                f"{prefix}X[{i}] and y[{i}] must have the same length, got {n} and {len(labels)}"
            )


def check_sample_weight(weight: object, n_sequences: int) -> NDArray[np.float64] | None:
    """One non-negative finite weight per sequence, or None."""
    if weight is None:
        return None
    try:
        array = np.ascontiguousarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be numbers, got {weight!r:.80}") from None
    if array.shape != (n_sequences,):
        raise ValueError(
            f"sample_weight must have one entry per sequence ({n_sequences}), "
            f"got shape {array.shape}"
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if array.max(initial=0.0) > LARGEST_WEIGHT / max(1, len(array)):
        raise ValueError(
            f"sample_weight must be at most {LARGEST_WEIGHT / len(array):g} here, or sums with it "
            f"could overflow; got {array.max():g}: divide all weights by the same number"
        )
    return array


def own_integers(
    name: str, values: object, ndim: int = 1, dtype: type[np.integer[Any]] = np.int64
) -> NDArray[Any]:
    """A checked read-only copy of an array of integers ≥ 0, safe for compiled code.

    Later changes of the caller's array do not affect the copy.

    >>> own_integers("lengths", [2, -1])
    Traceback (most recent call last):
    ValueError: lengths must be from 0 to 9223372036854775807, got -1
    """
    array = np.asarray(values)
    if array.size == 0 and array.ndim == ndim:
        array = array.astype(dtype)
    if array.ndim != ndim or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be an array of integers of {ndim} dimension{'s' * (ndim > 1)}, got "
            f"{array.dtype} of shape {array.shape}"
        )
    most = int(np.iinfo(dtype).max)
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    if low < 0 or high > most:
        raise ValueError(f"{name} must be from 0 to {most}, got {low if low < 0 else high}")
    own = np.array(array, dtype=dtype, order="C")
    own.flags.writeable = False
    return own


def check_path(name: str, value: object) -> None:
    """Raise an error for what cannot be the path of a file.

    >>> check_path("model", 3)
    Traceback (most recent call last):
    TypeError: model must be the path of a file, got 3
    """
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be the path of a file, got {reprlib.repr(value)}")
