"""Prepared data sets as parts in one numbering, for `fit` and predictions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.estimators._training.preparing import (
    check_own_facts,
    common_kind,
    labels_of,
    reader_of,
    whole_sets,
)
from chordal.features import Batch, Reader, merged_readers, renumbered_batch
from chordal.labels import SequenceLabels, as_kind, merged_labels, renumbered
from chordal.prepared import (
    Dataset,
    DatasetError,
    counted,
    from_arrays,
    target_from_arrays,
    typed,
)
from chordal.targets import PartialLabels, Target

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Ints = NDArray[np.int64]


def read_part(data: Dataset, k: int, reader: Reader) -> Batch:
    """The examples of a part by the numbers of the data set."""
    facts, arrays = data.part(k)
    with naming(data, k):
        return from_arrays(facts, arrays, reader)


def stored_labels(data: Dataset, k: int, batch: Batch, labels: SequenceLabels) -> list[list[Any]]:
    """The labels of the examples of a part; None if no label is known."""
    facts, arrays = data.part(k)
    n = int(batch.sizes.sum())
    with naming(data, k):
        known: list[Any] = [None] * n
        if facts["target"] != "none":
            target, _ = target_from_arrays(facts["target"], arrays, n, facts["n_labels"])
            codes = np.full(n, -1)
            if isinstance(target, np.ndarray):
                codes = target
            else:
                own = target.allowed if isinstance(target, PartialLabels) else target.probability
                table = (own > 0).reshape(n, -1)
                codes = np.where(table.sum(axis=1) == 1, table.argmax(axis=1), -1)
            named = [*labels.labels, None]
            known = [named[code] for code in codes.tolist()]
    ends = np.cumsum(batch.sizes).tolist()
    return [known[a:b] for a, b in pairwise([0, *ends])]


@contextmanager
def naming(data: Dataset, k: int) -> Iterator[None]:
    """Errors in a part, with its file."""
    try:
        yield
    except UnsupportedError:  # nothing is wrong with the part
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        path = os.path.join(data.path, data.parts[k].file)
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise DatasetError(path, f"not a valid part of a data set: {what}") from error


def stored_weight(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64] | None:
    """The weights of the examples of a part, checked; None if it has none."""
    if "weight" not in arrays:
        return None
    weight = typed(arrays, "weight", np.float64)
    valid = len(weight) == len(arrays["sizes"]) and np.isfinite(weight).all()
    if not valid or not (weight >= 0.0).all():
        raise ValueError("its weights are not valid")
    return weight


def stored_shapes(arrays: Mapping[str, NDArray[Any]], sizes: Ints) -> Ints | None:
    """The shapes [n_examples, n_axes] of the images of a part, checked; None if it has none."""
    if "shapes" not in arrays:
        return None
    shapes = counted(arrays, "shapes").reshape(len(sizes), -1)
    if (shapes.prod(axis=1) != sizes).any():
        raise ValueError("the shapes of images do not fit their pixels")
    return shapes


class Stored:
    """Several data sets as one: attributes and labels are numbered as if all had been read at once,
    after those that the model already has.

    Parameters
    ----------
    estimator : BaseCRF
    datasets : list of Dataset
    keep : bool
        Whether the estimator continues training and keeps its numbering.
    """

    def __init__(self, estimator: BaseCRF, datasets: Sequence[Dataset], keep: bool) -> None:
        self.datasets = datasets
        self.where = [(d, k) for d, own in enumerate(datasets) for k in range(own.n_parts)]
        facts = estimator._own_facts() if keep else None
        whose, self._own = "the model", list[Reader]()
        for data in datasets:
            self._own.append(reader_of(estimator, data))
            if facts is None:
                facts, whose = estimator._own_facts(), f"the data set {data.path}"
            check_own_facts(facts, data, whose)
        known = [estimator.reader_] if keep else []
        try:
            self.reader, columns = merged_readers([*known, *self._own])
        except ValueError as error:
            paths = ", ".join(own.path for own in datasets)
            raise DatasetError(paths, f"do not fit together: {error}") from error
        self.reader.templates = list(self._own[0].templates)  # as the settings are now
        self._columns = columns[len(known) :]
        labels = [labels_of(estimator, data) for data in datasets]
        first = estimator.labels_ if keep else estimator._unlearned_labels()
        self.labels, self._numbers = merged_labels(first, labels)
        kinds = {self._kind_of(k) for k in range(len(self)) if self._size(k)}
        self._kind = common_kind({"partial" if kind == "none" else kind for kind in kinds})

    def __len__(self) -> int:
        return len(self.where)

    def _part(self, k: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        data, own = self._place(k)
        return data.part(own)

    def _kind_of(self, k: int) -> str:
        facts, _ = self._part(k)
        with naming(*self._place(k)):
            kind, known = facts["target"], ("none", "hard", "soft", "partial")
            if kind not in known:
                raise ValueError(f"its target must be one of {', '.join(known)}; got {kind!r:.60}")
            return str(kind)

    def _place(self, k: int) -> tuple[Dataset, int]:
        d, own = self.where[k]
        return self.datasets[d], own

    def _size(self, k: int) -> int:
        data, own = self._place(k)
        return data.parts[own].variables

    def release(self, k: int) -> None:
        """Free the memory of a part."""
        data, own = self._place(k)
        data.release(own)

    def load(self, k: int) -> tuple[Batch, Target]:
        """The examples and targets of a part."""
        d, own = self.where[k]
        facts, arrays = self._part(k)
        batch = read_part(self.datasets[d], own, self._own[d])
        with naming(self.datasets[d], own):
            target = self._target(facts, arrays, int(batch.sizes.sum()), d)
            batch = renumbered_batch(batch, self.reader, self._columns[d])
            return batch, self.labels.within(target, batch.kinds)

    def _target(
        self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]], n: int, d: int
    ) -> Target:
        kind, known, count = facts["target"], facts["n_labels"], len(self.labels)
        if kind == "none":
            return whole_sets(n, count) if n else as_kind(np.zeros(0, np.int32), self._kind, count)
        if type(known) is not int or not 0 < known <= len(self._numbers[d]):
            raise ValueError("it has other labels than its data set")
        numbers = self._numbers[d][:known]
        target, observed = target_from_arrays(kind, arrays, n, known)
        if kind != "hard" or not np.array_equal(numbers, np.arange(known)):
            target = renumbered(target, numbers, count, observed)
        return as_kind(target, self._kind, count)

    def weights(self) -> NDArray[np.float64] | None:
        """The weights of all examples, if any part has weights."""
        found, given = [], False
        for k in range(len(self)):
            arrays = self._part(k)[1]
            with naming(*self._place(k)):
                own = stored_weight(arrays)
            given = given or own is not None
            found.append(np.ones(len(arrays["sizes"])) if own is None else own)
        return np.concatenate(found) if given else None
