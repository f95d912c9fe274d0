"""CQDB, CRFsuite's table of strings: ids to strings by an array, strings to ids by hashing.

A chunk of little-endian 32-bit words; offsets count from its beginning::

    "CQDB"  size  flag  0x62445371  n  offset of links      header, 24 bytes
    256 × (offset, size)                                    hash tables, by the hash's low byte
    (id  length  bytes NUL) …                               records; the length counts the NUL
    (hash  offset of record) …                              tables, twice as large as they are full
    n × offset of record                                    links, by id

The hash is Bob Jenkins's `hashlittle` (lookup3) of the string with its NUL.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

BYTE_ORDER = 0x62445371
N_TABLES = 256
HEADER = struct.Struct("<4s5I")
RECORDS = HEADER.size + 8 * N_TABLES


def read_cqdb(data: memoryview, n: int, what: str) -> list[str]:
    """The n strings of a chunk, by id; `what` names the chunk in errors."""
    if len(data) < RECORDS:
        raise ValueError(f"the {what} are cut off: {len(data)} bytes of at least {RECORDS}")
    magic, size, _, order, links, at = HEADER.unpack_from(data)
    if magic != b"CQDB" or order != BYTE_ORDER:
        raise ValueError(f"the {what} must begin with a CQDB header, got {bytes(data[:4])!r}")
    if not RECORDS <= size <= len(data):
        raise ValueError(f"the {what} must have at most {len(data)} bytes, the file says {size}")
    _check_tables(np.frombuffer(data, "<u4", 2 * N_TABLES, HEADER.size), n, size, what)
    if n == 0:
        return []
    if links != n or not RECORDS <= at <= size - 4 * n:
        raise ValueError(f"the {what} must have a link for each of {n}, the file says {links}")
    offsets = np.frombuffer(data, "<u4", n, at).astype(np.int64)
    bad = np.flatnonzero((offsets < RECORDS) | (offsets > size - 9))
    if len(bad):
        raise ValueError(f"entry {bad[0]} of the {what} lies outside of them")
    text = np.frombuffer(data, np.uint8, size)
    identity, length = (_words(text, offsets + k) for k in (0, 4))
    ends = offsets + 8 + length
    bad = np.flatnonzero((identity != np.arange(n)) | (length == 0) | (ends > size))
    if len(bad) or (length + 8).sum() > size:  # records do not overlap
        raise ValueError(f"entry {bad[0] if len(bad) else n - 1} of the {what} is damaged")
    limits = np.concatenate([[0], np.cumsum(length)])
    joined = text[np.repeat(offsets + 8 - limits[:-1], length) + np.arange(limits[-1])].tobytes()
    if joined.count(b"\0") != n or (text[ends - 1] != 0).any():
        bad = np.flatnonzero(text[ends - 1] != 0)
        number = bad[0] if len(bad) else _holds_nul(joined, limits)
        raise ValueError(f"entry {number} of the {what} is damaged")
    try:
        return joined.decode().split("\0")[:-1]
    except UnicodeDecodeError as error:
        number = int(np.searchsorted(limits, error.start, side="right")) - 1
        name = joined[limits[number] : limits[number + 1] - 1]
        raise ValueError(f"entry {number} of the {what} must be UTF-8, got {name!r}") from None


def _words(text: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The little-endian 32-bit words at these offsets."""
    return text[at[:, None] + np.arange(4)].view("<u4").ravel().astype(np.int64)


def _holds_nul(joined: bytes, limits: NDArray[np.int64]) -> int:
    """The first string that holds a NUL before its last byte."""
    return next(k for k in range(len(limits) - 1) if 0 in joined[limits[k] : limits[k + 1] - 1])


def _check_tables(tables: Words, n: int, size: int, what: str) -> None:
    """The hash tables are not needed here, but they show whether the chunk is whole."""
    offset, slots = tables.astype(np.int64).reshape(N_TABLES, 2).T
    if slots.sum() != 2 * n:
        raise ValueError(f"the {what} must be {n}, their hash tables hold {slots.sum() // 2}")
    used = slots > 0
    if ((offset[used] < RECORDS) | (offset[used] + 8 * slots[used] > size)).any():
        raise ValueError(f"a hash table of the {what} lies outside of them")


def cqdb_bytes(names: Sequence[bytes]) -> bytes:
    """A chunk that holds these different strings, numbered in their order."""
    keys = [name + b"\0" for name in names]
    sizes = np.array([len(key) for key in keys], dtype=np.int64)
    offsets = RECORDS + np.concatenate([[0], np.cumsum(sizes + 8)])
    records = b"".join(
        struct.pack("<2I", number, len(key)) + key for number, key in enumerate(keys)
    )
    hashes = hashlittle(keys)
    references, tables = np.zeros((N_TABLES, 2), dtype=np.int64), []
    at = int(offsets[-1])
    by_table = np.argsort(hashes % N_TABLES, kind="stable")
    limits = np.searchsorted(hashes[by_table] % N_TABLES, np.arange(N_TABLES + 1))
    for k in range(N_TABLES):
        members = by_table[limits[k] : limits[k + 1]]
        if len(members):
            references[k] = at, 2 * len(members)
            tables.append(_table(hashes[members], offsets[members]))
            at += tables[-1].nbytes
    size = at + 4 * len(keys)
    if size >= 2**32:
        raise ValueError(f"a CQDB must be smaller than 4 GB, this one would have {size} bytes")
    return b"".join([
        HEADER.pack(b"CQDB", size, 0, BYTE_ORDER, len(keys), at if keys else 0),
        references.astype("<u4").tobytes(),
        records,
        *(table.tobytes() for table in tables),
        offsets[:-1].astype("<u4").tobytes(),
    ])  # fmt: skip


def _table(hashes: Words, offsets: NDArray[np.int64]) -> Words:
    """An open-addressing table: each entry in the first free place from where it belongs."""
    n = 2 * len(hashes)
    table = np.zeros((n, 2), dtype="<u4")
    taken = [False] * n
    places = ((hashes >> np.uint32(8)) % np.uint32(n)).tolist()
    for k, place in enumerate(places):
        while taken[place]:
            place = (place + 1) % n
        taken[place], places[k] = True, place
    table[places, 0], table[places, 1] = hashes, offsets
    return table


def hashlittle(keys: Sequence[bytes]) -> Words:
    """Bob Jenkins's lookup3 hash of each key; the keys are not empty.

    >>> [hex(h) for h in hashlittle([b"Four score and seven years ago"])]
    ['0x17770551']
    """
    hashes = np.zeros(len(keys), dtype=np.uint32)
    lengths = np.array([len(key) for key in keys], dtype=np.int64)
    blocks = -(-lengths // 12)
    for n_blocks in np.unique(blocks).tolist():
        chosen = np.flatnonzero(blocks == n_blocks)
        padded = b"".join(keys[k].ljust(12 * n_blocks, b"\0") for k in chosen.tolist())
        words = np.frombuffer(padded, "<u4").reshape(len(chosen), n_blocks, 3)
        hashes[chosen] = _hash_words(words, lengths[chosen])
    return hashes


def _hash_words(words: Words, lengths: NDArray[np.int64]) -> Words:
    """Of keys padded with zeros to [n_keys, n_blocks, 3] words."""
    a = (lengths + 0xDEADBEEF).astype(np.uint32)
    b, c = a.copy(), a.copy()

    def rotated(x: Words, k: int) -> Words:
        return (x << np.uint32(k)) | (x >> np.uint32(32 - k))

    for block in range(words.shape[1]):
        a, b, c = (v + words[:, block, i] for i, v in enumerate((a, b, c)))
        if block < words.shape[1] - 1:
            for k in (4, 6, 8, 16, 19, 4):  # each round turns the roles of a, b, c
                a = (a - c) ^ rotated(c, k)
                c = c + b
                a, b, c = b, c, a
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - rotated(b, k)
        a, b, c = b, c, a
    return b
