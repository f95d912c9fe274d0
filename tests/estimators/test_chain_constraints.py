"""Decoding under constraints: legal, and equal to brute force over the legal labellings."""

from itertools import pairwise

import numpy as np
import pytest

from chordal import ChainCRF, InfeasibleError

BIO = ["O", "B-x", "I-x", "B-y", "I-y"]
IOBES = ["O", "B-x", "I-x", "E-x", "S-x"]


BILOU = ["O", "B-x", "I-x", "L-x", "U-x"]
IOB1 = ["O", "B-x", "I-x", "I-y", "I-z"]


def legal_bio(tags):
    """I-x comes after B-x or I-x."""
    return all(
        not tag.startswith("I-") or before in (f"B-{tag[2:]}", tag)
        for before, tag in zip(("", *tags), tags, strict=False)
    )


def legal_iobes(tags):
    """The tags are a row of O, S-x and B-x I-x … E-x."""
    inside = None
    for tag in tags:
        prefix, kind = tag[0], tag[2:]
        if inside is None and prefix in "IE":
            return False
        if inside is not None and (prefix not in "IE" or kind != inside):
            return False
        inside = kind if prefix in "BI" else None
    return inside is None


def compare(crf, X, listing, legal, **constraints):
    """Every question that takes constraints, against the listing of the legal labellings."""
    listings = [listing(crf, x).restricted(lambda y, i=i: legal(i, y)) for i, x in enumerate(X)]
    assert crf.predict(X, **constraints) == [all_of.best for all_of in listings]
    marginals = crf.predict_marginals(X, **constraints)
    decoded = crf.predict(X, method="mpm", **constraints)
    ranked = crf.k_best(X, 5, **constraints)
    samples = crf.sample(X, 20, **constraints)
    names = crf.classes_.tolist()
    for i, all_of in enumerate(listings):
        np.testing.assert_allclose(marginals[i], all_of.marginals, rtol=1e-9, atol=1e-13)
        assert decoded[i] == [names[k] for k in all_of.marginals.argmax(axis=1)]
        assert [y for y, _ in ranked[i]] == [y for y, _ in all_of.ranked[:5]]
        chances = [p for _, p in ranked[i]]
        np.testing.assert_allclose(np.exp(chances), [p for _, p in all_of.ranked[:5]], rtol=1e-9)
        assert all(legal(i, tuple(y)) for y in samples[i])
    return listings


@pytest.fixture(params=[180_000, 1], ids=["one shard", "many shards"])
def shards(request, monkeypatch):
    monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", request.param)


def tagged(labels):
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(n, 4)) for n in (5, 1, 2, 4, 5)]
    y = [labels] + [rng.choice(labels, size=len(x)).tolist() for x in X[1:]]
    return X, ChainCRF(l2=0.3, ends=True, random_state=0).fit(X, y)


def legal_bilou(tags):
    return legal_iobes([tag.translate({ord("L"): "E", ord("U"): "S"}) for tag in tags])


def legal_iob1(tags):
    """B-x comes after B-x or I-x."""
    return all(
        not tag.startswith("B-") or before in (f"I-{tag[2:]}", tag)
        for before, tag in zip(("", *tags), tags, strict=False)
    )


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize(
    ("labels", "scheme", "legal"),
    [
        (BIO, "bio", legal_bio),
        (IOBES, "iobes", legal_iobes),
        (BILOU, "bilou", legal_bilou),
        (IOB1, "iob1", legal_iob1),
    ],
)
def test_schemes(shards, listing, labels, scheme, legal, auto):
    X, crf = tagged(labels)
    given = "auto" if auto else scheme
    listings = compare(crf, X, listing, lambda _, y: legal(y), allowed_transitions=given)
    assert any(not legal(labels) for labels in crf.predict(X))  # otherwise nothing is shown
    assert [len(all_of.labellings) for all_of in listings] != [5 ** len(x) for x in X]


ALLOWED = [("O", "O"), ("O", "B-x"), ("B-x", "I-x"), ("I-x", "O"), ("B-y", "O"), ("I-y", "O")]


@pytest.mark.parametrize("form", ["list", "tuple", "set", "array", "matrix", "nested lists"])
def test_transitions_as_pairs_or_matrix(shards, listing, form):
    X, crf = tagged(BIO)
    names = crf.classes_.tolist()
    matrix = np.array([[(a, b) in ALLOWED for b in names] for a in names])
    given = {
        "list": ALLOWED,
        "tuple": tuple(ALLOWED),
        "set": set(ALLOWED),
        "array": np.array(ALLOWED),
        "matrix": matrix,
        "nested lists": matrix.tolist(),
    }[form]
    compare(
        crf,
        X,
        listing,
        lambda _, y: all(pair in ALLOWED for pair in pairwise(y)),
        allowed_transitions=given,
    )


def test_labels_of_positions(shards, listing):
    X, crf = tagged(BIO)
    names = crf.classes_.tolist()
    allowed = [
        None,
        [["B-x", "O"]],
        [None, {"I-x"}],
        [["B-y"], None, ["O", "I-y"], None],
        [None] * 5,
    ]

    def legal(i, y):
        rows = allowed[i] or [None] * len(y)
        return all(row is None or label in row for row, label in zip(rows, y, strict=True))

    compare(crf, X, listing, legal, allowed_labels=allowed)
    flags = [
        None if rows is None else [
            None if row is None else np.array([name in row for name in names]) for row in rows
        ]
        for rows in allowed
    ]  # fmt: skip
    compare(crf, X, listing, legal, allowed_labels=flags)
    whole = [
        np.array(
            [[row is None or name in row for name in names] for row in rows or [None] * len(x)]
        )
        for rows, x in zip(allowed, X, strict=True)
    ]
    compare(crf, X, listing, legal, allowed_labels=whole)


def test_flags_may_be_lists():
    """Also where the labels are 0 and 1, which equal False and True."""
    X, y = [[["u"], ["v"]]] * 5, [[0, 1]] * 5
    crf = ChainCRF(l2=0.1).fit(X, y)
    assert crf.predict(X[:1]) == [[0, 1]]
    assert crf.predict(X[:1], allowed_labels=[[[True, False], [True, False]]]) == [[0, 0]]


def test_labels_and_transitions_together(shards, listing):
    X, crf = tagged(BIO)
    allowed = [None, None, None, [None, ["I-x", "I-y"], None, None], None]

    def legal(i, y):
        return legal_bio(y) and (i != 3 or y[1] in ("I-x", "I-y"))

    compare(crf, X, listing, legal, allowed_labels=allowed, allowed_transitions="bio")


def test_constraints_work_with_transition_features(dense_problem):
    X, y = dense_problem
    crf = ChainCRF(transition_features=lambda x: x[1:] - x[:-1]).fit(X, y)
    pairs = [("a", "b"), ("b", "a"), ("c", "c")]
    for labels in crf.predict(X, allowed_transitions=pairs):
        assert all(move in pairs for move in pairwise(labels))


def test_constraints_leave_the_model_as_it_was():
    X, crf = tagged(BIO)
    before, weights = crf.predict(X), crf.weights_.copy()
    crf.predict(X, allowed_transitions="bio", allowed_labels=[[["O"]] * len(x) for x in X])
    assert crf.predict(X) == before
    assert (crf.weights_ == weights).all()


INFEASIBLE = {
    "no label": {"allowed_labels": [None, None, None, [None, [], None, None], None]},
    "no flag": {"allowed_labels": [None] * 3 + [np.zeros((4, 5), dtype=bool), None]},
    "no transition": {"allowed_transitions": np.zeros((5, 5), dtype=bool)},
    "a contradiction": {
        "allowed_labels": [None, None, None, [["O"], ["I-x"], None, None], None],
        "allowed_transitions": "bio",
    },
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_infeasible_constraints_are_refused(case):
    X, crf = tagged(BIO)
    first = 0 if case == "no transition" else 3
    with pytest.raises(InfeasibleError, match=rf"{first} is allowed.*-inf.*; allow more"):
        crf.predict(X, **INFEASIBLE[case])
    assert crf.predict(X[1:2], allowed_transitions=np.zeros((5, 5), dtype=bool)) == crf.predict(
        X[1:2]
    )  # one position has no transition


@pytest.mark.parametrize("method", ["predict", "mpm", "predict_marginals", "k_best", "sample"])
def test_an_infeasible_sequence_is_named_by_its_place_in_X(shards, method):
    X, crf = tagged(BIO)
    options = {"method": "mpm"} if method == "mpm" else {}
    ask = crf.predict if method == "mpm" else getattr(crf, method)
    with pytest.raises(InfeasibleError, match=r"(example|sequence) 3|X\[3\]"):
        ask(X, **options, **INFEASIBLE["no label"])


def test_one_label_may_be_given_by_name():
    """A str is one label, or refused; never its letters."""
    X = [[["u"], ["v"]]]
    crf = ChainCRF().fit(X * 3, [["A", "AB"], ["B", "A"], ["AB", "B"]])
    try:
        predicted = crf.predict(X, allowed_labels=[["AB", "AB"]])
    except TypeError as error:
        assert "allowed_labels[0][0]" in str(error)  # noqa: PT017
    else:
        assert predicted == [["AB", "AB"]]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (
            {"allowed_labels": [None]},
            r"allowed_labels must have one entry per example \(5\), got 1",
        ),
        (
            {"allowed_labels": [None, None, [None], None, None]},
            r"allowed_labels\[2\] must have one entry per position \(2\), got 1",
        ),
        (
            {"allowed_labels": [None, None, [None, ["Q"]], None, None]},
            r"allowed_labels\[2\]\[1\].*unknown label 'Q'.*'B-x'",
        ),
        (
            {"allowed_labels": [None, [np.ones(3, dtype=bool)], None, None, None]},
            r"allowed_labels\[1\]\[0\] must have 5 flags, got .*3",
        ),
        ({"allowed_transitions": "iob3"}, r"allowed_transitions.*'auto', 'bio'.*got 'iob3'"),
        (
            {"allowed_transitions": "bilou"},
            r"'bilou' is not the scheme .*'\w-x' end with 'L-x'.*; the labels are of 'bio'",
        ),
        ({"allowed_transitions": "iobes"}, r"'iobes' is not the scheme .*the labels are of 'bio'"),
        ({"allowed_transitions": [("O", "Q")]}, r"allowed_transitions.*unknown label 'Q'"),
        ({"allowed_transitions": np.ones((3, 3), dtype=bool)}, r"matrix \[5, 5\].*\(3, 3\)"),
        ({"allowed_transitions": 7}, r"allowed_transitions must be"),
    ],
)
def test_wrong_constraints_are_refused(shards, constraints, message):
    X, crf = tagged(BIO)
    with pytest.raises((ValueError, TypeError), match=message):
        crf.predict(X, **constraints)


def test_labels_that_are_no_tags_have_no_scheme():
    X, crf = tagged(["NN", "VB", "DT", "O", "IN"])
    for scheme in ("auto", "bio"):
        with pytest.raises(
            ValueError, match=rf"allowed_transitions='{scheme}' .*(are of|matches the)"
        ):
            crf.predict(X, allowed_transitions=scheme)
