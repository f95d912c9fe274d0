"""Sums by groups of parts: the same tree whoever holds which part."""

import pickle
import random

import pytest

pytest.importorskip("distributed", reason='the tests of chordal.dask need "chordal[dask]"')

from chordal._errors import InfeasibleError
from chordal.dask._crew import PartError, _corner, _folded, _named
from chordal.dask._tree import cuts, fold


def plus(a, b):
    return f"({a}+{b})"


def named(part, vectors):
    return f"{part}{vectors[0]}"


def whole(parts):
    """The tree, two by two."""
    while len(parts) > 1:
        parts = [plus(*parts[k : k + 2]) if k + 1 < len(parts) else parts[k] for k in
                 range(0, len(parts), 2)]  # fmt: skip
    return parts[0]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11, 64, 100])
def test_any_groups_give_the_tree_of_all(n):
    parts = [f"p{k}" for k in range(n)]
    expected = whole([f"p{k}w" for k in range(n)])
    chance = random.Random(n)
    for _ in range(20):
        at = sorted({0, *chance.choices(range(n), k=chance.randint(0, 9))})
        found = [
            _corner(parts[a:b], a, n, plus, ["w"], named)
            for a, b in zip(at, [*at[1:], n], strict=True)
        ]
        chance.shuffle(found)  # answers come in any order
        some = _folded(found[: len(found) // 2], n, plus) if len(found) > 1 else {}
        nodes = fold({**some, **_folded(found[len(found) // 2 :], n, plus)}, n, plus)
        assert list(nodes.values()) == [expected]


def test_only_the_first_parts_are_asked():
    parts = [f"p{k}" for k in range(6)]
    found = [_corner(parts[a : a + 2], a, 3, plus, ["w"], named) for a in (0, 2)]
    assert list(_folded(found, 3, plus).values()) == [whole(["p0w", "p1w", "p2w"])]


def test_groups_are_about_equal_and_none_is_empty():
    chance = random.Random(0)
    for _ in range(200):
        sizes = [chance.choice([0, 1, 5, 100]) for _ in range(chance.randint(1, 30))]
        n = chance.randint(1, 40)
        found = cuts(sizes, n)
        assert len(found) == min(n, len(sizes))
        assert found[0][0] == 0
        assert found[-1][1] == len(sizes)
        assert all(a < b for a, b in found)
        assert [b for _, b in found[:-1]] == [a for a, _ in found[1:]]
    assert cuts([1] * 8, 2) == [(0, 4), (4, 8)]
    assert cuts([1] * 8, 3) == [(0, 3), (3, 5), (5, 8)]


def test_an_error_names_its_partition_however_far_it_comes():
    def fails(part, vectors):
        raise part

    # As it comes from a worker: Dask keeps the arguments, and not what was made of them.
    lost = UnicodeDecodeError.__new__(UnicodeDecodeError, "utf-8", b"\xff", 0, 1, "no start byte")
    assert str(lost) == ""
    for error, text in [
        (ValueError("bad"), r"^partition 5: bad$"),
        (KeyError("x"), r"^partition 5: KeyError: 'x'$"),
        (MemoryError(), r"^partition 5: MemoryError$"),
        (lost, r"^partition 5: 'utf-8' codec can't decode byte 0xff in position 0: no"),
        (InfeasibleError(3), r"^no labelling of example 3 is allowed"),
    ]:
        with pytest.raises(PartError) as caught:
            _corner([error], 5, 8, plus, [], fails)
        sent = pickle.loads(pickle.dumps(caught.value))
        with pytest.raises(Exception, match=text):
            raise _named(sent, "partitions 4 to 7: ")
