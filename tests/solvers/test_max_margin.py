"""Solvers with a duality gap on small chains, against all labellings and an independent program."""

import itertools
import signal
import threading

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from chordal import ChainCRF
from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.costs import Cost
from chordal.costs.hamming import Hamming
from chordal.estimators import chain_batch, chain_layout
from chordal.execution.serial import Serial
from chordal.features import input_for
from chordal.inference.chain import ChainInference
from chordal.labels import SequenceLabels
from chordal.objectives.hinge import Hinge
from chordal.oracle import SummedOracle, asks_examples
from chordal.oracle.chains import ChainExamples
from chordal.oracle.rules.frank_wolfe import FrankWolfeRule
from chordal.solvers import SOLVERS
from chordal.solvers._dual import DualSolver

L = 3
DUAL = sorted(s for s in SOLVERS if issubclass(SOLVERS.get(s), DualSolver))
LENGTHS, EDGES = [1, 3, 2, 4, 3], [0, 2, 1, 3, 2]
HINGE = pytest.mark.parametrize("name", DUAL)


class Problem:
    """A few short chains with every labelling's features and cost listed."""

    def __init__(self, seed, kind="dense", edges=False, weighted=False, l2=0.3, centre=False):
        rng = np.random.default_rng(seed)
        lengths = LENGTHS
        self.X, self.y = [], []
        for n in lengths:
            x = np.round(rng.normal(size=(n, 4)), 2) * (rng.random((n, 4)) < 0.8)
            self.X.append(
                x if kind == "dense" else [[f"a{k}" for k in np.flatnonzero(r)] for r in x]
            )
            self.y.append(rng.integers(L, size=n).tolist())
        self.y[0] = [0]
        self.y[-1] = [0, 1, 2]
        labels = SequenceLabels()
        labels.learn(self.y)
        gold = labels.encode(self.y)
        source = input_for(self.X[0])
        rows = source.read(self.X, True)
        node = source.features(rows, gold, L, "all" if kind == "dense" else "seen")
        edge_rows, edge = None, None
        if edges:
            pairs = [rng.normal(size=(max(n - 1, 0), 2)) for n in lengths]
            edge_source = input_for(pairs[1])
            edge_rows = edge_source.read(pairs, True)
            edge = edge_source.features(edge_rows, np.zeros(edge_rows.n_rows, np.int32), L * L)
        # One pair has no weight.
        kept = dict.fromkeys(("intercept", "start", "end"), np.arange(L))
        kept["transitions"] = np.arange(L * L - 1)
        self.features = chain_layout(L, {"node": node, "edge": edge}, kept)
        batch = chain_batch(rows, edge_rows)
        weight = rng.uniform(0.5, 2.0, len(lengths)) if weighted else None
        if weighted:
            weight[2] = 0.0
        self.weight = np.ones(len(lengths)) if weight is None else weight
        self.l2, self.objective = l2, Hinge(Hamming(normalize=True))
        self.centre = rng.normal(size=self.features.n_weights) * 0.3 if centre else None
        limits = batch.limits(L)
        self.shards = [self.features.compile(batch, a, b, gold, weight) for a, b in limits]
        settings = (self.l2, self.centre)
        parts = (self.features, self.shards, self.objective, ChainInference(), Serial(), *settings)
        self.dual, self.summed = ChainExamples(*parts), SummedOracle(*parts)
        self.start = np.zeros(self.features.n_weights) if self.centre is None else self.centre
        self._list(batch, gold, lengths)

    def oracle(self, name):
        return self.dual if asks_examples(SOLVERS.get(name).asks) else self.summed

    def _list(self, batch, gold, lengths):
        """Σ_i ω_i max over rows of (cost − ψ w), with one row per labelling."""
        self.rows, self.costs, self.owner, at = [], [], [], 0
        for i, n in enumerate(lengths):
            shard = self.features.compile(batch, i, i + 1, gold)
            y = gold[at : at + n]
            at += n
            own = self._feature(shard, y)
            for z in itertools.product(range(L), repeat=n):
                self.rows.append(own - self._feature(shard, np.array(z, dtype=np.int32)))
                self.costs.append(float(np.mean(np.array(z) != y)))
                self.owner.append(i)
        self.rows, self.costs = np.array(self.rows), np.array(self.costs)
        self.owner = np.array(self.owner)

    def _feature(self, shard, labels):
        parts = shard.frame.like(
            np.zeros(shard.frame.structure.n_states), np.zeros(len(shard.frame.tables))
        )
        parts.add_indicators(labels)
        sums = self.features.zeros()
        for block in range(self.features.n_blocks(1)):
            self.features.adjoint(shard, parts, sums, block, 1)
        return self.features.collect(sums)

    def value(self, w):
        losses = np.full(len(self.weight), -np.inf)
        np.maximum.at(losses, self.owner, self.costs - self.rows @ w)
        offset = w - self.start
        return float(self.weight @ losses) + 0.5 * self.l2 * float(offset @ offset)

    def optimum(self):
        """By the whole quadratic program, with Clarabel alone."""
        d, n, m = self.rows.shape[1], len(self.weight), len(self.rows)
        pick = sp.csr_array((np.ones(m), (np.arange(m), self.owner)), (m, n))
        A = sp.hstack([-sp.csr_array(self.rows), -pick], format="csc")
        P = sp.csc_matrix(sp.diags_array(np.r_[np.full(d, self.l2), np.zeros(n)]))
        q = np.r_[-self.l2 * self.start, self.weight]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.NonnegativeConeT(m)]
        solver = clarabel.DefaultSolver(P, q, sp.csc_matrix(A), -self.costs, cones, settings)
        w = np.array(solver.solve().x)[:d]
        return w, self.value(w)


KINDS = {
    "dense": {},
    "attributes": {"kind": "attributes"},
    "edges": {"edges": True},
    "weighted": {"weighted": True},
    "centred": {"centre": True},
    "attributes, edges, weighted": {"kind": "attributes", "edges": True, "weighted": True},
    "little l2": {"l2": 0.01},
}


# Frank–Wolfe methods take O(1/tol) iterations, also on the smallest problems.
TOLERANCE = {"frank_wolfe": 0.05, "block_frank_wolfe": 0.02, "exponentiated_gradient": 0.01}


def settings(name):
    return {"random_state": 0} if SOLVERS.get(name).seeded else {}


@HINGE
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_on_every_pass_and_meet_at_the_optimum(name, kind):
    for seed in range(2):
        problem = Problem(seed, **KINDS[kind])
        best_w, best = problem.optimum()
        tol = TOLERANCE.get(name, 1e-3)
        solver = SOLVERS.get(name)(max_iter=5000, tol=tol, **settings(name))
        solution = solver.minimize(problem.oracle(name), problem.start)
        details = {k: np.array(v) for k, v in solution.details.items()}
        assert set(details) == {"primal", "dual", "gap"}
        assert len(details["gap"]) == solution.n_iter
        slack = 1e-7 * (1.0 + abs(best))
        assert (details["dual"] <= best + slack).all()
        assert (details["primal"] >= best - slack).all()
        np.testing.assert_allclose(
            details["gap"], np.maximum(details["primal"] - details["dual"], 0.0), rtol=1e-12
        )
        assert (np.diff(details["primal"]) <= 0.0).all()
        assert (np.diff(details["dual"]) >= 0.0).all()
        assert solution.status is Status.CONVERGED
        assert solution.gap <= tol * solution.value
        assert problem.value(solution.weights) == pytest.approx(solution.value, rel=1e-9)
        # Strong convexity: (l2/2) ‖w − w*‖² ≤ gap.
        away = np.linalg.norm(solution.weights - best_w)
        assert 0.5 * problem.l2 * away**2 <= solution.gap + slack


@pytest.mark.parametrize("kind", KINDS)
def test_oracles_against_all_labellings(kind):
    problem = Problem(7, **KINDS[kind])
    rng = np.random.default_rng(0)
    for _ in range(5):
        w, other = rng.normal(size=(2, problem.features.n_weights))
        assert problem.dual.value(w) == pytest.approx(problem.value(w), rel=1e-12)
        assert problem.summed.value_grad(w)[0] == pytest.approx(problem.value(w), rel=1e-12)
        planes = problem.dual.planes(w)
        np.testing.assert_allclose(planes.offsets + planes.slopes @ w, planes.values, atol=1e-12)
        under = planes.offsets + planes.slopes @ other
        assert (under <= problem.dual.planes(other).values + 1e-12).all()


def test_the_dual_value_is_that_of_the_marginals():
    """The learner's own sums agree with the dual of the marginals that it keeps."""
    for kind in KINDS:
        problem = Problem(3, **KINDS[kind])
        learner = problem.dual.dual_learner(FrankWolfeRule())
        for _ in range(25):
            learner.visit(np.arange(5)[::-1])
        for marginals, lengths in ((learner._labels, LENGTHS), (learner._transitions, EDGES)):
            assert (marginals._values >= 0.0).all()
            totals = [
                marginals._values[a : a + n].sum()
                for a, n in zip(marginals._room, marginals._used, strict=False)
            ]
            np.testing.assert_allclose(totals, lengths, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_first_step_is_the_best_one(kind):
    """From w = 0, D(γ) = γ cost − γ² ‖ψ‖² / (2 l2) for the labelling that costs most."""
    repeated = 0
    for seed in range(6):
        problem = Problem(seed, kind=kind)
        planes = problem.dual.planes(problem.start)
        for i, y in enumerate(problem.y):
            pairs = list(itertools.pairwise(y))
            repeated += len(set(pairs)) < len(pairs)
            learner = problem.dual.dual_learner(FrankWolfeRule())
            learner.visit(np.array([i]))
            slope, cost = planes.slopes[[i]].toarray(), planes.values[i]
            gamma = min(1.0, problem.l2 * cost / (slope**2).sum())
            best = gamma * cost - 0.5 * gamma**2 * (slope**2).sum() / problem.l2
            assert learner.state()[1] == pytest.approx(best, rel=1e-9)
    assert repeated > 0  # a transition that comes twice is a feature of 2


@HINGE
def test_the_number_of_threads_changes_nothing(name):
    problem = Problem(1)
    weights = [
        ChainCRF("hinge", name, l2=0.5, max_iter=20, random_state=0, n_jobs=n, transitions="all")
        .fit(problem.X * 200, problem.y * 200)
        .weights_
        for n in (1, 2)
    ]
    assert (weights[0] == weights[1]).all()


@HINGE
def test_refusals_name_what_is_wrong(name):
    problem = Problem(1)
    with pytest.raises(ValueError, match=f"l2 must be above 0 for solver '{name}'"):
        ChainCRF("hinge", name, l2=0.0).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="does not support l1"):
        ChainCRF("hinge", name, l1=1.0).fit(problem.X, problem.y)
    with pytest.raises(UnsupportedError, match=f"{name}.*needs an oracle with.*int does not"):
        SOLVERS.get(name)().minimize(3, np.zeros(1))
    problem.oracle(name).l2 = 0.0
    with pytest.raises(ValueError, match=f"'{name}' needs l2 > 0"):
        SOLVERS.get(name)().minimize(problem.oracle(name), problem.start)


class PricesTransitions(Cost):
    def add(self, potentials, labels):
        tables = potentials.tables + 1.0
        return potentials.like(potentials.unary, tables)


@pytest.mark.parametrize("name", [s for s in DUAL if asks_examples(SOLVERS.get(s).asks)])
def test_costs_that_do_not_decompose_are_refused(name):
    problem = Problem(1)
    with pytest.raises(UnsupportedError, match=r"cost 'test_max_margin'.*'hinge' does not dec"):
        ChainCRF(Hinge(PricesTransitions()), name).fit(problem.X, problem.y)
    slack = Hinge()
    slack.scaling = "slack"
    with pytest.raises(UnsupportedError, match=f"{name}.*'hinge'.*slack.*does not decompose"):
        ChainCRF(slack, name).fit(problem.X, problem.y)
    with pytest.raises(UnsupportedError, match=f"'{name}' minimises objective.*'perceptron'"):
        ChainCRF("perceptron", name).fit(problem.X, problem.y)


@pytest.mark.parametrize("name", [s for s in DUAL if SOLVERS.get(s).seeded])
def test_a_start_without_dual_variables_is_refused(name):
    problem = Problem(1)
    crf = ChainCRF("hinge", name, warm_start=True, random_state=0, max_iter=3)
    crf.fit(problem.X, problem.y)
    with pytest.raises(UnsupportedError, match=f"{name}.*cannot start.*warm_start"):
        crf.fit(problem.X, problem.y)


@pytest.mark.parametrize("name", ["one_slack", "cutting_plane", "frank_wolfe"])
def test_a_good_start_helps_the_others(name):
    problem = Problem(1)
    best, value = problem.optimum()
    solution = SOLVERS.get(name)(max_iter=5).minimize(problem.oracle(name), best)
    assert solution.value == pytest.approx(value, rel=1e-6)


@HINGE
def test_partial_fit_pulls_towards_the_weights_so_far(name):
    problem = Problem(1)
    crf = ChainCRF("hinge", name, l2=0.5, random_state=0, tol=0.05)
    crf.partial_fit(problem.X, problem.y)
    first = crf.objective_
    crf.partial_fit(problem.X, problem.y)
    assert crf.objective_ < first


@HINGE
def test_too_large_features_are_reported(name):
    X, y = [np.full((2, 2), 1e200)] * 3, [[0, 1], [1, 0], [1, 1]]
    with pytest.raises(ValueError, match="scale them"):
        ChainCRF("hinge", name, l2=1e-200, random_state=0).fit(X, y)


def test_ctrl_c_keeps_what_was_learned():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(400, 10)) for _ in range(300)]
    y = [rng.integers(12, size=400).tolist() for _ in range(300)]
    crf = ChainCRF("hinge", "block_frank_wolfe", l2=1e-3, random_state=0, tol=0.0)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])

    def start(state):
        if state.iteration == 1:
            timer.start()

    with pytest.warns(UserWarning, match="Ctrl-C ended the fit"):
        crf.fit(X, y, callback=start)
    assert crf.fit_report_.status is Status.INTERRUPTED
    assert np.isfinite(crf.weights_).all()
    assert crf.weights_.any()


def test_verbose_prints_primal_and_dual_per_pass(capsys):
    problem = Problem(1)
    ChainCRF("hinge", "block_frank_wolfe", max_iter=2, tol=0.0, verbose=2, random_state=0).fit(
        problem.X, problem.y
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("objective" in line and "dual" in line and "gap" in line for line in lines)
