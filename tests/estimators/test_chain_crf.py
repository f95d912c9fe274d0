"""ChainCRF: what goes in, which weights there are, and the optimum they reach."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from chordal import ChainCRF, Status


def objective_of(crf, X, y, listing):
    """Σ −log p + l1 ‖w‖₁ + (l2/2) ‖w‖², by brute force."""
    loss = -sum(listing(crf, x).log_probability(t) for x, t in zip(X, y, strict=True))
    w = crf.weights_
    return loss + crf.l1 * np.abs(w).sum() + 0.5 * crf.l2 * (w @ w)


# ------------------------------------------------------------------------------------ inputs


def one_hot(X):
    """Lists of attribute strings as arrays, a column for each string."""
    names = sorted({a for x in X for t in x for a in t})
    column = {a: k for k, a in enumerate(names)}
    arrays = []
    for x in X:
        array = np.zeros((len(x), len(names)))
        for t, token in enumerate(x):
            for a in token:
                array[t, column[a]] = 1.0
        arrays.append(array)
    return arrays


KINDS = {
    "lists": lambda X: X,
    "tuples": lambda X: tuple(tuple(tuple(t) for t in x) for x in X),
    "sets": lambda X: [[set(t) for t in x] for x in X],
    "dicts of bool": lambda X: [[dict.fromkeys(t, True) for t in x] for x in X],
    "dicts of str": lambda X: [[dict(a.split("=") for a in t if "=" in a) for t in x] for x in X],
    "float64": one_hot,
    "float32": lambda X: [x.astype(np.float32) for x in one_hot(X)],
    "integers": lambda X: [x.astype(np.int8) for x in one_hot(X)],
    "csr_array": lambda X: [sp.csr_array(x) for x in one_hot(X)],
    "csr_matrix": lambda X: [sp.csr_matrix(x) for x in one_hot(X)],
    "coo_array": lambda X: [sp.coo_array(x) for x in one_hot(X)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_is_the_same_model(attribute_problem, kind):
    X, y = attribute_problem
    X = [[[a for a in t if "=" in a] for t in x] for x in X]
    given = KINDS[kind](X)
    parameters = {
        "l2": 0.5,
        "pairs": "all",
        "transitions": "all",
        "fit_intercept": True,
        "tol": 1e-9,
    }
    expected = ChainCRF(**parameters).fit(X, y)
    crf = ChainCRF(**parameters).fit(given, y)
    assert crf.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert crf.predict(given) == expected.predict(X)
    np.testing.assert_allclose(crf.transitions_, expected.transitions_, rtol=0, atol=1e-4)


def test_values_of_attributes_are_those_of_columns(dense_problem):
    X, y = dense_problem
    dicts = [[{f"x{k}": float(v) for k, v in enumerate(row)} for row in x] for x in X]
    dense = ChainCRF(tol=1e-9).fit(X, y)
    named = ChainCRF(tol=1e-9, pairs="all").fit(dicts, y)
    sparse = ChainCRF(tol=1e-9).fit([sp.csr_array(x) for x in X], y)
    assert named.objective_ == pytest.approx(dense.objective_, rel=1e-9)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-9)
    np.testing.assert_allclose(named.coef_.toarray(), dense.coef_, rtol=0, atol=1e-4)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-4)
    assert named.predict(dicts) == dense.predict(X)


def test_dicts_have_the_meaning_of_crfsuite():
    token = {
        "word": "Paris",
        "len": 5.0,
        "upper": True,
        "title": False,
        "next": {"word": "is", "n": 2, "pos": ["V", "VBZ"]},
    }
    crf = ChainCRF().fit([[token, {}]], [["A", "B"]])
    names = {name for name, _, _ in crf.top_features(n=100)}
    assert names == {
        "word:Paris", "len", "upper", "next:word:is", "next:n", "next:pos:V", "next:pos:VBZ"
    }  # fmt: skip
    small, large = (crf.predict_marginals([[{"len": v}]])[0][0, 0] for v in (1.0, 50.0))
    assert large > small


def test_float32_is_close_to_float64(dense_problem):
    X, y = dense_problem
    wide = ChainCRF(tol=1e-9).fit(X, y)
    narrow = ChainCRF(tol=1e-9).fit([x.astype(np.float32) for x in X], y)
    assert narrow.weights_.dtype == np.float64
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=0, atol=1e-4)


def test_inputs_are_left_as_they_are(dense_problem):
    X, y = dense_problem
    given, labels = [x.copy() for x in X], [list(t) for t in y]
    ChainCRF(fit_intercept=True, ends=True).fit(given, labels).predict(given)
    assert all((a == b).all() for a, b in zip(given, X, strict=True))
    assert labels == y


# ----------------------------------------------------------------------- which weights there are


def test_weights_are_for_seen_pairs_and_transitions(attribute_problem):
    X, y = attribute_problem
    pairs = {(a, c) for x, t in zip(X, y, strict=True) for token, c in zip(x, t, strict=True)
             for a in token}  # fmt: skip
    moves = {move for t in y for move in pairwise(t)}
    assert len(moves) < 16 or len(pairs) < 4 * len({a for a, _ in pairs})
    crf = ChainCRF(max_iter=2).fit(X, y)
    assert crf.fit_report_.n_weights == len(pairs) + len(moves)
    assert {(a, c) for a, c, _ in crf.top_features(n=10**6)} == pairs
    none = ChainCRF(max_iter=2, transitions="none").fit(X, y)
    assert none.fit_report_.n_weights == len(pairs)
    assert (none.transitions_ == 0.0).all()


def test_unseen_transitions_stay_possible_at_weight_zero():
    X, y = [[["u"], ["v"]], [["u"], ["u"]]], [["a", "b"], ["a", "a"]]
    crf = ChainCRF().fit(X, y)
    assert (crf.transitions_[0] != 0.0).all()
    assert (crf.transitions_[1] == 0.0).all()
    assert np.isfinite(crf.log_likelihood([[["v"], ["u"]]], [["b", "a"]])).all()


@pytest.mark.parametrize(
    ("parameters", "extra"),
    [
        ({}, 0),
        ({"fit_intercept": True}, 4),
        ({"ends": True}, 8),
        ({"fit_intercept": True, "ends": True}, 12),
    ],
)
def test_all_pairs_and_transitions_on_request(attribute_problem, parameters, extra):
    X, y = attribute_problem
    n_attributes = len({a for x in X for t in x for a in t})
    crf = ChainCRF(max_iter=2, pairs="all", transitions="all", **parameters).fit(X, y)
    assert crf.fit_report_.n_weights == 4 * n_attributes + 16 + extra
    assert crf.coef_.shape == (4, n_attributes)
    assert (crf.intercept_ != 0.0).any() == ("fit_intercept" in parameters)
    assert (crf.start_ != 0.0).any() == (crf.end_ != 0.0).any() == ("ends" in parameters)


@pytest.mark.parametrize("min_freq", [2, 3, 6])
def test_min_freq_leaves_out_rare_pairs(attribute_problem, min_freq):
    X, y = attribute_problem
    pairs = Counter((a, c) for x, t in zip(X, y, strict=True) for token, c in zip(x, t, strict=True)
                    for a in token)  # fmt: skip
    moves = Counter(move for t in y for move in pairwise(t))
    kept = {pair for pair, count in pairs.items() if count >= min_freq}
    assert 0 < len(kept) < len(pairs)
    crf = ChainCRF(max_iter=2, min_freq=min_freq).fit(X, y)
    assert {(a, c) for a, c, _ in crf.top_features(n=10**6)} == kept
    n_moves = sum(count >= min_freq for count in moves.values())
    assert crf.fit_report_.n_weights == len(kept) + n_moves


def test_min_freq_with_all_states_counts_attributes(attribute_problem):
    X, y = attribute_problem
    counts = Counter(a for x in X for t in x for a in t)
    threshold = sorted(counts.values())[len(counts) // 2]
    kept = {a for a, count in counts.items() if count >= threshold}
    crf = ChainCRF(max_iter=2, pairs="all", min_freq=threshold).fit(X, y)
    assert {a for a, _, _ in crf.top_features(n=10**6)} == kept
    assert len(crf.top_features(n=10**6)) == 4 * len(kept)


# ----------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize(
    "parameters", [{}, {"fit_intercept": True, "ends": True}, {"l1": 0.3, "l2": 0.1}]
)
def test_objective_is_what_it_says(dense_problem, listing, parameters):
    X, y = dense_problem
    for max_iter in (2, 1000):
        crf = ChainCRF(max_iter=max_iter, **parameters).fit(X, y)
        assert crf.objective_ == pytest.approx(objective_of(crf, X, y, listing), rel=1e-10)


def test_optimum_has_no_gradient(dense_problem, listing):
    """Gold counts minus expected counts equal l2 times the weights, group by group."""
    X, y = dense_problem
    l2 = 0.3
    crf = ChainCRF(l2=l2, transitions="all", fit_intercept=True, ends=True, tol=1e-12).fit(X, y)
    column = {c: k for k, c in enumerate(crf.classes_.tolist())}
    coef, moves = np.zeros((3, 3)), np.zeros((3, 3))
    ends = {"start": np.zeros(3), "end": np.zeros(3), "intercept": np.zeros(3)}
    for x, t in zip(X, y, strict=True):
        all_of = listing(crf, x)
        surplus = np.eye(3)[[column[c] for c in t]] - all_of.marginals
        coef += surplus.T @ x
        ends["start"] += surplus[0]
        ends["end"] += surplus[-1]
        ends["intercept"] += surplus.sum(axis=0)
        moves -= all_of.transition_marginals.sum(axis=0)
        for a, b in pairwise(t):
            moves[column[a], column[b]] += 1.0
    np.testing.assert_allclose(crf.coef_, coef / l2, rtol=0, atol=1e-5)
    np.testing.assert_allclose(crf.transitions_, moves / l2, rtol=0, atol=1e-5)
    np.testing.assert_allclose(crf.start_, ends["start"] / l2, rtol=0, atol=1e-5)
    np.testing.assert_allclose(crf.end_, ends["end"] / l2, rtol=0, atol=1e-5)
    np.testing.assert_allclose(crf.intercept_, ends["intercept"] / l2, rtol=0, atol=1e-5)
    assert crf.fit_report_.gradient_norm < 1e-5
    assert crf.fit_report_.status is Status.CONVERGED


def test_owlqn_leaves_weights_at_zero_where_the_gradient_is_within_l1(dense_problem, listing):
    X, y = dense_problem
    l1 = 1.5
    crf = ChainCRF(l1=l1, l2=0.0, tol=1e-10).fit(X, y)
    assert crf.fit_report_.solver == "owlqn"
    column = {c: k for k, c in enumerate(crf.classes_.tolist())}
    gradient = np.zeros((3, 3))
    for x, t in zip(X, y, strict=True):
        gradient += (listing(crf, x).marginals - np.eye(3)[[column[c] for c in t]]).T @ x
    zero = crf.coef_ == 0.0
    assert zero.any()
    assert not zero.all()
    assert (np.abs(gradient[zero]) <= l1 + 1e-3).all()
    np.testing.assert_allclose(gradient[~zero], -l1 * np.sign(crf.coef_[~zero]), rtol=0, atol=1e-3)
    assert crf.fit_report_.n_nonzero == np.count_nonzero(crf.weights_)


def test_owlqn_without_l1_finds_the_optimum_of_lbfgs(dense_problem):
    X, y = dense_problem
    smooth = ChainCRF(tol=1e-10).fit(X, y)
    orthant = ChainCRF(solver="owlqn", tol=1e-10).fit(X, y)
    assert orthant.objective_ == pytest.approx(smooth.objective_, rel=1e-8)


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1.0), (0.0, 0.1), (0.4, 0.0), (0.3, 0.2)])
def test_same_optimum_as_crfsuite(attribute_problem, tmp_path, l1, l2):
    crfsuite = pytest.importorskip("pycrfsuite")
    X, y = attribute_problem
    trainer = crfsuite.Trainer(verbose=False)
    for x, t in zip(X, y, strict=True):
        trainer.append(x, t)
    trainer.set_params({"c1": l1, "c2": l2 / 2, "epsilon": 1e-9, "delta": 1e-9, "period": 30})
    trainer.train(str(tmp_path / "model"))
    tagger = crfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))

    crf = ChainCRF(l1=l1, l2=l2, tol=1e-10).fit(X, y)
    loss = trainer.logparser.last_iteration["loss"]
    assert crf.objective_ == pytest.approx(loss, rel=1e-4)
    assert crf.objective_ <= loss * (1 + 1e-6)
    assert crf.predict(X) == [tagger.tag(x) for x in X]
    marginals = crf.predict_marginals(X[:1])[0]
    tagger.set(X[0])
    for t in range(len(X[0])):
        expected = [tagger.marginal(c, t) for c in crf.classes_]
        np.testing.assert_allclose(marginals[t], expected, rtol=0, atol=2e-3)
    for (a, b), weight in tagger.info().transitions.items():
        i, j = crf.classes_.tolist().index(a), crf.classes_.tolist().index(b)
        assert crf.transitions_[i, j] == pytest.approx(weight, abs=2e-2)


# ------------------------------------------------------------------------------------ parameters


def test_integer_weights_are_repetitions(attribute_problem):
    X, y = attribute_problem
    weight = np.arange(len(X)) % 4
    repeated = [i for i, w in enumerate(weight) for _ in range(w)]
    parameters = {"pairs": "all", "transitions": "all", "ends": True, "tol": 1e-13}
    weighted = ChainCRF(**parameters).fit(X, y, sample_weight=weight)
    listed = ChainCRF(**parameters).fit([X[i] for i in repeated], [y[i] for i in repeated])
    assert weighted.objective_ == pytest.approx(listed.objective_, rel=1e-9)
    assert weighted.classes_.tolist() == listed.classes_.tolist()
    np.testing.assert_allclose(weighted.transitions_, listed.transitions_, rtol=0, atol=1e-6)
    mine = {(a, c): w for a, c, w in weighted.top_features(n=10**6)}
    for name, label, value in listed.top_features(n=10**6):
        assert mine[name, label] == pytest.approx(value, abs=1e-6)
    assert not np.allclose(
        weighted.transitions_, ChainCRF(**parameters).fit(X, y).transitions_, rtol=0, atol=1e-3
    )


@pytest.mark.parametrize("kind", ["attributes", "values", "dense", "csr", "transition features"])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, attribute_problem, kind):
    monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", 40)  # many small shards
    X, y = attribute_problem
    function = None
    if kind == "transition features":
        function = lambda x: [[f"{a}&{b}"] for (a, *_), (b, *_) in pairwise(x)]  # noqa: E731
    if kind == "values":
        X = [[{a: 0.1 * len(a) for a in t} for t in x] for x in X]
    elif kind in ("dense", "csr"):
        rng = np.random.default_rng(0)
        X = [rng.normal(size=(len(x), 40)) for x in X]  # columns enough for blocks of columns
        X = [sp.csr_array(x) for x in X] if kind == "csr" else X
    fitted = [
        ChainCRF(n_jobs=n, max_iter=30, ends=True, transition_features=function).fit(X, y)
        for n in (1, 2, 3)
    ]
    assert fitted[0].n_iter_ > 5
    for other in fitted[1:]:
        assert (other.weights_ == fitted[0].weights_).all()
        assert other.objective_ == fitted[0].objective_
        assert other.predict(X) == fitted[0].predict(X)
        for a, b in zip(other.predict_marginals(X), fitted[0].predict_marginals(X), strict=True):
            assert (a == b).all()


def test_any_process_gives_the_same_bits():
    """Sets have another order under another hash seed; the weights must not."""
    code = (
        "from chordal import ChainCRF\n"
        "X = [[{'a', 'b', 'c%d' % i}, {'c', 'd', 'e'}] for i in range(5)]\n"
        "crf = ChainCRF().fit(X, [['A', 'B']] * 5)\n"
        "print(crf.weights_.tobytes().hex(), crf.top_features(20))\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_solver_objective_and_inference_may_be_objects(dense_problem):
    from chordal.inference.chain import ChainInference
    from chordal.objectives.likelihood import Likelihood
    from chordal.solvers.lbfgs import LBFGS

    X, y = dense_problem
    named = ChainCRF(max_iter=7).fit(X, y)
    objects = ChainCRF(Likelihood(), LBFGS(max_iter=7), ChainInference()).fit(X, y)
    assert (named.weights_ == objects.weights_).all()
    log = ChainCRF(inference=ChainInference(domain="log"), max_iter=7).fit(X, y)
    assert log.objective_ == pytest.approx(named.objective_, rel=1e-9)
    exhaustive = ChainCRF(inference="exhaustive", max_iter=7).fit(X, y)
    assert exhaustive.objective_ == pytest.approx(named.objective_, rel=1e-9)
    assert exhaustive.fit_report_.inference == "exhaustive"


def test_a_solver_object_does_not_drop_l1(dense_problem):
    from chordal.solvers.lbfgs import LBFGS

    with pytest.raises(ValueError, match="l1"):
        ChainCRF(solver=LBFGS(), l1=1.0).fit(*dense_problem)
