"""Damaged and hostile model files: a clear error, never a crash nor another model."""

import copy
import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chordal import ChainCRF
from chordal.model_file import FORMAT, ModelFileError, load, save
from chordal.model_file._container import _checksum

X = [[["a", "b"], ["b"], ["c"]], [["c", "a"], ["é"]]]
Y = [["A", "B", "A"], ["C", "A"]]
COLUMNS = [[["x", "1"], ["y", "2"], ["x", "3"]], [["z", "1"], ["y", "2"]]]
DENSE = [np.arange(6.0).reshape(3, 2) / 7, np.ones((2, 2))]
TEMPLATE = "U:%x[0,0]\nB\nB:%x[0,1]"
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "<u1"}


class Parts:
    """A model file taken apart; `bytes` puts it together with a right checksum."""

    def __init__(self, raw):
        length = struct.unpack("<Q", raw[:8])[0]
        table = json.loads(raw[8 : 8 + length])
        self.metadata = table.pop("__metadata__")
        self.facts = json.loads(self.metadata["model"])
        body = raw[8 + length :]
        self.arrays = {}
        for name, entry in table.items():
            begin, end = entry["data_offsets"]
            self.arrays[name] = np.frombuffer(body[begin:end], DTYPES[entry["dtype"]]).copy()

    def bytes(self, change_table=lambda table: None, body=None):
        names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
        table, at = {}, 0
        for name, array in sorted(self.arrays.items(), key=lambda item: -item[1].itemsize):
            table[name] = {
                "dtype": names[array.dtype],
                "shape": [array.size],
                "data_offsets": [at, at + array.nbytes],
            }
            at += array.nbytes
        blocks = [self.arrays[name] for name in table]
        change_table(table)
        text = self.facts if isinstance(self.facts, str) else json.dumps(self.facts)
        metadata = {**self.metadata, "model": text, "checksum": _checksum(text, table, blocks)}
        header = json.dumps({"__metadata__": metadata, **table}).encode()
        header += b" " * (-(8 + len(header)) % 64)
        body = b"".join(block.tobytes() for block in blocks) if body is None else body
        return struct.pack("<Q", len(header)) + header + body


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of small models, by kind."""
    path = tmp_path_factory.mktemp("models") / "model"
    models = {
        "attributes": ChainCRF(bias=True, ends=True).fit(X, Y),
        "template": ChainCRF(template=TEMPLATE).fit(COLUMNS, Y),
        "dense": ChainCRF().fit(DENSE, [np.array(y) for y in Y]),
    }
    raw = {}
    for kind, model in models.items():
        save(model, path)
        raw[kind] = path.read_bytes()
    return raw


@pytest.fixture
def refused(tmp_path):
    def check(raw, message=""):
        path = tmp_path / "hostile"
        path.write_bytes(raw)
        with pytest.raises(ModelFileError, match=message) as caught:
            load(path)
        assert str(caught.value).startswith(str(path))

    return check


KINDS = {"attributes": X, "template": COLUMNS, "dense": DENSE}


def state(model, X):
    """All that a model answers from."""
    return (
        model.weights_.tobytes(),
        model.features_.transitions.tobytes(),
        [array.tobytes() for array in model.features_.node.arrays().values()],
        model.classes_.tolist(),
        [np.asarray(marginals).tobytes() for marginals in model.predict_marginals(X)],
        repr(model.fit_report_),
        repr(model),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_put_together_again_are_a_model(kind, files, tmp_path):
    """Without this, everything below could be refused for a fault of the test."""
    (tmp_path / "a").write_bytes(files[kind])
    (tmp_path / "b").write_bytes(Parts(files[kind]).bytes())
    assert state(load(tmp_path / "a"), KINDS[kind]) == state(load(tmp_path / "b"), KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_is_refused(kind, files, refused):
    raw = files[kind]
    for length in range(len(raw)):
        refused(raw[:length], r"empty|truncated|not a chordal model file")
    refused(raw + b"\0", "follow the header")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_flipped_bit_is_refused(kind, files, tmp_path):
    """Or changes nothing: the JSON \\u00e9 is also \\u00E9."""
    raw, path = files[kind], tmp_path / "flipped"
    path.write_bytes(raw)
    expected = state(load(path), KINDS[kind])
    accepted = 0
    for at in range(len(raw)):
        for bit in range(8):
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
def test_a_flipped_bit_in_the_arrays_is_refused(kind, files, refused):
    raw = files[kind]
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    for at in range(begin, len(raw)):
        for bit in (0, 7):
            changed = bytearray(raw)
            changed[at] ^= 1 << bit
            refused(bytes(changed), "checksum")


def test_words_that_change_places_are_noticed(files, refused):
    raw = files["dense"]
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
        (struct.pack("<Q", 10**8 + 1) + b"{}", "not a chordal model file"),
        (struct.pack("<Q", 10**8) + b"{}", "truncated in its header"),
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
def test_versions_and_formats_are_checked(metadata, message, files, refused):
    parts = Parts(files["dense"])
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
@pytest.mark.parametrize("name", ["weights", "transitions"])
def test_wrong_entries_of_arrays_are_refused(change, name, files, refused):
    refused(
        Parts(files["dense"]).bytes(lambda table: table[name].update(change)),
        r"entry of array|does not fit|truncated|floats|integers",
    )


@pytest.mark.parametrize("entry", [None, 3, [], "x", {}])
def test_entries_that_are_no_objects_are_refused(entry, files, refused):
    refused(Parts(files["dense"]).bytes(lambda t: t.update(weights=entry)), "entry of array")


def test_arrays_that_overlap_or_leave_gaps_are_refused(files, refused):
    parts = Parts(files["attributes"])

    def overlapping(table):
        """Two arrays of the same size at one place, and a gap as large."""
        table["node.counts"]["data_offsets"] = table["node.offsets"]["data_offsets"]
        table["node.counts"]["shape"] = table["node.offsets"]["shape"]

    def moved(table):
        for entry in table.values():
            entry["data_offsets"] = [at + 8 for at in entry["data_offsets"]]

    refused(parts.bytes(overlapping), "does not fit its place")
    body = b"\0" * 8 + files["attributes"][8 + struct.unpack("<Q", files["attributes"][:8])[0] :]
    refused(parts.bytes(moved, body), "does not fit its place")


def setting(name, at, value):
    def change(parts):
        parts.arrays[name][at] = value

    change.__name__ = f"{name}[{at}]={value}"
    return change


def typed(name, dtype):
    def change(parts):
        parts.arrays[name] = parts.arrays[name].astype(dtype)

    change.__name__ = f"{name} as {dtype}"
    return change


def cut(name):
    def change(parts):
        parts.arrays[name] = parts.arrays[name][:-1]

    change.__name__ = f"{name} cut"
    return change


def without(name):
    def change(parts):
        del parts.arrays[name]

    change.__name__ = f"no {name}"
    return change


def slots_full(parts):
    """Every slot taken: a search for an unknown name would never end."""
    slots = parts.arrays["node.slots"].reshape(-1, 2)
    slots[slots[:, 1] == 2**32 - 1] = [7, 0]


def slots_all_free(parts):
    parts.arrays["node.slots"][1::2] = 2**32 - 1


def slots_of_other_names(parts):
    slots = parts.arrays["node.slots"].reshape(-1, 2)
    used = np.flatnonzero(slots[:, 1] != 2**32 - 1)
    slots[used, 1] = np.roll(slots[used, 1], 1)


def two_slots_of_a_name(parts):
    slots = parts.arrays["node.slots"].reshape(-1, 2)
    used = np.flatnonzero(slots[:, 1] != 2**32 - 1)
    slots[used[0], 1] = slots[used[1], 1]


def outputs_fall(parts):
    offsets, outputs = parts.arrays["node.offsets"], parts.arrays["node.outputs"]
    first = np.flatnonzero(np.diff(offsets) > 1)[0]
    pair = slice(offsets[first], offsets[first] + 2)
    outputs[pair] = outputs[pair][::-1]


ARRAYS = [
    *(setting("weights", 3, v) for v in (np.nan, np.inf, -np.inf)),
    *(setting("transitions", k, v) for k, v in ((0, -1), (-1, 9), (-1, 2**62), (1, 0))),
    *(setting("node.outputs", k, v) for k, v in ((0, -1), (-1, 3), (0, 2**31 - 1))),
    *(setting("node.offsets", k, v) for k, v in ((0, 1), (-1, 10**6), (1, -5), (1, 10**6))),
    *(setting("node.name_offsets", k, v) for k, v in ((0, 1), (-1, 10**6), (1, -5), (1, 10**6))),
    *(setting("node.counts", 0, v) for v in (-1, 2**62)),
    *(setting("node.slots", slice(1, None, 2), v) for v in (4, 2**31, 2**32 - 2)),
    *(typed(f"node.{name}", "<f8") for name in ("offsets", "outputs", "counts", "slots")),
    *(typed("node.outputs", dtype) for dtype in ("<u4", "<i8")),
    *(typed("node.names", dtype) for dtype in ("<i8", "<f4")),
    *(typed("weights", dtype) for dtype in ("<i8", "<u1")),
    *(typed("transitions", dtype) for dtype in ("<i4", "<f8")),
    *(f(name) for f in (cut, without) for name in ("weights", "transitions", "node.offsets",
      "node.outputs", "node.counts", "node.names", "node.name_offsets", "node.slots")),
    slots_full, slots_all_free, slots_of_other_names, two_slots_of_a_name, outputs_fall,
]  # fmt: skip


@pytest.mark.parametrize("change", ARRAYS, ids=lambda change: change.__name__)
def test_wrong_arrays_are_refused_in_spite_of_a_right_checksum(change, files, refused):
    parts = Parts(files["attributes"])
    change(parts)
    refused(parts.bytes(), "not a valid model: .")


FACTS = [
    ("attributes", ("class",), "HMM", "class must be one of .*ChainCRF.*; got 'HMM'"),
    ("attributes", ("class",), "chaincrf", "class must be one of .*ChainCRF.*; got 'chaincrf'"),
    ("attributes", ("class",), "GraphCRF", "unexpected keyword argument"),
    ("attributes", ("class",), ["ChainCRF"], "class must be one of"),
    ("attributes", ("class",), None, "class must be one of"),
    ("attributes", ("parameters", "l2"), "x", "l2 must be a number"),
    ("attributes", ("parameters", "l1"), float("nan"), "l1 must be a number"),
    ("attributes", ("parameters", "max_iter"), 10.5, "max_iter must be an integer"),
    ("attributes", ("parameters", "unknown"), 1, "unknown"),
    ("attributes", ("parameters", "solver"), "lbgfs", "solver must be one of"),
    ("attributes", ("parameters", "solver"), "_base", "solver must be one of"),
    ("attributes", ("parameters", "solver"), ["lbfgs"], "solver must be one of"),
    ("attributes", ("parameters", "objective"), "x", "objective must be one of"),
    ("attributes", ("parameters", "inference"), None, "inference must be one of"),
    ("attributes", ("parameters", "transition_features"), "print", "must be a function"),
    ("attributes", ("parameters", "template"), "U:%x[0,0]", "must agree"),
    ("attributes", ("parameters", "template"), 3, "template must be"),
    ("attributes", ("parameters", "solver"), {"name": "lbfgs", "memory": "x"}, "memory must be"),
    ("attributes", ("parameters", "solver"), {"name": "os", "system": "x"}, "solver must be one"),
    ("attributes", ("parameters", "solver"), {"memory": 3}, "no 'name'"),
    ("attributes", ("parameters", "inference"), {"name": "chain", "no": 1}, "unexpected keyword"),
    ("attributes", ("functions",), ["print"], "functions must be some of"),
    ("attributes", ("functions",), "transition_features", "functions must be some of"),
    ("attributes", ("parameters",), [], "."),
    ("attributes", ("inference",), "../os", "inference must be one of"),
    ("attributes", ("inference",), "auto", "unknown inference"),
    ("attributes", ("inference",), 3, "inference must be one of"),
    ("attributes", ("node", "kind"), "pickle", "no 'pickle'"),
    ("attributes", ("node", "kind"), "dense", "."),
    ("attributes", ("node",), None, "."),
    ("attributes", ("edge",), {"kind": "dense", "n_columns": 2}, "lines B"),
    ("attributes", ("edge",), {"kind": "attributes"}, "lines B"),
    ("attributes", ("bias",), False, "there must be"),
    ("attributes", ("n_iter",), float("inf"), "."),
    ("attributes", ("n_iter",), [], "."),
    ("attributes", ("objective",), "x", "."),
    ("attributes", ("objective",), 10**400, "."),
    ("attributes", ("report", "status"), "FINE", "no 'FINE'"),
    ("attributes", ("report", "history"), 3, "."),
    ("attributes", ("report", "validation"), [1], "."),
    ("attributes", ("report", "n_iter"), {}, "."),
    ("attributes", ("report",), [], "."),
    ("attributes", ("labels", "labels"), ["A", "B"], "."),
    ("attributes", ("labels", "labels"), [], "not empty"),
    ("attributes", ("labels", "labels"), "ABC", "must be a list"),
    ("attributes", ("labels", "labels"), ["A", "B", "A"], "a label occurs twice"),
    ("attributes", ("labels", "labels"), [1, "B", True], "a label occurs twice"),
    ("attributes", ("labels", "labels"), ["A", "B", None], "labels must be str.*got None"),
    ("attributes", ("labels", "labels"), ["A", "B", float("nan")], "labels must be str.*got nan"),
    ("attributes", ("labels", "labels"), ["A", "B", ["C"]], "labels must be str"),
    ("attributes", ("labels", "dtype"), "i4,i4", "dtype of labels must be"),
    ("attributes", ("labels", "dtype"), "<U99999999999", "dtype of labels must be"),
    ("attributes", ("labels", "dtype"), "<M8", "dtype of labels must be"),
    ("attributes", ("labels", "dtype"), 3, "dtype of labels must be"),
    ("attributes", ("labels", "dtype"), "<i8", "labels of dtype '<i8' cannot be"),
    ("attributes", ("labels", "dtype"), "<i3", "."),
    ("attributes", ("labels",), None, "."),
    ("dense", ("node", "n_columns"), 10**30, "."),
    ("dense", ("node", "n_columns"), 2**62, "."),
    ("dense", ("node", "n_columns"), 3, "there must be"),
    ("dense", ("node", "n_columns"), -2, "n_columns must be an integer"),
    ("dense", ("node", "n_columns"), 2.0, "n_columns must be an integer"),
    ("template", ("parameters", "template"), None, "must agree"),
    ("template", ("parameters", "template"), "U:%y[0,0]", "line 1, column 3"),
    ("template", ("parameters", "template"), {"text": 3}, "a template must be a str"),
    ("template", ("node", "template"), "U:%x[0,0", "line 1, column 3"),
    ("template", ("node", "dialect"), "sed", "dialect must be one of"),
    ("template", ("node", "part"), "pairs", "must be 'states'"),
    ("template", ("edge", "part"), "states", "lines B"),
    ("template", ("edge", "kind"), "attributes", "lines B"),
    ("template", ("edge",), 3, "."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "place", "value", "message"),
    [pytest.param(*row, id=f"{'.'.join(row[1])}={str(row[2])[:20]}") for row in FACTS],
)
def test_wrong_facts_are_refused_in_spite_of_a_right_checksum(
    kind, place, value, message, files, refused
):
    parts = Parts(files[kind])
    at = parts.facts
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    refused(parts.bytes(), f"not a valid model: .*{message}")


@pytest.mark.parametrize("kind", KINDS)
def test_missing_facts_are_named(kind, files, refused):
    for key in Parts(files[kind]).facts:
        parts = Parts(files[kind])
        del parts.facts[key]
        refused(parts.bytes(), f"no '{key}'")


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "[" * 100_000, "{" * 50, '"\\ud800'])
def test_facts_that_are_no_object_are_refused(text, files, refused):
    parts = Parts(files["dense"])
    parts.facts = text
    refused(parts.bytes(), "not a valid model")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.sampled_from(["", "x", "A", "template", "dense", "pairs", "<U3", "lbfgs", "U:%x[0,0]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)


def places(facts, prefix=()):
    yield prefix
    items = facts.items() if isinstance(facts, dict) else enumerate(facts)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from places(value, (*prefix, key))
        else:
            yield (*prefix, key)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_changed_facts_are_refused_or_make_a_model_that_answers(data, kind, files, tmp_path):
    parts = Parts(files[kind])
    for _ in range(data.draw(st.integers(1, 2))):
        facts = copy.deepcopy(parts.facts)
        place = data.draw(st.sampled_from([p for p in places(facts) if p]))
        at = facts
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = data.draw(values)
        parts.facts = facts
    path = tmp_path / "fuzzed"
    path.write_bytes(parts.bytes())
    try:
        model = load(path)
    except ModelFileError:
        return
    for marginals in model.predict_marginals(KINDS[kind]):
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    model.predict(KINDS[kind])
    assert str(model.fit_report_) if hasattr(model, "fit_report_") else True
    repr(model)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_changed_arrays_are_refused_or_make_a_model_that_answers(data, kind, files, tmp_path):
    """Under a sanitizer this also shows that no index leads outside."""
    parts = Parts(files[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(parts.arrays)))
        raw = parts.arrays[name].view(np.uint8)
        if len(raw):
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at] = data.draw(st.integers(0, 255))
    path = tmp_path / "fuzzed"
    path.write_bytes(parts.bytes())
    try:
        model = load(path)
    except ModelFileError:
        return
    model.predict(KINDS[kind])
    for marginals in model.predict_marginals(KINDS[kind]):
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-6)
    model.top_features(), model.coef_
