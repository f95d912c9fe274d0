"""Host names of a server.

A web page can map its own name to 127.0.0.1; its scripts can then talk to a local server as to
their own site. So the server answers only to its known names.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from chordal.serve._json import encoded
from chordal.serve._refusal import Refusal
from chordal.serve._tagging import respond

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: What this machine is called by itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Hosts:
    """Middleware: refuses requests to other names."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or name_in(scope) in self.hosts:
            await self.app(scope, receive, send)
            return
        refusal = Refusal(421, "the server does not go by this name; see --allow-host")
        await respond(send, refusal.status, encoded(refusal.body()))


def name_in(scope: Scope) -> str:
    """The name that a request is addressed to, without the port.

    >>> name_in({"headers": [(b"host", b"[::1]:8000")]}), name_in({"headers": []})
    ('[::1]', '')
    """
    given = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host = given.decode("latin-1").lower()
    return host[: host.rfind("]") + 1] if host.startswith("[") else host.partition(":")[0]


def hosts_at(address: str, more: Collection[str] = ()) -> Collection[str] | None:
    """The names of a server that listens at an address; None for any name.

    >>> hosts_at("0.0.0.0"), hosts_at("127.0.0.1", ["ner.example.org"])[-1]
    (None, 'ner.example.org')
    """
    local = address in ("localhost", "::1") or address.startswith("127.")
    if not local and not more:
        return None
    shown = f"[{address}]" if ":" in address else address
    return [*LOOPBACK, shown, *more]
