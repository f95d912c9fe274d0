"""Shards with arrays in a temporary file; memory holds only those in use.

Each shard is pickled with separate arrays (protocol 5), which go to an unnamed file of this
process. The restored shards have memory-mapped arrays and keep whatever inference caches. Pages are
loaded when they are read; `Spilled` tells the system which are needed next and which are not.
"""

from __future__ import annotations

import io
import mmap
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from chordal._scratch import scratch_file

ALIGNED = 64  # bytes: where arrays begin

Range = tuple[int, int]
T = TypeVar("T")


class _Pickler(pickle.Pickler):
    """Keeps arrays that repeat one number as that number."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and obj.size > 1 and not any(obj.strides):
            return _repeated, (obj.flat[0].item(), obj.dtype.str, obj.shape)
        return NotImplemented


def _repeated(value: Any, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.broadcast_to(np.array(value, dtype=dtype), shape)


class Spilled(Sequence[T]):
    """Shards, or what else holds arrays, whose arrays lie in a mapped file."""

    def __init__(self, shards: list[T], ranges: list[Range], memory: mmap.mmap | None) -> None:
        self._shards, self._ranges, self._memory = shards, ranges, memory

    @classmethod
    def of(cls, shards: Iterable[T]) -> Spilled[T]:
        """Write each shard as it comes."""
        kept: list[tuple[bytes, list[Range]]] = []
        with scratch_file("compiled data") as file:
            at = 0
            for shard in shards:
                skeleton, places, at = _written(file, shard, at)
                kept.append((skeleton, places))
            file.flush()
            memory = mmap.mmap(file.fileno(), at, access=mmap.ACCESS_READ) if at else None
        view = memoryview(memory) if memory is not None else memoryview(b"")
        made, ranges = [], []
        for skeleton, places in kept:
            made.append(pickle.loads(skeleton, buffers=[view[a:b] for a, b in places]))
            ranges.append((places[0][0], places[-1][1]) if places else (0, 0))
        return cls(made, ranges, memory)

    def __len__(self) -> int:
        return len(self._shards)

    @overload
    def __getitem__(self, k: SupportsIndex) -> T: ...

    @overload
    def __getitem__(self, k: slice) -> Spilled[T]: ...

    def __getitem__(self, k: SupportsIndex | slice) -> T | Spilled[T]:
        if isinstance(k, slice):
            return Spilled(self._shards[k], self._ranges[k], self._memory)
        return self._shards[k]

    def __iter__(self) -> Iterator[T]:
        """Each in turn; its pages are released when the next one is taken."""
        for k, shard in enumerate(self._shards):
            yield shard
            self[k : k + 1].release()

    def fetch(self) -> None:
        """Tell the system that these will be read: it reads ahead."""
        self._advise("MADV_WILLNEED")

    def release(self) -> None:
        """Release the memory of these; later reads load the pages again."""
        self._advise("MADV_DONTNEED")

    def _advise(self, advice: str) -> None:
        if self._memory is None or not self._ranges or not hasattr(mmap, advice):
            return
        # Shards are written one after another, so that a slice is one run of pages.
        page = mmap.PAGESIZE
        begin = self._ranges[0][0] // page * page
        end = self._ranges[-1][1]
        if end > begin:
            self._memory.madvise(getattr(mmap, advice), begin, end - begin)


def _written(file: Any, shard: object, at: int) -> tuple[bytes, list[Range], int]:
    """Write the arrays of a shard; the rest of it, where they are, and where the file ends."""
    text = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Pickler(text, protocol=5, buffer_callback=buffers.append).dump(shard)
    places = []
    for buffer in buffers:
        raw = buffer.raw()
        start = -(-at // ALIGNED) * ALIGNED
        file.write(b"\0" * (start - at))
        file.write(raw)
        places.append((start, start + raw.nbytes))
        at = start + raw.nbytes
    return text.getvalue(), places, at


def fetch(shards: Sequence[Any]) -> None:
    """Read ahead, if the shards lie in a file."""
    if isinstance(shards, Spilled):
        shards.fetch()


def release(shards: Sequence[Any]) -> None:
    """Release memory, if the shards are in a file."""
    if isinstance(shards, Spilled):
        shards.release()
