"""Pipes, devices and folders in the place of model files: errors at once, no waiting."""

import os
import subprocess
import sys

import pytest

from chordal import ChainCRF
from chordal.model_file import ModelFileError, class_of, load, metadata_of, save


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize("read", [load, class_of, metadata_of])
def test_pipes_and_devices(read, pipe, tmp_path):
    with pytest.raises(ModelFileError, match="pipe: is a pipe; give the path of a model file on"):
        read(pipe)
    with pytest.raises(ModelFileError, match="/dev/zero: is a device or socket; give the path"):
        read("/dev/zero")
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read(str(tmp_path))


@pytest.mark.parametrize("command", ["tag", "info", "serve"])
def test_commands(command, pipe):
    if command == "serve":
        pytest.importorskip("starlette", reason='needs "chordal[serve]"')
        pytest.importorskip("uvicorn", reason='needs "chordal[serve]"')
    said = chordal(command, pipe)
    assert said.returncode == 1
    assert "pipe: is a pipe; give the path of a model file on disk" in said.stderr


def test_data_from_standard_input_are_read_as_before(tmp_path):
    save(ChainCRF(max_iter=2).fit([[["a"], ["b"]]], [["A", "B"]]), tmp_path / "model")
    for place in ("-", "/dev/stdin"):
        said = chordal(
            "tag", str(tmp_path / "model"), place, "--format", "crfsuite", given="A\ta\n\n"
        )
        assert (said.returncode, said.stdout) == (0, "A\n\n"), said.stderr


def chordal(*arguments, given=""):
    command = [sys.executable, "-m", "chordal", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=30)
