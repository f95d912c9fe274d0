"""What is counted and logged of every request; never its text."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chordal.serve._service import Service

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("chordal.serve.access")

#: What stands for the status where the client left before there was one, as in nginx.
GONE = 499


@dataclass(slots=True)
class Seen:
    """What an endpoint tells about its request; `scope["chordal"]`."""

    model: str = ""
    tokens: int = 0


class Observing:
    """Middleware: measures requests, counts them, and writes the access log."""

    def __init__(self, app: ASGIApp, service: Service, paths: Mapping[object, str]) -> None:
        self.app, self.service, self.paths = app, service, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and take down how it went."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.service.start()
        seen, status, start = Seen(), GONE, time.perf_counter()
        scope["chordal"] = seen

        async def watched(message: Message) -> None:
            nonlocal status
            try:
                await send(message)
            except Exception:  # a connection that can take no answer, such as after half a body
                log.debug("an answer could not be sent", exc_info=True)
                return
            if message["type"] == "http.response.start":
                status = message["status"]

        try:
            await self.app(scope, receive, watched)
        except Exception:
            status = 500
            raise
        finally:
            seconds = time.perf_counter() - start
            path = self.paths.get(scope.get("endpoint"), "other")
            self.service.metrics.request(path, seen.model, status, seconds, seen.tokens)
            if log.isEnabledFor(logging.INFO):
                log.info("%s", line(scope, status, seconds, seen.tokens))


def line(scope: Scope, status: int, seconds: float, tokens: int) -> str:
    """A line of the access log.

    >>> scope = {"client": ("::1", 9), "method": "GET", "path": "/a\\x1b[2J b"}
    >>> line(scope, 404, 0.0015, 0)
    '::1 GET /a\\\\x1b[2J\\\\x20b 404 1.5 ms, 0 tokens'
    """
    client = scope.get("client")
    host = client[0] if client else "-"
    path = escaped(scope["path"])
    took = f"{1e3 * seconds:.1f} ms, {tokens} tokens"
    return f"{host} {escaped(scope['method'])} {path} {status} {took}"


def escaped(text: str) -> str:
    """Text without blanks and signs of control, for a terminal."""
    short = text if len(text) <= 200 else text[:200] + "…"
    return "".join(c if c.isprintable() and c != " " else f"\\x{ord(c):02x}" for c in short)
