"""Files of NeuralCRF on all structures, and training that goes on from one."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import chordal
from chordal import ChainCRF, Checkpoint, CheckpointError, GraphCRF, GridCRF, ModelFileError
from chordal._container import read, write
from chordal.torch import NeuralCRF

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


def differences(a, b):
    return np.abs(a - b)


GRID_Y = [RNG.integers(2, size=(3, n)) for n in (4, 2, 4, 3, 1)]
GRID_X = [np.stack([y + 0.5 * RNG.normal(size=y.shape)] * 2, axis=-1) for y in GRID_Y]
GRAPH_Y = [RNG.integers(2, size=n).tolist() for n in (3, 5, 2, 4)]
EDGES = [np.array([(i, i + 1) for i in range(len(y) - 1)] + [(0, len(y) - 1)][: len(y) > 2])
         for y in GRAPH_Y]  # fmt: skip
GRAPH_X = [(np.eye(2)[y], e) for y, e in zip(GRAPH_Y, EDGES, strict=True)]
TOKENS = [[("x", "z")[v] for v in y] for y in GRAPH_Y]
CASES = {
    "chain": (None, "bilstm", TOKENS, GRAPH_Y),
    "seen": (ChainCRF("hinge", transitions="seen"), "cnn", [x[0] for x in GRAPH_X], GRAPH_Y),
    "grid": (GridCRF(l2=0.5), "cnn", GRID_X, GRID_Y),
    "contrast": (GridCRF(contrast="auto", directions=True), "mlp", GRID_X, GRID_Y),
    "graph": (GraphCRF("pseudo_likelihood"), "mlp", GRAPH_X, GRAPH_Y),
    "tokens": (
        GraphCRF(column_tables={"antisymmetric": [1]}, tables="full"),
        "mlp",
        [(t, e, RNG.normal(size=(len(e), 2))) for t, e in zip(TOKENS, EDGES, strict=True)],
        GRAPH_Y,
    ),
}


def unchanged(image, rng):
    return image


def small(network, crf, **settings):
    sizes = {"hidden": 4, "embedding": 3, "max_iter": 2, "random_state": 0, "batch_size": 2}
    return NeuralCRF(network, crf, **{**sizes, **settings})


def weights_of(model):
    return np.concatenate([p.detach().numpy().ravel() for p in model.module_.state_dict().values()])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("training", ["joint", "two_stage"])
def test_there_and_back(case, training, path):
    crf, network, X, y = CASES[case]
    model = small(network, crf, training=training, dropout=0.2).fit(X, y)
    chordal.save(model, path)
    loaded = chordal.load(path, NeuralCRF)
    assert repr(loaded) == repr(model)
    assert (weights_of(loaded) == weights_of(model)).all()
    for a, b in zip(model.node_scores(X), loaded.node_scores(X), strict=True):
        assert (np.asarray(a) == b).all()
    for a, b in zip(model.predict(X), loaded.predict(X), strict=True):
        assert np.array_equal(a, b)
    assert str(loaded.fit_report_) == str(model.fit_report_)
    assert loaded.set_params(warm_start=True).fit(X, y).n_iter_ >= 1


def test_a_crf_with_functions_is_given_again(path):
    crf = GridCRF(edge_features=differences)
    model = small("mlp", crf).fit(GRID_X, GRID_Y)
    chordal.save(model, path)
    with pytest.raises(ModelFileError, match=r"a file contains no code: .* load\(path, crf=…\)"):
        chordal.load(path)
    loaded = chordal.load(path, crf=crf)
    assert (loaded.predict_marginals(GRID_X)[0] == model.predict_marginals(GRID_X)[0]).all()
    with pytest.raises(ModelFileError, match="not a valid model"):
        chordal.load(path, crf=GridCRF())


HOSTILE = [
    (("inputs", "shape"), [3], "weights, but the file"),
    (("inputs", "shape"), [2, 2], "must be 1 size for images"),
    (("inputs", "shape"), [], "must be 1 size for images"),
    (("parameters", "crf", "class"), "ChainCRF", "not a valid model"),
    (("parameters", "crf", "class"), "GraphCRF", "not a valid model"),
    (("parameters", "crf", "class"), "HMM", "class of crf must be one of"),
    (("parameters", "crf", "parameters", "neighbours"), 5, "neighbours must be 4 or 8"),
    (("parameters", "crf", "parameters", "objective"), "os", "objective must be one of"),
    (
        ("parameters", "crf", "parameters", "contrast"),
        1.0,
        "contrast must be stored if and only if",
    ),
    (("parameters", "crf", "functions"), ["network"], "its functions must be some of"),
    (("parameters", "network"), "bilstm", "network 'bilstm' reads sequences; with a GridCRF"),
    (("crf", "labels", "labels"), [0], "not a valid model"),
    (("crf", "labels", "labels"), [0, 1, 2], "not a valid model"),
    (("crf", "templates"), None, "not a valid model"),
    (("crf", "contrast"), "x", "not a valid model"),
    (("crf", "report"), 3, "not a valid model"),
]


@pytest.mark.parametrize(("keys", "value", "message"), HOSTILE)
def test_hostile_facts(keys, value, message, path):
    chordal.save(small("mlp", GridCRF()).fit(GRID_X, GRID_Y), path)
    facts, arrays = read(path)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    *outer, last = keys
    place = facts
    for key in outer:
        place = place[key]
    place[last] = value
    write(path, facts, arrays)
    with pytest.raises(ModelFileError, match=message):
        chordal.load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("name", ["weights", "crf.weights"])
def test_hostile_weights(name, value, path):
    chordal.save(small("mlp", GridCRF()).fit(GRID_X, GRID_Y), path)
    facts, arrays = read(path)
    arrays = {key: np.array(array, dtype=np.float64 if "weights" in key else array.dtype)
              for key, array in arrays.items()}  # fmt: skip
    arrays[name][0] = value
    with np.errstate(invalid="ignore"):
        write(path, facts, arrays)
    with pytest.raises(ModelFileError, match="weights must be numbers"):
        chordal.load(path)
    write(path, facts, {**arrays, name: np.zeros(1)})
    with pytest.raises(ModelFileError, match="weights"):
        chordal.load(path)


# ----------------------------------------------------------------------------------- going on


LIMITED = """
import resource, signal, sys
from chordal.torch import NeuralCRF
X, y = [["a", "b"], ["c"]] * 4, [["A", "B"], ["A"]] * 4
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
model = NeuralCRF(random_state=0, max_iter=3).fit(X, y, checkpoint=sys.argv[1])
alone = NeuralCRF(random_state=0, max_iter=3).fit(X, y)
print(model.n_iter_, model.objective_ == alone.objective_)
"""


class Stop(Exception):
    pass


def stop_at(n):
    def callback(state):
        if state.iteration == n:
            raise Stop

    return callback


@pytest.mark.parametrize("training", ["joint", "two_stage_joint"])
@pytest.mark.parametrize("case", CASES)
def test_training_goes_on_bit_for_bit(case, training, path):
    crf, network, X, y = CASES[case]
    settings = {"dropout": 0.3, "schedule": "cosine", "max_iter": 5, "training": training}
    whole = small(network, crf, **settings).fit(X, y)
    with pytest.raises(Stop):
        small(network, crf, **settings).fit(X, y, checkpoint=path, callback=stop_at(2))
    assert chordal.load(path).n_iter_ == 2
    again = small(network, crf, **settings).fit(X, y, checkpoint=path)
    assert (weights_of(again) == weights_of(whole)).all()
    assert again.fit_report_.history == whole.fit_report_.history
    assert len(again.reports_) == len(whole.reports_)
    assert read(path)[0]["training"]["ended"]
    done = small(network, crf, **settings).fit(X, y, checkpoint=path)
    assert (weights_of(done) == weights_of(whole)).all()
    assert done.set_params(warm_start=True).fit(X, y).n_iter_ == 5


def test_early_stopping_goes_on_too(path):
    crf, _, X, y = CASES["graph"]
    settings = {"n_iter_no_change": 4, "max_iter": 30, "learning_rate": 0.05, "optimizer": "adamw"}
    other = [(x[0] + 0.1, x[1]) for x in X], y
    whole = small("mlp", crf, **settings).fit(X, y, validation_data=other)
    options = {"validation_data": other, "checkpoint": path}
    with pytest.raises(Stop):
        small("mlp", crf, **settings).fit(X, y, callback=stop_at(3), **options)
    again = small("mlp", crf, **settings).fit(X, y, **options)
    assert (weights_of(again) == weights_of(whole)).all()
    assert again.fit_report_.validation == whole.fit_report_.validation


def test_the_seed_that_was_drawn_is_kept(path):
    _, _, X, y = CASES["graph"]
    model = small("mlp", GraphCRF(), random_state=None, n_iter_no_change=2, max_iter=4)
    with pytest.raises(Stop):  # some examples are held out
        model.fit(X, y, checkpoint=path, callback=stop_at(2))
    copies = [path.with_name("first"), path.with_name("second")]
    for copy in copies:
        shutil.copy(path, copy)
    first, second = (clone(model).fit(X, y, checkpoint=own) for own in copies)
    assert (weights_of(first) == weights_of(second)).all()


def test_checkpoints_are_written_when_they_are_due(path):
    crf, network, X, y = CASES["grid"]
    kept = Checkpoint(path, interval=3)
    for n, there in ((2, None), (4, 3), (5, 3)):
        path.unlink(missing_ok=True)
        with pytest.raises(Stop):
            small(network, crf, max_iter=6).fit(X, y, checkpoint=kept, callback=stop_at(n))
        assert there is None or chordal.load(path).n_iter_ == there
        assert path.exists() == (there is not None)
    again = small(network, crf, max_iter=6).fit(X, y, checkpoint=kept)
    assert (weights_of(again) == weights_of(small(network, crf, max_iter=6).fit(X, y))).all()


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
def test_a_full_disk_does_not_end_training(path):
    made = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True
    )
    assert made.stdout.split() == ["3", "True"]
    assert "CheckpointWarning: the checkpoint of iteration 1 was not written" in made.stderr
    assert not os.listdir(path.parent)


def test_where_a_checkpoint_cannot_be(tmp_path):
    crf, network, X, y = CASES["grid"]
    for place, error, message in (
        (tmp_path, IsADirectoryError, "is a folder"),
        (tmp_path / "none" / "c", FileNotFoundError, "the folder of checkpoint .* does not exist"),
        (3, TypeError, "checkpoint must be a path or a Checkpoint, got 3"),
    ):
        with pytest.raises(error, match=message):
            small(network, crf).fit(X, y, checkpoint=place)


def test_a_checkpoint_of_another_fit_is_refused(path):
    crf, network, X, y = CASES["grid"]
    model = small(network, crf).fit(X, y, checkpoint=path)
    assert model._saved == ({}, {})
    for changed, message in (
        (small(network, crf, hidden=5), r"differs in hidden \(was 4, is 5\); give another path"),
        (small(network, GridCRF()), r"differs in crf.l2 \(was 0.5, is 1.0\)"),
        (small("mlp", crf), r"differs in network \(was 'cnn', is 'mlp'\)"),
        (small(network, crf, random_state=1), r"differs in random_state \(was 0, is 1\)"),
        (small(network, crf, augment=unchanged), r"differs in augment \(was None, is .*unchanged"),
    ):
        with pytest.raises(CheckpointError, match=message):
            changed.fit(X, y, checkpoint=path)
    others = (X[:4], y[:4]), (X, [1 - own for own in y]), ([x + 1 for x in X], y)
    for _ in range(2):  # of one that has ended, and of one that goes on
        for other in others:
            with pytest.raises(CheckpointError, match="differs in the training data; give another"):
                small(network, crf).fit(*other, checkpoint=path)
        with pytest.raises(CheckpointError, match="differs in validation_data"):
            small(network, crf).fit(X, y, checkpoint=path, validation_data=(X, y))
        path.unlink()
        with pytest.raises(Stop):
            small(network, crf).fit(X, y, checkpoint=path, callback=stop_at(1))
    chordal.save(model, path)
    with pytest.raises(CheckpointError, match="it is a model that was saved, not a checkpoint"):
        small(network, crf).fit(X, y, checkpoint=path)
    path.write_bytes(b"nothing of this kind")
    with pytest.raises(CheckpointError, match="model: not a"):
        small(network, crf).fit(X, y, checkpoint=path)


@pytest.mark.parametrize("kept", [False, True])
def test_a_model_of_a_checkpoint_that_is_fitted_again_is_not_one(kept, tmp_path):
    crf, network, X, y = CASES["chain"]
    small(network, crf).fit(X, y, checkpoint=tmp_path / "checkpoint")
    model = chordal.load(tmp_path / "checkpoint")
    if kept:
        model.prepare(tmp_path / "data", X, y)
    given = (tmp_path / "data",) if kept else (X, y)
    chordal.save(model.set_params(random_state=1).fit(*given), tmp_path / "model")
    with pytest.raises(CheckpointError, match="it is a model that was saved, not a checkpoint"):
        small(network, crf).fit(X, y, checkpoint=tmp_path / "model")
    model = chordal.load(tmp_path / "checkpoint")
    chordal.save(model.fit(X, y, checkpoint=tmp_path / "checkpoint"), tmp_path / "model")
    with pytest.raises(CheckpointError, match="it is a model that was saved, not a checkpoint"):
        small(network, crf).fit(X, y, checkpoint=tmp_path / "model")


def test_the_layers_of_a_network_belong_to_its_fit(path):
    X, y = [np.eye(3, dtype=np.float32)] * 4, [["A", "B", "A"]] * 4

    def network(dropout):
        return torch.nn.Sequential(torch.nn.Dropout(dropout), torch.nn.Linear(3, 2))

    NeuralCRF(network(0.1), max_iter=2, random_state=0).fit(X, y, checkpoint=path)
    with pytest.raises(CheckpointError, match="differs in the network's layers; give another"):
        NeuralCRF(network(0.5), max_iter=2, random_state=0).fit(X, y, checkpoint=path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history", None),
        ("steps", [1]),
        ("generator", {}),
        ("best", 3),
        ("n_steps", "x"),
        ("fit", None),
    ],
)
def test_hostile_checkpoints(name, value, path):
    crf, network, X, y = CASES["grid"]
    with pytest.raises(Stop):
        small(network, crf).fit(X, y, checkpoint=path, callback=stop_at(1))
    facts, arrays = read(path)
    arrays = {key: np.array(array) for key, array in arrays.items()}
    facts["training"][name] = value
    write(path, facts, arrays)
    with pytest.raises(CheckpointError, match="training cannot continue from it"):
        small(network, crf).fit(X, y, checkpoint=path)
    chordal.load(path).predict(X)  # the model itself is whole


@pytest.mark.parametrize("name", ["moments", "best", "torch"])
def test_hostile_arrays_of_checkpoints(name, path):
    crf, network, X, y = CASES["grid"]
    with pytest.raises(Stop):
        small(network, crf).fit(X, y, checkpoint=path, callback=stop_at(1))
    facts, arrays = read(path)
    arrays = {key: np.array(array) for key, array in arrays.items()}
    arrays[f"training.{name}"] = arrays[f"training.{name}"][:3]
    write(path, facts, arrays)
    with pytest.raises(CheckpointError, match="training cannot continue from it"):
        small(network, crf).fit(X, y, checkpoint=path)
