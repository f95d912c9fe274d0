"""One request to label something, from its bytes to those of the answer."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from chordal.serve._json import encoded, parsed
from chordal.serve._predicting import Task
from chordal.serve._questions import Question, question_of
from chordal.serve._refusal import Refusal
from chordal.serve._service import Service
from chordal.serve._shelf import Loaded

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

#: Bytes of a body from which on a thread reads it, so that the event loop is not held up.
MANY = 20_000
#: Bytes beyond the limit that are still taken from a client, so that it hears why it is refused.
MORE = 16_000_000

JSON = b"application/json"


class GoneError(Exception):
    """The client has left."""


class Tagging:
    """The endpoint: a separate ASGI application, for speed."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            body = await self._answer(scope, receive)
        except Refusal as refusal:
            await respond(send, refusal.status, encoded(refusal.body()), refusal.headers())
        except GoneError:
            return
        else:
            await respond(send, 200, body)

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        service, loop = self.service, asyncio.get_running_loop()
        deadline = loop.time() + service.limits.timeout
        # First of all, so that the connection can go on after a refusal, too.
        body = await self._body(receive)
        slot = service.slot(scope["path_params"].get("name"))
        seen = scope["chordal"]
        seen.model = slot.name
        check_headers(scope)
        service.queue.check_room()
        loaded = slot.current  # from here on, whatever happens to the file
        if len(body) < MANY:
            question = self._question(body, loaded)
        else:
            work = partial(self._question, body, loaded)
            question = await service.queue.read(work, deadline)
        answer = await service.queue.answer(Task(loaded, question), deadline)
        seen.tokens = question.n_tokens
        return answer

    def _question(self, body: bytes, loaded: Loaded) -> Question:
        return question_of(parsed(body), loaded, self.service.limits)

    async def _body(self, receive: Receive) -> bytes:
        """The body, if it is not too long and does not take too long."""
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            if len(body) > self.service.limits.max_body:
                raise self._too_long()
            return body
        try:
            seconds = self.service.limits.timeout
            return await asyncio.wait_for(self._rest(message, receive), seconds)
        except asyncio.TimeoutError:
            raise Refusal(408, "the body did not arrive in time") from None

    async def _rest(self, message: Message, receive: Receive) -> bytes:
        limit = self.service.limits.max_body
        parts, size = [], 0
        while True:
            if message["type"] == "http.disconnect":
                raise GoneError
            part: bytes = message.get("body", b"")
            size += len(part)
            if size <= limit:
                parts.append(part)
            elif size > limit + MORE:
                raise self._too_long()
            if not message.get("more_body", False):
                break
            message = await receive()
        if size > limit:
            raise self._too_long()
        return b"".join(parts)

    def _too_long(self) -> Refusal:
        return Refusal(413, f"the body must have at most {self.service.limits.max_body} bytes")


def check_headers(scope: Scope) -> None:
    """Refuse what is not JSON, or compressed.

    A page of another site can make a browser send text here, but not JSON, without being asked.
    """
    kind = coding = b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind = value.partition(b";")[0].strip().lower()
        elif name == b"content-encoding":
            coding = value.strip().lower()
    if kind != JSON:
        raise Refusal(415, "the content-type must be application/json")
    if coding not in (b"", b"identity"):
        raise Refusal(415, "the body must not be compressed: send no content-encoding")


async def respond(
    send: Send, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    """Send JSON."""
    listed = [
        (b"content-type", JSON),
        (b"content-length", str(len(body)).encode()),
        *((name.encode(), value.encode()) for name, value in (headers or {}).items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
