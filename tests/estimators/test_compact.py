"""Compact models: fewer and shorter weights, and a report that tells what that cost."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from chordal import ChainCRF, FeatureTemplate
from chordal.model_file import load, save

RNG = np.random.default_rng(5)
LENGTHS = (5, 1, 4, 7, 3, 6)
WORDS = [[f"w{RNG.integers(12)}" for _ in range(n)] for n in LENGTHS]
Y = [[("A", "B", "C", "D")[(int(w[1:]) + RNG.integers(2)) % 4] for w in x] for x in WORDS]
LISTS = [[[w, f"before={x[t - 1]}", w[-1:]] for t, w in enumerate(x)] for x in WORDS]
VALUES = [[{"w": w, "at": t / 3} for t, w in enumerate(x)] for x in WORDS]
COLUMNS = [[[w, str(t)] for t, w in enumerate(x)] for x in WORDS]
DENSE = [RNG.normal(size=(n, 3)) for n in LENGTHS]
SPARSE = [sp.csr_array(np.round(x)) for x in DENSE]
TEMPLATE = FeatureTemplate("U:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB\nB1:%x[0,0]")

NAMED = {
    "lists": ({"l1": 0.4, "ends": True}, LISTS),
    "values": ({"l1": 0.4, "fit_intercept": True}, VALUES),
    "all states": ({"l1": 0.4, "pairs": "all", "transitions": "all"}, LISTS),
    "template": ({"l1": 0.2, "feature_template": TEMPLATE}, COLUMNS),
}
UNNAMED = {"dense": ({"l1": 0.5}, DENSE), "sparse": ({"l1": 0.5, "ends": True}, SPARSE)}


def fitted(kind):
    parameters, X = {**NAMED, **UNNAMED}[kind]
    return ChainCRF(**parameters).fit(X, Y), X


def weights_by_name(crf):
    """Every weight that is not zero, under a name that does not depend on the layout."""
    found = {}
    for part in ("node", "edge"):
        source, rows = crf.reader_.input(part), crf.layout_[part].rows
        if rows is not None:
            keys, weights = rows.keys(), crf.weights_[crf.layout_.slices[part]]
            for column, output, w in zip(keys.column, keys.output, weights, strict=True):
                found[part, source.name(int(column)), int(output)] = w
    for (i, j), w in np.ndenumerate(crf.transitions_):
        found["transition", i, j] = w
    for name in ("start_", "end_", "intercept_"):
        for k, w in enumerate(getattr(crf, name)):
            found[name, k] = w
    return {name: w for name, w in found.items() if w != 0}


@pytest.mark.parametrize("kind", [*NAMED, *UNNAMED])
def test_without_a_threshold_only_zeros_go(kind):
    crf, X = fitted(kind)
    zeros = int((crf.weights_ == 0).sum())
    assert zeros > 0
    small = crf.compact(X=X, y=Y)
    assert weights_by_name(small) == weights_by_name(crf)
    assert small.predict(X) == crf.predict(X)
    for a, b in zip(small.predict_marginals(X), crf.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)
    np.testing.assert_allclose(small.log_likelihood(X, Y), crf.log_likelihood(X, Y), rtol=1e-12)
    report = small.compact_report_
    assert (report.largest_dropped, report.largest_rounding, report.labels_changed) == (0, 0, 0)
    assert report.accuracy == report.accuracy_before == crf.score(X, Y)
    assert (report.n_weights_before, report.n_weights) == (len(crf.weights_), len(small.weights_))
    if kind in NAMED:
        assert len(small.weights_) < len(crf.weights_)
        node = small.weights_[small.layout_.slices["node"]]
        assert (node != 0).all()


@pytest.mark.parametrize("kind", [*NAMED, *UNNAMED])
def test_a_threshold_drops_what_is_small_and_nothing_else(kind):
    crf, _ = fitted(kind)
    threshold = float(np.quantile(np.abs(crf.weights_[crf.weights_ != 0]), 0.6))
    small = crf.compact(threshold=threshold)
    before, after = weights_by_name(crf), weights_by_name(small)
    stays = {"start_", "end_", "intercept_", *(() if kind in NAMED else ("node",))}
    expected = {k: w for k, w in before.items() if k[0] in stays or abs(w) > threshold}
    assert after == expected
    assert len(after) < len(before)
    dropped = [abs(w) for k, w in before.items() if k not in after]
    assert small.compact_report_.largest_dropped == max(dropped)
    assert small.compact_report_.n_weights == len(small.weights_)


@pytest.mark.parametrize("kind", NAMED)
def test_attributes_without_weights_are_forgotten(kind):
    crf, X = fitted(kind)
    small = crf.compact(threshold=0.5)
    keys = small.layout_["node"].rows.keys()
    assert (
        small.reader_.inputs[0].n_columns
        == len(np.unique(keys.column))
        < crf.reader_.inputs[0].n_columns
    )
    names = small.reader_.inputs[0].vocabulary.names()
    assert [small.reader_.inputs[0].vocabulary.find(name) for name in names] == list(
        range(len(names))
    )
    assert small.predict(X) is not None


def test_a_threshold_above_all_leaves_a_model_that_knows_nothing(tmp_path):
    crf = ChainCRF().fit(LISTS, Y)
    empty = crf.compact(threshold=1e9)
    assert len(empty.weights_) == 0
    save(empty, tmp_path / "model")
    for model in (empty, load(tmp_path / "model")):
        for marginals in model.predict_marginals(LISTS):
            np.testing.assert_allclose(marginals, 0.25, rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["lists", "dense", "template"])
def test_weights_are_rounded_to_the_dtype(kind, dtype):
    crf, X = fitted(kind)
    small = crf.compact(dtype=dtype, X=X)
    before, after = weights_by_name(crf), weights_by_name(small)
    assert after == {k: float(np.dtype(dtype).type(w)) for k, w in before.items()}
    assert small.weights_.dtype == np.float64
    error = max(abs(after[k] - before[k]) for k in before)
    assert small.compact_report_.largest_rounding == error
    assert (error > 0) == (dtype != "float64")
    found = [a != b for p, q in zip(crf.predict(X), small.predict(X), strict=True)
             for a, b in zip(p, q, strict=True)]  # fmt: skip
    assert small.compact_report_.labels_changed == np.mean(found)


def test_weights_too_large_for_float16_are_refused():
    crf, _ = fitted("lists")
    crf.weights_ = crf.weights_ * (70_000 / np.abs(crf.weights_).max())
    with pytest.raises(ValueError, match="too large for float16; use a wider dtype"):
        crf.compact(dtype="float16")
    assert np.isfinite(crf.compact(dtype="float32").weights_).all()


def test_the_report_tells_what_changed():
    crf = ChainCRF(l2=0.1).fit(LISTS, Y)
    small = crf.compact(threshold=1.2, X=iter(LISTS), y=iter(Y))
    report = small.compact_report_
    pairs = [pair for p, q in zip(crf.predict(LISTS), small.predict(LISTS), strict=True)
             for pair in zip(p, q, strict=True)]  # fmt: skip
    assert 0 < report.labels_changed < 1
    assert report.labels_changed == sum(a != b for a, b in pairs) / len(pairs)
    assert report.accuracy_before == crf.score(LISTS, Y)
    assert report.accuracy == small.score(LISTS, Y) < report.accuracy_before
    assert f"{report.n_weights:,} of {report.n_weights_before:,} weights kept" in str(report)
    without_y = crf.compact(threshold=1.2, X=LISTS).compact_report_
    assert (without_y.labels_changed, without_y.accuracy) == (report.labels_changed, None)
    assert crf.compact().compact_report_.labels_changed is None
    assert crf.compact(X=[]).compact_report_.labels_changed == 0.0
    assert "labels changed" not in str(crf.compact().compact_report_)


def test_arrays_of_labels_are_compared_one_by_one():
    y = [np.array(labels) for labels in Y]
    report = ChainCRF().fit(LISTS, y).compact(X=LISTS, y=y).compact_report_
    assert report.labels_changed == 0.0
    assert report.accuracy == report.accuracy_before > 0.5


def test_the_model_itself_stays_as_it_was():
    crf, X = fitted("lists")
    before = pickle.dumps(crf)
    small = crf.compact(threshold=0.3, dtype="float16", X=X, y=Y)
    assert small is not crf
    assert pickle.dumps(crf) == before
    assert not hasattr(crf, "compact_report_")


@pytest.mark.parametrize("kind", [*NAMED, *UNNAMED])
def test_a_compact_model_is_saved_and_trained_like_any_other(kind, tmp_path):
    crf, X = fitted(kind)
    small = crf.compact(threshold=0.05, dtype="float32")
    save(small, tmp_path / "model")
    loaded = load(tmp_path / "model")
    again = loaded.compact(threshold=0.05, dtype="float32")
    assert weights_by_name(loaded) == weights_by_name(small) == weights_by_name(again)
    for a, b in zip(loaded.predict_marginals(X), small.predict_marginals(X), strict=True):
        assert np.array_equal(a, b)
    small.partial_fit(X, Y)
    loaded.partial_fit(X, Y)
    assert weights_by_name(loaded) == weights_by_name(small)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": -1}, "threshold must be a number of at least 0, got -1"),
        ({"threshold": float("nan")}, "threshold must be a number"),
        ({"threshold": "a"}, "threshold must be a number"),
        ({"dtype": "float8"}, "dtype must be one of 'float64', 'float32', 'float16'; got 'float8'"),
        ({"y": Y}, "y needs X"),
        ({"X": LISTS, "y": Y[:-1]}, "same number of sequences, got 6 and 5"),
        ({"X": LISTS, "y": [*Y[1:], Y[0]]}, r"X\[0\] and y\[0\] must have the same length"),
        ({"X": LISTS, "y": ["AAAAA", *Y[1:]]}, r"y\[0\] must be a list of labels, got str"),
        ({"X": [], "y": []}, "nothing to score"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ChainCRF().fit(LISTS, Y).compact(**arguments)


def test_an_unfitted_model_cannot_be_compact():
    with pytest.raises(ValueError, match="not fitted"):
        ChainCRF().compact()
