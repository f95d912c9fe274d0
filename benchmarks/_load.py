"""A load generator: requests over kept connections, in a process of its own.

``python -m benchmarks._load PORT BODIES SECONDS CONNECTIONS RATE`` sends the lines of the file
BODIES, each the JSON of a request, to ``/tag``. With RATE 0 each connection sends its next request
as soon as it has its answer; else requests start at this rate, evenly, whether answers come or not,
and a request's time counts from when it should have started. Prints one line of JSON.

Answers are counted by the version of their model and by which of "|a" and "|b" end its labels: the
two models of the benchmark of exchanged files differ in that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

HEAD = "POST /tag HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


class Load(NamedTuple):
    port: int
    requests: list[bytes]
    seconds: float
    connections: int
    rate: float


class Tally:
    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.versions: dict[str, int] = {}
        self.times: list[float] = []

    def add(self, status: int, body: bytes, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.times.append(seconds)
        at = body.find(b'"version":"')
        version = body[at + 11 : at + 27].decode() if at >= 0 else ""
        version += "".join(mark for mark in "ab" if f'|{mark}"'.encode() in body)
        self.versions[version] = self.versions.get(version, 0) + 1


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.lower().index(b"content-length:") + 15
    length = int(head[at : head.index(b"\r", at)])
    return int(head[9:12]), await reader.readexactly(length)


async def connection(load: Load, k: int, tally: Tally, start: float) -> None:
    """Requests k, k + connections, … of the load."""
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
    n, end = k, start + load.seconds
    while True:
        now = time.perf_counter()
        due = start + n / load.rate if load.rate else now
        if max(due, now) >= end:
            break
        if due > now:
            await asyncio.sleep(due - now)
        request = load.requests[n % len(load.requests)]
        status, body = await exchange(reader, writer, request)
        tally.add(status, body, time.perf_counter() - due)
        n += load.connections
    writer.close()


async def run(load: Load) -> Tally:
    tally, start = Tally(), time.perf_counter() + 0.1
    await asyncio.gather(*(connection(load, k, tally, start) for k in range(load.connections)))
    return tally


def main() -> None:
    port, path, seconds, connections, rate = sys.argv[1:]
    bodies = Path(path).read_bytes().splitlines()
    requests = [f"{HEAD}content-length: {len(b)}\r\n\r\n".encode() + b for b in bodies]
    load = Load(int(port), requests, float(seconds), int(connections), float(rate))
    tally = asyncio.run(run(load))
    times = sorted(tally.times)
    print(
        json.dumps(
            {
                "requests": len(times),
                "statuses": tally.statuses,
                "versions": tally.versions,
                "p50": times[len(times) // 2],
                "p99": times[int(0.99 * (len(times) - 1))],
                "worst": times[-1],
                "processor": time.process_time(),
            }
        )
    )


if __name__ == "__main__":
    main()
