"""How much a server takes: sizes, times, and how many requests may wait."""

from __future__ import annotations

from dataclasses import dataclass

from chordal._validate import check_number


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server; what exceeds one is refused with a status that says so.

    Parameters
    ----------
    max_body : int
        Bytes of a request (413).
    max_tokens : int
        Tokens of a request (413).
    max_k_best : int
        Labellings per sequence (422).
    max_cells : int
        Numbers that marginals of a request may have, tokens × labels, and those that k-best works
        with, tokens × labels × k (413).
    max_queue : int
        Requests that wait or are worked on (429).
    max_connections : int
        Open connections; `chordal serve` answers further ones with 503.
    timeout : float
        Seconds from the arrival of a request to its answer (503).
    drain : float
        Seconds that waiting requests have after a signal to stop (503).
    batch_tokens : int
        Tokens that one call of a model gets, from as many requests as have come.
    workers : int
        Threads that predict.
    poll : float
        Seconds between looks at the model files.

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
