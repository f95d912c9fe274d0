"""Batches of an iterator: checked, and looked at before they are read where an estimator asks."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from chordal._scratch import scratch_file
from chordal.features import length_of

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Batch = tuple[Any, ...]  # X, y and perhaps weights


def checked(batches: Iterable[object]) -> Iterator[Batch]:
    """The batches, each of which must be a tuple."""
    for number, batch in enumerate(batches):
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            size = f" of {len(batch)}" if isinstance(batch, tuple) else ""
            raise TypeError(
                f"batch {number} must be a tuple (X, y) or (X, y, sample_weight), got "
                f"{type(batch).__name__}{size}"
            )
        if batch[1] is None:
            raise TypeError(f"batch {number} has no labels: its y is None; training needs labels")
        yield batch


@contextmanager
def numbered(number: int) -> Iterator[None]:
    """Errors give the number of the batch."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"batch {number}: {error}") from error


@contextmanager
def looked_at(estimator: BaseCRF, batches: Iterable[Batch]) -> Iterator[Iterator[Batch]]:
    """The same batches, after the estimator has seen what it needs to know of all of them.

    Meanwhile they lie in a temporary file without a name.
    """
    glances = []
    with scratch_file("batches") as file:
        for number, batch in enumerate(batches):
            if length_of(batch[0]):
                with numbered(number):
                    glances.append(estimator._glance(*batch, *[None] * (3 - len(batch))))
            pickle.dump(batch, file, protocol=5)
        file.flush()
        try:
            estimator._know(glances)
        except ValueError as error:
            raise ValueError(
                str(error).replace("partitions", "batches").replace("partition", "batch")
            ) from None
        end = file.tell()
        file.seek(0)
        yield _again(file, end)


def _again(file: IO[bytes], end: int) -> Iterator[Batch]:
    while file.tell() < end:
        yield pickle.load(file)
