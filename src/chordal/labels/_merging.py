"""Labels of data that were read in parts, numbered as if they had been read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.labels._sequence import SequenceLabels, TargetLabels
from chordal.targets import PartialLabels, SoftLabels, Target

Ints = NDArray[np.int64]


def merged_labels(
    known: SequenceLabels, parts: Sequence[SequenceLabels]
) -> tuple[SequenceLabels, list[Ints]]:
    """One numbering for parts, each of which learned its labels for itself, and the number that
    each label of each part has in it.

    `known` are the labels from which every part began: new ones (`SequenceLabels()`), or those of
    the model that is trained further. They keep their numbers.

    >>> a, b = SequenceLabels.of([["N", "V", "N"]]), SequenceLabels.of([["V", "D", "V"]])
    >>> labels, numbers = merged_labels(SequenceLabels(), [a, b])
    >>> labels.labels, [own.tolist() for own in numbers]
    (['V', 'N', 'D'], [[1, 0], [0, 2]])
    """
    whole = known.joined(parts)
    if isinstance(whole, TargetLabels):  # which are numbers already
        return whole, [np.arange(len(part)) for part in parts]
    numbers = [[whole.number(label) for label in part.labels] for part in parts]
    return whole, [np.array(own, dtype=np.int64) for own in numbers]


def renumbered(
    target: Target, numbers: Ints, n: int, observed: NDArray[np.bool_] | None = None
) -> Target:
    """A target by other numbers of labels, of which there are `n`.

    Of sets, `observed` says which variables have one: the others may have any label, also those
    that were not known when the set was made. Without it, those that have all may have any.

    >>> renumbered(np.array([1, 0, 1], dtype=np.int32), np.array([2, 0]), 3)
    array([0, 2, 0], dtype=int32)
    """
    if isinstance(target, np.ndarray):
        return np.asarray(numbers.astype(np.int32)[target])
    rows, counts = (len(target), len(numbers)), np.full(len(target), n)
    if isinstance(target, SoftLabels):
        shares = np.zeros((len(target), n))
        shares[:, numbers] = target.probability.reshape(rows)
        return SoftLabels(shares.ravel(), counts)
    own, allowed = target.allowed.reshape(rows), np.zeros((len(target), n), dtype=bool)
    allowed[:, numbers] = own
    allowed[own.all(axis=1) if observed is None else ~observed] = True
    return PartialLabels(allowed.ravel(), counts)


def learned_facts(labels: SequenceLabels) -> dict[str, Any]:
    """What was learned so far, as facts that JSON can hold; see `take_learned`."""
    plain = [_plain(label) for label in labels.labels]
    times = [labels.times.get(label, 0) for label in labels.labels]
    met = {label: k for k, label in enumerate(labels.times)}
    order = [met.get(label, -1) for label in labels.labels]
    as_list, name = labels.as_list, labels.dtype_name
    return {"labels": plain, "times": times, "met": order, "as_list": as_list, "dtype": name}


def _plain(label: object) -> object:
    if isinstance(label, tuple):  # of a type
        return [_plain(own) for own in label]
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, (str, int, float)):
        raise UnsupportedError(f"labels must be str, int, float or bool to be kept, got {label!r}")
    return label


def take_learned(labels: SequenceLabels, facts: Mapping[str, Any]) -> None:
    """Fill empty labels with what `learned_facts` says; impossible facts are refused."""
    plain, times, met = facts["labels"], facts["times"], facts["met"]
    if not all(isinstance(own, list) and len(own) == len(plain) for own in (plain, times, met)):
        raise ValueError(
            "labels must be a list, with lists of the same length for how often each occurs, and "
            "for the order"
        )
    found = [tuple(own) if isinstance(own, list) else own for own in plain]
    flat = [v for own in found for v in (own if isinstance(own, tuple) else (own,))]
    if not all(isinstance(v, (str, int, float)) and v == v for v in flat):
        raise ValueError("labels must be str, int, float or bool")
    if len(set(found)) < len(found):
        raise ValueError("a label occurs twice")
    if not all(type(n) is int and -1 <= n < 2**48 for n in (*times, *met)):
        raise ValueError("labels must be counted by whole numbers")
    labels.set_learned(found, [(found[k], times[k]) for k in np.argsort(met) if met[k] >= 0])
    labels.as_list = bool(facts["as_list"])
    labels.set_dtype(facts["dtype"])


def as_kind(target: Target, kind: str, n: int) -> Target:
    """A target with one label per variable as one of another kind ("soft", "partial")."""
    if not isinstance(target, np.ndarray) or kind == "hard":
        return target
    flags = target[:, None] == np.arange(n)
    counts = np.full(len(target), n)
    if kind == "soft":
        return SoftLabels(flags.astype(np.float64).ravel(), counts)
    return PartialLabels(flags.ravel(), counts)
