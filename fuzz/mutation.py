"""How inputs are changed: as bytes, as JSON, as containers with checksums."""

from __future__ import annotations

import copy
import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chordal._container import _DTYPES, _checksum

Mutate = Callable[[bytes, random.Random], bytes]

LONGEST = 4096
NUMBERS = [
    b"0", b"-1", b"1", b"2", b"3", b"7", b"255", b"256", b"65536", b"2147483647", b"2147483648",
    b"-2147483649", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"1e10",
    b"1e308",
    b"1e309", b"-1e308", b"1e-308", b"5e-324", b"1e-400", b"nan", b"inf", b"-inf", b"0.5", b"-0.0",
    b"1" * 40, b"0x10", b"1_000", "٣".encode(),
]  # fmt: skip
BYTES = [b"\0", b"\n", b"\n\n", b"\r\n", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80",
b"\x1b[31m",
         "é".encode(), "\u2028".encode(), b"\\", b'"', b"'", b":", b"#", b"%", b"[", b"]", b"{",
         b"}"]  # fmt: skip
VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 10**3, 2**31, 2**63, -(2**63), 10**30, 0.5, -1.5, 1e308,
    5e-324,
    float("nan"), float("inf"), "", "a", "x" * 300, "auto", "\x1b[31m", "é", "<U3", "|O", "<f8",
    [], {}, [0],
    ["a"], ["a", "b"], [[0, 1]], {"a": 1}, {"name": "gibbs"}, {"name": "loopy_bp", "max_iter": 3},
]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def of_bytes(words: Sequence[bytes] = (), others: Sequence[bytes] = ()) -> Mutate:
    """Changes bytes: single ones, numbers, whole stretches, and words that mean something."""
    tokens = [*words, *words, *NUMBERS, *BYTES]

    def mutate(data: bytes, rng: random.Random) -> bytes:
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            data = _step(data, rng, tokens, others)
        return data[:LONGEST]

    return mutate


def _step(
    data: bytes, rng: random.Random, tokens: Sequence[bytes], others: Sequence[bytes]
) -> bytes:
    kind, n = rng.randrange(8), len(data)
    a = rng.randrange(n + 1)
    b = min(n, a + rng.choice((1, 1, 2, 4, 8, 30, 200)))
    if kind == 0 and n:
        at = rng.randrange(n)
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    if kind == 1:
        return data[:a] + data[b:]
    if kind == 2:
        return data[:b] + data[a:b] * rng.choice((1, 1, 2, 20)) + data[b:]
    if kind == 3:
        found = list(_NUMBER.finditer(data))
        if found:
            first, last = rng.choice(found).span()
            return data[:first] + rng.choice(NUMBERS) + data[last:]
    if kind == 4 and others:
        other = rng.choice(others)
        c = rng.randrange(len(other) + 1)
        return data[:a] + other[c : c + rng.choice((4, 30, 4096))] + data[b:]
    if kind == 5:
        return data[:a] + rng.randbytes(rng.randrange(1, 9)) + data[a:]
    return data[:a] + rng.choice(tokens) + data[a if kind == 6 else b :]


def changed_json(value: Any, rng: random.Random) -> Any:
    """The same JSON with one or a few values changed, left out, added, or taken from elsewhere."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return rng.choice(VALUES)
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind < 3:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 3:
            other, name = rng.choice(places)
            holder[key] = copy.deepcopy(other[name])
        elif kind == 4:
            del holder[key]
        elif isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
            holder[key] = rng.choice((holder[key] + 1, holder[key] - 1, -holder[key], 10**6))
        elif isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(rng.choice(VALUES)))
        else:
            holder[rng.choice(("name", "x", str(key) + "x"))] = copy.deepcopy(rng.choice(VALUES))
    return value


def _places(value: Any) -> Any:
    if not isinstance(value, (dict, list)):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from _places(inner)


def of_json(words: Sequence[bytes] = ()) -> Mutate:
    """Changes JSON as a tree, and sometimes as bytes."""
    plain = of_bytes(words)

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(4) == 0:
            return plain(data, rng)
        try:
            return json.dumps(changed_json(json.loads(data), rng)).encode()[: 4 * LONGEST]
        except (ValueError, RecursionError):
            return plain(data, rng)

    return mutate


def container_parts(raw: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The table of arrays, the metadata and the arrays of a container."""
    length = struct.unpack("<Q", raw[:8])[0]
    table = json.loads(raw[8 : 8 + length])
    return table, table.pop("__metadata__"), raw[8 + length :]


def container(table: dict[str, Any], metadata: dict[str, Any], key: str, body: bytes) -> bytes:
    """A container with a right checksum, as far as its table makes sense."""
    try:
        blocks = [
            np.frombuffer(body[a:b], _DTYPES[entry["dtype"]])
            for entry in table.values()
            for a, b in [entry["data_offsets"]]
        ]
        metadata = {**metadata, "checksum": _checksum(metadata[key], table, blocks)}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        pass
    header = json.dumps({"__metadata__": metadata, **table}).encode()
    header += b" " * (-(8 + len(header)) % 64)
    return struct.pack("<Q", len(header)) + header + body


def of_container(key: str) -> Mutate:
    """Changes facts, arrays or the table of a container, and makes its checksum right again."""
    plain = of_bytes()

    def mutate(data: bytes, rng: random.Random) -> bytes:
        kind = rng.randrange(10)
        try:
            table, metadata, body = container_parts(data)
            if kind < 5:
                facts = json.loads(metadata[key])
                metadata[key] = json.dumps(changed_json(facts, rng))
            elif kind < 8 and body:
                changed = bytearray(body)
                for _ in range(rng.choice((1, 1, 2, 5))):
                    at = rng.randrange(len(changed))
                    changed[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
                body = bytes(changed)
            elif kind == 8:
                table = changed_json(table, rng)
            else:
                return plain(data, rng)
            return container(table, metadata, key, body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error):
            return plain(data, rng)

    return mutate
