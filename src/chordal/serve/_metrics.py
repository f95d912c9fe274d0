"""Figures about a server, in the text format of Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from chordal.serve._shelf import Shelf

#: Upper limits of the histograms, in seconds and in tokens.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TOKENS = (16, 64, 256, 1024, 4096, 16384, 65536)

#: The content type of the text.
CONTENT = "text/plain; version=0.0.4; charset=utf-8"

Line = tuple[str, dict[str, str], float]


class Histogram:
    """How often values were at most a limit."""

    def __init__(self, limits: tuple[float, ...]) -> None:
        self.limits, self.counts, self.sum = limits, [0] * (len(limits) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.limits, value)] += 1
        self.sum += value

    def lines(self, labels: dict[str, str]) -> Iterator[Line]:
        """The suffix of a name, labels and value of each line."""
        names = [*(f"{limit:g}" for limit in self.limits), "+Inf"]
        for name, count in zip(names, accumulate(self.counts), strict=True):
            yield "_bucket", {**labels, "le": name}, count
        yield "_sum", labels, self.sum
        yield "_count", labels, sum(self.counts)


class Metrics:
    """Counts that only grow, and what is so now; one thread writes them, that of the event loop."""

    def __init__(self) -> None:
        self.started = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()  # by path, model, status
        self._seconds: dict[str, Histogram] = {}  # of tagging, by model
        self._tokens: Counter[str] = Counter()
        self._batches, self._batch_requests = Histogram(TOKENS), 0
        self._queued = 0

    def request(self, path: str, model: str, status: int, seconds: float, tokens: int) -> None:
        """Count a request; `path` and `model` are of ours, never what a client wrote."""
        self._requests[path, model, status] += 1
        if model and tokens:
            self._tokens[model] += tokens
        if model:
            self._seconds.setdefault(model, Histogram(SECONDS)).add(seconds)

    def batch(self, requests: int, tokens: int) -> None:
        """Count a call of a model."""
        self._batches.add(tokens)
        self._batch_requests += requests

    def queued(self, requests: int) -> None:
        """Take down how many requests wait or are worked on."""
        self._queued = requests

    def text(self, shelf: Shelf) -> str:
        """Everything, as Prometheus reads it."""
        parts = [
            *self._of_requests(),
            *_of_models(shelf),
            _metric("process_start_time_seconds", "gauge", "", [("", {}, self.started)]),
            _metric("process_cpu_seconds_total", "counter", "", [("", {}, time.process_time())]),
        ]
        return "".join(parts)

    def _of_requests(self) -> Iterator[str]:
        lines: list[Line] = [
            ("", {"path": path, "model": model, "code": str(code)}, n)
            for (path, model, code), n in sorted(self._requests.items())
        ]
        yield _metric("chordal_requests_total", "counter", "Requests that were answered.", lines)
        lines = [row for m, own in sorted(self._seconds.items()) for row in own.lines({"model": m})]
        help = "Time from the arrival of a request to its answer."
        yield _metric("chordal_request_seconds", "histogram", help, lines)
        lines = [("", {"model": model}, n) for model, n in sorted(self._tokens.items())]
        yield _metric("chordal_tokens_total", "counter", "Tokens that were labelled.", lines)
        help = "Tokens of one call of a model."
        yield _metric("chordal_batch_tokens", "histogram", help, self._batches.lines({}))
        help = "Requests that calls of a model answered."
        number: list[Line] = [("", {}, self._batch_requests)]
        yield _metric("chordal_batched_requests_total", "counter", help, number)
        help = "Requests that wait or are worked on."
        yield _metric("chordal_queue_length", "gauge", help, [("", {}, self._queued)])


def _of_models(shelf: Shelf) -> Iterator[str]:
    def lines(values: Iterable[float]) -> list[Line]:
        return [("", {"model": s.name}, v) for s, v in zip(shelf, values, strict=True)]

    info: list[Line] = [("", {"model": s.name, "version": s.current.version}, 1) for s in shelf]
    yield _metric("chordal_model_info", "gauge", "The version in use.", info)
    loaded = lines(s.current.since for s in shelf)
    yield _metric("chordal_model_loaded_seconds", "gauge", "When it was loaded.", loaded)
    loads = lines(s.loads for s in shelf)
    yield _metric("chordal_model_loads_total", "counter", "Versions that were loaded.", loads)
    help = "Files that could not be used."
    yield _metric(
        "chordal_model_load_failures_total", "counter", help, lines(s.failures for s in shelf)
    )
    stale = lines(float(s.error is not None) for s in shelf)
    yield _metric("chordal_model_stale", "gauge", "1 if the newest file is not in use.", stale)


def _metric(name: str, kind: str, help: str, lines: Iterable[Line]) -> str:
    head = f"# HELP {name} {help}\n" if help else ""
    body = "".join(f"{name}{suffix}{_labels(labels)} {_value(v)}\n" for suffix, labels, v in lines)
    return f"{head}# TYPE {name} {kind}\n{body}"


def _labels(labels: dict[str, str]) -> str:
    """Names and values in braces.

    >>> _labels({"model": 'a "b"'})
    '{model="a \\\\"b\\\\""}'
    """
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _value(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
