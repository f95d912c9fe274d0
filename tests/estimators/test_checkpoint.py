"""Checkpoints: a fit that stopped anywhere goes on to the same weights, bit for bit.

What it is compared with is a fit without any checkpoint.
"""

import shutil
from itertools import count

import numpy as np
import pytest

from chordal import (
    ChainCRF,
    Checkpoint,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MultiLabelCRF,
    TwoStageCRF,
)
from chordal.estimators import Checkpointer
from chordal.objectives.stochastic_likelihood import StochasticLikelihood
from chordal.solvers import SOLVERS
from chordal.solvers.adam import Adam
from chordal.solvers.gradient_descent import GradientDescent
from chordal.solvers.minibatch_lbfgs import MinibatchLBFGS
from chordal.solvers.sgd import SGD

pytestmark = pytest.mark.filterwarnings("ignore:solver")

LABELS = "ABC"


class Killed(Exception):
    """Takes the place of a signal."""


def killed_at(k):
    def callback(state):
        if state.iteration == k:
            raise Killed

    return callback


def chains(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = [[[f"w{rng.integers(8)}", f"p{rng.integers(4)}"] for _ in range(5)] for _ in range(n)]
    y = [[LABELS[(int(x[0][1:]) + (rng.random() < 0.3)) % 3] for x in own] for own in X]
    return X, y


def graphs(n=8, seed=0):
    rng = np.random.default_rng(seed)
    edges = np.array([(0, 1), (1, 2), (2, 0), (2, 3)])
    X = [(rng.normal(size=(4, 2)), edges) for _ in range(n)]
    return X, [(x[0][:, 0] + 0.5 * rng.normal(size=4) > 0).astype(int) for x in X]


def facts(model):
    """The report, without how long it took."""
    return str({**model.fit_report_.to_facts(), "elapsed": 0.0, "times": []})


def check_resumed(make, X, y, path, stops, at_least=2, **options):
    """A fit that stops after some iterations goes on to what one without checkpoints gives."""
    whole = make().fit(X, y, **options)
    assert whole.n_iter_ > at_least
    kept = Checkpoint(path, interval=1)
    for k in (k for k in stops if k <= whole.n_iter_):
        path.unlink(missing_ok=True)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=kept, callback=killed_at(k), **options)
        assert path.exists() == (k > 1)
        begun = []
        found = make().fit(
            X, y, checkpoint=kept, callback=lambda s, to=begun: to.append(s.iteration), **options
        )
        assert begun[0] == k  # not from the beginning
        assert (found.weights_ == whole.weights_).all()
        assert facts(found) == facts(whole)


@pytest.mark.parametrize("name", SOLVERS.names())
def test_every_solver_goes_on(name, tmp_path):
    for package in SOLVERS.get(name).packages:
        pytest.importorskip(package)
    settings = {"solver": name, "random_state": 1, "l2": 0.3, "max_iter": 7}
    if SOLVERS.get(name).handles_l1:
        settings["l1"] = 0.1
    X, y = chains()
    check_resumed(lambda: ChainCRF(**settings), X, y, tmp_path / "c", (1, 2, 3, 5, 7))


STRUCTURED = ["averaged_perceptron", "arow", "sgd", "block_frank_wolfe", "cutting_plane"]


@pytest.mark.parametrize("name", STRUCTURED)
def test_solvers_of_single_examples_on_graphs(name, tmp_path):
    objective = "hinge" if name in ("sgd", "block_frank_wolfe", "cutting_plane") else "auto"
    settings = {"solver": name, "random_state": 1, "l2": 0.1, "max_iter": 6, "tol": 0.0}
    X, y = graphs()
    check_resumed(lambda: GraphCRF(objective, **settings), X, y, tmp_path / "c", (2, 4, 6))


SETTINGS = {
    "sgd that polishes": lambda: SGD(random_state=0, period=2, tol=1e-2, max_iter=30),
    "sgd with momentum and a mean": lambda: SGD(
        random_state=0, momentum=0.5, average_after=1.5, max_iter=6
    ),
    "sgd with few steps": lambda: SGD(random_state=0, max_steps=100, learning_rate=0.1),
    "adam with one batch": lambda: Adam(batch_size=None, max_iter=60, learning_rate=0.5),
    "adam with small batches": lambda: Adam(batch_size=3, max_iter=12, random_state=2),
    "mini-batches with pairs": lambda: MinibatchLBFGS(
        batch_size=3, period=4, joined=2, memory=3, max_iter=12, random_state=0, learning_rate=0.05
    ),
    "fixed steps": lambda: GradientDescent(learning_rate=0.01, momentum=0.5, max_iter=30),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_change_the_course(name, tmp_path):
    X, y = chains()
    stops = (2, 5, 9, 12, 17, 25, 47, 59)
    check_resumed(lambda: ChainCRF(solver=SETTINGS[name](), l2=0.3), X, y, tmp_path / "c", stops)


def test_threads_frozen_weights_and_weighted_examples(tmp_path):
    X, y = chains()
    weight = np.linspace(0.5, 2.0, len(X))
    settings = {"freeze": ("transitions",), "l2": {"node": 0.2}, "n_jobs": 2, "max_iter": 8}
    check_resumed(lambda: ChainCRF(**settings), X, y, tmp_path / "c", (4,), sample_weight=weight)


def test_class_weights(tmp_path):
    X, y = chains()
    settings = {"class_weight": {"A": 3.0}, "max_iter": 6, "random_state": 0}
    check_resumed(lambda: ChainCRF("hinge", **settings), X, y, tmp_path / "c", (2, 5))


@pytest.mark.parametrize("solver", ["lbfgs", "averaged_perceptron"])
def test_early_stopping_remembers_its_scores(solver, tmp_path):
    X, y = chains()
    settings = {"validation_interval": 1, "n_iter_no_change": 3, "max_iter": 40, "l2": 0.01}
    make = lambda: ChainCRF(solver=solver, random_state=0, tol=0.0, **settings)  # noqa: E731
    held_out = chains(n=10, seed=5)
    assert make().fit(X, y, validation_data=held_out).n_iter_ < 40
    stops = range(2, 12, 3)
    check_resumed(make, X, y, tmp_path / "c", stops, validation_data=held_out)


@pytest.mark.parametrize("solver", ["one_slack", "block_frank_wolfe"])
def test_turns_of_completing_labels(solver, tmp_path):
    rng = np.random.default_rng(6)
    centres = {"a0": (0, 0), "a1": (2, 2), "b0": (2, 0), "b1": (0, 2)}
    names = np.array(list(centres))
    states = names[rng.integers(0, 4, (12, 5))]
    X = [np.array([centres[k] for k in own]) + 1.2 * rng.normal(size=(5, 2)) for own in states]
    y = [[{f"{k[0]}0", f"{k[0]}1"} for k in own] for own in states]
    make = lambda: ChainCRF(  # noqa: E731
        "hinge", solver, fit_intercept=True, l2=0.5, random_state=0
    )
    whole, path = make().fit(X, y), tmp_path / "c"
    n = len(whole.fit_report_.completions)
    assert n > 1
    visited = []

    def killed_after(n):
        calls = count(1)

        def callback(state):
            visited.append(state.iteration)
            if next(calls) == n:
                raise Killed

        return callback

    make().fit(X, y, callback=killed_after(None))
    total, turns = len(visited), [i for i, k in enumerate(visited) if k == 1]
    assert len(turns) >= n
    for stop in (turns[1] + 2, (turns[-1] + total) // 2, total):
        path.unlink(missing_ok=True)
        kept = Checkpoint(path, interval=1)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=kept, callback=killed_after(stop))
        found = make().fit(X, y, checkpoint=kept)
        assert (found.weights_ == whole.weights_).all()
        assert facts(found) == facts(whole)


@pytest.mark.parametrize("samples", ["persistent", "inference"])
def test_objectives_that_sample_keep_their_chains(samples, tmp_path):
    X, y = graphs()
    objective = lambda: StochasticLikelihood(samples, n_samples=2)  # noqa: E731
    make = lambda: GraphCRF(objective(), "adam", random_state=0, max_iter=8)  # noqa: E731
    check_resumed(make, X, y, tmp_path / "c", (2, 5, 7))


def test_inference_that_begins_where_it_ended(tmp_path):
    """trw_s keeps messages from call to call."""
    rng = np.random.default_rng(0)
    y = [(rng.random((12, 12)) < 0.5).astype(int) + (np.arange(12) > 5) for _ in range(3)]
    X = [np.stack([own + rng.normal(size=own.shape), rng.normal(size=own.shape)], -1) for own in y]
    make = lambda: GridCRF("hinge", max_iter=8, l2=0.1, random_state=0)  # noqa: E731
    assert make().fit(X, y).fit_report_.inference == "trw_s"
    check_resumed(make, X, y, tmp_path / "c", (2, 4, 7))


def test_every_estimator_that_iterates(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    check_resumed(lambda: CRFClassifier(), X, y, tmp_path / "a", (2, 4))
    both = np.stack([y, 1 - y, X[:, 1] > 0], axis=1).astype(int)
    check_resumed(lambda: MultiLabelCRF(), X, both, tmp_path / "b", (2, 4))


@pytest.mark.parametrize("settings", [{}, {"scale": True}, {"joint": True}])
def test_the_last_of_two_stages(settings, tmp_path, monkeypatch):
    X, y = chains(n=12)
    make = lambda: TwoStageCRF(crf=ChainCRF(max_iter=8), cv=2, random_state=0, **settings)  # noqa: E731
    whole, kept = make().fit(X, y), Checkpoint(tmp_path / "c", interval=1)
    call, writes = Checkpointer._write, []

    def killed(self, state):
        call(self, state)
        writes.append(1)
        if len(writes) == 2:
            raise Killed

    monkeypatch.setattr(Checkpointer, "_write", killed)
    with pytest.raises(Killed):
        make().fit(X, y, checkpoint=kept)
    found = make().fit(X, y, checkpoint=kept)
    assert (found.crf_.weights_ == whole.crf_.weights_).all()
    with pytest.raises(ValueError, match="checkpoint needs a random_state"):
        make().set_params(random_state=None).fit(X, y, checkpoint=kept)
    with pytest.raises(ValueError, match="checkpoint needs a random_state"):
        make().set_params(random_state=None, cv=np.int64(3)).fit(X, y, checkpoint=kept)


def test_a_warm_start_goes_on(tmp_path):
    X, y = chains()
    first = ChainCRF(max_iter=3).fit(X, y)

    def make():
        model = ChainCRF(warm_start=True, max_iter=8)
        vars(model).update({k: v for k, v in vars(first).items() if k.endswith("_")})
        return model

    check_resumed(make, X, y, tmp_path / "c", (2, 5))


def test_without_a_seed_the_file_has_one(tmp_path):
    X, y = chains()
    kept, copy = Checkpoint(tmp_path / "c", interval=1), tmp_path / "copy"
    make = lambda: ChainCRF(solver="adam", max_iter=6)  # noqa: E731
    with pytest.raises(Killed):
        make().fit(X, y, checkpoint=kept, callback=killed_at(3))
    shutil.copy(kept.path, copy)
    first = make().fit(X, y, checkpoint=kept)
    second = make().fit(X, y, checkpoint=copy)
    assert (first.weights_ == second.weights_).all()
    other = make().fit(X, y, checkpoint=tmp_path / "other")
    assert (first.weights_ != other.weights_).any()


def test_a_callback_may_keep_a_state(tmp_path):
    class Counting:
        def __init__(self):
            self.values, self.kill = [], 0

        def __call__(self, state):
            if len(self.values) + 1 == self.kill:
                raise Killed
            self.values.append(state.value)
            return len(self.values) == 6

        def to_state(self):
            return {"values": self.values}

        def from_state(self, saved):
            self.values = saved.numbers("values")

    X, y = chains()
    whole = ChainCRF().fit(X, y, callback=Counting())
    first, second = Counting(), Counting()
    first.kill = 4
    kept = Checkpoint(tmp_path / "c", interval=1)
    with pytest.raises(Killed):
        ChainCRF().fit(X, y, callback=first, checkpoint=kept)
    found = ChainCRF().fit(X, y, callback=second, checkpoint=kept)
    assert found.n_iter_ == whole.n_iter_ == 6
    assert (found.weights_ == whole.weights_).all()
    assert second.values == whole.fit_report_.history
