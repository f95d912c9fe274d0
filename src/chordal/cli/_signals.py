"""Ctrl-C and SIGTERM: the first stops the work and keeps its result, the second keeps nothing.

Python raises KeyboardInterrupt wherever it is at that moment. In an import or in a finalizer this
may be swallowed, or become another error. So what came is remembered, and looked at before long
work.
"""

from __future__ import annotations

import signal

#: Signals that came, in order.
received: list[int] = []


def listen() -> None:
    """From now on, SIGTERM does what Ctrl-C does, and both are remembered."""
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)


def check() -> None:
    """Raise KeyboardInterrupt if a signal came that was not reported yet.

    >>> check()
    """
    if received:
        raise KeyboardInterrupt


def _stop(number: int, _: object) -> None:
    received.append(number)
    raise KeyboardInterrupt
