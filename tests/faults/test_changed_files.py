"""What happens to a file after it was read does not reach who read it: models and data sets."""

import json
import os
import subprocess
import sys

import pytest

import chordal
from chordal import ChainCRF, Dataset, _container
from chordal.model_file import ModelFileError
from chordal.prepared import DatasetError

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


PARTS = """
import os, sys
import numpy as np
from chordal import ChainCRF, Dataset
folder, when = sys.argv[1:]
X = [[[f"w={i % 7}", f"p={i % 3}"] for i in range(9)]] * 3000
Y = [["a", "b", "c"] * 3] * 3000
for k in (0, 1000, 2000):
    ChainCRF().prepare(folder, X[k : k + 1000], Y[k : k + 1000], append=k > 0)
data = Dataset(folder)
part = os.path.join(folder, data.parts[1].file)
def cut(state=None):
    os.truncate(part, 4096)
if when == "before":
    cut()
if when == "while it is held":
    arrays = data.part(1)[1]
    before = {name: array.sum() for name, array in arrays.items()}
    cut()
    assert {name: array.sum() for name, array in arrays.items()} == before
    data.release(1)
if when == "during a fit":
    expected = ChainCRF(max_iter=5, tol=0).fit(data).weights_
    found = ChainCRF(max_iter=5, tol=0).fit(data, callback=cut).weights_
    assert (found == expected).all()
if when == "between two passes":
    model = ChainCRF(max_iter=2).fit(data)
    assert len(model.predict(data)) == 3000
    cut()
try:
    model.predict(data) if when == "between two passes" else ChainCRF().fit(data)
except ValueError as error:
    print(type(error).__name__, data.parts[1].file in str(error), "truncated" in str(error))
"""


@pytest.mark.parametrize(
    "when", ["before", "while it is held", "during a fit", "between two passes"]
)
def test_a_part_of_a_data_set_that_is_truncated(when, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PARTS, tmp_path / "data", when],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "DatasetError True True\n"


def test_a_vocabulary_that_is_truncated_after_it_was_read(tmp_path):
    data = ChainCRF().prepare(tmp_path / "data", X, Y)
    (vocabulary,) = (tmp_path / "data").glob("vocabulary-*")
    os.truncate(vocabulary, 0)
    assert ChainCRF().fit(data).predict(X) == Y
    with pytest.raises(DatasetError, match="empty"):
        Dataset(tmp_path / "data")
