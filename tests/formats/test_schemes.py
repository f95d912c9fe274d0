"""Schemes of labels: spans survive every conversion, and illegal labels are named."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chordal.formats import SCHEMES, convert_scheme

WRITTEN = {  # two spans that touch, of one type and of two; alone and long; with a type and without
    "iob1": "I-A I-A B-A O I-A I-B I-B B-B O I B I",
    "bio": "B-A I-A B-A O B-A B-B I-B B-B O B B I",
    "iobes": "B-A E-A S-A O S-A B-B E-B S-B O S B E",
    "bilou": "B-A L-A U-A O U-A B-B L-B U-B O U B L",
}


@pytest.mark.parametrize(("source", "target"), [*itertools.product(SCHEMES, SCHEMES)])
def test_known_conversions(source, target):
    labels = WRITTEN[source].split()
    assert convert_scheme(labels, source, target) == WRITTEN[target].split()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["-A", "-B-C", ""]))),
    st.sampled_from(SCHEMES),
    st.sampled_from(SCHEMES),
)
def test_there_and_back(spans, source, target):
    bio = []
    for gap, length, kind in spans:
        bio += ["O"] * gap + ["B" + kind] + ["I" + kind] * (length - 1)
    labels = convert_scheme(bio, "bio", source)
    there = convert_scheme(labels, source, target)
    assert convert_scheme(there, target, source) == labels
    assert convert_scheme(there, target, "bio", strict=False) == bio


def goes_on(a, b, last):
    """Whether label b continues a span that a leaves open, None being the beginning and the end."""
    is_open = a is not None and a[0] in "BI"
    continues = b is not None and b[0] in "I" + last
    return is_open, continues, is_open and continues and a[1:] == b[1:]


def legal_pair(scheme, a, b):
    """What may follow what, each scheme in its own words."""
    if scheme == "bio":  # I only inside
        return b is None or b[0] != "I" or goes_on(a, b, "I")[2]
    if scheme == "iob1":  # B only between two spans of a type
        return b is None or b[0] != "B" or goes_on(a, "I" + b[1:], "I")[2]
    is_open, continues, same = goes_on(a, b, "E" if scheme == "iobes" else "L")
    return same if is_open or continues else True


@pytest.mark.parametrize("scheme", SCHEMES)
def test_strict_refuses_exactly_the_illegal(scheme):
    prefixes = {"bio": "BI", "iob1": "BI", "iobes": "BIES", "bilou": "BILU"}[scheme]
    alphabet = ["O", *(p + kind for p in prefixes for kind in ("-A", "-B"))]
    for labels in itertools.product(alphabet, repeat=3):
        pairs = itertools.pairwise([None, *labels, None])
        legal = all(legal_pair(scheme, a, b) for a, b in pairs)
        lenient = convert_scheme(labels, scheme, "bio", strict=False)
        if legal:
            assert convert_scheme(labels, scheme, "bio") == lenient
        else:
            with pytest.raises(ValueError, match=f"is not allowed in {scheme}"):
                convert_scheme(labels, scheme, "bio")
        # Nothing becomes O, or stops being so.
        assert [x == "O" for x in lenient] == [x == "O" for x in labels]


@pytest.mark.parametrize(
    ("labels", "source", "expected"),
    [
        ("O I-A I-A", "bio", "O B-A I-A"),
        ("B-A I-B", "bio", "B-A B-B"),
        ("B-A O B-A", "iob1", "B-A O B-A"),
        ("B-A O", "iobes", "B-A O"),
        ("B-A S-A E-A E-A", "iobes", "B-A B-A B-A B-A"),
        ("I-A L-A L-A", "bilou", "B-A I-A B-A"),
    ],
)
def test_lenient_reads_as_conlleval(labels, source, expected):
    assert convert_scheme(labels.split(), source, "bio", strict=False) == expected.split()


def test_bad_labels():
    for label in ("X-A", "BA", "", "O-A", "b-A", "E-A"):
        with pytest.raises(ValueError, match=r"labels\[1\] = .* must be 'O' or one of B, I"):
            convert_scheme(["O", label], "bio", "iobes", strict=False)
    with pytest.raises(TypeError, match="labels must be str"):
        convert_scheme([1], "bio", "iobes")
    with pytest.raises(ValueError, match="target must be one of 'bio', 'iob1'"):
        convert_scheme([], "bio", "iob2")
    assert convert_scheme([], "bio", "iobes") == []
