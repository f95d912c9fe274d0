"""How many threads PyTorch uses, for a time.

PyTorch's threads are those of OpenMP, which has two hazards. A thread that the system refuses ends
the whole process. And after `fork`, a child that asks for threads waits for those of its parent
for ever, as they were not copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from chordal.execution import effective_n_jobs


class _Process:
    forked = False  # since this module was imported


def _note_fork() -> None:
    _Process.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def safe_number(n: int) -> int:
    """At most as many threads as there are cores, and one in a process that `fork` made."""
    return 1 if _Process.forked else min(n, effective_n_jobs(-1))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """So many threads of PyTorch, for a time, as far as `safe_number` allows."""
    before = torch.get_num_threads()
    torch.set_num_threads(safe_number(n))
    try:
        yield
    finally:
        torch.set_num_threads(before)
