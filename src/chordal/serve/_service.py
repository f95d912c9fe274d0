"""What the routes of a server share: models, queue, figures, and how it starts and stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chordal.serve._metrics import Metrics
from chordal.serve._queue import Queue
from chordal.serve._refusal import Refusal, key
from chordal.serve._shelf import Shelf, Slot
from chordal.serve.limits import Limits

if TYPE_CHECKING:
    from chordal.serve._shelf import Source

log = logging.getLogger("chordal.serve")


class Service:
    """Models that answer requests."""

    def __init__(self, models: Mapping[str, Source], limits: Limits) -> None:
        self.limits, self.metrics = limits, Metrics()
        self.shelf = Shelf(models)
        self.queue = Queue(limits, self.metrics)
        self.is_stopping = False
        self._watching: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Watch the model files from now on, in this event loop.

        Every request calls it, since the applications that this one is mounted in do not tell it
        when they start.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._watching = loop.create_task(self._watch())

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.limits.poll)
            try:
                await loop.run_in_executor(None, self.shelf.check)
            except Exception:
                log.exception("the model files could not be looked at")

    def stop(self) -> None:
        """Say that the server ends: what waits has the time that `Limits.drain` gives it."""
        if not self.is_stopping:
            self.is_stopping = True
            asyncio.get_running_loop().call_later(self.limits.drain, self.queue.close)

    def close(self) -> None:
        """End at once."""
        self.is_stopping = True
        if self._watching is not None:
            self._watching.cancel()
        self.queue.close()

    def slot(self, name: str | None) -> Slot:
        """The model of a name, or the first one."""
        found = self.shelf.slots.get(self.shelf.first if name is None else name)
        if found is None:
            known = ", ".join(self.shelf.slots)
            raise Refusal(404, f"there is no model {key(name or '')}; there are {known}")
        return found

    def health(self) -> dict[str, Any]:
        """How the server is, for JSON."""
        models = [
            {
                "name": slot.name,
                "version": slot.current.version,
                "loaded": round(slot.current.since, 3),
                "error": slot.error,
            }
            for slot in self.shelf
        ]
        stale = any(slot.error is not None for slot in self.shelf)
        status = "stopping" if self.is_stopping else "stale" if stale else "ok"
        return {"status": status, "queue": len(self.queue), "models": models}
