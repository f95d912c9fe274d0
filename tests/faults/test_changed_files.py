"""What happens to a model file after it was read does not reach the model."""

import json
import os
import subprocess
import sys

import pytest

import chordal
from chordal import ChainCRF, _container
from chordal.model_file import ModelFileError

X = [[[f"w={i % 7}", f"p={i % 3}"] for i in range(9)]]
Y = [["a", "b", "c"] * 3]

IN_PLACE = """
import os, sys
import chordal
path, how = sys.argv[1:]
X = [[[f"w={i % 7}", f"p={i % 3}"] for i in range(9)]]
model = chordal.load(path)
if how == "truncate":
    os.truncate(path, 0)
else:
    with open(path, "r+b") as file:
        file.write(b"\\xff" * os.path.getsize(path))
print(model.predict(X)[0], model.predict(X + X)[1], len(model.predict_marginals(X)[0]))
"""


@pytest.mark.parametrize("how", ["truncate", "overwrite"])
def test_a_file_that_changes_in_place(how, tmp_path):
    path = tmp_path / "model"
    chordal.save(ChainCRF().fit(X, Y), path)
    ran = subprocess.run(
        [sys.executable, "-c", IN_PLACE, path, how], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{Y[0]} {Y[0]} 9\n"


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "model"
    chordal.save(ChainCRF().fit(X, Y), path)
    checked = _container._check_version

    def shrink(*args):
        checked(*args)
        os.truncate(path, os.path.getsize(path) - 8)

    monkeypatch.setattr(_container, "_check_version", shrink)
    with pytest.raises(ModelFileError, match="truncated"):
        chordal.load(path)


def test_many_arrays_are_refused(tmp_path):
    path = tmp_path / "model"
    entry = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    about = {"format": "chordal", "version": "1", "model": "{}"}
    table = {"__metadata__": about, **{str(k): entry for k in range(10_001)}}
    header = json.dumps(table).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelFileError, match="at most 10000 arrays"):
        chordal.load(path)
