"""Prepared data sets: columnar batches on disk, read part by part and checked."""

from chordal.prepared._dataset import Dataset, DatasetError, is_dataset
from chordal.prepared._stored import (
    counted,
    from_arrays,
    target_from_arrays,
    target_to_arrays,
    to_arrays,
    typed,
)
from chordal.prepared._writer import Writer

__all__ = [
    "Dataset",
    "DatasetError",
    "Writer",
    "counted",
    "from_arrays",
    "is_dataset",
    "target_from_arrays",
    "target_to_arrays",
    "to_arrays",
    "typed",
]
