"""The file of a checkpoint: what is refused, what a full disk, Ctrl-C and `kill -9` do to it."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest

from chordal import ChainCRF, Checkpoint, CheckpointError, GraphCRF, ModelFileError, load, save
from chordal._container import CHECKPOINT, read, write
from chordal.estimators import CheckpointWarning, InterruptedFitWarning
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.solvers import SOLVERS
from chordal.solvers.lbfgs import LBFGS

pytestmark = [
    pytest.mark.filterwarnings("ignore:solver"),
    pytest.mark.filterwarnings("ignore:.*encountered in"),
]


def data(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = [[[f"w{rng.integers(8)}", f"p{rng.integers(4)}"] for _ in range(5)] for _ in range(n)]
    return X, [["ABC"[int(x[0][1:]) % 3] for x in own] for own in X]


X, Y = data()


@pytest.fixture
def path(tmp_path):
    """A checkpoint of a fit that ended at iteration 6, written after the fourth."""
    ChainCRF(max_iter=6, tol=0.0).fit(X, Y, checkpoint=Checkpoint(tmp_path / "c", interval=4))
    return tmp_path / "c"


def fitted(path, X=X, y=Y, **settings):
    return ChainCRF(**{"max_iter": 6, "tol": 0.0, **settings}).fit(X, y, checkpoint=path)


def test_a_finished_fit_gives_its_result_again(path):
    before = path.read_bytes()
    assert (fitted(path).weights_ == ChainCRF(max_iter=6, tol=0.0).fit(X, Y).weights_).all()
    assert path.read_bytes() == before


def test_a_fit_goes_on_to_a_larger_max_iter(path):
    longer = ChainCRF(max_iter=20, tol=0.0).fit(X, Y)
    assert (fitted(path, max_iter=20).weights_ == longer.weights_).all()
    with pytest.raises(
        CheckpointError, match=r"at iteration 1\d, but max_iter is 6: raise max_iter"
    ):
        fitted(path)


OTHERS = {
    "l2 (was 1.0, is 0.5)": {"l2": 0.5},
    "tol (was 0.0, is 0.1)": {"tol": 0.1},
    "objective (was 'auto', is 'softmax_margin')": {"objective": "softmax_margin"},
    "solver": {"solver": LBFGS(max_iter=6, tol=0.0, memory=3)},
    "pairs (was 'seen', is 'all')": {"pairs": "all"},
    "the training data": {"X": [*X[:-1], X[0]]},
    "their labels": {"y": [["A"] * 5, *Y[1:]]},
}


@pytest.mark.parametrize("told", OTHERS)
def test_another_fit_is_refused_and_said_how_it_differs(told, path):
    before = path.read_bytes()
    with pytest.raises(
        CheckpointError, match="c: it belongs to another fit, which differs in"
    ) as e:
        fitted(path, **OTHERS[told])
    assert told in str(e.value)
    assert path.read_bytes() == before


def test_iterations_of_inference_are_a_setting(tmp_path):
    X = [(np.eye(4), [(0, 1), (1, 2), (2, 3), (3, 0)])]

    def fit(max_iter):
        crf = GraphCRF(inference=LoopyBPInference(max_iter=max_iter), max_iter=3, tol=0.0)
        return crf.fit(X, [["a", "a", "b", "b"]], checkpoint=Checkpoint(tmp_path / "c", 1))

    fit(5)
    with pytest.raises(CheckpointError, match=r"inference.max_iter \(was 5, is 50\)"):
        fit(50)


def test_what_does_not_change_the_weights_may_differ(path):
    assert (fitted(path, n_jobs=2, verbose=0).weights_ == fitted(path).weights_).all()


def test_other_weights_of_examples_validation_data_and_starts_are_refused(path):
    model = ChainCRF(max_iter=6, tol=0.0)
    with pytest.raises(CheckpointError, match="differs in sample_weight; give another path"):
        model.fit(X, Y, sample_weight=np.full(len(X), 2.0), checkpoint=path)
    with pytest.raises(CheckpointError, match="differs in validation_data; give another"):
        model.fit(X, Y, validation_data=data(5, 1), checkpoint=path)
    known = ChainCRF(max_iter=2).fit(X, Y).set_params(warm_start=True, max_iter=6, tol=0.0)
    with pytest.raises(CheckpointError, match="differs in the weights at the start"):
        known.fit(X, Y, checkpoint=path)


def test_another_version_is_refused(path):
    facts, arrays = read(path, CHECKPOINT)
    facts["fingerprint"]["the version of chordal"] = "0.0.1"
    write(path, facts, arrays, CHECKPOINT)
    with pytest.raises(CheckpointError, match=r"the version of chordal \(was '0.0.1', is"):
        fitted(path)


def test_every_damaged_byte_is_noticed(path):
    whole = bytearray(path.read_bytes())
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            fitted(path)
    for length in (0, 5, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"empty|truncated|not a chordal|bytes"):
            fitted(path)


def test_models_and_checkpoints_are_not_taken_for_each_other(path, tmp_path):
    save(ChainCRF().fit(X, Y), tmp_path / "model")
    with pytest.raises(CheckpointError, match="no checkpoint: it holds a model"):
        fitted(tmp_path / "model")
    with pytest.raises(ModelFileError, match="no model: it holds a checkpoint"):
        load(path)
    path.write_text("no such thing")
    with pytest.raises(CheckpointError, match="not a chordal checkpoint"):
        fitted(path)


def changes():
    """Arrays and facts that no fit writes: with a right checksum, they are still checked."""
    run, pairs = "solver.run", "solver.parts.pairs"
    arrays = [
        ("run.weights must be an array", f"{run}.weights", lambda own: own[1:]),
        ("finite numbers", f"{run}.gradient", lambda own: own * np.nan),
        ("pairs of", f"{pairs}.pairs", lambda own: own[:3]),
        ("each once", f"{pairs}.order", lambda own: 0 * own),
        ("must be some of 6", f"{pairs}.order", lambda own: own + 7),
        ("must be an array int64", f"{pairs}.order", lambda own: own.astype(np.float64)),
    ]
    for message, name, made in arrays:
        yield message, lambda f, a, name=name, made=made: a.update({name: made(a[name])})
    facts = [("must be of type int", "7"), ("must be at least 0", -1), ("is missing", None)]
    for message, value in facts:
        yield message, lambda f, a, value=value: f["state"]["solver"]["run"].update(n_iter=value)
    yield "must be a number", lambda f, a: f["state"]["solver"]["run"].update(value="low")
    yield "named values", lambda f, a: f["state"].update(solver=[])
    yield "not a valid checkpoint", lambda f, a: f.pop("seed")


@pytest.mark.parametrize(("message", "change"), list(changes()))
def test_a_file_made_by_hand_is_checked(message, change, path):
    facts, arrays = read(path, CHECKPOINT)
    arrays = {name: np.array(own) for name, own in arrays.items()}
    change(facts, arrays)
    run = facts["state"]["solver"]
    if isinstance(run, dict):
        _fit_shapes(run, arrays)
        run["run"] = {name: own for name, own in run["run"].items() if own is not None}
    write(path, facts, arrays, CHECKPOINT)
    with pytest.raises(CheckpointError, match=message):
        fitted(path)


def _fit_shapes(facts, arrays):
    for own in facts.values():
        if isinstance(own, dict) and "__array__" in own and len(own["shape"]) == 1:
            own["shape"] = [len(arrays[own["__array__"]])]
        elif isinstance(own, dict):
            _fit_shapes(own, arrays)


@pytest.mark.parametrize("solver", SOLVERS.names())
def test_no_array_of_a_file_is_trusted(solver, tmp_path):
    """Whatever an array holds, a fit refuses it, or ends; it does not fall."""
    for package in SOLVERS.get(solver).packages:
        pytest.importorskip(package)
    l1 = 0.1 if SOLVERS.get(solver).handles_l1 else 0.0
    settings = {"solver": solver, "l1": l1, "random_state": 0, "tol": 0.0, "max_iter": 3}
    path, X, Y = tmp_path / "c", *data(6)
    ChainCRF(**settings).fit(X, Y, checkpoint=Checkpoint(path, interval=2))
    whole, refused = path.read_bytes(), 0
    facts, arrays = read(path, CHECKPOINT)
    arrays = {name: np.array(own) for name, own in arrays.items()}
    for name, own in arrays.items():
        top = np.iinfo(own.dtype).max if own.dtype.kind in "iu" else 1e300
        for other in (own[:-1], np.full_like(own, top), -own - 1):
            changed = {**arrays, name: np.ascontiguousarray(other.astype(own.dtype))}
            made = deepcopy(facts)
            _fit_shapes(made["state"]["solver"], changed)
            write(path, made, changed, CHECKPOINT)
            try:
                ChainCRF(**settings).fit(X, Y, checkpoint=path)
            except (CheckpointError, ValueError) as error:
                refused += isinstance(error, CheckpointError)
    path.write_bytes(whole)
    assert refused > len(arrays) / 2
    ChainCRF(**settings).fit(X, Y, checkpoint=path)


def _numbers(holder):
    """Where a state holds numbers, outside of arrays: (dict or list, key)."""
    for key, own in holder.items() if isinstance(holder, dict) else enumerate(holder):
        if isinstance(own, (dict, list)) and "__array__" not in own:
            yield from _numbers(own)
        elif isinstance(own, (int, float)) and not isinstance(own, bool):
            yield holder, key


@pytest.mark.parametrize("solver", SOLVERS.names())
def test_no_number_of_a_file_is_trusted(solver, tmp_path):
    """Whatever a number is, a fit refuses it, or ends; it does not divide by it."""
    for package in SOLVERS.get(solver).packages:
        pytest.importorskip(package)
    settings = {"solver": solver, "random_state": 0, "tol": 0.0}
    path, X, Y = tmp_path / "c", *data(6)
    ChainCRF(max_iter=2, **settings).fit(X, Y, checkpoint=Checkpoint(path, interval=1))
    facts, arrays = read(path, CHECKPOINT)
    arrays = {name: np.array(own) for name, own in arrays.items()}
    n = len(list(_numbers(facts["state"]["solver"])))
    assert n
    for k in range(n):
        for other in (0, -1, 1e300, 5e-324):
            made = deepcopy(facts)
            holder, key = list(_numbers(made["state"]["solver"]))[k]
            holder[key] = type(holder[key])(
                min(other, 10**6) if type(holder[key]) is int else other
            )
            write(path, made, arrays, CHECKPOINT)
            with contextlib.suppress(ValueError):
                ChainCRF(max_iter=4, **settings).fit(X, Y, checkpoint=path)


def test_a_path_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder of checkpoint .* does not exist"):
        fitted(tmp_path / "none" / "c")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        fitted(tmp_path)
    with pytest.raises(ValueError, match="must be the path of a file, got an empty one"):
        fitted("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device"):  # it would wait for a writer
        fitted(tmp_path / "pipe")
    with pytest.raises(TypeError, match="must be a path or a Checkpoint, got 3"):
        fitted(3)
    with pytest.raises(ValueError, match="interval must be"):
        Checkpoint(tmp_path / "c", interval=0)


def test_a_full_disk_costs_neither_the_fit_nor_the_last_checkpoint(path, tmp_path):
    before, whole = path.read_bytes(), ChainCRF(max_iter=9, tol=0.0).fit(X, Y)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.warns(
            CheckpointWarning, match=r"not written \(.*\); training continues, and the"
        ):
            found = ChainCRF(max_iter=9, tol=0.0).fit(X, Y, checkpoint=Checkpoint(path, interval=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (found.weights_ == whole.weights_).all()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["c"]


@pytest.mark.parametrize("solver", ["lbfgs", "averaged_perceptron", "one_slack"])
def test_ctrl_c_writes_a_last_checkpoint(solver, tmp_path, monkeypatch):
    settings = {"solver": solver, "max_iter": 9, "tol": 0.0, "random_state": 0}
    whole = ChainCRF(**settings).fit(X, Y)
    path, count = tmp_path / "c", 0

    def pressed(reading):
        def asked(*arguments, **options):
            nonlocal count
            count += 1
            if count == 7:
                raise KeyboardInterrupt
            return reading(*arguments, **options)

        return asked

    from chordal.oracle import SummedOracle
    from chordal.oracle.rules.mistake import ChainMistakeLearner

    if solver == "averaged_perceptron":
        monkeypatch.setattr(ChainMistakeLearner, "visit", pressed(ChainMistakeLearner.visit))
    else:
        monkeypatch.setattr(SummedOracle, "value_grad", pressed(SummedOracle.value_grad))
    with pytest.warns(InterruptedFitWarning):
        part = ChainCRF(**settings).fit(X, Y, checkpoint=Checkpoint(path, interval=100))
    monkeypatch.undo()
    assert part.n_iter_ > 2
    assert read(path, CHECKPOINT)[0]["iteration"] == part.n_iter_
    found = ChainCRF(**settings).fit(X, Y, checkpoint=path)
    assert (found.weights_ == whole.weights_).all()
    assert found.fit_report_.n_evaluations == whole.fit_report_.n_evaluations


CHILD = """
import sys
import numpy as np
from chordal import ChainCRF, Checkpoint

solver, path, out = sys.argv[1:]
rng = np.random.default_rng(0)
X = [rng.normal(size=(30, 12)) for _ in range(300)]
y = [(x[:, :4].argmax(axis=1) + (rng.random(30) < 0.2)).tolist() for x in X]
print("begins", flush=True)
crf = ChainCRF(solver=solver, max_iter=25, tol=0.0, random_state=0, l2=0.1)
crf.fit(X, y, checkpoint=Checkpoint(path, interval=1) if path else None)
np.save(out, crf.weights_)
"""


def child(*arguments, after=None):
    """Run it to the end, or kill it so long after it began; whether it ended."""
    words = [sys.executable, "-W", "ignore", "-c", CHILD, *map(str, arguments)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"begins\n"
        try:
            code = running.wait(timeout=after)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            code = running.wait()
    assert code in (0, -signal.SIGKILL)
    return code == 0


@pytest.mark.parametrize(("solver", "after"), [("lbfgs", 0.31), ("adam", 0.53), ("sgd", 0.23)])
def test_kill_9_and_again(solver, after, tmp_path):
    whole, found, path = tmp_path / "whole.npy", tmp_path / "found.npy", tmp_path / "c"
    assert child(solver, "", whole)
    ended, n = False, 0
    while not ended and n < 3:
        ended, n = child(solver, path, found, after=after), n + 1
    assert ended or child(solver, path, found)
    assert (np.load(found) == np.load(whole)).all()
    assert {own.name for own in tmp_path.iterdir()} >= {"whole.npy", "found.npy", "c"}
