"""chordal.compat.pycrfsuite: what items are, beside python-crfsuite."""

import numpy as np
import pycrfsuite as theirs
import pytest

from chordal.compat import pycrfsuite as ours

from .crfsuite_pair import opened

ITEMS = [
    [["foo"], {"bar": {"baz": 1}}],
    [{"a": True, "b": False, "c": "d", "e": ["x", "y"], "g": {"h": {"i": 2.5}}, "j": {}}],
    [{"set": {"x"}, "bytes": "é".encode()}, {b"key": b"value"}],
    [[], {}, ("t", "u"), {"k": 0, "z": 0.0}],
    [{"k": np.float32(0.5), "n": np.int64(3), "t": np.bool_(True)}],
    [{"a": 1}.keys(), ["a", "a"], iter(["it"])],
    [],
]


@pytest.mark.parametrize("items", ITEMS)
def test_items_are_read_as_theirs(items):
    items = [list(i) if hasattr(i, "__next__") else i for i in items]
    mine, real = ours.ItemSequence(items), theirs.ItemSequence(items)
    assert mine.items() == real.items()
    assert len(mine) == len(real)
    assert repr(mine) == repr(real)
    assert ours.ItemSequence(mine).items() == mine.items()


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ("foo", TypeError, "xseq must be a list of items, got str"),
        ({"a": 1}, TypeError, "xseq must be a list of items, got dict"),
        (5, TypeError, "xseq must be a list of items, got int"),
        (["foo"], TypeError, r"xseq\[0\] must be a dict or a list of attribute names, got str"),
        ([["a"], 3], TypeError, r"xseq\[1\] must be a dict or a list"),
        ([[{"foo": 1.0}]], TypeError, r"names must be str, got dict in xseq\[0\]"),
        ([{1: 2}], TypeError, "names must be str, got int"),
        ([["a"], {"a": None}], TypeError, r"attribute 'a' in xseq\[1\] must be a str, a number"),
        ([{"a": float("nan")}], ValueError, "must be finite"),
        ([{"a": np.zeros(3)}], TypeError, "attribute 'a'"),
        ([{"a": b"\xff"}], ValueError, "utf-8"),
    ],
)
def test_bad_items(tmp_path, items, error, message):
    with pytest.raises(error, match=message):
        ours.ItemSequence(items)
    trainer = ours.Trainer(verbose=False)
    with pytest.raises(error, match=message if error is TypeError else None):
        trainer.append(items, ["x"] * (1 if items == 5 else len(items)))
    trainer.append([["a"]], ["x"])  # the mistake left nothing behind
    trainer.train(str(tmp_path / "model"))
    tagger = opened(ours, tmp_path / "model")
    with pytest.raises(error, match=message if error is TypeError else None):
        tagger.tag(items)


def test_items_nested_without_end():
    item = {}
    item["a"] = item
    with pytest.raises(ValueError, match="nested too deeply"):
        ours.ItemSequence([item])
