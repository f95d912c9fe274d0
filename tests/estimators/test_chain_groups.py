"""Groups of weights: a penalty for each, and some that stay where they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from chordal import ChainCRF, UnsupportedError, load, save
from chordal.estimators import chain_batch, chain_layout
from chordal.estimators.chain_crf import GROUPS
from chordal.execution.serial import Serial
from chordal.features import input_for
from chordal.inference.chain import ChainInference
from chordal.objectives.likelihood import Likelihood
from chordal.oracle import PartialOracle, SummedOracle
from chordal.oracle.examples import ExampleOracle
from chordal.solvers import SOLVERS

L2 = {"node": 0.3, "edge": 2.0, "transitions": 1.5, "intercept": 0.0, "start": 0.7, "end": 4.0}
EXACT = {"tol": 1e-10, "max_iter": 5000}


def steps(x):
    return np.diff(x, axis=0)


def full(**parameters):
    return ChainCRF(
        **{
            **{
                "fit_intercept": True,
                "ends": True,
                "transitions": "all",
                "transition_features": steps,
            },
            **EXACT,
            **parameters,
        }
    )


def penalty(crf, l2):
    """Σ over groups of l2/2 ‖w‖², from the weights that users see."""
    seen = {
        "node": crf.coef_,
        "edge": crf.transition_coef_,
        "transitions": crf.transitions_,
        "intercept": crf.intercept_,
        "start": crf.start_,
        "end": crf.end_,
    }
    return sum(0.5 * l2[name] * float((w**2).sum()) for name, w in seen.items())


def test_the_objective_is_the_likelihood_with_a_penalty_by_group(dense_problem):
    X, y = dense_problem
    crf = full(l2=L2).fit(X, y)
    expected = penalty(crf, L2) - crf.log_likelihood(X, y).sum()
    assert_allclose(crf.objective_, expected, rtol=1e-10)
    assert crf.fit_report_.gradient_norm < 1e-4


def test_one_number_for_all_groups_is_the_number(dense_problem):
    X, y = dense_problem
    one, each = full(l2=0.7).fit(X, y), full(l2=dict.fromkeys(GROUPS, 0.7)).fit(X, y)
    assert_allclose(each.weights_, one.weights_, atol=1e-6)
    left_out = full(l2={"node": 0.7}).fit(X, y)
    named = full(l2={"node": 0.7, **dict.fromkeys(GROUPS[1:], 1.0)}).fit(X, y)
    assert_array_equal(left_out.weights_, named.weights_)


def test_logistic_regression_has_an_intercept_without_penalty(dense_problem):
    """Without transitions a chain is as many logistic regressions as positions."""
    X, y = dense_problem
    crf = ChainCRF(
        transitions="none", fit_intercept=True, l2={"node": 0.5, "intercept": 0.0}, **EXACT
    )
    crf.fit(X, y)
    peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000)
    peer.fit(np.concatenate(X), np.concatenate(y))
    assert_allclose(np.concatenate(crf.predict_marginals(X)),
                    peer.predict_proba(np.concatenate(X)), atol=1e-6)  # fmt: skip


@pytest.mark.parametrize(
    "frozen", [("node",), ("transitions", "end"), ("edge", "start", "intercept")]
)
def test_frozen_groups_keep_the_weights_of_the_fit_before(dense_problem, frozen):
    X, y = dense_problem
    crf = full(warm_start=True, max_iter=3).fit(X[:5], y[:5])
    before, slices = crf.weights_.copy(), crf.layout_.slices
    crf.set_params(freeze=frozen, max_iter=5000).fit(X, y)
    for name in GROUPS[:6]:
        moved = (crf.weights_[slices[name]] != before[slices[name]]).any()
        assert moved == (name not in frozen), name
    # The others are at their optimum: in no direction of theirs does the objective fall.
    value = crf.objective_
    rng = np.random.default_rng(0)
    for name in set(GROUPS[:6]) - set(frozen):
        for _ in range(3):
            other = crf.weights_.copy()
            other[slices[name]] += 1e-3 * rng.normal(size=other[slices[name]].shape)
            moved = clone(crf).set_params(freeze=(), max_iter=1).fit(X, y)
            moved.weights_ = other
            assert penalty(moved, dict.fromkeys(GROUPS, 1.0)) - moved.log_likelihood(X, y).sum() > (
                value - 1e-9
            )


def test_frozen_without_a_fit_before_stays_at_zero(dense_problem):
    X, y = dense_problem
    frozen = ChainCRF(freeze=("transitions",), **EXACT).fit(X, y)
    assert not frozen.transitions_.any()
    without = ChainCRF(transitions="none", **EXACT).fit(X, y)
    assert_allclose(frozen.coef_, without.coef_, atol=1e-6)


def test_freezing_everything_but_a_part_never_raises_the_objective(attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF(warm_start=True, ends=True, max_iter=4).fit(X, y)
    for frozen in (("node",), ("transitions",), ("start", "end"), ()):
        before = crf.objective_
        crf.set_params(freeze=frozen, max_iter=20).fit(X, y)
        assert crf.objective_ <= before + 1e-9


def test_callback_and_validation_see_all_weights(dense_problem):
    X, y = dense_problem
    sizes = []
    crf = ChainCRF(freeze=("transitions",), validation_interval=1, n_iter_no_change=2)
    crf.fit(X, y, validation_data=(X, y), callback=lambda s: sizes.append(len(s.weights)))
    assert set(sizes) == {crf.layout_.n_weights} == {len(crf.weights_)}
    assert crf.fit_report_.validation


def test_l1_takes_groups(dense_problem):
    X, y = dense_problem
    crf = full(l1=2.0, l2=L2, freeze=("start",), tol=1e-8).fit(X, y)
    assert not crf.start_.any()
    assert 0 < crf.fit_report_.n_nonzero < len(crf.weights_)


def test_weights_of_minus_infinity_stay():
    """What a model forbids, it goes on forbidding; the rest is learned."""
    rng = np.random.default_rng(0)
    y = [list("abbcca"), list("ccabbb"), list("bbbca")]  # never "ba"
    X = [rng.normal(size=(len(s), 2)) for s in y]
    crf = ChainCRF(transitions="all", warm_start=True).fit(X, y)
    free = crf.transitions_
    number = {label: k for k, label in enumerate(crf.labels_.labels)}
    crf.weights_ = crf.weights_.copy()
    crf.weights_[crf.layout_.slices["transitions"]][number["b"] * 3 + number["a"]] = -np.inf
    with np.errstate(all="raise"):
        crf.set_params(l2=0.5).fit(X, y)
        crf.partial_fit(X, y)
    forbidden = np.isneginf(crf.transitions_)
    assert_array_equal(np.argwhere(forbidden), [[1, 0]])
    assert np.isfinite(crf.weights_).sum() == len(crf.weights_) - 1
    assert (crf.transitions_ != free)[~forbidden].all()
    assert all("ba" not in "".join(labels) for labels in crf.predict(X))
    with pytest.raises(UnsupportedError, match="weights of -inf"):
        save(crf, "nowhere.chordal")
    with pytest.raises(ValueError, match="forbidden by -inf"):
        crf.fit(X[:1], [list("bababa")])


def test_a_saved_model_keeps_its_groups(tmp_path, attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF(
        l2={"node": 0.5, "intercept": 0.0}, freeze=("end",), fit_intercept=True, ends=True
    ).fit(X, y)
    save(crf, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.l2 == crf.l2
    assert again.freeze == ("end",)
    assert_array_equal(clone(again).fit(X, y).weights_, crf.weights_)


@pytest.mark.parametrize("solver", [s for s in SOLVERS if SOLVERS.get(s).asks is ExampleOracle])
@pytest.mark.parametrize("given", [{"l2": {"node": 1.0}}, {"freeze": ("node",)}])
def test_solvers_that_treat_all_weights_alike_refuse_groups(dense_problem, solver, given):
    crf = ChainCRF(solver=solver, **given)
    with pytest.raises(UnsupportedError, match=f"'{solver}'.*'lbfgs'"):
        crf.fit(*dense_problem)
    assert not hasattr(crf, "weights_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"l2": {"nodes": 1.0}},
            r"l2 names an unknown group of weights, 'nodes'; the groups are: 'node', ",
        ),
        ({"l2": {"node": -1.0}}, r"l2\['node'\] must be a number of at least 0, got -1"),
        ({"l2": {"node": None}}, r"l2\['node'\] must be a number"),
        ({"freeze": "node"}, r"freeze must be a tuple of names of groups of weights, got 'node'"),
        ({"freeze": 3}, r"freeze must be a tuple"),
        (
            {"freeze": ("n",)},
            r"freeze names an unknown group of weights, 'n'; the groups are: 'node', ",
        ),
        ({"freeze": ("node", "transitions")}, r"leaves no weight to learn; freeze fewer"),
    ],
)
def test_wrong_groups_are_refused(dense_problem, given, message):
    crf = ChainCRF(**given)
    with pytest.raises((ValueError, TypeError), match=message):
        crf.fit(*dense_problem)
    assert not hasattr(crf, "weights_")


def test_clones_and_parameters():
    crf = ChainCRF(l2={"intercept": 0.0}, freeze=("node",))
    assert clone(crf).get_params()["l2"] == {"intercept": 0.0}
    assert clone(crf).freeze == ("node",)


# ----------------------------------------------------------------------------------- the oracle


def small_oracle(dense_problem, l2, centre=None):
    X, y = dense_problem
    source = input_for(X[0])
    rows = source.read(X, grow=True)
    labels = np.concatenate([["abc".index(c) for c in s] for s in y]).astype(np.int32)
    kept = {"transitions": np.arange(9), **dict.fromkeys(GROUPS[3:6], np.arange(3))}
    features = chain_layout(3, {"node": source.features(rows, labels, 3)}, kept)
    shards = [features.compile(chain_batch(rows), a, a + 5, labels) for a in (0, 5)]
    args = features, shards, Likelihood(), ChainInference(), Serial()
    return SummedOracle(*args, l2, centre), features


def numeric(oracle, weights, step=1e-6):
    eye = np.eye(len(weights)) * step
    return np.array([
        (oracle.value_grad(weights + e)[0] - oracle.value_grad(weights - e)[0]) / (2 * step)
        for e in eye
    ])  # fmt: skip


@pytest.mark.parametrize("centred", [False, True])
def test_the_gradient_of_a_vector_of_penalties(dense_problem, centred):
    rng = np.random.default_rng(0)
    l2 = rng.uniform(0.0, 3.0, 27) * (rng.random(27) < 0.7)
    weights, centre = rng.normal(size=(2, 27))
    oracle, _ = small_oracle(dense_problem, l2, centre if centred else None)
    plain, _ = small_oracle(dense_problem, 0.0)
    value, gradient = oracle.value_grad(weights)
    offset = weights - centre * centred
    assert_allclose(value, plain.value_grad(weights)[0] + 0.5 * l2 @ offset**2, rtol=1e-12)
    assert_allclose(gradient, numeric(oracle, weights), rtol=1e-5, atol=1e-5)


def test_a_part_of_an_oracle_is_its_restriction(dense_problem):
    rng = np.random.default_rng(1)
    oracle, features = small_oracle(dense_problem, 0.5)
    start = rng.normal(size=oracle.n_weights)
    kept = start.copy()
    free = rng.random(oracle.n_weights) < 0.5
    scaled = features.slices["node"]
    for moved in (None, scaled):
        part = PartialOracle(oracle, start, free, moved)
        assert_array_equal(part.whole(part.start), start)
        v = part.start + rng.normal(size=part.n_weights)
        value, gradient = part.value_grad(v)
        assert value == oracle.value_grad(part.whole(v))[0]
        assert_allclose(gradient, numeric(part, v), rtol=1e-5, atol=1e-5)
        still = ~free if moved is None else np.delete(~free, np.arange(27)[scaled])
        whole = part.whole(v) if moved is None else part.whole(v)[scaled.stop :]
        assert_array_equal(whole[still], (start if moved is None else start[scaled.stop :])[still])
        if moved is not None:
            assert_allclose(part.whole(v)[scaled], v[-1] * start[scaled])
    assert_array_equal(start, kept)


class Quadratic:
    """½ wᵀHw, with second derivatives and two batches."""

    def __init__(self, H):
        self.H, self.n_weights = H, len(H)

    def value_grad(self, weights):
        return float(0.5 * weights @ self.H @ weights), self.H @ weights

    def hess_vec(self, weights, direction):
        return self.H @ direction

    def hessian(self, weights):
        return self.H

    def batches(self):
        return [Quadratic(0.3 * self.H), Quadratic(0.7 * self.H)]


@pytest.mark.parametrize("scaled", [None, slice(1, 3)])
def test_a_part_has_the_second_derivatives_and_batches_of_the_whole(scaled):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    free = np.array([True, True, False, True, False, True])
    part = PartialOracle(Quadratic(root @ root.T), rng.normal(size=6), free, scaled)
    v, d = rng.normal(size=(2, part.n_weights))
    step = 1e-6
    expected = part.value_grad(v + step * d)[1] - part.value_grad(v - step * d)[1]
    assert_allclose(part.hess_vec(v, d), expected / (2 * step), rtol=1e-6, atol=1e-6)
    assert_allclose(part.hessian(v) @ d, part.hess_vec(v, d), rtol=1e-10)
    batches = part.batches()
    assert_allclose(sum(b.value_grad(v)[1] for b in batches), part.value_grad(v)[1], rtol=1e-10)


def test_a_part_is_as_noisy_as_the_whole_and_names_its_own_weights():
    class Data(Quadratic):
        noisy, without_l1, run, recycle = True, np.array([1, 4]), map, id

    free = np.array([False, True, False, True, True, True])
    part = PartialOracle(Data(np.eye(6)), np.zeros(6), free)
    assert part.noisy
    assert_array_equal(part.without_l1, [0, 2])
    assert not PartialOracle(Quadratic(np.eye(6)), np.zeros(6), free).noisy
