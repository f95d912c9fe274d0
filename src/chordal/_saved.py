"""State that can be kept in a file: what to_state gives, and what from_state reads with checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Names, and numbers, words, lists of them, arrays, or further states.
State = dict[str, Any]
Shape = tuple[int | None, ...]  # None: any length

T = TypeVar("T", int, float, str, bool)

_ARRAY = "__array__"
LONG = 1000  # lists of more numbers are arrays in files

HUGE = 1e30  # no fit goes so far, and loops that compare what overflows may have no end


class SavedError(ValueError):
    """A state that does not fit what is to go on with it."""


class Stateful(Protocol):
    """What a loop changes from iteration to iteration."""

    def to_state(self) -> State:
        """All that there is between two iterations. Arrays may be the object's own memory."""

    def from_state(self, saved: Saved) -> None:
        """Take over what `to_state` gave; SavedError for anything else."""


class Saved:
    """A state that was read from a file, which may hold anything: each question checks its answer.

    >>> saved = Saved({"n": 3, "w": np.zeros(2)})
    >>> saved.integer("n"), saved.array("w", np.float64, (2,))
    (3, array([0., 0.]))
    >>> saved.array("w", np.float64, (5,))
    Traceback (most recent call last):
    chordal._saved.SavedError: w must be an array float64 [5], got float64 [2]
    """

    def __init__(self, values: object, place: str = "") -> None:
        if not isinstance(values, Mapping):
            raise SavedError(f"{place or 'the state'} must have named values")
        self.values, self._place = values, place

    def integer(self, name: str, minimum: int = 0) -> int:
        """A whole number."""
        found = self._of(name, int)
        if found < minimum:
            raise SavedError(f"{self._name(name)} must be at least {minimum}, got {found}")
        return found

    def flag(self, name: str) -> bool:
        """True or False."""
        return self._of(name, bool)

    def word(self, name: str) -> str:
        """A string."""
        return self._of(name, str)

    def number(self, name: str) -> float:
        """A number, perhaps infinite or NaN."""
        return _number(self._get(name), self._name(name))

    def numbers(self, name: str) -> list[float]:
        """A list of numbers."""
        found = self._get(name)
        if not isinstance(found, list):
            raise SavedError(f"{self._name(name)} must be a list of numbers")
        return [_number(value, self._name(name)) for value in found]

    def array(self, name: str, dtype: DTypeLike, shape: Shape, finite: bool = True) -> NDArray[Any]:
        """A copy of an array of this type and shape."""
        found, wanted = self._get(name), np.dtype(dtype)
        fits = (
            isinstance(found, np.ndarray)
            and found.dtype == wanted
            and found.ndim == len(shape)
            and all(a in (None, b) for a, b in zip(shape, found.shape, strict=True))
        )
        if not fits:
            got = type(found).__name__
            if isinstance(found, np.ndarray):
                got = f"{found.dtype} {list(found.shape)}"
            lengths = ", ".join("any" if n is None else str(n) for n in shape)
            raise SavedError(f"{self._name(name)} must be an array {wanted} [{lengths}], got {got}")
        if finite and found.dtype.kind == "f" and not (np.abs(found) <= HUGE).all():
            raise SavedError(f"{self._name(name)} must hold finite numbers up to ±{HUGE:g}")
        return np.array(found)

    def part(self, name: str) -> Saved:
        """A state within the state."""
        return Saved(self._get(name), self._name(name))

    def parts(self, name: str) -> list[Saved]:
        """A list of states."""
        found = self._get(name)
        if not isinstance(found, list):
            raise SavedError(f"{self._name(name)} must be a list")
        return [Saved(own, f"{self._name(name)}[{k}]") for k, own in enumerate(found)]

    def names(self) -> list[str]:
        """What there is."""
        return [str(name) for name in self.values]

    def generator(self, name: str, like: np.random.Generator) -> None:
        """Give a generator of random numbers the state that was kept of one of its kind."""
        try:
            like.bit_generator.state = self._get(name)
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
            raise SavedError(f"{self._name(name)} is not the state of a generator") from error

    def like(self, name: str, present: object) -> Any:
        """A value of the kind, and of the shape, of the present one."""
        if isinstance(present, np.ndarray):
            return self.array(name, present.dtype, present.shape)
        if isinstance(present, np.random.Generator):
            self.generator(name, present)
            return present
        if isinstance(present, bool):
            return self.flag(name)
        if isinstance(present, int):
            return self.integer(name)
        if isinstance(present, float):
            return self.number(name)
        if isinstance(present, list):
            return self.numbers(name)
        if isinstance(present, dict):
            part = self.part(name)
            return {own: part.numbers(own) for own in {**dict.fromkeys(part.names()), **present}}
        cast(Stateful, present).from_state(self.part(name))
        return present

    def _get(self, name: str) -> Any:
        if name not in self.values:
            raise SavedError(f"{self._name(name)} is missing")
        return self.values[name]

    def _of(self, name: str, kind: type[T]) -> T:
        found = self._get(name)
        if type(found) is not kind:
            raise SavedError(f"{self._name(name)} must be of type {kind.__name__}, got {found!r}")
        return found

    def _name(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SavedError(f"{name} must be a number, got {value!r}")
    return float(value)


class Kept:
    """An object whose state is the attributes that `kept` names.

    They have the kind and the shape of what is read from a file before it is. Arrays in `filled`
    stay where they are in memory, and take over the numbers.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    filled: ClassVar[tuple[str, ...]] = ()

    def to_state(self) -> State:
        """All that there is between two iterations."""
        return {name: _plain(getattr(self, name)) for name in (*self.kept, *self.filled)}

    def from_state(self, saved: Saved) -> None:
        """Take over what `to_state` gave."""
        for name in self.kept:
            setattr(self, name, saved.like(name, getattr(self, name)))
        for name in self.filled:
            getattr(self, name)[:] = saved.like(name, getattr(self, name))


def _plain(value: object) -> object:
    """A value as a state holds it."""
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    if isinstance(value, np.generic):
        return value.item()
    return value.to_state() if hasattr(value, "to_state") else value


def flattened(state: State) -> tuple[State, dict[str, NDArray[Any]]]:
    """The state as JSON can hold it, and the arrays that it names; each of one dimension.

    >>> flattened({"w": np.zeros((1, 2)), "n": 3})
    ({'w': {'__array__': 'w', 'shape': [1, 2]}, 'n': 3}, {'w': array([0., 0.])})
    """
    arrays: dict[str, NDArray[Any]] = {}

    def plain(value: object, place: str) -> object:
        if isinstance(value, np.ndarray):
            arrays[place] = np.ascontiguousarray(value).reshape(-1)
            return {_ARRAY: place, "shape": list(value.shape)}
        if isinstance(value, Mapping):
            return {key: plain(own, f"{place}.{key}") for key, own in value.items()}
        if isinstance(value, list) and len(value) > LONG and {*map(type, value)} == {float}:
            arrays[place] = np.array(value)
            return {_ARRAY: place, "list": True, "shape": [len(value)]}
        if isinstance(value, (list, tuple)):
            return [plain(own, f"{place}.{k}") for k, own in enumerate(value)]
        return value

    return {key: plain(value, key) for key, value in state.items()}, arrays


def restored(value: object, arrays: Mapping[str, NDArray[Any]]) -> object:
    """What `flattened` took apart, put together again; SavedError where arrays do not fit."""
    if isinstance(value, list):
        return [restored(own, arrays) for own in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY not in value:
        return {key: restored(own, arrays) for key, own in value.items()}
    name, shape = value[_ARRAY], value.get("shape")
    sound = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not sound or not isinstance(name, str) or name not in arrays:
        raise SavedError(f"array {name!r} is not there, or has no shape")
    if prod(cast(Sequence[int], shape)) != len(arrays[name]):
        raise SavedError(
            f"array {name!r} has {len(arrays[name])} numbers, which do not fit {shape}"
        )
    return arrays[name].tolist() if value.get("list") is True else arrays[name].reshape(shape)


def copied(value: object) -> Any:
    """A copy of the state, with copied arrays."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {key: copied(own) for key, own in value.items()}
    return [copied(own) for own in value] if isinstance(value, (list, tuple)) else value
