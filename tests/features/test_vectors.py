"""Arrays among the attributes of tokens."""

import array

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal import _kernels
from chordal.features import AttributeInput, CliqueTemplate, Reader, VectorInput, itself


def read(X, **known):
    return VectorInput(**known).read(X, grow=True).data


def test_arrays_stand_side_by_side_in_the_order_of_their_names():
    source = VectorInput()
    X = [
        [{"w": "a", "v": np.array([1.0, 2.0])}, {"w": "b"}],
        [],
        [{"u": np.array([5]), "v": np.array([3.0, 4.0])}],
    ]
    rows = source.read(X, grow=True)
    assert_array_equal(rows.data, [[1, 2, 0], [0, 0, 0], [3, 4, 5]])
    assert_array_equal(rows.lengths, [2, 0, 1])
    assert [source.name(k) for k in range(3)] == ["v:0", "v:1", "u:0"]


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", ">f8", "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
)
def test_every_type_of_numbers(dtype):
    given = np.array([1, 0, 1, 1], dtype=dtype)
    data = read([[{"v": given[::-1]}]])
    assert_array_equal(data, [[1, 1, 0, 1]])
    assert data.dtype == (np.float32 if dtype == "f4" else np.float64)


def test_numbers_keep_their_values():
    numbers = [-128, 127, -7]
    for dtype in ("i1", "i2", "i4", "i8", "f2", "f4", "f8"):
        assert_array_equal(read([[{"v": np.array(numbers, dtype)[::-1]}]]), [numbers[::-1]])
    assert_array_equal(read([[{"v": np.array([2**63], "u8")}]]), [[2.0**63]])
    assert_array_equal(read([[{"v": array.array("d", [0.5, 2.0])}]]), [[0.5, 2.0]])


def test_float32_stays_until_another_type_comes():
    narrow, wide = np.array([0.1], "f4"), np.array([0.1])
    assert read([[{"v": narrow}] * 3]).dtype == np.float32
    data = read([[{"v": narrow}, {"v": wide}, {"v": narrow}]])
    assert_array_equal(data, np.array([[narrow[0]], [0.1], [narrow[0]]], dtype=np.float64))
    assert read([[{"v": narrow, "u": wide}]]).dtype == np.float64


class Tensor:
    """What has no buffer, and knows how to become an array."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __getitem__(self, k):
        return self.numbers[k]

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numbers, dtype)


def test_objects_that_become_arrays():
    assert_array_equal(read([[{"v": Tensor([1.5, 2.5])}]]), [[1.5, 2.5]])


def test_nested_names():
    source = VectorInput()
    source.read([[{"left": {"vec": np.ones(2)}, "vec": np.ones(1)}]], grow=True)
    assert source.widths == {"left:vec": 2, "vec": 1}


def test_strings_and_numbers_stay_attributes():
    """NumPy's single numbers are numbers, arrays of no dimension too."""
    vocabulary = _kernels.Vocabulary()
    token = {"w": "a", "n": np.float32(2.0), "zero": np.array(3.0), "v": np.ones(2), "b": True}
    _ids, values, *_, blocks = vocabulary.read([[token]], True)
    assert vocabulary.names() == ["w:a", "n", "zero", "b"]
    assert_array_equal(values, [1, 2, 3, 1])
    assert [name for name, _, _ in blocks] == ["v"]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.ones((2, 2)), ValueError, r"array 'v' in X\[0\]\[1\] must have one dimension, got 2"),
        (np.ones(0), ValueError, "must hold at least one number"),
        (np.array([1.0, np.nan]), ValueError, r"X\[0\]\[1\] must hold no NaN"),
        (np.array([np.inf], "f4"), ValueError, "no infinity"),
        (np.array(["a"]), TypeError, r"X\[0\]\[1\] must hold numbers, got dtype"),
        (np.array([1j]), TypeError, "must hold numbers"),
        (np.array([None]), TypeError, "must hold numbers"),
        (b"ab", TypeError, "or an array of numbers, got bytes"),
        (bytearray(b"ab"), TypeError, "or an array of numbers, got bytearray"),
        ([1.0, 2.0], TypeError, r"got float in X\[0\]\[1\]; a vector is an array with a name"),
    ],
)
def test_what_is_no_vector(value, error, message):
    with pytest.raises(error, match=message):
        read([[{"w": "x"}, {"v": value}]])


def test_one_width_for_a_name():
    with pytest.raises(ValueError, match=r"X\[1\]\[0\] must have 2 numbers as the first one"):
        read([[{"v": np.ones(2)}], [{"v": np.ones(3)}]])
    with pytest.raises(ValueError, match="once in a token"):
        read([[{"a": {"v": np.ones(1)}, "a:v": np.ones(1)}]])


def test_what_training_did_not_see():
    known = VectorInput({"v": 2})
    with pytest.raises(
        ValueError, match=r"X\[1\]\[1\] has the array 'u', which was not in the training"
    ):
        known.read([[{"v": np.ones(2)}], [{}, {"u": np.ones(2)}]], grow=False)
    with pytest.raises(ValueError, match=r"'v' in X\[1\]\[1\] must have 2 numbers as in training"):
        known.read([[], [{}, {"v": np.ones(3)}]], grow=False)
    assert_array_equal(known.read([[{}]], grow=False).data, [[0, 0]])


def test_only_a_template_beside_takes_arrays():
    X = [[{"w": "a"}, {"v": np.ones(2)}]]
    with pytest.raises(TypeError, match=r"X\[0\]\[1\] has the array 'v', and only ChainCRF"):
        AttributeInput().read(X, grow=True)
    reader = Reader.like([CliqueTemplate("node", features=itself)], X)
    with pytest.raises(TypeError, match=r"X\[0\]\[1\] has the array 'v', and only ChainCRF"):
        reader.read(X, grow=True)


@pytest.mark.parametrize(
    "facts",
    [
        {"names": [], "widths": []},
        {"names": "v", "widths": [1]},
        {"names": [1], "widths": [1]},
        {"names": ["v", "v"], "widths": [1, 1]},
        {"names": ["v"], "widths": [0]},
        {"names": ["v"], "widths": [True]},
        {"names": ["v"], "widths": [1, 2]},
    ],
)
def test_hostile_facts(facts):
    with pytest.raises(ValueError, match="vectors must"):
        VectorInput.from_arrays(facts, {})


def test_facts_are_enough():
    source = VectorInput({"b": 3, "a": 1})
    assert VectorInput.from_arrays(source.facts(), {}).widths == {"b": 3, "a": 1}
