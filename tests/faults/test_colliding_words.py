"""Words that were made to collide cost no more than others, and no answer depends on the key."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from chordal import ChainCRF, _kernels, load, save
from chordal.text import Columns

FACTOR, MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def file_hash(text):
    """As kernels/hashing.hpp has it, of texts of whole words."""
    h = len(text) * FACTOR & MASK
    for k in range(0, len(text), 8):
        h = (h ^ int.from_bytes(text[k : k + 8], "little")) * FACTOR & MASK
        h ^= h >> 29
    h = h * FACTOR & MASK
    return h ^ h >> 32


def colliding(n):
    """Different words of 16 letters that have one and the same unkeyed hash."""
    made = []
    for k in range(n):
        first = b"%08d" % k
        h = (16 * FACTOR & MASK ^ int.from_bytes(first, "little")) * FACTOR & MASK
        made.append(first + (h ^ h >> 29 ^ 0x1234567890ABCDEF).to_bytes(8, "little"))
    assert len({file_hash(word) for word in made[:100]}) == 1
    return made


WORDS = colliding(300_000)  # some minutes where each looks at all before it


@pytest.fixture(scope="module")
def arrays():
    return np.frombuffer(b"".join(WORDS), dtype=np.uint8), 16 * np.arange(len(WORDS) + 1)


def test_a_vocabulary_of_colliding_words(arrays):
    made = _kernels.Vocabulary.from_arrays(*arrays)
    slots = made.slots()
    assert len(slots) == 0  # a file has no table of them, and whoever reads it makes one
    again = _kernels.Vocabulary.borrowed(*arrays, slots)
    assert len(again) == len(WORDS)
    texts, offsets = again.arrays()
    assert (texts == arrays[0]).all()
    assert (offsets == arrays[1]).all()


def test_cells_and_templates_of_colliding_words(arrays):
    cells = np.stack([arrays[1][:-1], arrays[1][1:]], axis=1)[:, None]
    columns = Columns(arrays[0].tobytes(), cells, [len(WORDS)])
    cells = np.ascontiguousarray(columns.cells).reshape(-1)
    codes, first = _kernels.columns_codes(columns.text, cells)
    assert (codes == np.arange(len(WORDS))).all()
    assert len(first) == len(WORDS)


def test_a_table_in_a_file_whose_runs_are_long():
    """Slots that are right, but for the speed of finding anything through them."""
    words = WORDS[:3000]
    letters, offsets = np.frombuffer(b"".join(words), np.uint8), 16 * np.arange(3001)
    slots = np.full((8192, 2), [0, 2**32 - 1], dtype=np.uint32)
    h = file_hash(words[0])
    for k in range(3000):
        slots[(h + k) % 8192] = h >> 32, k
    found = _kernels.Vocabulary.borrowed(letters, offsets, slots.ravel())
    assert (found.slots().size, len(found)) == (0, 3000)  # it has made its own
    full = np.full((2048, 2), h >> 32, dtype=np.uint32)  # no free slot: a search would not end
    full[:, 1] = np.arange(2048)
    assert len(_kernels.Vocabulary.borrowed(letters, offsets, full.ravel())) == 3000


FIT = """
import sys
from chordal import ChainCRF, save
X = [[[f"word={i * k % 977}", f"p={i % 5}"] for i in range(50)] for k in range(1, 60)]
save(ChainCRF(max_iter=5).fit(X, [[str(i % 3) for i in range(50)]] * 59), sys.argv[1])
"""


def test_files_do_not_depend_on_the_key(tmp_path):
    digests = set()
    for k in range(2):  # each process draws a key of its own
        path = tmp_path / str(k)
        subprocess.run([sys.executable, "-W", "ignore", "-c", FIT, path], check=True, timeout=120)
        whole = path.read_bytes()
        arrays = whole[8 + int.from_bytes(whole[:8], "little") :]  # the header tells the time, too
        digests.add(hashlib.sha256(arrays).hexdigest())
    assert len(digests) == 1


def test_a_loaded_model_learns_more_words(tmp_path):
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    more, words = ([[["c"], ["b"]]] * 3, [["C", "B"]] * 3), [[["a"], ["b"]], [["c"]]]
    kept = ChainCRF(l2=0.1).fit(X, y)
    save(kept, tmp_path / "model")
    found = load(tmp_path / "model").partial_fit(*more).predict_marginals(words)
    expected = kept.partial_fit(*more).predict_marginals(words)
    for a, b in zip(found, expected, strict=True):
        assert (a == b).all()
