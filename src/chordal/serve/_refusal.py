"""A request that is refused: the status, what is wrong, and where."""

from __future__ import annotations

from typing import Any, NoReturn


class Refusal(Exception):
    """An answer other than 200."""

    def __init__(
        self, status: int, message: str, where: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.where = status, message, where
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """What the client gets, for JSON."""
        place = {} if self.where is None else {"where": self.where}
        return {"error": {"status": self.status, "message": self.message, **place}}

    def headers(self) -> dict[str, str]:
        """Headers beside those of every answer."""
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


_NAMES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def refuse(where: str, must: str, got: object) -> NoReturn:
    """Refuse a value of the wrong kind.

    >>> refuse("tokens[2]", "a string", None)
    Traceback (most recent call last):
    chordal.serve._refusal.Refusal: tokens[2] must be a string, got null
    """
    name = _NAMES.get(type(got), type(got).__name__)
    raise Refusal(422, f"{where} must be {must}, got {name}", where)


def key(name: str) -> str:
    """A key of a request in a place or a message: short, and without signs of control.

    >>> key("ok"), key("\\x1b[2J" + 50 * "x")
    ("'ok'", "'\\\\x1b[2Jxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'")
    """
    return repr(name if len(name) <= 40 else name[:40] + "…")
