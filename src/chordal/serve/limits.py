"""Limits of a server: sizes, times and number of waiting requests."""

from __future__ import annotations

from dataclasses import dataclass

from chordal._validate import check_number


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server; a request beyond a limit gets the status in brackets.

    Parameters
    ----------
    max_body : int, default=1_000_000
        Maximum bytes of a request (413).
    max_tokens : int, default=50_000
        Maximum tokens of a request (413).
    max_k_best : int, default=100
        Maximum labellings per sequence (422).
    max_cells : int, default=4_000_000
        Maximum numbers of a request: tokens × labels for marginals, tokens × labels × k for k-best
        (413).
    max_queue : int, default=1_000
        Maximum requests that wait or are processed (429).
    max_connections : int, default=2_000
        Maximum open connections; `chordal serve` answers further ones with 503.
    timeout : float, default=10.0
        Seconds from the arrival of a request to its answer (503).
    drain : float, default=10.0
        Seconds to finish waiting requests after a signal to stop (503).
    batch_tokens : int, default=4_096
        Maximum tokens of one call of a model, over all waiting requests.
    workers : int, default=1
        Number of prediction threads.
    poll : float, default=1.0
        Seconds between checks of the model files.

    Examples
    --------
    >>> Limits(max_queue=0)
    Traceback (most recent call last):
    ValueError: max_queue must be an integer of at least 1, got 0
    """

    max_body: int = 1_000_000
    max_tokens: int = 50_000
    max_k_best: int = 100
    max_cells: int = 4_000_000
    max_queue: int = 1_000
    max_connections: int = 2_000
    timeout: float = 10.0
    drain: float = 10.0
    batch_tokens: int = 4_096
    workers: int = 1
    poll: float = 1.0

    def __post_init__(self) -> None:
        for name in ("timeout", "drain", "poll"):
            check_number(name, getattr(self, name), strict=True)
        sizes = ("max_body", "max_tokens", "max_k_best", "max_cells", "batch_tokens")
        for name in (*sizes, "max_queue", "max_connections", "workers"):
            check_number(name, getattr(self, name), minimum=1, integer=True)
