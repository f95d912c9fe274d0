"""Fits on a cluster that resume from a checkpoint."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from chordal import HMM, ChainCRF, Checkpoint, CheckpointError, GraphCRF, TwoStageCRF
from chordal._errors import UnsupportedError

from .conftest import workers

dask = pytest.importorskip("dask", reason='the tests of chordal.dask need "chordal[dask]"')
pytest.importorskip("distributed", reason='needs "chordal[dask]"')
bag = pytest.importorskip("dask.bag")

from chordal.dask import fit  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 9, size=40)
TAGS = [RNG.integers(3, size=n) for n in SIZES]
X = [[[f"w={RNG.zipf(1.5)}", f"s={(v + RNG.integers(2)) % 3}"] for v in own] for own in TAGS]
Y = [[f"L{v}" for v in own] for own in TAGS]
WORDS = [[token[0] for token in x] for x in X]
EDGES = [np.array([[k, (k + 1) % n] for k in range(n)][: 0 if n < 3 else n]) for n in SIZES]
GRAPHS = [
    (np.eye(3)[own] + RNG.normal(size=(len(own), 3)), e.reshape(-1, 2))
    for own, e in zip(TAGS, EDGES, strict=True)
]

SOLVERS = {
    "lbfgs": {},
    "owlqn": {"l1": 0.1},
    "newton_cg": {"solver": "newton_cg"},
    "adam": {"solver": "adam", "random_state": 0},
    "minibatch_lbfgs": {"solver": "minibatch_lbfgs", "random_state": 0},
    "one_slack": {"objective": "hinge"},
}


class Stop(Exception):
    pass


def stop_at(n):
    def callback(state):
        if state.iteration == n:
            raise Stop

    return callback


def pairs(npartitions=4, of=(X, Y)):
    return bag.from_sequence(list(zip(*of, strict=True)), npartitions=npartitions)


@pytest.fixture(scope="module")
def one():
    """A cluster of one worker."""
    with workers(1) as client:
        yield client


def begun(model, path, **options):
    """Begin a fit, which ends in its third iteration."""
    with pytest.raises(Stop):
        fit(model, checkpoint=Checkpoint(path, interval=1), callback=stop_at(3), **options)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_resumes_bit_for_bit(solver, one, tmp_path):
    model = ChainCRF(max_iter=7, tol=0.0, **SOLVERS[solver])
    begun(clone(model), tmp_path / "c", X=pairs(), client=one)
    resumed = fit(clone(model), pairs(), client=one, checkpoint=tmp_path / "c")
    whole = fit(clone(model), pairs(), client=one)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert resumed.n_iter_ == whole.n_iter_


def test_the_seed_that_was_drawn_is_kept(one, tmp_path):
    model, path, again = ChainCRF(solver="adam", max_iter=6), tmp_path / "c", tmp_path / "again"
    begun(clone(model), path, X=pairs(), client=one)
    shutil.copy(path, again)
    first = fit(clone(model), pairs(), client=one, checkpoint=path)
    second = fit(clone(model), pairs(), client=one, checkpoint=again)
    np.testing.assert_array_equal(first.weights_, second.weights_)


def test_early_stopping_and_other_estimators(one, tmp_path):
    settings = {"max_iter": 9, "solver": "adam", "random_state": 0, "n_iter_no_change": 2}
    options = {"X": pairs(of=(GRAPHS, Y)), "client": one}
    options["validation_data"] = pairs(of=(GRAPHS, Y))
    begun(GraphCRF(**settings), tmp_path / "c", **options)
    resumed = fit(GraphCRF(**settings), **options, checkpoint=tmp_path / "c")
    whole = fit(GraphCRF(**settings), **options)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert resumed.fit_report_.validation == whole.fit_report_.validation
    other = pairs(of=(GRAPHS[1:], Y[1:]))
    with pytest.raises(CheckpointError, match="differs in validation_data; give another path"):
        fit(
            GraphCRF(**settings),
            **{**options, "validation_data": other},
            checkpoint=tmp_path / "c",
        )


@pytest.mark.parametrize("joint", [False, True])
def test_the_last_stage_resumes(one, tmp_path, joint):
    model = TwoStageCRF(random_state=0, joint=joint)
    whole = fit(clone(model), pairs(), client=one, checkpoint=tmp_path / "c")
    found = fit(clone(model), pairs(), client=one, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(found.crf_.weights_, whole.crf_.weights_)
    with pytest.raises(ValueError, match="checkpoint needs a random_state"):
        fit(TwoStageCRF(), pairs(), client=one, checkpoint=tmp_path / "other")


@pytest.mark.parametrize("held", [False, True])
def test_a_network_resumes_bit_for_bit(one, tmp_path, held):
    torch = pytest.importorskip("torch")
    from chordal.torch import NeuralCRF

    settings = {"hidden": 4, "embedding": 3, "max_iter": 6, "dropout": 0.2}
    if held:
        settings["n_iter_no_change"] = 5
    model, path, again = NeuralCRF(**settings), tmp_path / "c", tmp_path / "again"
    options = {"X": pairs(of=(WORDS, Y)), "client": one}
    begun(clone(model), path, **options)
    shutil.copy(path, again)
    found = [fit(clone(model), **options, checkpoint=own) for own in (path, again)]
    first, second = (torch.nn.utils.parameters_to_vector(m.module_.parameters()) for m in found)
    assert torch.equal(first, second)
    with pytest.raises(CheckpointError, match="differs in the training data"):
        fit(clone(model), pairs(5, of=(WORDS, Y)), client=one, checkpoint=path)


KILLED = """
import os, signal, sys
import dask.bag
from distributed import Client, LocalCluster
from chordal import ChainCRF, Checkpoint
from chordal.dask import fit
from tests.dask.test_checkpoint import pairs

def kill(state):
    if state.iteration == 4:
        os.kill(os.getpid(), signal.SIGKILL)

with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as one:
    with Client(one) as client:
        kept = Checkpoint(sys.argv[1], interval=1)
        fit(ChainCRF(max_iter=8, tol=0.0), pairs(), checkpoint=kept, callback=kill)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_the_client_is_killed_and_another_number_of_workers_goes_on(client, one, tmp_path):
    made = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "c"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
    )
    assert made.returncode == -signal.SIGKILL, made.stderr.decode()
    model = ChainCRF(max_iter=8, tol=0.0)
    resumed = fit(clone(model), pairs(), client=client, checkpoint=tmp_path / "c")
    whole = fit(clone(model), pairs(), client=one)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)


def test_the_checkpoint_of_another_fit_is_refused(one, tmp_path):
    path = tmp_path / "c"
    begun(ChainCRF(max_iter=5), path, X=pairs(), client=one)
    weights = bag.from_sequence([0.5] * len(X), npartitions=4)
    changes = [
        ({"X": pairs(of=(X[1:], Y[1:]))}, "differs in the training data, their labels"),
        ({"X": pairs(2)}, "differs in the training data, their labels"),
        ({"X": pairs(of=(X, [*Y[:-1], Y[-1][::-1]])), "l2": 3.0}, "differs in l2 .* their labels"),
        ({"X": pairs().pluck(0), "y": pairs().pluck(1), "sample_weight": weights}, "sample_weight"),
        ({"dtype": "float32"}, "differs in dtype"),
    ]
    for change, message in changes:
        model = ChainCRF(max_iter=5, l2=change.pop("l2", 1.0))
        with pytest.raises(CheckpointError, match=message):
            fit(model, **{"X": pairs(), **change}, client=one, checkpoint=path)
        assert not hasattr(model, "weights_")
    with pytest.raises(CheckpointError, match="differs in"):
        ChainCRF(max_iter=5).fit(X, Y, checkpoint=path)


def test_what_no_checkpoint_has_is_refused(one, tmp_path):
    refused = [
        (GraphCRF(inference="trw_s", objective="hinge"), "inference 'trw_s' keeps a state"),
        (GraphCRF(objective="stochastic_likelihood", solver="adam"), "keeps a state between"),
    ]
    for model, message in refused:
        with pytest.raises(UnsupportedError, match=message):
            fit(model, pairs(of=(GRAPHS, Y)), client=one, checkpoint=tmp_path / "c")
    with pytest.raises(UnsupportedError, match=r"HMM learns by counting.*takes no checkpoint"):
        fit(HMM(), pairs(of=(WORDS, Y)), client=one, checkpoint=tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="the folder of checkpoint"):
        fit(ChainCRF(), pairs(), client=one, checkpoint=tmp_path / "none" / "c")
    assert not os.listdir(tmp_path)
