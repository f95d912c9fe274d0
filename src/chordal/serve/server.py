"""``chordal serve``: the application under uvicorn, from the socket to the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from types import FrameType

from starlette.applications import Starlette

from chordal._optional import needed
from chordal.serve._service import Service

with needed("uvicorn", "chordal serve"):
    import uvicorn

log = logging.getLogger("chordal.serve")


class Server(uvicorn.Server):
    """Tells the application of a signal to stop as soon as it comes."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal: stop accepting, finish what waits."""
        super().handle_exit(sig, frame)
        self.service.is_stopping or self._loop.call_soon_threadsafe(self.service.stop)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal comes."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)


def run(application: Starlette, host: str, port: int) -> None:
    """Serve until SIGTERM, after which it returns, or SIGINT, which is raised at the end.

    Raises OSError if the address cannot be had.
    """
    service: Service = application.state.service
    limits = service.limits
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        proxy_headers=False,
        timeout_keep_alive=75,  # longer than proxies keep theirs
        limit_concurrency=limits.max_connections,
        # Ours comes first: those who wait hear that the server stops.
        timeout_graceful_shutdown=int(limits.drain) + 2,
    )
    with listening(host, port) as bound:
        address, number = bound.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        log.info("%s at http://%s:%d/", ", ".join(service.shelf.slots), shown, number)
        if hasattr(signal, "SIGPIPE"):  # a client that hangs up must not end the server
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        # uvicorn raises the signal again when all is done; then this takes it.
        before = signal.signal(signal.SIGTERM, lambda number, frame: None)
        try:
            Server(config, service).run(sockets=[bound])
        finally:
            signal.signal(signal.SIGTERM, before)
    log.info("stopped")


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; OSError names it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off the wait for fuller packets (40 ms an answer) only where it reads "TCP".
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(2048)
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise OSError(error.errno, reason, f"{host}:{port}") from None
    return bound
