"""What compressed Arrow files say of their sizes, before anything is decompressed."""

import io
from contextlib import suppress

import numpy as np
import pytest

from chordal._errors import FormatError
from chordal.formats.arrow import Arrow

pa = pytest.importorskip("pyarrow", reason='needs "chordal[arrow]"')

from chordal.formats._arrow_sizes import decompressed_sizes  # noqa: E402


def written(table, compression, rows=None):
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, rows)
    return file.getvalue()


def tables():
    rng = np.random.default_rng(0)
    words = [[f"w{n}" for n in rng.integers(9, size=size)] for size in rng.integers(9, size=700)]
    return {
        "lists": pa.table({"tokens": words, "labels": words}),
        "numbers": pa.table({"n": rng.normal(size=999), "zero": np.zeros(999)}),
        "dictionary": pa.table({"word": pa.array(["cat", "dog"] * 400).dictionary_encode()}),
        "none": pa.table({"n": pa.array([], pa.int64())}),
    }


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("name", tables())
def test_sizes_are_those_of_the_buffers(name, compression):
    """Without compression, the buffers of the same batch are as long."""
    table = tables()[name]
    plain, raw = written(table, None, 250), written(table, compression, 250)
    assert not any(decompressed_sizes(io.BytesIO(plain)))
    with pa.ipc.open_file(raw) as file:
        batches = [file.get_batch(k) for k in range(file.num_record_batches)]
    buffers = [
        sum(buffer.size for column in own.columns for buffer in column.buffers() if buffer)
        for own in batches
    ]
    found = list(decompressed_sizes(io.BytesIO(raw)))
    assert len(found) == len(batches) + (name == "dictionary")
    for size, own in zip(found[-len(buffers) :], buffers, strict=True):
        assert abs(size - own) <= 64 * 6  # pyarrow pads buffers


@pytest.mark.parametrize("given", ["path", "stream"])
def test_a_small_file_of_large_batches_is_refused(given, tmp_path):
    tokens = pa.array([["a" * 1_000_000]])
    path = tmp_path / "bomb.arrow"
    path.write_bytes(written(pa.table({"tokens": tokens, "labels": tokens}), "zstd"))
    source = path if given == "path" else io.BytesIO(path.read_bytes())
    with pytest.raises(FormatError, match="bytes, decompressed, more than 100 times as many"):
        next(iter(Arrow().read(source)))


def test_damaged_files_are_value_errors():
    raw = written(tables()["lists"], "zstd", 250)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(3000):
        bytes_ = bytearray(raw)
        for place in rng.integers(max(0, len(raw) - 900), len(raw), size=3):
            bytes_[place] = int(rng.integers(256))
        try:
            for size in decompressed_sizes(io.BytesIO(bytes_[: rng.integers(20, len(raw) + 1)])):
                assert isinstance(size, int)
        except ValueError:
            refused += 1
    assert refused > 1000


def test_descriptions_of_messages_may_be_damaged():
    """The kind of a message may lie anywhere, and was once looked up behind its description."""
    raw = written(tables()["lists"], "zstd", 250)
    end = len(raw) - 10 - int.from_bytes(raw[-10:-6], "little")
    rng = np.random.default_rng(2)
    for _ in range(20_000):
        bytes_ = bytearray(raw)
        for place in rng.integers(end, size=4):
            near = place % 400 if rng.random() < 0.5 else place
            bytes_[near] = rng.choice([0, 1, 127, 128, 255])
        with suppress(ValueError):
            list(decompressed_sizes(io.BytesIO(bytes_)))
