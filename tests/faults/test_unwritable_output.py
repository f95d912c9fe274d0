"""Where a result cannot be written is said before the work, and what was there stays."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from chordal import ChainCRF, _atomic, save
from chordal._atomic import atomic_write, check_writable

# The last one contradicts the others.
COLUMNS = "\n".join(["the D\ncat N\nsees V\n"] * 30 + ["the N\n"]) + "\n"


def chordal(*words, **options):
    command = [sys.executable, "-c", "from chordal.cli import main; main()", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.fixture
def data(tmp_path):
    (tmp_path / "train.txt").write_text(COLUMNS)
    (tmp_path / "template").write_text("U:%x[0,0]\nB\n")
    return tmp_path


@pytest.mark.parametrize("place", ["missing/model", "folder"])
@pytest.mark.parametrize("command", ["train", "tune", "checkpoint"])
def test_before_training(data, place, command):
    (data / "folder").mkdir()
    words = {
        "train": ["train", data / "nothing here", data / place],
        "tune": ["tune", data / "nothing here", "-o", data / place],
        "checkpoint": ["train", data / "nothing here", data / "m", "--checkpoint", data / place],
    }[command]
    ran = chordal(*words, "-t", data / "template")
    _, said = ran.communicate(timeout=60)
    assert ran.returncode == 1
    assert str(data / place) in said  # not the data, which is not there: the output comes first
    assert "No such file" in said or "it is a folder" in said


FORBIDDEN = """
import os, sys, tempfile
from chordal import ChainCRF, load, save
from chordal._atomic import check_writable
crf = ChainCRF().fit([[["a"]]], [["A"]])
work = {
    "model": lambda path: save(crf, path),
    "new": check_writable,
    "set": lambda path: ChainCRF().prepare(path, [[["a"]]], [["A"]]),
    "secret": load,
}
with tempfile.TemporaryDirectory() as allowed:  # what is imported late may be forbidden too
    save(crf, os.path.join(allowed, "secret"))
    for name, do in work.items():
        do(os.path.join(allowed, name))
if os.geteuid() == 0:  # whom no permission binds
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for name, do in work.items():
    path = os.path.join(sys.argv[1], name)
    try:
        do(path)
    except PermissionError as error:
        assert path in str(error), error
    else:
        raise AssertionError(f"{name}: no error")
print("refused")
"""


@pytest.mark.skipif(os.name == "nt", reason="other permissions")
def test_a_folder_without_permission():
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("model", "secret"):
            (place / name).write_bytes(b"old")
            (place / name).chmod(0)
        place.chmod(0o555)
        ran = subprocess.run(
            [sys.executable, "-c", FORBIDDEN, folder], capture_output=True, text=True, timeout=120
        )
        place.chmod(0o700)
        assert ran.stdout == "refused\n", ran.stderr
        (place / "model").chmod(0o600)
        assert sorted(os.listdir(folder)) == ["model", "secret"]
        assert (place / "model").read_bytes() == b"old"


def test_checking_leaves_nothing(tmp_path):
    path = tmp_path / "model"
    check_writable(path)
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"old")
    check_writable(path)
    assert path.read_bytes() == b"old"
    check_writable(os.devnull)


@pytest.mark.parametrize("named", [True, False], ids=["with a name", "without"])
def test_a_file_is_whole_or_old(tmp_path, monkeypatch, named):
    """Also where a system has no files without names, or does not give names to them later."""
    if named:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "model"
    for text in (b"one", b"two"):
        with atomic_write(path) as file:
            file.write(text)
        assert (path.read_bytes(), os.listdir(tmp_path)) == (text, ["model"])
    path.chmod(0o640)
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write(b"three" * (10_000 // (len(text) - 3)))
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"two", ["model"])
    with atomic_write(path) as file:
        file.write(b"four")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name == "nt", reason="no signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("command", ["prepare", "tag", "evaluate"])
def test_a_signal_while_a_pipe_says_nothing(data, command, number, code):
    """What waits for the next line must not be a thread that nobody can interrupt."""
    words = {
        "prepare": ["prepare", "-", "-o", data / "set", "-t", data / "template"],
        "tag": ["tag", data / "model"],
        "evaluate": ["evaluate", "-", "--model", data / "model"],
    }[command]
    if command != "prepare":
        save(ChainCRF(feature_template="U:%x[0,0]").fit([[["a"]]], [["A"]]), data / "model")
    before = sorted(os.listdir(data))
    ran = chordal(*words, stdin=subprocess.PIPE)
    ran.stdin.write("a A\n\n" * 10)
    ran.stdin.flush()
    time.sleep(3)
    assert ran.poll() is None
    ran.send_signal(number)
    try:
        assert ran.wait(20) == code
    finally:
        ran.kill()
        ran.communicate()
    assert sorted(os.listdir(data)) == before


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files always have names here")
def test_what_is_written_is_not_lost_where_no_name_can_be_given(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(_atomic.os, "link", refused)
    with atomic_write(tmp_path / "model") as file:
        file.write(b"weights" * 1000)
    assert (tmp_path / "model").read_bytes() == b"weights" * 1000
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name == "nt", reason="no signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_weights(data, number, code):
    options = ["-t", data / "template", "--solver", "adam", "--tol", 0, "--max-iter", 10**9]
    ran = chordal("train", data / "train.txt", data / "model", *options, "--quiet")
    time.sleep(3)
    assert ran.poll() is None
    ran.send_signal(number)
    _, said = ran.communicate(timeout=60)
    assert ran.returncode == code, said
    assert "the model so far is in" in said
    assert sorted(os.listdir(data)) == ["model", "template", "train.txt"]
    tagged = chordal("tag", data / "model", data / "train.txt").communicate(timeout=60)[0]
    assert [line.split()[-1] for line in tagged.splitlines()[:3]] == ["D", "N", "V"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files always have names here")
def test_a_killed_process_leaves_nothing(tmp_path):
    code = (
        "import os, sys, time; from chordal._atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'x' * 10**6); file.flush(); print('half', flush=True); time.sleep(60)"
    )
    path = tmp_path / "model"
    path.write_bytes(b"old")
    ran = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    assert ran.stdout.readline() == b"half\n"
    ran.kill()
    ran.communicate()
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["model"])


def test_a_signal_that_python_swallows_is_heard_later(monkeypatch):
    """As in a finalizer, where Python prints KeyboardInterrupt and goes on."""
    from chordal.cli import _signals

    monkeypatch.setattr(_signals, "received", [])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    _signals.listen()
    try:
        _signals.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            _signals.check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert _signals.received == [signal.SIGTERM]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_device_is_named():
    crf = ChainCRF().fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(OSError, match="/dev/full"):
        save(crf, "/dev/full")
