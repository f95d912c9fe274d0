"""Small models, and servers: in this process for most tests, real ones for the rest."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import chordal
from chordal import ChainCRF

try:
    import httpx
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError:
    httpx = None


class WithoutServer(pytest.Module):
    def collect(self):
        pytest.skip("Starlette, uvicorn or httpx is missing: make extras", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if httpx is None:
        return WithoutServer.from_parent(parent, path=module_path)


SENTENCES = [
    ("Ana lives in Rome .", "B-PER O O B-LOC O"),
    ("New York is large .", "B-LOC I-LOC O O O"),
    ("Ana Bell sees New York", "B-PER I-PER O B-LOC I-LOC"),
    ("Rome sees Bell", "B-LOC O B-PER"),
]
WORDS = [[[word] for word in text.split()] for text, _ in SENTENCES]
LABELS = [labels.split() for _, labels in SENTENCES]
TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[1,0]\nB\n"


def words_model(l2=0.1):
    return ChainCRF(feature_template=TEMPLATE, l2=l2).fit(WORDS, LABELS)


def models():
    """One of each kind that a server takes."""
    rng = np.random.default_rng(0)
    two = [[[*row, row[0][:1]] for row in rows] for rows in WORDS]
    attributes = [[{"word": row[0], "size": float(len(row[0]))} for row in r] for r in WORDS]
    vectors = [
        [{"word": row[0], "vec": np.array([len(row[0]), 1.0])} for row in rows] for rows in WORDS
    ]
    arrays = [rng.normal(size=(len(rows), 3)) for rows in WORDS]
    plain = [[label[-3:] for label in labels] for labels in LABELS]
    numbers = [[len(label) for label in labels] for labels in LABELS]
    return {
        "words": words_model(),
        "columns": ChainCRF(feature_template="U0:%x[0,0]\nU1:%x[0,1]\nB\n").fit(two, LABELS),
        "attributes": ChainCRF(l2=0.1).fit(attributes, LABELS),
        "vectors": ChainCRF(l2=0.1).fit(vectors, LABELS),
        "arrays": ChainCRF(l2=0.1).fit(arrays, numbers),
        "plain": ChainCRF(feature_template=TEMPLATE, l2=0.1).fit(WORDS, plain),
    }


@pytest.fixture(scope="session")
def all_models():
    return models()


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "words.model"
    chordal.save(words_model(), path)
    return path


def asked(application, *requests):
    """The responses of an application in this process to (method, path, keywords of httpx)."""

    async def all_of_them():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.request(m, path, **more) for m, path, more in requests]

    return asyncio.run(all_of_them())


@pytest.fixture(scope="session")
def ask():
    return asked


@pytest.fixture(scope="session")
def tag():
    """tag(application, body, name of the model): the status and the JSON of one request."""

    def request(application, body, name=None):
        path = "/tag" if name is None else f"/models/{name}/tag"
        (found,) = asked(application, ("POST", path, {"json": body}))
        return found.status_code, found.json()

    return request


@pytest.fixture(scope="session")
def new_model():
    """new_model(l2): a model of words."""
    return words_model


class Process:
    """A running ``chordal serve``; its log is in a file."""

    def __init__(self, folder, *arguments):
        self.log_path = folder / f"log{time.monotonic_ns()}.txt"
        command = [sys.executable, "-m", "chordal", "serve", *map(str, arguments), "--port", "0"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=os.environ.copy()
            )
        end = time.monotonic() + 60
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", self.log)):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.05)
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def log(self):
        return self.log_path.read_text()

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def ended(self, seconds=60):
        """The exit code."""
        return self.process.wait(seconds)


@pytest.fixture
def serve(tmp_path):
    """serve(model, …, options …): a real server, stopped at the end of the test."""
    started = []

    def start(*arguments):
        started.append(Process(tmp_path, *arguments))
        return started[-1]

    yield start
    for own in started:
        if own.process.poll() is None:
            own.process.kill()
            own.process.wait()
