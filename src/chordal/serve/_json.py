"""JSON of a request: strict, and never an error of ours."""

from __future__ import annotations

import json
import re

from chordal.serve._refusal import Refusal, key

# Half of a character, which only an escape can bring in: it has no place in UTF-8.
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parsed(body: bytes) -> object:
    """The JSON value of a body.

    >>> parsed(b'{"text": "Rome"}')
    {'text': 'Rome'}
    >>> parsed(b'{"text": NaN}')
    Traceback (most recent call last):
    chordal.serve._refusal.Refusal: the body is not JSON: NaN is not a number in JSON
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the body is not UTF-8: see byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise Refusal(400, "the body begins with a byte order mark: send UTF-8 without it")
    try:
        value: object = _DECODER.decode(text)
        if _ESCAPED_HALF.search(text):
            _refuse_halves(value, "")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Refusal(400, f"the body is not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply") from None
    except ValueError:
        raise Refusal(400, "the body has a number with thousands of digits") from None
    return value


def _no_constant(name: str) -> object:
    raise Refusal(400, f"the body is not JSON: {name} is not a number in JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _refuse_halves(value: object, where: str) -> None:
    """Refuse a string that holds half of a pair of surrogates, and say where it is."""
    if isinstance(value, str):
        if _HALF.search(value):
            place = where or "the body"
            raise Refusal(422, f"{place} holds half of a pair of surrogates", place)
    elif isinstance(value, list):
        for k, item in enumerate(value):
            _refuse_halves(item, f"{where}[{k}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            if _HALF.search(name):
                place = where or "the body"
                raise Refusal(422, f"a key of {place} holds half of a pair of surrogates", place)
            _refuse_halves(item, f"{where}.{key(name)[1:-1]}" if where else key(name)[1:-1])


def encoded(value: object) -> bytes:
    """The bytes of a JSON value."""
    # Half a character in a label of a model becomes an escape, which is JSON again.
    return _ENCODER.encode(value).encode(errors="backslashreplace")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
