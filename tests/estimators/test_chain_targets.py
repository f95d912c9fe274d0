"""ChainCRF from labels that are missing, ambiguous or uncertain, and with costs of errors."""

import copy
from itertools import groupby

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal import ChainCRF
from chordal._errors import UnsupportedError
from chordal.costs.chunk import ChunkCost
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.model_file import load, save
from chordal.objectives.hinge import Hinge
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.objectives.stochastic_likelihood import StochasticLikelihood


def tagged(n, rng, noise=0.15):
    """Sequences whose labels follow each other in a ring and show in noisy attributes."""
    X, y = [], []
    for _ in range(n):
        labels = [int(rng.integers(3))]
        for _ in range(int(rng.integers(3, 9))):
            labels.append((labels[-1] + int(rng.choice([0, 1], p=[0.2, 0.8]))) % 3)
        shown = [int(rng.integers(3)) if rng.random() < noise else k for k in labels]
        X.append([[f"a{k}", f"b{int(rng.integers(5))}"] for k in shown])
        y.append(["xyz"[k] for k in labels])
    return X, y


def masked(y, share, rng):
    return [[None if rng.random() < share else label for label in s] for s in y]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_sets_of_one_label_are_labels(rng):
    X, y = tagged(30, rng)
    plain = ChainCRF(tol=1e-10).fit(X, y)
    sets = ChainCRF(tol=1e-10).fit(X, [[{label} for label in s] for s in y])
    assert sets.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert_allclose(sets.transitions_, plain.transitions_, atol=1e-4)


def test_distributions_on_one_label_are_labels(rng):
    X, y = tagged(30, rng)
    plain = ChainCRF(tol=1e-10).fit(X, y)
    for soft in ([[{label: 1.0} for label in s] for s in y], [one_hot(s) for s in y]):
        given = [y[0], *soft[1:]]  # labels and distributions may stand side by side
        other = ChainCRF(tol=1e-10).fit(X, given)
        assert list(other.classes_) == list(plain.classes_)
        assert other.objective_ == pytest.approx(plain.objective_, rel=1e-9)
        assert_allclose(other.transitions_, plain.transitions_, atol=1e-4)


def one_hot(labels):
    return np.array([[label == c for c in "xyz"] for label in labels], dtype=float)


def test_soft_targets_of_a_repeated_sequence_are_its_label_frequencies():
    # One variable: the weighted mean of log-losses is the loss against the mean of indicators.
    X, many = [[["a"]]] * 4, [["u"], ["u"], ["u"], ["v"]]
    hard = ChainCRF(l2=0.4, fit_intercept=True, tol=1e-12).fit(X, many)
    soft = ChainCRF(l2=0.1, fit_intercept=True, tol=1e-12).fit(X[:1], [[{"u": 0.75, "v": 0.25}]])
    assert soft.predict_marginals(X[:1])[0][0] == pytest.approx(hard.predict_marginals(X[:1])[0][0])


def test_arrays_alone_name_classes_by_column():
    crf = ChainCRF(l2=0.1).fit([np.eye(2), np.eye(2)], [np.array([[0.9, 0.1], [0.2, 0.8]])] * 2)
    assert list(crf.classes_) == [0, 1]
    assert [found.tolist() for found in crf.predict([np.eye(2)])] == [[0, 1]]


def test_partly_masked_data_beat_what_is_left_without_them(rng):
    X, y = tagged(400, rng, noise=0.35)
    new_X, new_y = tagged(400, rng, noise=0.35)
    hidden = masked(y, 0.6, rng)
    complete = [i for i, s in enumerate(hidden) if None not in s]
    everything = ChainCRF(l2=0.1).fit(X, hidden)
    dropped = ChainCRF(l2=0.1).fit([X[i] for i in complete], [y[i] for i in complete])
    assert 0 < len(complete) < 40
    assert everything.score(new_X, new_y) > dropped.score(new_X, new_y) + 0.02


def test_the_objective_of_masked_data_is_log_z_minus_log_z_allowed(rng):
    X, y = tagged(5, rng)
    crf = ChainCRF(l2=0.0, max_iter=3).fit(X, masked(y, 0.4, np.random.default_rng(1)))
    allowed = [
        [None if v is None else [v] for v in s] for s in masked(y, 0.4, np.random.default_rng(1))
    ]
    possible = [sum_of_probabilities(crf, [x], [a]) for x, a in zip(X, allowed, strict=True)]
    assert crf.objective_ == pytest.approx(-np.log(possible).sum(), rel=1e-9)


def sum_of_probabilities(crf, X, allowed):
    """Σ p(y | x) over the allowed labellings, from all of them."""
    ranked = crf.k_best(X, k=3 ** len(X[0]))[0]
    return sum(
        np.exp(chance)
        for labels, chance in ranked
        if all(a is None or label in a for a, label in zip(allowed[0], labels, strict=True))
    )


def test_the_same_weights_for_any_number_of_threads(rng):
    X, y = tagged(40, rng)
    given = masked(y, 0.3, rng)
    one, two = (ChainCRF(n_jobs=k, max_iter=20).fit(X, given) for k in (1, 2))
    assert (one.weights_ == two.weights_).all()


def test_transition_features_meet_every_possible_pair():
    crf = ChainCRF(transition_features=lambda x: [["e"]] * (len(x) - 1), transitions="none", l2=0.1)
    crf.fit([[["a"], ["b"]], [["a"], ["b"]]], [["u", {"v", "w"}], ["u", "w"]])
    assert crf.layout_["edge"].n_row_weights == 2  # u–v and u–w


BAD = [
    ([["x", set()]], "empty set"),
    ([[None, None]], "names no label"),
    ([[{"x": 0.5, "y": 0.4}, "x"]], r"y\[0\]\[0\] must be probabilities that sum to 1"),
    ([[{"x": 1.5, "y": -0.5}, "x"]], "must be probabilities"),
    ([[{"x": "all"}, "x"]], "must be a probability"),
    ([[{"x": 1.0}, None]], "must not mix"),
    ([["x", ["y"]]], "hashable"),
]


@pytest.mark.parametrize(("y", "message"), BAD)
def test_bad_targets_are_refused(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ChainCRF().fit([[["a"], ["b"]]], y)


def test_a_matrix_of_other_classes_is_refused():
    X, y = [[["a"]], [["b"]]], [["u"], np.array([[0.2, 0.3, 0.5]])]
    with pytest.raises(ValueError, match="probabilities of the 1 classes"):
        ChainCRF().fit(X, y)


@pytest.mark.parametrize("value", [{"x", "y"}, {"x": 0.5, "y": 0.5}], ids=["partial", "soft"])
def test_what_cannot_use_them_refuses_by_name(value):
    X, y = [[["a"], ["b"], ["c"]]], [["x", value, "z"]]
    others = ("softmax_margin", "perceptron", "pseudo_likelihood")
    for objective in (*others, *["hinge"] * isinstance(value, dict)):  # which completes sets
        with pytest.raises(UnsupportedError, match=f"objective '{objective}' needs one label"):
            ChainCRF(objective=objective).fit(X, y)
    with pytest.raises(UnsupportedError, match="solver 'sgd' needs one label"):
        ChainCRF(solver="sgd").fit(X, y)


OTHERS = ["hinge", "softmax_margin", "pseudo_likelihood"]


@pytest.mark.parametrize("objective", OTHERS)
def test_what_cannot_use_them_learns_from_the_chains_between_what_is_not_observed(objective, rng):
    X, y = tagged(12, rng)
    given = masked(y, 0.3, rng)
    runs = [
        list(run)
        for x, labels in zip(X, given, strict=True)
        for seen, run in groupby(zip(x, labels, strict=True), key=lambda pair: pair[1] is not None)
        if seen
    ]
    apart = [[token for token, _ in run] for run in runs], [[tag for _, tag in run] for run in runs]
    # A solver of the whole objective: a chain with gaps is one example, and its runs are several.
    solver = "one_slack" if objective == "hinge" else "lbfgs"
    crf = ChainCRF(objective, solver, max_iter=5).fit(X, given)
    expected = ChainCRF(objective, solver, max_iter=5).fit(*apart)
    assert crf.objective_ == pytest.approx(expected.objective_, rel=1e-10)
    assert_allclose(crf.transitions_, expected.transitions_, rtol=0, atol=1e-10)
    assert crf.predict(X) == expected.predict(X)


@pytest.mark.parametrize("objective", ["hinge", "softmax_margin"])
def test_class_weight_is_a_weighted_hamming_cost(objective, rng):
    X, y = tagged(40, rng)
    cost = WeightedHamming({"x": 3.0})
    loss = Hinge(cost) if objective == "hinge" else SoftmaxMargin(cost)
    by_cost = ChainCRF(loss, max_iter=10).fit(X, y)
    by_weight = ChainCRF(objective, class_weight={"x": 3.0}, max_iter=10).fit(X, y)
    plain = ChainCRF(objective, max_iter=10).fit(X, y)
    assert (by_cost.weights_ == by_weight.weights_).all()
    assert by_cost.objective_ != plain.objective_


def test_a_matrix_of_costs_is_in_the_order_of_the_classes(rng):
    X, y = tagged(20, rng)
    y = [[{"x": "b", "y": "c", "z": "a"}[label] for label in s] for s in y]  # not by frequency
    matrix = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    named = {(g, p): matrix["abc".index(g), "abc".index(p)] for g in "abc" for p in "abc"}
    by_matrix, by_name = (
        ChainCRF(SoftmaxMargin(WeightedHamming(costs)), max_iter=5).fit(X, y)
        for costs in (matrix, named)
    )
    assert (by_matrix.weights_ == by_name.weights_).all()


def test_class_weight_raises_the_recall_of_its_label(rng):
    X, y = tagged(200, rng, noise=0.6)
    recall = {}
    for weight in (1.0, 8.0):
        crf = ChainCRF("softmax_margin", class_weight={"y": weight}).fit(X, y)
        found = [a == b for s, p in zip(y, crf.predict(X), strict=True)
                 for a, b in zip(s, p, strict=True) if a == "y"]  # fmt: skip
        recall[weight] = np.mean(found)
    assert recall[8.0] > recall[1.0] + 0.05


def test_balanced_weights_are_those_of_scikit_learn(rng):
    from sklearn.utils.class_weight import compute_class_weight

    X, y = tagged(20, rng)
    flat = [label for s in y for label in s]
    weights = compute_class_weight("balanced", classes=np.array(list("xyz")), y=np.array(flat))
    given = dict(zip("xyz", weights, strict=True))
    by_name, by_hand = (
        ChainCRF("hinge", class_weight=w, max_iter=5).fit(X, y) for w in ("balanced", given)
    )
    assert_allclose(by_name.weights_, by_hand.weights_, rtol=1e-12)


def test_class_weight_where_errors_have_no_cost_is_refused(rng):
    X, y = tagged(3, rng)
    with pytest.raises(UnsupportedError, match="objective 'likelihood' does not have"):
        ChainCRF(class_weight="balanced").fit(X, y)
    with pytest.raises(
        UnsupportedError, match="needs a cost of single labels, which 'chunk' is not"
    ):
        ChainCRF(Hinge(ChunkCost()), class_weight={"x": 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="unknown label 'q'"):
        ChainCRF("hinge", class_weight={"q": 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight must be None, 'balanced' or a dict"):
        ChainCRF("hinge", class_weight=3).fit(X, y)
    with pytest.raises(ValueError, match="neither a label nor a pair"):
        ChainCRF(Hinge(WeightedHamming({"q": 2.0}))).fit(X, y)


def test_class_weight_survives_a_model_file(rng, tmp_path):
    X, y = tagged(5, rng)
    crf = ChainCRF("hinge", class_weight={"x": 2.0}, max_iter=3).fit(X, y)
    save(crf, tmp_path / "m.chordal")
    assert load(tmp_path / "m.chordal").class_weight == {"x": 2.0}


def test_impossible_pairs_are_refused_by_name(rng):
    X, y = tagged(3, rng)
    cases = {
        "objective 'crammer_singer' is for single variables": "crammer_singer",
        "objective 'hinge' with scaling='slack'": Hinge(ChunkCost(), scaling="slack"),
        "solver 'lbfgs' compares values": StochasticLikelihood(),
    }
    for message, objective in cases.items():
        with pytest.raises(UnsupportedError, match=message):
            ChainCRF(objective, "lbfgs" if "lbfgs" in message else "auto").fit(X, y)
    with pytest.raises(UnsupportedError, match=r"'likelihood' needs log_partition.*'gibbs'"):
        ChainCRF(inference="gibbs").fit(X, y)


def test_every_objective_by_name_trains(rng):
    X, y = tagged(60, rng)
    for objective in ("hinge", "softmax_margin", "pseudo_likelihood"):
        crf = ChainCRF(objective, max_iter=30, l2=0.1).fit(X, y)
        assert crf.score(X, y) > 0.8, objective
    slack = ChainCRF(Hinge(scaling="slack"), max_iter=30, l2=0.1).fit(X, y)
    assert slack.score(X, y) > 0.8


def test_parameters_are_left_as_they_were(rng):
    X, y = tagged(5, rng)
    cost = WeightedHamming({"x": 2.0})
    crf = ChainCRF(SoftmaxMargin(cost), max_iter=3)
    before = copy.deepcopy(vars(cost))
    crf.fit(X, y)
    assert vars(cost) == before
    assert crf.objective.cost is cost
