"""One task after another, in the calling thread."""

from __future__ import annotations

from typing import final

from chordal.execution import Execution


@final
class Serial(Execution):
    """Runs each task where it is asked for.

    >>> Serial().map(abs, [-1, 2])
    [1, 2]
    """
