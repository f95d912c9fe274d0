"""Chain models with wrong arrays or facts and a right checksum: a clear error, never a crash."""

import numpy as np
import pytest

from .chain_parts import KINDS, Parts


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
    *(setting("transitions.kept", k, v) for k, v in ((0, -1), (-1, 9), (-1, 2**62), (1, 0))),
    *(setting("node.outputs", k, v) for k, v in ((0, -1), (-1, 3), (0, 2**31 - 1))),
    *(setting("node.offsets", k, v) for k, v in ((0, 1), (-1, 10**6), (1, -5), (1, 10**6))),
    *(setting("node.name_offsets", k, v) for k, v in ((0, 1), (-1, 10**6), (1, -5), (1, 10**6))),
    *(setting("node.counts", 0, v) for v in (-1, 2**62)),
    *(setting("node.slots", slice(1, None, 2), v) for v in (4, 2**31, 2**32 - 2)),
    *(typed(f"node.{name}", "<f8") for name in ("offsets", "outputs", "counts", "slots")),
    *(typed("node.outputs", dtype) for dtype in ("<u4", "<i8")),
    *(typed("node.names", dtype) for dtype in ("<i8", "<f4")),
    *(typed("weights", dtype) for dtype in ("<i8", "<u1")),
    *(typed("transitions.kept", dtype) for dtype in ("<i4", "<f8")),
    *(f(name) for f in (cut, without) for name in ("weights", "transitions.kept", "node.offsets",
      "node.outputs", "node.counts", "node.names", "node.name_offsets", "node.slots")),
    slots_full, slots_all_free, slots_of_other_names, two_slots_of_a_name, outputs_fall,
]  # fmt: skip


@pytest.mark.parametrize("change", ARRAYS, ids=lambda change: change.__name__)
def test_wrong_arrays_are_refused_in_spite_of_a_right_checksum(change, chain_files, refused):
    parts = Parts(chain_files["attributes"])
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
    ("attributes", ("parameters", "feature_template"), "U:%x[0,0]", "'transitions' must have"),
    ("attributes", ("parameters", "feature_template"), 3, "template must be"),
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
    ("attributes", ("templates", 0, "rows", "kind"), "pickle", "no 'pickle'"),
    ("attributes", ("templates", 0, "rows", "kind"), "dense", "."),
    ("attributes", ("templates", 0, "rows"), None, "."),
    ("attributes", ("templates", 1, "rows"), {"kind": "dense", "n_columns": 2}, "must have rows"),
    ("attributes", ("templates", 1, "rows"), {"kind": "attributes"}, "no 'names'"),
    ("attributes", ("templates", 3, "fit_intercept"), False, "'intercept' must have"),
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
    ("dense", ("templates", 0, "rows", "n_columns"), 10**30, "."),
    ("dense", ("templates", 0, "rows", "n_columns"), 2**62, "."),
    ("dense", ("templates", 0, "rows", "n_columns"), 3, "there must be"),
    ("dense", ("templates", 0, "rows", "n_columns"), -2, "n_columns must be an integer"),
    ("dense", ("templates", 0, "rows", "n_columns"), 2.0, "n_columns must be an integer"),
    ("template", ("parameters", "feature_template"), None, "'edge' must have"),
    ("template", ("parameters", "feature_template"), "U:%y[0,0]", "line 1, column 3"),
    ("template", ("parameters", "feature_template"), {"text": 3}, "a template must be a str"),
    ("template", ("templates", 0, "rows", "template"), "U:%x[0,0", "line 1, column 3"),
    ("template", ("templates", 0, "rows", "dialect"), "sed", "dialect must be one of"),
    ("template", ("templates", 0, "rows", "part"), "bigrams", "."),
    ("template", ("templates", 1, "rows", "part"), "unigrams", "."),
    ("template", ("templates", 1, "rows", "kind"), "attributes", "does not match the stored"),
    ("template", ("templates", 1, "rows"), 3, "."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "place", "value", "message"),
    [pytest.param(*row, id=f"{'.'.join(map(str, row[1]))}={str(row[2])[:20]}") for row in FACTS],
)
def test_wrong_facts_are_refused_in_spite_of_a_right_checksum(
    kind, place, value, message, chain_files, refused
):
    parts = Parts(chain_files[kind])
    at = parts.facts
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    refused(parts.bytes(), f"not a valid model: .*{message}")


@pytest.mark.parametrize("kind", KINDS)
def test_missing_facts_are_named(kind, chain_files, refused):
    for key in Parts(chain_files[kind]).facts:
        parts = Parts(chain_files[kind])
        del parts.facts[key]
        refused(parts.bytes(), f"no '{key}'")


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "[" * 90_000, "{" * 50, '"\\ud800'])
def test_facts_that_are_no_object_are_refused(text, chain_files, refused):
    parts = Parts(chain_files["dense"])
    parts.facts = text
    refused(parts.bytes(), "not a valid model")
