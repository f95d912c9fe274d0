"""Wrong parameters, arguments and questions: each is refused by name."""

import numpy as np
import pytest

from chordal import ChainCRF

X = [[["a", "b"], ["c"]], [["a"], ["b"], ["c"]]]
Y = [["A", "B"], ["A", "A", "B"]]
DENSE = [np.eye(3), np.eye(3)[:2]]
DENSE_Y = [["a", "b", "c"], ["a", "b"]]


@pytest.fixture(scope="module")
def crf():
    return ChainCRF().fit(X, Y)


PARAMETERS = [
    ({"l1": -1}, r"l1 must be a number of at least 0, got -1"),
    ({"l2": -0.5}, r"l2 must be a number of at least 0, got -0.5"),
    ({"l2": np.nan}, r"l2 must be .*got nan"),
    ({"l2": np.inf}, r"l2 must be .*got inf"),
    ({"l2": "1"}, r"l2 must be .*got '1'"),
    ({"l2": None}, r"l2 must be .*got None"),
    ({"l1": True}, r"l1 must be .*got True"),
    ({"tol": -1e-3}, r"tol must be .*got -0.001"),
    ({"tol": np.nan}, r"tol must be .*got nan"),
    ({"max_iter": 0}, r"max_iter must be an integer of at least 1, got 0"),
    ({"max_iter": 10.5}, r"max_iter must be an integer .*got 10.5"),
    ({"max_iter": "10"}, r"max_iter must be an integer .*got '10'"),
    ({"min_freq": -1}, r"min_freq must be an integer of at least 0, got -1"),
    ({"min_freq": 1.5}, r"min_freq must be an integer .*got 1.5"),
    ({"validation_interval": 0}, r"validation_interval must be .*at least 1, got 0"),
    ({"n_iter_no_change": 0}, r"n_iter_no_change must be .*at least 1, got 0"),
    ({"pairs": "some"}, r"pairs must be one of 'seen', 'all'; got 'some'"),
    ({"transitions": "al"}, r"transitions must be one of 'seen', 'all', 'none'; got 'al'"),
    ({"n_jobs": 0}, r"n_jobs must not be 0; use None or 1 for one thread, -1 for all cores"),
    ({"n_jobs": "2"}, r"n_jobs must .*got '2'"),
    ({"n_jobs": 1.5}, r"n_jobs must .*got 1.5"),
    ({"verbose": "a"}, r"verbose must .*got 'a'"),
    ({"solver": "lbgfs"}, r"unknown solver 'lbgfs'; did you mean 'lbfgs'\? There are: .*'owlqn'"),
    ({"solver": "simplex"}, r"unknown solver 'simplex'; there are: .*'arow', .*'lbfgs', .*'owlqn'"),
    ({"objective": "likelyhood"}, r"unknown objective .*did you mean 'likelihood'\?"),
    ({"inference": "chian"}, r"unknown inference 'chian'; did you mean 'chain'\? There are: "),
    ({"solver": 3}, r"solver must be a name \(one of .*'lbfgs', .*\) or .*Solver, got 3"),
    ({"objective": None}, r"objective must be a name .*got None"),
    ({"inference": None}, r"inference must be a name .*got None"),
]


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS, ids=lambda value: str(value)[:30])
def test_wrong_parameters_are_refused(parameters, message):
    unfitted = ChainCRF(**parameters)
    with pytest.raises((ValueError, TypeError), match=message):
        unfitted.fit(X, Y)
    assert not hasattr(unfitted, "weights_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sample_weight": [1.0]},
            r"sample_weight must have one entry per sequence \(2\), got .*1",
        ),
        ({"sample_weight": [1.0, -1.0]}, r"sample_weight must be finite and not negative"),
        ({"sample_weight": [1.0, np.nan]}, r"sample_weight must be finite and not negative"),
        ({"sample_weight": ["a", "b"]}, r"sample_weight must be"),
        ({"validation_data": (X,)}, r"validation_data must be"),
        ({"validation_data": 3}, r"validation_data must be"),
        ({"validation_data": (X, Y[:1])}, r"validation.*got 2 and 1"),
        ({"validation_data": (X, [["A"], ["A"]])}, r"validation.*got 2 and 1"),
        ({"validation_data": ([], [])}, r"validation X is empty"),
        ({"validation_data": ([[["a"]]], [[None]])}, r"validation y has no observed label"),
        ({"validation_data": ([[]], [[]])}, r"validation y has no observed label"),
        ({"callback": 3}, r"callback must be"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_arguments_of_fit_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ChainCRF().fit(X, Y, **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda crf: crf.predict(X, method="viterbi"), r"method must be one of 'map', 'mpm'; got "),
        (lambda crf: crf.k_best(X, 0), r"k must be an integer of at least 1, got 0"),
        (lambda crf: crf.k_best(X, 2.5), r"k must be an integer of at least 1, got 2.5"),
        (lambda crf: crf.sample(X, 0), r"n_samples must be an integer of at least 1, got 0"),
        (lambda crf: crf.span_probabilities(X, [[]]), r"one list per sequence \(2\), got 1"),
        (
            lambda crf: crf.span_probabilities(X, [[], [(0, 4, "A")]]),
            r"segment \(0, 4, 'A'\) of sequence 1 must satisfy 0 <= start < end <= 3",
        ),
        (lambda crf: crf.span_probabilities(X, [[], [(1, 1, "A")]]), r"start < end"),
        (lambda crf: crf.span_probabilities(X, [[], [(-1, 1, "A")]]), r"0 <= start"),
        (lambda crf: crf.span_probabilities(X, [[], [(0.5, 1, "A")]]), r"segment \(0.5, 1"),
        (lambda crf: crf.span_probabilities(X, [[(0, 1)], []]), r"label\), got \(0, 1\)"),
        (lambda crf: crf.span_probabilities(X, [[(0, 1, "Q")], []]), r"label 'Q'.*'A', 'B'"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(crf, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(crf)


def test_a_wrong_span_is_named_by_its_place_in_X(crf, monkeypatch):
    monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", 1)
    with pytest.raises(ValueError, match=r"of sequence 1 must"):
        crf.span_probabilities(X, [[], [(0, 4, "A")]])


def test_not_finite_transition_features_name_their_function():
    """X[0] has no transition, so the first observed sequence is X[1]."""
    with pytest.raises(ValueError, match=r"transition_features: X\[1\]\[0\] has NaN"):
        ChainCRF(transition_features=lambda x: np.nan * x[1:]).fit(
            [np.eye(3)[:1], np.eye(3)], [["a"], ["a", "b", "c"]]
        )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, r"transition_features must be .*got 3"),
        (
            lambda x: x,
            r"transition_features must have one row per clique, got 3 rows for 2 .*X\[0\]",
        ),
        (lambda _: None, r"transition_features must be rows, got NoneType for X\[0\]"),
        (lambda x: x[1:, 0], r"transition_features"),
        (lambda x: x[1:, : len(x)], r"transition_features: X\[1\] must have 3 columns, got 2"),
    ],
    ids=["not a function", "rows", "None", "one dimension", "columns"],
)
def test_wrong_transition_features_are_refused(function, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ChainCRF(transition_features=function).fit(DENSE, DENSE_Y)
