"""Fingerprints of a fit: digests of its data, and its parameters as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from chordal._container import CheckpointError, Path
from chordal._estimator import Estimator
from chordal._saved import State
from chordal.objectives import Objective
from chordal.solvers import Solver

#: Parameters that do not change the result, or only when training stops.
FREE = ("n_jobs", "verbose", "max_iter", "warm_start")


def fingerprint(
    estimator: Estimator, solver: Solver, objective: Objective, data: Mapping[str, str | None]
) -> State:
    """Everything that must be equal for a fit to resume; `data` are digests."""
    given = estimator.get_params(deep=False)
    found: State = {"the version of chordal": version("chordal")}
    found["the estimator"] = type(estimator).__name__
    found |= {name: described(value) for name, value in given.items() if name not in FREE}
    return found | {"the solver": described(solver), "the objective": objective.name, **data}


def check_same_fit(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error for the checkpoint of another fit; it says what differs."""
    told = list(_differences(before, now))
    if told:
        raise CheckpointError(
            path,
            f"it belongs to another fit, which differs in {', '.join(told)}; give another path, or "
            "delete the file to start again",
        )


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], whose: str = ""
) -> Iterator[str]:
    """What differs, with both values if people can read them."""
    for name in [*now, *(name for name in before if name not in now)]:
        was, own = before.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(own, dict) and was.get("class") == own.get("class"):
            yield from _differences(was, own, f"{whose}{name}.")
        elif was != own:
            digests = any(isinstance(v, str) and len(v) == 32 for v in (was, own))
            values = "" if digests else f" (was {_short(was)}, is {_short(own)})"
            yield f"{whose}{name}{values}"


def _short(value: object) -> str:
    if isinstance(value, Mapping) and "class" in value:
        return str(value["class"])
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def described(value: object) -> object:
    """A parameter as JSON can hold it; the same for equal ones, also in another process.

    >>> from chordal.solvers.lbfgs import LBFGS
    >>> described({"solver": LBFGS(memory=3)})["solver"]["memory"]
    3
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.Generator):
        return digest(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return digest(value.get_state(legacy=False))
    if isinstance(value, np.ndarray):
        return digest(value)
    if isinstance(value, Mapping):
        return {str(key): described(own) for key, own in value.items()}
    if isinstance(value, Set):
        return sorted(map(str, value))
    if isinstance(value, Sequence):
        return [described(own) for own in value]
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    # The iterations of inference change the result; those of the solver only when it ends.
    free = FREE if isinstance(value, Solver) else ("n_jobs", "verbose")
    own = {k: v for k, v in _fields(value).items() if k not in free and not k.startswith("_")}
    return {"class": type(value).__name__, **{k: described(v) for k, v in own.items()}}


def _fields(value: object) -> dict[str, Any]:
    if hasattr(value, "get_params"):
        return dict(value.get_params(deep=False))
    if is_dataclass(value):
        return {own.name: getattr(value, own.name) for own in fields(value)}
    return dict(getattr(value, "__dict__", {}))


def digest(value: object) -> str:
    """A number that equal data share, and different data almost never.

    An object with a `checksum`, such as data on disk, is not read.

    >>> digest([np.arange(3), None]) == digest([np.arange(3), None]) != digest([np.arange(4), None])
    True
    """
    made = hashlib.blake2b(digest_size=16)
    _feed(made, value)
    return made.hexdigest()


def _feed(made: Any, value: Any) -> None:
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        made.update(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(getattr(value, "checksum", None), str):
        made.update(f"checksum {value.checksum};".encode())
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        made.update(f"{value.dtype.str} {value.shape};".encode())
        made.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, Mapping):
        for key, own in value.items():
            _feed(made, key)
            _feed(made, own)
    elif isinstance(value, (Sequence, np.ndarray)):
        made.update(f"{len(value)} of;".encode())
        for own in value:
            _feed(made, own)
    elif hasattr(value, "tocsr"):
        matrix = value.tocsr()
        _feed(made, [matrix.shape, matrix.indptr, matrix.indices, matrix.data])
    else:
        made.update(type(value).__name__.encode())
        _feed(made, {k: v for k, v in _fields(value).items() if not callable(v)})
