"""How many threads PyTorch uses, for a time.

PyTorch's threads are those of OpenMP, which has two hazards. A thread that the system refuses ends
the whole process. And after `fork`, a child that asks for threads waits for those of its parent
for ever, as they were not copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

from chordal.execution import effective_n_jobs


class _Process:
    forked = False  # since this module was imported
    n_users = 0  # blocks of `threads` that run now
    before = 1  # threads when the first of them began
    counting = Lock()


def _note_fork() -> None:
    _Process.forked, _Process.counting = True, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def safe_number(n: int) -> int:
    """At most as many threads as there are cores, and one in a process that `fork` made."""
    return 1 if _Process.forked else min(n, effective_n_jobs(-1))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """So many threads of PyTorch, for a time, as far as `safe_number` allows.

    The number belongs to the thread that sets it, and to those that begin to use PyTorch later.
    So each block sets its own, and the last one restores what there was before the first.
    """
    here = torch.get_num_threads()
    with _Process.counting:
        if not _Process.n_users:
            _Process.before = here
        _Process.n_users += 1
    torch.set_num_threads(safe_number(n))
    try:
        yield
    finally:
        with _Process.counting:
            _Process.n_users -= 1
            torch.set_num_threads(here if _Process.n_users else _Process.before)
