"""One short sequence at a time: the compiled form answers as the batch does, bit for bit."""

import copy
import pickle
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal import ChainCRF
from chordal._errors import InfeasibleError
from chordal.text import Columns

RNG = np.random.default_rng(5)


def sequences(n: int, n_labels: int, values: bool = False) -> tuple[list, list]:
    X, y = [], []
    for _ in range(n):
        length = int(RNG.integers(1, 12))
        names = [[f"f{k}={RNG.integers(9)}" for k in range(4)] for _ in range(length)]
        if values:
            names = [{name: float(RNG.normal()) for name in own} | {"w": own[0]} for own in names]
        X.append(names)
        y.append([f"L{RNG.integers(n_labels)}" for _ in range(length)])
    return X, y


@pytest.mark.parametrize("n_labels", [1, 3, 4, 21, 50])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"ends": True, "fit_intercept": True}, {"transitions": "none"}, {"pairs": "all"}],
    ids=str,
)
def test_as_in_a_batch(n_labels, values, parameters):
    X, y = sequences(40, n_labels, values)
    crf = ChainCRF(max_iter=5, **parameters).fit(X, y)
    X[0] = [["never seen"], *X[0]]
    y[0] = [y[0][0], *y[0]]
    best, marginals = crf.predict(X), crf.predict_marginals(X)
    likelihood = crf.log_likelihood(X, y)
    for i, x in enumerate(X):
        assert crf.predict([x]) == [best[i]] == [crf.quick().best(x)]
        assert crf.classes_[crf.predict_codes([x])].tolist() == best[i]
        sequence = crf.quick().sequence(x)
        assert len(sequence) == len(x)
        assert sequence.best() == best[i]
        table = sequence.marginals()[:, crf.labels_.order]
        assert_array_equal(table, marginals[i])
        assert_array_equal(crf.predict_marginals([x])[0], marginals[i])
        numbers = [crf.labels_.number(label) for label in y[i]]
        assert sequence.marginal(0, numbers[0]) == sequence.marginals()[0, numbers[0]]
        found = sequence.score(numbers) - sequence.log_partition()
        np.testing.assert_allclose(found, likelihood[i], rtol=1e-12, atol=1e-12)


def test_columns_as_in_a_batch():
    X, y = sequences(30, 5)
    crf = ChainCRF(feature_template="U:%x[0,0]\nU:%x[-1,1]/%x[0,1]\nB", max_iter=5).fit(X, y)
    best, marginals = crf.predict(X), crf.predict_marginals(X)
    columns = Columns.from_sequences(X)
    for i, x in enumerate(X):
        for one in ([x], columns[i : i + 1]):
            assert crf.predict(one) == [best[i]]
            assert crf.classes_[crf.predict_codes(one)].tolist() == best[i]
            assert_array_equal(crf.predict_marginals(one)[0], marginals[i])


def test_empty_sequences_of_columns():
    X, y = sequences(5, 2)
    crf = ChainCRF(feature_template="U:%x[0,1]\nB", max_iter=2).fit(X, y)
    assert crf.predict([[]]) == [[]]
    assert crf.predict([[], []]) == [[], []]
    assert crf.predict([[], X[0]]) == [[], *crf.predict([X[0]])]


def test_scores_of_a_wide_range():
    X, y = sequences(30, 4)
    crf = ChainCRF(max_iter=5).fit(X, y)
    crf.weights_ = 5e3 * crf.weights_  # no probability but 0 and 1 is left
    marginals = crf.predict_marginals(X)
    for x, table in zip(X, marginals, strict=True):
        found = crf.quick().sequence(x).marginals()[:, crf.labels_.order]
        assert_array_equal(found, table)
        assert crf.predict([x]) == crf.predict([x, x])[:1]


def test_long_sequences_let_other_threads_run():
    X, y = sequences(20, 30)
    crf = ChainCRF(max_iter=3).fit(X, y)
    long = [X[i % 20][0] for i in range(3000)]
    expected = crf.predict([long, long])[0]
    found = []
    threads = [threading.Thread(target=lambda: found.append(crf.predict([long]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[expected]] * 4


def test_empty_sequences():
    X, y = sequences(5, 2)
    crf = ChainCRF(max_iter=2).fit(X, y)
    assert crf.predict([[]]) == [[]]
    assert crf.predict([]) == []
    assert crf.predict_marginals([[]])[0].shape == (0, 2)
    empty = crf.quick().sequence([])
    assert (len(empty), empty.best(), empty.log_partition()) == (0, [], 0.0)
    assert empty.marginals().shape == (0, 2)


def test_follows_the_weights():
    X, y = sequences(30, 3)
    crf = ChainCRF(max_iter=20, l2=0.1).fit(X, y)
    first = crf.quick()
    assert crf.quick() is first
    swapped = {"L0": "L1", "L1": "L2", "L2": "L0"}
    crf.fit(X, [[swapped[label] for label in own] for own in y])
    assert crf.quick() is not first
    for x in X:
        assert crf.predict([x]) == crf.predict([x, x])[:1]
    small = crf.compact(dtype="float16")
    assert small.predict([X[0]]) == small.predict([X[0], X[0]])[:1]


def test_copies_and_pickles_make_their_own():
    X, y = sequences(10, 3)
    crf = ChainCRF(max_iter=3).fit(X, y)
    expected = crf.predict([X[0]])
    for twin in (copy.copy(crf), copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert twin.predict([X[0]]) == expected


def test_goes_on_learning():
    X, y = sequences(20, 3)
    crf = ChainCRF(max_iter=3).fit(X[:10], y[:10])
    before, quick = crf.predict([X[0]]), crf.quick()
    crf.partial_fit([*X[10:], [["new attribute"]]], [*y[10:], ["L9"]])
    assert quick.best(X[0]) == before[0]  # what was compiled stays as it was
    assert crf.predict([[["new attribute"]]]) == [["L9"]]


def test_where_there_is_none():
    numbers = [np.eye(2), np.eye(2)]
    assert ChainCRF(max_iter=2).fit(numbers, [["a", "b"]] * 2).quick() is None
    rows = [[["x"], ["y"]]]
    columns = ChainCRF(feature_template="U:%x[0,0]\nB", max_iter=2).fit(rows, [["a", "b"]])
    assert columns.quick() is None
    linked = ChainCRF(transition_features=lambda x: [["e"]] * (len(x) - 1), max_iter=2)
    assert linked.fit(rows, [["a", "b"]]).quick() is None
    other = ChainCRF(inference="junction_tree", max_iter=2).fit(rows, [["a", "b"]])
    assert other.quick() is None
    for model, X in ((columns, rows), (linked, rows), (other, rows)):
        assert model.predict(X) == [["a", "b"]]


def test_labels_in_arrays_stay_arrays():
    crf = ChainCRF(max_iter=5).fit([[["a"], ["b"]]], [np.array([3, 5])])
    found = crf.predict([[["a"], ["b"]]])[0]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [3, 5]


@pytest.mark.parametrize("x", ["text", [1], ["word"], [[1]], [{"a": object()}], [{"a": np.nan}]])
def test_errors_are_those_of_a_batch(x):
    X, y = sequences(5, 2)
    crf = ChainCRF(max_iter=2).fit(X, y)
    with pytest.raises((TypeError, ValueError)) as of_batch:
        crf.predict([x, X[0]])
    with pytest.raises(type(of_batch.value)) as of_one:
        crf.predict([x])
    assert str(of_one.value) == str(of_batch.value)


def test_nothing_allowed_is_an_error():
    X, y = sequences(10, 2)
    chain = ChainCRF(max_iter=2, transitions="all").fit(X, y)
    weights = chain.weights_.copy()
    weights[chain.layout_.slices["transitions"]] = -np.inf
    chain.weights_ = weights
    assert chain.quick().best([["a"], ["b"]]) is None
    for ask in (chain.predict, chain.predict_marginals):
        with pytest.raises(InfeasibleError):
            ask([[["a"], ["b"]]])


def test_sizes_are_checked():
    X, y = sequences(5, 2)
    sequence = ChainCRF(max_iter=2).fit(X, y).quick().sequence([["a"], ["b"]])
    with pytest.raises(ValueError, match="a label for each item"):
        sequence.score([0])
    with pytest.raises(ValueError, match="out of range"):
        sequence.score([0, 2])
    with pytest.raises(ValueError, match="no such label"):
        sequence.marginal(2, 0)
    chain, none = ChainCRF(max_iter=2).fit(X, y).quick(), np.zeros(0, dtype=np.int32)
    for offsets in ([], [1], [0, 1], [0, 2, 1, 0]):
        with pytest.raises(ValueError, match="do not fit together"):
            chain.rows(np.array(offsets, dtype=np.int64), none, None)
    for strange in (-1, 10**6):
        with pytest.raises(ValueError, match="has changed"):
            chain.rows(np.array([0, 1]), np.array([strange], dtype=np.int32), None)
