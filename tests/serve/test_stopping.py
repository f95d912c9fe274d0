"""Signals, exit codes, and what becomes of requests that wait."""

import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

httpx = pytest.importorskip("httpx")

# A server each call of whose model waits until a file is there.
HELD = """
import os, sys, time
from chordal.serve import _queue
whole, gate = _queue.answers, sys.argv.pop(1)
def held(tasks, seconds=None):
    end = time.monotonic() + 60
    while not os.path.exists(gate) and time.monotonic() < end:
        time.sleep(0.01)
    return whole(tasks, seconds)
_queue.Queue.__init__.__defaults__ = (held,)
_queue.FEW = -1
from chordal.cli import main
main(["serve", *sys.argv[1:], "--port", "0"])
"""


@pytest.fixture
def gate(tmp_path):
    """The file that lets the models of `slow` answer."""
    return tmp_path / "gate"


@pytest.fixture
def slow(tmp_path, model_file, gate):
    """slow(options …): a process, its address, and its log."""
    import re

    started = []

    def start(*options):
        log = tmp_path / f"log{len(started)}"
        command = [sys.executable, "-c", HELD, str(gate), str(model_file), *options]
        with open(log, "wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file)
        started.append(process)
        end = time.monotonic() + 60
        while not (found := re.search(r"(http://127\.0\.0\.1:\d+)/", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        return process, found[1], log

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


class Asking(threading.Thread):
    """A request in a thread."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.found, self.error = url, None, None
        self.start()

    def run(self):
        try:
            self.found = httpx.post(f"{self.url}/tag", json={"text": "Rome"}, timeout=60)
        except httpx.HTTPError as error:
            self.error = error


def until(url, queued):
    """Wait until so many requests are in the queue."""
    end = time.monotonic() + 60
    while httpx.get(f"{url}/health").json()["queue"] < queued:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_an_idle_server(serve, model_file, number, code):
    server = serve(model_file)
    assert httpx.post(f"{server.url}/tag", json={"text": "Rome"}).status_code == 200
    server.signal(number)
    assert server.ended() == code
    assert "stopped" in server.log
    assert "Traceback" not in server.log
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_what_waits_is_finished(slow, gate, number, code):
    process, url, log = slow("--drain", "30", "--timeout", "50")
    first = Asking(url)
    until(url, 1)
    more = [Asking(url) for _ in range(5)]  # wait for the first
    until(url, 6)
    process.send_signal(number)
    time.sleep(0.3)
    assert process.poll() is None  # it waits for them
    gate.touch()
    for own in (first, *more):
        own.join(60)
        assert own.error is None, own.error
        assert own.found.status_code == 200
        assert own.found.json()["sentences"][0]["labels"] == ["B-LOC"]
    assert process.wait(60) == code
    assert "Traceback" not in log.read_text()


def test_what_takes_too_long_hears_that_the_server_stops(slow, gate):
    process, url, log = slow("--drain", "0.2", "--timeout", "50")
    waiting = [Asking(url)]
    until(url, 1)
    waiting.append(Asking(url))
    until(url, 2)
    process.send_signal(signal.SIGTERM)
    for own in waiting:
        own.join(60)
        assert own.error is None, own.error
        assert own.found.status_code == 503
        assert own.found.headers["retry-after"] == "1"
        assert "stopping" in own.found.json()["error"]["message"]
    gate.touch()
    assert process.wait(60) == 0
    assert "Traceback" not in log.read_text()


def test_the_port_is_taken(serve, model_file):
    server = serve(model_file)
    command = [sys.executable, "-m", "chordal", "serve", model_file, "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == f"error: 127.0.0.1:{server.port}: Address already in use"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["none.model"], 1, "none.model: No such file or directory"),
        ([__file__], 1, "not a chordal model file"),
        (["a=x", "a=y"], 2, "two models are called a"),
        ([], 2, "MODEL"),
        (["x", "--port", "70000"], 2, "--port"),
    ],
)
def test_wrong_calls(words, code, message):
    command = [sys.executable, "-m", "chordal", "serve", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
