"""What a target of fuzzing is, and the files that targets write."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.mutation import Mutate

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[1,0]\nB\n"
WORDS = [[["the"], ["cat"], ["sees"]], [["a"], ["dog"]]]
TAGS = [["D", "N", "V"], ["D", "N"]]
ITEMS = [[["w=the", "p"], {"w=cat": 1.0, "s": 0.5}, ["w=sees"]], [["w=a"], ["w=dog"]]]


@dataclass(frozen=True)
class Target:
    """Inputs to start from, how they are changed, what is done with them and what it may raise."""

    seeds: list[bytes]
    run: Callable[[bytes], object]
    mutate: Mutate
    may_raise: tuple[type[BaseException], ...] = (ValueError,)


@functools.cache
def folder() -> str:
    """A folder of this process."""
    return tempfile.mkdtemp(prefix="chordal-fuzz-")


def memory() -> str | None:
    """Where files are kept in memory, if there is such a place."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def path(name: str) -> str:
    """A file in this folder."""
    return os.path.join(folder(), name)


def written(write: Callable[[str], object]) -> bytes:
    """The bytes of a file that a function writes."""
    place = path("written")
    write(place)
    with open(place, "rb") as file:
        return file.read()


def put(name: str, data: bytes) -> str:
    """Write a file anew; its path."""
    place = path(name)
    with open(place, "wb") as file:
        file.write(data)
    return place
