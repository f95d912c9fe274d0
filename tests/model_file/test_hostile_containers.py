"""Files that are damaged, cut, or no model files at all: a clear error, never another model."""

import struct

import numpy as np
import pytest

from chordal._container import _checksum
from chordal.model_file import FORMAT, ModelFileError, load

from .chain_parts import KINDS, Parts, state


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_put_together_again_are_a_model(kind, chain_files, tmp_path):
    """Without this, everything below could be refused for a fault of the test."""
    (tmp_path / "a").write_bytes(chain_files[kind])
    (tmp_path / "b").write_bytes(Parts(chain_files[kind]).bytes())
    assert state(load(tmp_path / "a"), KINDS[kind]) == state(load(tmp_path / "b"), KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_is_refused(kind, chain_files, refused):
    raw = chain_files[kind]
    ends = {*range(300), *range(len(raw) - 100, len(raw))}
    for length in sorted(ends.union(range(0, len(raw), 7))):
        refused(raw[:length], r"empty|truncated|not a chordal model file")
    refused(raw + b"\0", "follow the header")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_flipped_bit_is_refused(kind, chain_files, tmp_path):
    """Or changes nothing: the JSON \\u00e9 is also \\u00E9. One bit of every byte is turned."""
    raw, path = chain_files[kind], tmp_path / "flipped"
    path.write_bytes(raw)
    expected = state(load(path), KINDS[kind])
    accepted = 0
    for at in range(len(raw)):
        bit = (at + at // 8) % 8
        changed = bytearray(raw)
        changed[at] ^= 1 << bit
        path.write_bytes(changed)
        try:
            model = load(path)
        except ModelFileError:
            continue
        accepted += 1
        assert state(model, KINDS[kind]) == expected, (at, bit)
    assert accepted <= 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_in_the_arrays_is_refused(kind, chain_files, refused):
    raw = chain_files[kind]
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    for at in range(begin, len(raw)):
        changed = bytearray(raw)
        changed[at] ^= (1, 128)[at % 2]
        refused(bytes(changed), "checksum")


def test_words_that_change_places_are_noticed(chain_files, refused):
    raw = chain_files["dense"]
    parts = Parts(raw)
    weights = parts.arrays["weights"]
    begin = raw.index(weights.tobytes())
    weights[[0, 1]] = weights[[1, 0]]
    refused(raw[:begin] + weights.tobytes() + raw[begin + weights.nbytes :], "checksum")


@pytest.mark.parametrize("size", [1024, 1023, 1025, 3000, 1])
def test_the_checksum_sees_every_place_of_long_arrays(size):
    array = np.random.default_rng(0).integers(2**62, size=size)
    known = {_checksum("", {}, [array])}
    for at in range(0, size, 37):
        for bit in (0, 31, 63):
            changed = array.view(np.uint64).copy()
            changed[at] ^= np.uint64(1) << np.uint64(bit)
            known.add(_checksum("", {}, [changed]))
    for shift in (1, 1024, size // 2):
        if shift % size:
            known.add(_checksum("", {}, [np.roll(array, shift)]))
    shifts = {s for s in (1, 1024, size // 2) if s % size}
    assert len(known) == 1 + 3 * len(range(0, size, 37)) + len({s % size for s in shifts})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the file is empty"),
        (b"\0" * 7, "truncated"),
        (b"\0" * 8, "not a chordal model file"),
        (b"\0" * 1000, "not a chordal model file"),
        (b"lCRFtpms" * 100, "not a chordal model file"),
        (b"\x80\x04\x95" + b"{" * 100, "not a chordal model file"),
        (struct.pack("<Q", 2**64 - 1) + b"{}", "not a chordal model file"),
        (struct.pack("<Q", 8_000_001) + b"{}", "its header has 8000001 bytes"),
        (struct.pack("<Q", 8_000_000) + b"{}", "truncated in its header"),
        (struct.pack("<Q", 1) + b"{", "its header cannot be read"),
        (struct.pack("<Q", 2) + b"{}", "not a chordal model"),
        (struct.pack("<Q", 4) + b"{\xff}\xfe", "its header cannot be read"),
        (struct.pack("<Q", 8) + b'{"a": 1}', "not a chordal model"),
        (struct.pack("<Q", 200_005) + b'{"a":' + b"[" * 200_000, "its header cannot be read"),
        (struct.pack("<Q", 5_010) + b'{"a":' + b"9" * 5_004 + b"}", "its header cannot be read"),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_what_is_no_model_file_is_refused(raw, message, refused):
    refused(raw, message)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": "pt"}, "but not a chordal model"),
        ({"version": str(FORMAT + 1)}, "newer chordal .*upgrade"),
        ({"version": "9" * 9}, "newer chordal"),
        ({"version": "9" * 5000}, "version must be a number"),
        ({"version": "0"}, "version must be a number"),
        ({"version": "²"}, "version must be a number"),
        ({"version": 1}, "version must be a number"),
        ({"version": None}, "version must be a number"),
    ],
)
def test_versions_and_formats_are_checked(metadata, message, chain_files, refused):
    parts = Parts(chain_files["dense"])
    parts.metadata.update(metadata)
    refused(parts.bytes(), message)


ENTRIES = [
    {"dtype": "F128"}, {"dtype": ["F64"]}, {"dtype": None}, {"dtype": "F32"}, {"dtype": "U8"},
    {"shape": []}, {"shape": [1]}, {"shape": [10**30]}, {"shape": [-1]}, {"shape": 3},
    {"shape": [0, 10**30]}, {"shape": [1] * 70}, {"shape": [float("inf")]}, {"shape": ["6"]},
    {"shape": [6.0]}, {"shape": None}, {"shape": [True]},
    {"data_offsets": [0, 1]}, {"data_offsets": [-8, 0]}, {"data_offsets": [10**30, 10**30]},
    {"data_offsets": [8, 0]}, {"data_offsets": "ab"}, {"data_offsets": [float("nan"), 0]},
    {"data_offsets": [0]}, {"data_offsets": {}}, {"more": [[[[]]]]},
]  # fmt: skip


@pytest.mark.parametrize("change", ENTRIES, ids=str)
@pytest.mark.parametrize("name", ["weights", "transitions.kept"])
def test_wrong_entries_of_arrays_are_refused(change, name, chain_files, refused):
    refused(
        Parts(chain_files["dense"]).bytes(lambda table: table[name].update(change)),
        r"entry of array|does not fit|truncated|floats|integers",
    )


@pytest.mark.parametrize("entry", [None, 3, [], "x", {}])
def test_entries_that_are_no_objects_are_refused(entry, chain_files, refused):
    refused(Parts(chain_files["dense"]).bytes(lambda t: t.update(weights=entry)), "entry of array")


def test_arrays_that_overlap_or_leave_gaps_are_refused(chain_files, refused):
    parts = Parts(chain_files["attributes"])

    def overlapping(table):
        """Two arrays of the same size at one place, and a gap as large."""
        table["node.counts"]["data_offsets"] = table["node.offsets"]["data_offsets"]
        table["node.counts"]["shape"] = table["node.offsets"]["shape"]

    def moved(table):
        for entry in table.values():
            entry["data_offsets"] = [at + 8 for at in entry["data_offsets"]]

    refused(parts.bytes(overlapping), "does not fit its place")
    body = (
        b"\0" * 8
        + chain_files["attributes"][8 + struct.unpack("<Q", chain_files["attributes"][:8])[0] :]
    )
    refused(parts.bytes(moved, body), "does not fit its place")
