"""A model put together from known weights is a fitted model."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from chordal import ChainCRF
from chordal.compat._assembly import assembled


def taken_apart(crf, edge=False):
    """The arguments of `assembled`, from a fitted model's public attributes."""
    state = crf.coef_.tocoo()
    names = [crf.reader_.inputs[0].name(k) for k in range(crf.coef_.shape[1])]
    table = crf.transitions_
    source, target = np.nonzero(table)
    parts = {
        "classes": crf.classes_.tolist(),
        "attributes": names,
        "state": (state.coords[1], state.coords[0], state.data),
        "transitions": (source, target, table[source, target]),
    }
    if edge:
        coef = crf.transition_coef_
        i, j, a = np.nonzero(coef)
        edge_names = [crf.reader_.inputs[1].name(k) for k in range(coef.shape[2])]
        parts["edge"] = (edge_names, (a, i, j, coef[i, j, a]))
    if crf.ends:
        parts["start"], parts["end"] = crf.start_, crf.end_
    return parts


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = [
        [[f"w={rng.integers(30)}", f"p={rng.integers(3)}"] for _ in range(rng.integers(1, 7))]
        for _ in range(50)
    ]
    return X, [[str(rng.choice(["c", "a", "d", "b"])) for _ in x] for x in X]


def pairs_of_words(x):
    return [[f"{a[0]}|{b[0]}", "any"] for a, b in pairwise(x)]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"pairs": "all", "transitions": "all"},
        {"ends": True, "transitions": "none"},
        {"transition_features": pairs_of_words},
    ],
    ids=["seen", "all", "ends", "edge"],
)
def test_equals_the_model_it_was_taken_from(data, parameters):
    X, y = data
    crf = ChainCRF(**parameters, l2=0.3, max_iter=30).fit(X, y)
    rest = {k: v for k, v in parameters.items() if k not in ("ends", "transitions")}
    again = assembled(**taken_apart(crf, "transition_features" in parameters), **rest)
    X = [*X, [["never seen"], ["w=1", "w=1"]], []]
    assert again.predict(X) == crf.predict(X)
    for ours, theirs in zip(again.predict_marginals(X), crf.predict_marginals(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(again.transitions_, crf.transitions_)
    np.testing.assert_array_equal(again.coef_.toarray(), crf.coef_.toarray())
    np.testing.assert_array_equal(again.transition_coef_, crf.transition_coef_)
    np.testing.assert_array_equal(again.start_, crf.start_)
    top = [weight for *_, weight in crf.top_features(20)]
    assert [weight for *_, weight in again.top_features(20)] == top
    copy = pickle.loads(pickle.dumps(again))
    assert copy.predict(X) == crf.predict(X)


def test_goes_on_learning(data):
    X, y = data
    crf = ChainCRF(l2=0.3, max_iter=30).fit(X, y)
    again = assembled(**taken_apart(crf), l2=1e6)
    again.partial_fit([[["new", "w=1"]]], [["e"]])
    assert again.classes_.tolist() == ["a", "b", "c", "d", "e"]
    np.testing.assert_allclose(again.transitions_[:4, :4], crf.transitions_, rtol=0, atol=1e-4)


def test_the_order_of_entries_does_not_matter(data):
    X, y = data
    parts = taken_apart(ChainCRF(max_iter=20).fit(X, y))
    mixed = np.random.default_rng(0).permutation(len(parts["state"][0]))
    other = assembled(**{**parts, "state": tuple(part[mixed] for part in parts["state"])})
    np.testing.assert_array_equal(assembled(**parts).weights_, other.weights_)


def test_the_first_label_wins_a_tie():
    crf = assembled(["z", "a", "m"], [], ([], [], []), ([], [], []))
    assert crf.predict([[["unknown"], ["words"]]]) == [["z", "z"]]
    assert crf.classes_.tolist() == ["a", "m", "z"]


BAD = [
    ({"classes": []}, "1 to 16384 labels, got 0"),
    ({"classes": ["A", "A"]}, "'A' twice"),
    ({"classes": [str(k) for k in range(20_000)]}, "16384 labels, got 20000"),
    ({"attributes": ["x", "x"]}, "occurs twice"),
    ({"state": ([2], [0], [1.0])}, "attributes must be 0 to 1, got 2 at 0"),
    ({"state": ([0], [-1], [1.0])}, "labels must be 0 to 1, got -1"),
    ({"state": ([0], [0, 1], [1.0])}, "one per weight"),
    ({"state": ([0, 0], [1, 1], [1.0, 2.0])}, "state must hold each pair once"),
    ({"state": ([0], [0], [np.nan])}, "numbers up to"),
    ({"state": ([0], [0], [1e300])}, "numbers up to"),
    ({"transitions": ([0, 0], [1, 1], [1.0, 2.0])}, "transitions must hold each pair once"),
    ({"transitions": ([0], [2], [1.0])}, "must be 0 to 1, got 2"),
    ({"transitions": ([0], [1], [1.0, 2.0])}, "1 weights, got shape"),
    ({"start": [1.0]}, "start must have 2 weights"),
    ({"l2": -1}, "l2 must be"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_parts_are_refused(change, message):
    parts = {
        "classes": ["A", "B"],
        "attributes": ["x", "y"],
        "state": ([0], [1], [1.0]),
        "transitions": ([0], [1], [1.0]),
    }
    with pytest.raises(ValueError, match=message):
        assembled(**{**parts, **change})
