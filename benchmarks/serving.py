"""`chordal serve` under load on this machine: throughput, latency, exchanged models, memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import conll2000
from benchmarks._run import ROOT, Part, Row, Run, megabytes, seconds

TOKENS = 50_000  # a second, at least
P99 = 0.05  # seconds, at half of it
CONNECTIONS = 16
TEMPLATE = "".join(f"U{k}:%x[{k - 2},0]\n" for k in range(5)) + "U5:%x[-1,0]/%x[0,0]\nB\n"


class Server:
    """A process of `chordal serve`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "serve.log"
        command = [sys.executable, "-m", "chordal", "serve", "--no-access-log", "--port", "0"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*command, *arguments], stderr=log)
        end = time.monotonic() + 60
        while not (found := re.search(r"127\.0\.0\.1:(\d+)/", self.log.read_text())):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no server: {self.log.read_text()[-500:]}")
            time.sleep(0.05)
        self.port = int(found[1])

    def metric(self, name: str) -> float:
        """The sum of a metric's values."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as reply:
            text = reply.read().decode()
        rows = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, rows))

    def memory(self) -> float:
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", status)[0])

    def load(
        self, bodies: Path, duration: float, connections: int = CONNECTIONS, rate: float = 0.0
    ) -> dict[str, Any]:
        """What the load generator says, and the server's own tokens and processor time."""
        names = ("chordal_tokens_total", "process_cpu_seconds_total")
        before = [self.metric(name) for name in names]
        command = [sys.executable, "-m", "benchmarks._load", str(self.port), str(bodies)]
        numbers = [str(duration), str(connections), str(rate)]
        done = subprocess.run([*command, *numbers], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        tokens, busy = (self.metric(name) - b for name, b in zip(names, before, strict=True))
        found: dict[str, Any] = json.loads(done.stdout)
        if set(found["statuses"]) != {"200"}:
            raise RuntimeError(f"requests failed: {found['statuses']}")
        return found | {"tokens": tokens, "busy": busy}


@contextmanager
def serving(run: Run, *arguments: str) -> Iterator[Server]:
    server = Server(run.folder, *arguments)
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)


def _sentences(part: str, limit: int) -> list[list[list[str]]]:
    text = gzip.decompress(conll2000.path(part).read_bytes()).decode()
    blocks = text.strip().split("\n\n")[:limit]
    return [[line.split(" ") for line in block.split("\n")] for block in blocks]


def _model(run: Run, mark: str = "") -> Path:
    """A chunker of words alone; with a mark at the end of every label."""
    from chordal import ChainCRF, save

    path = run.folder / f"chunks{mark[1:]}.model"
    if not path.exists():
        run.say("training a chunker")
        train = _sentences("train", 500 if run.quick else 9000)
        X = [[[row[0]] for row in rows] for rows in train]
        y = [[row[2] + mark for row in rows] for rows in train]
        save(ChainCRF(feature_template=TEMPLATE, max_iter=30).fit(X, y), path)
    return path


def _bodies(run: Run, kind: str, each: int = 1, **options: bool) -> Path:
    """Requests of the test sentences, some in each."""
    test = [[row[0] for row in rows] for rows in _sentences("test", 2000)]
    out = []
    for k in range(0, len(test) - each + 1, each):
        own = test[k : k + each]
        if kind == "text":
            out.append({"text": "\n".join(" ".join(words) for words in own)})
        elif each == 1:
            out.append({"tokens": own[0]})
        else:
            out.append({"inputs": [{"tokens": words} for words in own]})
    path = run.folder / f"{kind}{each}{''.join(options)}.jsonl"
    path.write_text("".join(json.dumps(body | options) + "\n" for body in out))
    return path


def _per_second(value: float) -> str:
    return f"{value:,.0f} tokens/s"


def _throughput(run: Run) -> Iterator[Row]:
    duration = 2.0 if run.quick else 20.0
    with serving(run, str(_model(run))) as server:
        for kind, each in (("tokens", 1), ("text", 1), ("tokens", 20), ("text", 20)):
            bodies = _bodies(run, kind, each)
            server.load(bodies, 1.0)  # warm
            run.say(f"{kind}, {each} sentences per request")
            found = server.load(bodies, duration)
            rate = found["tokens"] / duration
            busy = 1e6 * found["busy"] / found["tokens"]
            yield Row(
                f"`{kind}`, {each} sentence{'s' * (each > 1)} per request",
                ours=_per_second(rate),
                ratio=f"{busy:.1f} µs of processor per token",
                requirement=f"≥ {TOKENS:,} tokens/s",
                met=run.judged(rate >= TOKENS),
            )


def _latency(run: Run) -> Iterator[Row]:
    duration = 3.0 if run.quick else 30.0
    with serving(run, str(_model(run))) as server:
        for kind in ("tokens", "text"):
            bodies = _bodies(run, kind)
            warm = server.load(bodies, 1.0)
            each = warm["tokens"] / warm["requests"]
            rate = TOKENS / 2 / each
            run.say(f"{kind}, {rate:,.0f} requests/s")
            found = server.load(bodies, duration, 64, rate)
            yield Row(
                f"`{kind}`, {rate:,.0f} requests/s of one sentence: p50, p99, worst",
                ours=f"{seconds(found['p50'])}, {seconds(found['p99'])}, {seconds(found['worst'])}",
                ratio=_per_second(found["tokens"] / duration),
                requirement=f"p99 < {seconds(P99)} at {TOKENS // 2:,} tokens/s",
                met=run.judged(found["p99"] < P99),
            )


def _batching(run: Run) -> Iterator[Row]:
    """Beside a server that gives each request a call of its own."""
    duration = 1.0 if run.quick else 10.0
    for name, options in (("labels and spans", {}), ("probabilities", {"probabilities": True})):
        bodies, costs = _bodies(run, "tokens", **options), []
        for limit in ("1", "4096"):
            with serving(run, str(_model(run)), "--batch-tokens", limit) as server:
                server.load(bodies, 1.0)
                run.say(f"{name}, calls of at most {limit} tokens")
                found = server.load(bodies, duration)
                costs.append(found["busy"] / found["requests"])
        what = f"processor time of a request for {name}: a call each, and a call for several"
        yield run.speed(what, *costs, at_least=1.0)


def _exchange(run: Run) -> Iterator[Row]:
    """Requests while the model file is replaced again and again by one with other labels."""
    swaps, requests = (5, 500) if run.quick else (50, 10_000)
    models = [_model(run, mark) for mark in ("|a", "|b")]
    path = run.folder / "served.model"
    shutil.copy(models[0], path)
    bodies = _bodies(run, "tokens", 3)
    with serving(run, str(path), "--poll", "0.05") as server:
        rate = server.load(bodies, 1.0)["requests"]
        duration = max(3 * requests / rate, 0.4 * swaps)
        command = [sys.executable, "-m", "benchmarks._load", str(server.port), str(bodies)]
        run.say(f"{swaps} replacements in {duration:.0f} s")
        with subprocess.Popen(
            [*command, str(duration), str(CONNECTIONS), "0"], cwd=ROOT, stdout=subprocess.PIPE
        ) as client:
            for k in range(swaps):
                time.sleep(duration / (swaps + 1))
                shutil.copy(models[(k + 1) % 2], path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
            answer, _ = client.communicate()
        found, loads = json.loads(answer), server.metric("chordal_model_loads_total") - 1
    mixed = sum(n for version, n in found["versions"].items() if len(version) != 17)
    failed = found["requests"] - found["statuses"].get("200", 0)
    good = not mixed and not failed and len(found["versions"]) == 2
    enough = found["requests"] >= requests and loads >= 0.9 * swaps
    yield Row(
        f"{found['requests']:,} requests, {swaps} replacements of the file, {loads:.0f} seen",
        ours=f"{failed} failed, {mixed} of two models",
        requirement=f"0 and 0 of {requests:,}",
        met=run.judged(good and enough) if good else False,
    )


def _unseen(rng: random.Random, path: Path) -> None:
    """Requests of random words."""
    letters = "abcdefghijklmnopqrstuvwxyzéß字"
    with open(path, "w") as file:
        for _ in range(20_000):
            words = ["".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(20)]
            body = {"text": " ".join(words), "probabilities": rng.random() < 0.3}
            file.write(json.dumps(body) + "\n")


def _memory(run: Run) -> Iterator[Row]:
    """As many requests as an hour at 100 a second, of words that nobody has seen."""
    requests = 5_000 if run.quick else 360_000
    rng, path = random.Random(0), run.folder / "random.jsonl"
    sizes, done = [], 0
    with serving(run, str(_model(run))) as server:
        while done < requests:
            run.say(f"{done:,} of {requests:,} requests")
            _unseen(rng, path)  # new words every time
            done += server.load(path, 1.0 if run.quick else 2.0)["requests"]
            sizes.append(server.memory())
    # In the first third, what the reader of templates remembers grows to its limit.
    third = max(1, len(sizes) // 3)
    early, late = max(sizes[-2 * third : -third] or sizes), max(sizes[-third:])
    yield Row(
        f"{done:,} requests of unseen words: the most memory in the second and in the last third",
        ours=f"{megabytes(early)}, {megabytes(late)}",
        requirement="no more than 5% growth",
        met=run.judged(late <= 1.05 * early),
    )


ORDER = 50
PARTS: dict[str, Part] = {
    "throughput": _throughput,
    "latency": _latency,
    "batching": _batching,
    "exchange": _exchange,
    "memory": _memory,
}
