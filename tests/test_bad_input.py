"""Bad input: a clear error that says what was wrong, where, and what to do; or the right answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from chordal import ChainCRF, CRFClassifier, GridCRF, MultiLabelCRF

X = [[["a", "b"], ["c"]], [["a"], ["b"], ["c"]]]
Y = [["A", "B"], ["A", "A", "B"]]
DENSE = [np.eye(3), np.eye(3)[:2]]
DENSE_Y = [["a", "b", "c"], ["a", "b"]]


@pytest.fixture(scope="module")
def crf():
    return ChainCRF(random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def dense():
    return ChainCRF().fit(DENSE, DENSE_Y)


def changed(position, value):
    """DENSE with one number of its second sequence replaced."""
    arrays = [x.copy() for x in DENSE]
    arrays[1][position] = value
    return arrays


# ----------------------------------------------------------------------------------- shapes of X, y

SHAPES = {
    "no sequences": ([], [], ValueError, r"X is empty: give at least one example"),
    "no labels": (X, [], ValueError, r"same number of sequences, got 2 and 0"),
    "X is None": (None, Y, TypeError, r"X must be a list of sequences, got NoneType"),
    "X is a str": ("text", Y, TypeError, r"X must be a list of sequences, got str"),
    "X is a dict": ({"a": 1}, Y, TypeError, r"X must be a list of sequences, got dict"),
    "X is a number": (3, Y, TypeError, r"X must be a list of sequences, got int"),
    "X is one matrix": (np.eye(2), Y, ValueError, r"array \[length, n_features\], got 1 dim"),
    "X is one sparse matrix": (
        sp.csr_array(np.eye(2)), [["a"], ["b"]], (TypeError, ValueError),
        r"X must be a list of sequences, got csr_array",
    ),
    "a sequence of three dimensions": (
        [np.zeros((2, 2, 2))], [["a", "b"]], ValueError, r"\[length, n_features\], got 3 dim",
    ),
    "y is None": (X, None, TypeError, r"y must be a list of sequences, got NoneType"),
    "fewer y than X": (X, Y[:1], ValueError, r"same number of sequences, got 2 and 1"),
    "more y than X": (X[:1], Y, ValueError, r"same number of sequences, got 1 and 2"),
    "a short y": (
        X, [["A", "B"], ["A", "A"]], ValueError, r"X\[1\] and y\[1\] .*same length, got 3 and 2",
    ),
    "a long y": (
        X, [["A", "B", "B"], ["A", "A", "B"]], ValueError,
        r"X\[0\] and y\[0\] .*same length, got 2 and 3",
    ),
    "only empty sequences": ([[], []], [[], []], ValueError, r"every sequence is empty"),
    "y is flat": (X, ["A", "B"], TypeError, r"y\[0\] must be a list of labels, got str"),
    "y is flat and fits": (
        X, ["AB", "AAB"], TypeError, r"y\[0\] must be a list of labels, got str",
    ),
    "y is a flat list of int": (X, [1, 2], TypeError, r"y\[0\] must be a list of labels, got int"),
    "y holds a str": (
        X, [["A", "B"], "AAB"], TypeError, r"y\[1\] must be a list of labels, got str",
    ),
    "y holds None": (
        X, [["A", "B"], None], TypeError, r"y\[1\] must be a list of labels, got NoneType",
    ),
    "ragged columns": (
        [np.eye(3), np.eye(2)], [list("abc"), list("ab")], ValueError,
        r"X\[1\] must have 3 columns, got 2",
    ),
    "ragged sparse columns": (
        [sp.csr_array(np.eye(3)), sp.csr_array(np.eye(2))], [list("abc"), list("ab")], ValueError,
        r"X\[1\] must have 3 columns, got 2",
    ),
    "ragged lists of numbers": (
        [[[1.0, 2.0], [3.0]]], [["A", "B"]], TypeError, r"must be str, got float in X\[0\]\[0\]",
    ),
    "arrays of str": ([np.array([["a"]])], [["A"]], TypeError, r"X\[0\] must be .*<U1"),
    "array after sparse": (
        [sp.csr_array(np.eye(2)), np.eye(2)], [list("ab")] * 2, TypeError,
        r"X\[1\] must be a SciPy sparse matrix.*ndarray",
    ),
    "sparse after array": (
        [np.eye(2), sp.csr_array(np.eye(2))], [list("ab")] * 2, (TypeError, ValueError),
        r"X\[1\] must be an array.*csr_array",
    ),
    "attributes after array": (
        [np.eye(2), [["a"], ["b"]]], [list("ab")] * 2, (TypeError, ValueError),
        r"X\[1\] must be (an array|numeric)",
    ),
    "ragged list after array": (
        [np.eye(2), [[1.0, 2.0], [3.0]]], [list("ab")] * 2, ValueError, r"X\[1\] must be an array",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES)
def test_wrong_shapes_are_refused(case):
    given, labels, kind, message = SHAPES[case]
    with pytest.raises(kind, match=message):
        ChainCRF().fit(given, labels)


@pytest.mark.parametrize("method", ["score", "log_likelihood"])
@pytest.mark.parametrize(
    "case",
    ["no labels", "y is None", "fewer y than X", "a short y", "y is flat", "y is flat and fits",
     "y is a flat list of int", "y holds a str"],
)  # fmt: skip
def test_wrong_labels_are_refused_everywhere(crf, method, case):
    given, labels, kind, message = SHAPES[case]
    with pytest.raises(kind, match=message):
        getattr(crf, method)(given, labels)


METHODS = ["predict", "predict_codes", "predict_marginals", "k_best", "sample", "entropy",
           "node_scores"]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("given", "message"), [(None, "X must be a list of sequences"), ("text", "got str")]
)
def test_what_is_no_list_is_refused_everywhere(crf, method, given, message):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        getattr(crf, method)(given)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_no_sequences_have_an_empty_answer(crf, method, given):
    assert len(getattr(crf, method)(given)) == 0


EMPTY = {
    "attributes": ([], [["a"], ["b"]]),
    "dense": (np.zeros((0, 2)), np.eye(2)),
    "csr": (sp.csr_array((0, 2)), sp.csr_array(np.eye(2))),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("transition_features", [False, True])
def test_empty_sequences_have_empty_answers(kind, place, transition_features):
    nothing, x = EMPTY[kind]
    function = (lambda x: x[1:]) if transition_features else None
    given, labels = [x, x], [["A", "B"], ["A", "B"]]
    plain = ChainCRF(ends=True, random_state=0, transition_features=function).fit(given, labels)
    given.insert(place, nothing)
    labels.insert(place, [])
    crf = ChainCRF(ends=True, random_state=0, transition_features=function).fit(given, labels)
    assert crf.objective_ == pytest.approx(plain.objective_, rel=1e-12)
    np.testing.assert_allclose(crf.weights_, plain.weights_, rtol=0, atol=1e-12)
    for ask in (crf, plain):  # also when there was none in training
        assert ask.predict(given) == labels
        assert ask.predict(given, method="mpm") == labels
        assert ask.predict(given, allowed_transitions=[("A", "B")]) == labels
        assert [len(m) for m in ask.predict_marginals(given)] == [len(t) for t in labels]
        assert ask.predict_marginals(given, "transitions")[place].shape == (0, 2, 2)
        assert ask.k_best(given, 2)[place] == [([], 0.0)]
        assert ask.sample(given, 3)[place] == [[], [], []]
        assert ask.log_likelihood(given, labels)[place] == 0.0
        assert ask.entropy(given)[place] == 0.0
        assert ask.span_probabilities(given, [[], [], []])[place].shape == (0,)
        assert ask.score(given, labels) == 1.0
        assert ask.predict([nothing]) == [[]]
        assert ask.log_likelihood([nothing], [[]]).tolist() == [0.0]


def test_the_score_of_nothing_is_refused(crf):
    with pytest.raises(ValueError, match="nothing to score: no observed label"):
        crf.score([[], []], [[], []])
    with pytest.raises(ValueError, match="nothing to score: no observed label"):
        crf.score([], [])
    with pytest.raises(ValueError, match="no observed label has a positive weight"):
        crf.score(X, Y, sample_weight=[0.0, 0.0])


# ------------------------------------------------------------------------------ unseen, not numbers


def test_unseen_labels_are_wrong_in_score(crf):
    assert crf.predict(X) == Y
    assert crf.score(X, [["A", "new"], ["A", "A", "B"]]) == pytest.approx(4 / 5)
    assert crf.score(X, [["A", 7], ["A", "A", "B"]]) == pytest.approx(4 / 5)


def test_labels_that_are_not_observed_do_not_count_in_score(crf):
    assert crf.score(X, [["A", 7], ["A", None, "B"]]) == pytest.approx(3 / 4)


def test_unseen_labels_have_no_likelihood(crf):
    with pytest.raises(ValueError, match=r"y\[1\]\[2\] is the label 'new', .*not seen in training"):
        crf.log_likelihood(X, [["A", "B"], ["A", "A", "new"]])


def test_unseen_attributes_are_ignored(crf):
    more = [[[*token, "unheard", "of"] for token in x] for x in X]
    np.testing.assert_array_equal(crf.predict_marginals(more)[1], crf.predict_marginals(X)[1])
    unknown, empty = (
        crf.predict_marginals([[["unheard"], ["of"]]]),
        crf.predict_marginals([[[], []]]),
    )
    np.testing.assert_array_equal(unknown[0], empty[0])
    size = crf.coef_.shape
    crf.predict(more)
    assert crf.coef_.shape == size  # and they are not learned by the way


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["float64", "float32", "csr", "dict"])
def test_not_finite_values_are_refused_with_their_place(bad, kind):
    arrays = changed((1, 2), bad)
    given = {
        "float64": arrays,
        "float32": [a.astype(np.float32) for a in arrays],
        "csr": [sp.csr_array(a) for a in arrays],
        "dict": [[{f"x{k}": v for k, v in enumerate(row)} for row in a.tolist()] for a in arrays],
    }[kind]
    fine = {
        "csr": [sp.csr_array(a) for a in DENSE],
        "dict": [[{f"x{k}": v for k, v in enumerate(row)} for row in a.tolist()] for a in DENSE],
    }.get(kind, DENSE)
    with pytest.raises(ValueError, match=r"X\[1\]\[1\].*(NaN or infinity; clean|finite)"):
        ChainCRF().fit(given, DENSE_Y)
    fitted = ChainCRF().fit(fine, DENSE_Y)
    for method in METHODS:
        with pytest.raises(ValueError, match=r"X\[1\]\[1\]"):
            getattr(fitted, method)(given)


def test_not_finite_values_name_their_attribute():
    with pytest.raises(ValueError, match=r"attribute 'len' in X\[0\]\[1\] must be finite, got nan"):
        ChainCRF().fit([[{"len": 1.0}, {"len": np.nan}]], [["A", "B"]])


# --------------------------------------------------------------------------------- strings and keys

STRINGS = ["a", "a\0", "a\0b", "\0", "", "\ud800", "\udfff", "\ud800\udc00", "é", "e\u0301", "😀"]


def test_any_string_is_an_attribute():
    """NUL does not end it, surrogates are kept, and no two are taken for one."""
    labels = [f"L{k:02d}" for k in range(len(STRINGS))]
    for tokens in (
        [[s] for s in STRINGS],
        [{s: 1.0} for s in STRINGS],
        [{"k": s} for s in STRINGS],
    ):
        fitted = ChainCRF(l2=0.01, transitions="none").fit([tokens], [labels])
        assert fitted.predict([tokens]) == [labels]
        assert fitted.coef_.nnz == len(STRINGS)
        names = {name for name, _, _ in fitted.top_features(100)}
        assert names in (set(STRINGS), {f"k:{s}" for s in STRINGS})


def test_any_string_is_a_label():
    tokens = [[f"w{k}"] for k in range(len(STRINGS))]
    fitted = ChainCRF(l2=0.01, transitions="none").fit([tokens], [STRINGS])
    assert fitted.predict([tokens]) == [STRINGS]
    assert fitted.classes_.tolist() == sorted(STRINGS)
    assert [label for _, label, _ in sorted(fitted.top_features(100))]
    assert fitted.score([tokens], [STRINGS]) == 1.0


TOKENS = {
    "an int key": ({1: 1.0}, r"attribute names must be str, got int in X\[0\]\[1\]"),
    "a tuple key": ({("a", 1): 1.0}, r"attribute names must be str, got tuple in X\[0\]\[1\]"),
    "None as key": ({None: 1.0}, r"attribute names must be str, got NoneType in X\[0\]\[1\]"),
    "a nested int key": ({"a": {2: 1.0}}, r"attribute names must be str, got int in X\[0\]\[1\]"),
    "int attributes": ([1, 2], r"attribute names must be str, got int in X\[0\]\[1\]"),
    "bytes": ([b"a"], r"attribute names must be str, got bytes in X\[0\]\[1\]"),
    "a set of int": ({1, 2}, r"attribute names must be str, got int in X\[0\]\[1\]"),
    "a plain str": ("the", r'X\[0\]\[1\] is a str; a token must be .*: write \["\.\.\."\]'),
    "None": (None, r"X\[0\]\[1\] must be a dict, list, tuple or set of attributes, got NoneType"),
    "a number": (3, r"X\[0\]\[1\] must be a dict, list, tuple or set of attributes, got int"),
    "None as value": (
        {"a": None},
        r"attribute 'a' in X\[0\]\[1\] must be a str, a number.*NoneType",
    ),
    "complex": ({"a": 1j}, r"attribute 'a' in X\[0\]\[1\] must be a str, a number.*complex"),
    "bytes as value": ({"a": b"x"}, r"attribute 'a' in X\[0\]\[1\] must be a str, a number.*bytes"),
}


@pytest.mark.parametrize("case", TOKENS)
def test_wrong_tokens_are_refused_with_their_place(crf, case):
    token, message = TOKENS[case]
    with pytest.raises(TypeError, match=message):
        ChainCRF().fit([[["a"], token]], [["A", "B"]])
    with pytest.raises(TypeError, match=message):
        crf.predict([[["a"], token]])


def test_a_container_that_holds_itself_is_refused():
    token = {}
    token["again"] = token
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] is nested too deeply"):
        ChainCRF().fit([[token]], [["A"]])


def test_a_sequence_of_text_is_refused():
    with pytest.raises(TypeError, match=r"X\[1\] must be a list of tokens, got str"):
        ChainCRF().fit([[["a"]], "text"], [["A"], ["A"]])


@pytest.mark.parametrize(
    ("label", "kind", "message"),
    [
        (float("nan"), ValueError, r"y\[1\].*nan.*give every position a label"),
        (["B"], TypeError, r"y\[1\].*hashable"),
        ({"B": 2}, ValueError, r"y\[1\]\[2\] must be probabilities that sum to 1"),
        (frozenset(), ValueError, r"y\[1\]\[2\] is an empty set"),
    ],
)
def test_wrong_labels_are_refused_with_their_place(label, kind, message):
    with pytest.raises(kind, match=message):
        ChainCRF().fit(X, [["A", "B"], ["A", "A", label]])


# -------------------------------------------------------------------------- another kind at predict


def test_another_number_of_columns_is_refused(dense):
    with pytest.raises(ValueError, match=r"X\[1\] must have 3 columns, got 4"):
        dense.predict([np.eye(3), np.eye(4)])
    with pytest.raises(ValueError, match=r"X\[0\] must be an array \[length, 3\], got 1 dim"):
        dense.predict([np.ones(3)])
    sparse = ChainCRF().fit([sp.csr_array(x) for x in DENSE], DENSE_Y)
    with pytest.raises(ValueError, match=r"X\[0\] must have 3 columns, got 4"):
        sparse.predict([sp.csr_array(np.eye(4))])


def test_another_kind_of_input_is_refused(crf, dense):
    with pytest.raises(TypeError, match=r"X\[0\].*must be a dict, list.*got numpy\.ndarray"):
        crf.predict(DENSE)
    with pytest.raises(TypeError, match=r"X\[0\].*must be .*csr_array"):
        crf.predict([sp.csr_array(np.eye(3))])
    with pytest.raises((TypeError, ValueError), match=r"X\[0\] must be an array.*csr_array"):
        dense.predict([sp.csr_array(np.eye(3))])
    with pytest.raises((TypeError, ValueError), match=r"X\[0\] must be (an array|numeric)"):
        dense.predict(X)
    sparse = ChainCRF().fit([sp.csr_array(x) for x in DENSE], DENSE_Y)
    with pytest.raises(TypeError, match=r"X\[0\] must be a SciPy sparse matrix.*ndarray"):
        sparse.predict(DENSE)
    with pytest.raises(TypeError, match=r"X\[0\] must be a SciPy sparse matrix.*list"):
        sparse.predict(X)


def test_another_kind_of_input_is_refused_by_partial_fit():
    with pytest.raises(TypeError, match=r"X\[0\].*must be a dict, list.*got numpy\.ndarray"):
        ChainCRF().fit(X, Y).partial_fit(DENSE, DENSE_Y)


def test_nothing_works_before_fit():
    unfitted = ChainCRF()
    for method in METHODS:
        with pytest.raises(NotFittedError, match="ChainCRF instance is not fitted yet"):
            getattr(unfitted, method)(X)
    for ask in (unfitted.score, unfitted.log_likelihood):
        with pytest.raises(NotFittedError):
            ask(X, Y)
    with pytest.raises(NotFittedError):
        unfitted.span_probabilities(X, [[], []])
    for attribute in ("coef_", "transitions_", "start_", "end_", "intercept_"):
        with pytest.raises(NotFittedError):
            getattr(unfitted, attribute)
    for ask in (unfitted.top_features, unfitted.top_transitions):
        with pytest.raises(NotFittedError):
            ask()


def images(factor):
    rng = np.random.default_rng(0)
    X = [factor * rng.normal(size=(2, 3, 2)) for _ in range(4)]
    return X, [(x[..., 0] > 0).astype(int) for x in X]


def table(n_columns, n_labels):
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, n_columns)), rng.integers(2, size=(12, n_labels))


def rows(n_columns, labels):
    X, _ = table(n_columns, 1)
    return X, np.resize(list(labels), len(X))


@pytest.mark.parametrize(
    ("model", "before", "after"),
    [
        (GridCRF(contrast="auto", max_iter=2), images(1), images(5)),
        (MultiLabelCRF(max_iter=2), table(2, 3), table(4, 5)),
        (CRFClassifier(max_iter=2), rows(2, "ab"), rows(4, "cde")),
    ],
    ids=["images", "sets of labels", "rows"],
)
@pytest.mark.filterwarnings("ignore:solver")
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, before, after):
    model = clone(model).fit(*before)
    held = vars(model).copy()
    with pytest.raises(ValueError, match="validation"):
        model.fit(*after, validation_data=(after[0], after[1][:1]))
    assert vars(model) == held
    with pytest.raises(ValueError, match="batch 1: "):
        model.fit(iter([after, (after[0], after[1][:1])]))
    assert vars(model) == held
