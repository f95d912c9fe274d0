"""Issue: bad input gives one clear line, a non-zero exit, and nothing half-written."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from chordal import GraphCRF, save

from .conftest import SENTENCES, as_text, run

BARE = as_text(SENTENCES, labels=False).encode()


@pytest.fixture
def broken(files, tmp_path):
    """broken(change): a model file whose bytes went through a function."""

    def write(change):
        path = tmp_path / "broken"
        path.write_bytes(change((files / "model").read_bytes()))
        return path

    return write


@pytest.mark.parametrize("command", ["tag", "info", "inspect"])
def test_an_empty_model(refused, broken, command):
    assert "broken: the file is empty" in refused(command, broken(lambda data: b""))


@pytest.mark.parametrize(
    "command",
    [["tag"], ["inspect"], ["evaluate", "-", "--model"], ["convert", "--to=crfsuite"]],
    ids=lambda words: words[0],
)
def test_a_model_of_another_kind(refused, tmp_path, command):
    path = tmp_path / "graphs"
    graph = (np.eye(2), np.array([(0, 1)]))
    save(GraphCRF().fit([graph], [["a", "b"]]), path)
    target = [tmp_path / "out"] if command[0] == "convert" else []
    message = refused(*command, path, *target, input=as_text(SENTENCES).encode())
    assert message.endswith("graphs: holds a GraphCRF, not a ChainCRF")
    assert [p.name for p in tmp_path.iterdir()] == ["graphs"]


@pytest.mark.parametrize("size", [1, 7, 8, 50, 1000, -1, -1000])
def test_a_truncated_model(refused, broken, size):
    message = refused("tag", broken(lambda data: data[:size]), input=BARE)
    assert "broken: " in message


@pytest.mark.parametrize("place", [0, 3, 8, 9, 100, 0.3, 0.6, 0.9, 1.0])
def test_a_flipped_bit(refused, broken, place):
    def flip(data):
        k = place if isinstance(place, int) else min(int(place * len(data)), len(data) - 1)
        return data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :]

    assert "broken: " in refused("tag", broken(flip), input=BARE)


def test_a_model_of_a_newer_version(refused, broken):
    def newer(data):
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        header["__metadata__"]["version"] = "99"
        text = json.dumps(header).encode()
        text += b" " * (-(8 + len(text)) % 64)
        return len(text).to_bytes(8, "little") + text + data[8 + size :]

    assert "newer chordal" in refused("tag", broken(newer), input=BARE)


def test_what_is_no_model(refused, files, tmp_path):
    assert "not a chordal model" in refused("tag", files / "train.txt")
    assert "Is a directory" in refused("tag", tmp_path)


def test_a_template_that_names_a_missing_column(refused, files, tmp_path):
    (tmp_path / "t").write_text("U:%x[0,2]\nB\n")
    message = refused("train", "-t", tmp_path / "t", files / "train.txt", tmp_path / "m")
    assert "uses column 2" in message
    assert "train.txt has 2" in message
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"X:%x[0,0]\n", "template line 1 must begin with U, B, * or #"),
        (b"U:%y[0,0]\n", "template line 1, column 3: expected a macro"),
        (b"# nothing\n", "no lines that begin with"),
        (b"U:\xff%x[0,0]\n", "not UTF-8 at byte 3"),
    ],
)
def test_a_bad_template(refused, files, tmp_path, text, words):
    (tmp_path / "t").write_bytes(text)
    message = refused("train", "-t", tmp_path / "t", files / "train.txt", tmp_path / "m")
    assert words in message
    assert str(tmp_path / "t") in message


TRAIN = as_text(SENTENCES).encode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TRAIN.replace(b"pound", b"p\xffund"), ":14:2: not UTF-8"),
        (TRAIN.replace(b"pound", b"p\0und"), ":14:2: a NUL byte"),
        (TRAIN.replace(b"pound", b"p\rund"), ":14:2: a carriage return"),
        (TRAIN.replace(b"pound NN", b"pound NN XX"), ":14:13: expected 3 columns"),
        (TRAIN.replace(b"pound NN", b"pound"), ":14:11: expected 3 columns"),
        (TRAIN.decode().encode("utf-16"), "UTF-16 text; convert the file to UTF-8"),
        (b"", "the file has no tokens"),
        (b"\n\n", "the file has no tokens"),
        (b"one\ntwo\n", "no column -1 of labels"),
    ],
)
def test_bad_data(refused, files, tmp_path, text, words):
    path, model = tmp_path / "bad.txt", tmp_path / "m"
    path.write_bytes(text)
    message = refused("train", "-t", files / "template", path, model)
    assert words in message
    assert "bad.txt" in message
    assert not model.exists()


@pytest.mark.parametrize(
    "text",
    [
        TRAIN.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + TRAIN,
        TRAIN.replace(b" NN", b"\tNN").replace(b"DT ", b"DT \t "),
    ],
    ids=["crlf", "bom", "tabs and spaces"],
)
def test_harmless_differences_give_the_same_model(chordal, files, tmp_path, text):
    (tmp_path / "train.txt").write_bytes(text)
    chordal("train", "-q", "-t", files / "template", tmp_path / "train.txt", tmp_path / "m")
    one = chordal("tag", tmp_path / "m", "--all-marginals", input=BARE)
    assert one == chordal("tag", files / "model", "--all-marginals", input=BARE)


def test_output_is_written_whole_or_not_at_all(refused, files, tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old\n")
    (tmp_path / "in.txt").write_bytes(BARE * 30000 + b"too many columns\n")
    message = refused("tag", files / "model", tmp_path / "in.txt", "-o", target)
    assert "expected 2 columns" in message
    assert target.read_text() == "old\n"
    assert sorted(os.listdir(tmp_path)) == ["in.txt", "out.txt"]


def test_a_full_disk_leaves_the_old_model(files, tmp_path):
    model = tmp_path / "m"
    model.write_bytes((files / "model").read_bytes())

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = subprocess.run(
        [sys.executable, "-m", "chordal", "train", "-q", "-t", files / "template",
         files / "train.txt", model],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limit,
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode() == f"error: {model}: File too large\n"
    assert model.read_bytes() == (files / "model").read_bytes()
    assert os.listdir(tmp_path) == ["m"]


def test_a_folder_that_is_not_there(refused, files, tmp_path):
    model = tmp_path / "no" / "m"
    message = refused("train", "-q", "-t", files / "template", files / "train.txt", model)
    assert f"{model}: No such file or directory" in message


@pytest.mark.slow
def test_a_line_of_100_megabytes(files, tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * 100_000_000 + b" NN\n\nthe DT\n")
    done = run("tag", files / "model", path)
    if done.returncode == 0:  # it is one token
        assert done.stdout.endswith(b"\nthe DT B-NP\n")
        assert len(done.stdout) > 100_000_000
    else:
        assert done.stderr.startswith(b"error: ")
    path.write_bytes(b"x NN\n" + b"y " * 50_000_000 + b"\n")
    done = run("tag", files / "model", path)
    assert done.returncode == 1
    assert b"long.txt:2:5: expected 2 columns" in done.stderr
    assert len(done.stderr) < 1000
