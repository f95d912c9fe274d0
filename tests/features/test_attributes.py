"""Attributes: CRFsuite's meaning of dicts and lists, and which pairs get a weight."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import _kernels
from chordal.features import AttributeInput


def read(*tokens):
    """The attributes of one sequence's tokens, as lists of (name, value)."""
    source = AttributeInput()
    rows = source.read([list(tokens)], grow=True)
    data = rows.data
    values = np.ones(len(data.ids)) if data.values is None else data.values
    pairs = [(source.name(i), v) for i, v in zip(data.ids, values, strict=True)]
    return [pairs[a:b] for a, b in zip(data.offsets, data.offsets[1:], strict=False)]


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (["a", "b"], [("a", 1.0), ("b", 1.0)]),
        (("a",), [("a", 1.0)]),
        ([], []),
        ({}, []),
        ({"word": "Paris"}, [("word:Paris", 1.0)]),
        ({"len": 5.0, "n": 3, "neg": -0.5}, [("len", 5.0), ("n", 3.0), ("neg", -0.5)]),
        ({"upper": True, "lower": False}, [("upper", 1.0)]),
        ({"zero": 0.0, "none": 0}, []),
        ({"a": {"b": 2.0, "c": "x"}}, [("a:b", 2.0), ("a:c:x", 1.0)]),
        ({"a": {"b": {"c": {"d": True}}}}, [("a:b:c:d", 1.0)]),
        ({"win": ["x", "y"]}, [("win:x", 1.0), ("win:y", 1.0)]),
        ({"win": ("x",), "set": {"y"}}, [("win:x", 1.0), ("set:y", 1.0)]),
        ({"a": {"b": ["x"]}}, [("a:b:x", 1.0)]),
        ({"a": {}, "b": []}, []),
        (["a", "a", "b"], [("a", 1.0), ("a", 1.0), ("b", 1.0)]),
        ({"x": "a:b"}, [("x:a:b", 1.0)]),
        ({"": "", "k": ""}, [(":", 1.0), ("k:", 1.0)]),
        ({"f": np.float32(0.5), "i": np.int64(2)}, [("f", 0.5), ("i", 2.0)]),
        ({"t": np.bool_(True)}, [("t", 1.0)]),
        ([np.str_("a")], [("a", 1.0)]),
    ],
)
def test_meaning(token, expected):
    assert read(token) == [expected]


def test_long_names_may_nest():
    key = "k" * 5000
    assert read({key: {"a": {"b": 1.0}}}) == [[(f"{key}:a:b", 1.0)]]


def test_endless_nesting_is_refused():
    token = {"a": 1.0}
    for _ in range(100_000):
        token = {"": token}
    with pytest.raises((ValueError, RecursionError), match=r"nest|recursion"):
        read(token)
    while isinstance(token, dict):  # taken apart by hand: freeing it would recurse as deeply
        token = token.pop(next(iter(token)))


def test_the_same_name_in_two_ways_is_one_attribute():
    source = AttributeInput()
    rows = source.read(
        [[["a:b"], {"a": "b"}, {"a": ["b"]}, {"a": {"b": 1.0}}, {"a:b": True}]], True
    )
    assert_array_equal(rows.data.ids, np.zeros(5))
    assert source.n_columns == 1


def test_values_are_kept_only_where_they_are_needed():
    source = AttributeInput()
    assert source.read([[{"a": 1.0, "b": True}, ["c"]]], True).data.values is None
    assert_array_equal(source.read([[["a"], {"b": 2.0}, ["c"]]], True).data.values, [1, 2, 1])


def test_sequences_and_lengths():
    source = AttributeInput()
    rows = source.read([[["a"], ["b"]], [], [["a"]]], grow=True)
    assert_array_equal(rows.lengths, [2, 0, 1])
    assert_array_equal(rows.data.offsets, [0, 1, 2, 3])
    assert_array_equal(rows.data.ids, [0, 1, 0])
    assert rows.n_rows == 3
    again = source.read(((("a",), ("b",)) for _ in range(2)), grow=False)
    assert_array_equal(again.lengths, [2, 2])


def test_unknown_attributes_are_ignored_unless_they_may_enter():
    source = AttributeInput()
    source.read([[["a", "b"]]], grow=True)
    rows = source.read([[["x", "b", "y"], {"z": 3.0}]], grow=False)
    assert_array_equal(rows.data.ids, [1])
    assert_array_equal(rows.data.offsets, [0, 1, 1])
    assert rows.data.values is None
    assert source.n_columns == 2
    source.read([[["x"]]], grow=True)
    assert source.n_columns == 3
    assert source.name(2) == "x"


STRANGE = [
    "",
    "\0",
    "a\0b",
    "a\0c",
    "ü",
    "漢字",
    "😀",
    "\ud83d\ude00",
    "\ud800",
    "x\udfffy",
    "\x7f",
    "ÿ",
]


def test_any_string_is_a_name_of_its_own():
    source = AttributeInput()
    source.read([[STRANGE]], grow=True)
    assert source.n_columns == len(STRANGE)
    assert source.vocabulary.names() == STRANGE
    copy = _kernels.Vocabulary.from_arrays(*source.vocabulary.arrays())
    assert copy.names() == STRANGE
    for k, name in enumerate(STRANGE):
        assert copy.find(name) == k
        assert source.name(k) == name
    assert copy.find("nowhere") == -1


def test_many_names_are_found_again():
    names = [f"w[{k}]={k * k}" for k in range(20_000)]
    source = AttributeInput()
    source.read([[names]], grow=True)
    assert_array_equal(source.read([[names[::-1]]], grow=False).data.ids, np.arange(20_000)[::-1])


@pytest.mark.parametrize(
    ("bytes_", "offsets", "message"),
    [
        (b"ab", [0, 1], "do not fit"),
        (b"ab", [1, 2], "do not fit"),
        (b"ab", [], "do not fit"),
        (b"ab", [0, 2, 1, 2], "must not decrease"),
        (b"aa", [0, 1, 2], "occurs twice"),
    ],
)
def test_damaged_arrays_are_refused(bytes_, offsets, message):
    data = np.frombuffer(bytes_, dtype=np.uint8).copy()
    with pytest.raises(ValueError, match=message):
        _kernels.Vocabulary.from_arrays(data, np.array(offsets, dtype=np.int64))


def test_pickle():
    source = AttributeInput()
    source.read([[STRANGE, {"a": 2.0}]], grow=True)
    copy = pickle.loads(pickle.dumps(source))
    assert copy.vocabulary.names() == source.vocabulary.names()
    X = [[["a", "ü", "new"], {"": 4.0}]]
    a, b = source.read(X, grow=False), copy.read(X, grow=False)
    assert_array_equal(a.data.ids, b.data.ids)
    assert_array_equal(a.data.values, b.data.values)
    empty = pickle.loads(pickle.dumps(AttributeInput()))
    assert empty.n_columns == 0


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_are_read_in_sorted_order(kind):
    names = [f"name {k:02}" for k in range(30)]  # in a set's own order once in 30! runs
    assert [name for name, _ in read(kind(names))[0]] == names
    assert [name for name, _ in read({"win": kind(names)})[0]] == [f"win:{n}" for n in names]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([["word"]], TypeError, r"X\[0\]\[0\] is a str"),
        ([[["a"]], "bc"], TypeError, r"X\[1\] must be a list of tokens, got str"),
        ("abc", TypeError, "X must be a list of sequences, got str"),
        ([[3]], TypeError, r"X\[0\]\[0\] must be a dict, list, tuple or set"),
        ([[["a"], None]], TypeError, r"X\[0\]\[1\] must be a dict"),
        ([3], TypeError, r"X\[0\] must be a list of tokens, got int"),
        ([[[1]]], TypeError, r"names must be str, got int in X\[0\]\[0\]"),
        ([[[["a"]]]], TypeError, "names must be str, got list"),
        ([[{1: 2.0}]], TypeError, "names must be str, got int"),
        ([[{"a": {b"b": 1.0}}]], TypeError, "names must be str, got bytes"),
        ([[{1, 2}]], TypeError, "names must be str, got int"),
        ([[{"a": None}]], TypeError, r"attribute 'a' in X\[0\]\[0\] must be .* got NoneType"),
        ([[{"a": b"x"}]], TypeError, "got bytes"),
        ([[{"a": 1j}]], TypeError, "got complex"),
        ([[{"a": float("nan")}]], ValueError, "must be finite, got"),
        ([[["x"], {"a": float("inf")}]], ValueError, r"X\[0\]\[1\] must be finite, got inf"),
        ([[{"a": np.zeros(3)}]], TypeError, "array 'a'"),
    ],
)
def test_bad_input(X, error, message):
    with pytest.raises(error, match=message):
        AttributeInput().read(X, grow=True)


# Five tokens with labels 0, 1, 1, 0, 2.
X = [[["a", "b"], ["a"], ["a", "a"]], [["b", "c"], ["d"]]]
LABELS = np.array([0, 1, 1, 0, 2], dtype=np.int32)


def pairs_of(features, source):
    keys = features.keys()
    return {(source.name(c), int(k)) for c, k in zip(keys.column, keys.output, strict=True)}


def chosen(known=None, **options):
    source = AttributeInput()
    rows = source.read(X, grow=True)
    features = source.features(rows, LABELS, 3, known=known, **options)
    pairs = pairs_of(features, source)
    assert len(pairs) == features.n_weights
    return pairs


def test_pairs_seen_in_training():
    seen = {("a", 0), ("a", 1), ("b", 0), ("c", 0), ("d", 2)}
    assert chosen() == seen
    assert chosen(min_freq=1) == seen


def test_all_pairs():
    assert chosen(pairs="all") == {(a, k) for a in "abcd" for k in range(3)}


def test_rare_pairs_and_attributes_are_left_out():
    assert chosen(min_freq=2) == {("a", 1), ("b", 0)}
    assert chosen(min_freq=3) == {("a", 1)}  # twice in one token counts twice
    assert chosen(min_freq=4) == set()
    assert chosen(pairs="all", min_freq=2) == {(a, k) for a in "ab" for k in range(3)}


@pytest.mark.parametrize("pairs", ["seen", "all"])
def test_known_pairs_stay(pairs):
    source = AttributeInput()
    rows = source.read(X, grow=True)
    before = source.features(rows, LABELS, 3, pairs=pairs)
    later = source.read([[["d", "e"]]], grow=True)
    after = source.features(
        later, np.array([1], dtype=np.int32), 3, pairs=pairs, known=before.keys()
    )
    kept, new = pairs_of(before, source), pairs_of(after, source)
    assert kept <= new
    assert {("d", 1), ("e", 1)} <= new
    assert len(new) == after.n_weights


def dense_equivalent(rows, n_columns):
    out = np.zeros((rows.n_rows, n_columns))
    row = np.repeat(np.arange(rows.n_rows), np.diff(rows.data.offsets))
    np.add.at(out, (row, rows.data.ids), 1.0 if rows.data.values is None else rows.data.values)
    return out


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("n_labels", [2, 6, 33])
def test_scores_are_the_sums_of_the_weights(n_labels, values):
    rng = np.random.default_rng(0)
    tokens = [
        {f"a{k}": (float(rng.normal()) if values else True) for k in rng.geometric(0.1, 5)}
        for _ in range(200)
    ]
    tokens[3] = {}
    source = AttributeInput()
    rows = source.read([tokens], grow=True)
    labels = rng.integers(0, n_labels, 200).astype(np.int32)
    features = source.features(rows, labels, n_labels)
    weights, keys = rng.normal(size=features.n_weights), features.keys()
    table = np.zeros((source.n_columns, n_labels))
    table[keys.column, keys.output] = weights
    expected = dense_equivalent(rows, source.n_columns) @ table
    for read in (features.compile, features.glimpse):
        for first, last in ((0, 200), (2, 4), (150, 200)):
            out = np.full((last - first) * n_labels, np.nan)
            features.map(read(rows, first, last), features.expand(weights), out)
            assert_allclose(out.reshape(-1, n_labels), expected[first:last], rtol=1e-12, atol=1e-12)


def test_duplicates_in_a_list_count_twice():
    source = AttributeInput()
    rows = source.read(X, grow=True)
    features = source.features(rows, LABELS, 3)
    weights, keys = np.arange(1.0, features.n_weights + 1), features.keys()
    out = np.empty(15)
    features.map(features.compile(rows, 0, 5), features.expand(weights), out)
    a1 = weights[(keys.column == 0) & (keys.output == 1)]
    assert out.reshape(5, 3)[2, 1] == 2 * a1
    assert out.reshape(5, 3)[1, 1] == a1
