"""Model files: what is saved comes back the same, from one file that processes share."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from chordal import ChainCRF, FeatureTemplate, NaiveBayes
from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.costs import Cost
from chordal.costs.chunk import ChunkCost
from chordal.costs.hamming import Hamming
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.model_file import load, metadata_of, save
from chordal.model_file._items import item_facts
from chordal.objectives.hinge import Hinge
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.objectives.stochastic_likelihood import StochasticLikelihood
from chordal.solvers import Solver
from chordal.solvers.lbfgs import LBFGS

RNG = np.random.default_rng(3)
LENGTHS = (4, 1, 3, 6, 2)
WORDS = [[f"w{RNG.integers(9)}é" for _ in range(n)] for n in LENGTHS]
Y = [[("A", "B", "C")[(int(word[1]) + t) % 3] for t, word in enumerate(x)] for x in WORDS]
LISTS = [[[word, f"after={x[t - 1]}"] for t, word in enumerate(x)] for x in WORDS]
DICTS = [
    [{"w": word, "at": t / 2 + 0.25, "first": t == 0} for t, word in enumerate(x)] for x in WORDS
]
COLUMNS = [[[word, str(t)] for t, word in enumerate(x)] for x in WORDS]
DENSE = [RNG.normal(size=(n, 3)) for n in LENGTHS]
PAIRS = 'U0:%x[0,0]\nU1:%x[-1,1]/%X[0,0]\nB\nB1:%x[0,0]\n*2:%t[0,0,"\\d"]'
NUMBERS = {"A": 3, "B": -1, "C": 20}

MODELS = {
    "lists": ({}, LISTS, Y),
    "values": ({"l1": 0.3}, DICTS, Y),
    "all states": ({"pairs": "all", "transitions": "all"}, LISTS, Y),
    "bias and ends": ({"fit_intercept": True, "ends": True, "transitions": "none"}, LISTS, Y),
    "numpy's numbers": (
        {"l2": np.float32(0.5), "fit_intercept": np.True_, "tol": np.float64(1)}, LISTS, Y,
    ),
    "template of str": ({"feature_template": "U:%x[0,0]\nB"}, COLUMNS, Y),
    "observed pairs": ({"feature_template": FeatureTemplate(PAIRS), "ends": True}, COLUMNS, Y),
    "wapiti": ({"feature_template": FeatureTemplate(PAIRS, "wapiti"), "pairs": "all"}, COLUMNS, Y),
    "no U": ({"feature_template": "B"}, COLUMNS, Y),
    "dense": ({"fit_intercept": True}, DENSE, Y),
    "float32": ({}, [x.astype(np.float32) for x in DENSE], Y),
    "sparse": ({"ends": True}, [sp.csr_array(np.round(x)) for x in DENSE], Y),
    "int": ({}, LISTS, [[NUMBERS[v] for v in s] for s in Y]),
    "numpy int in lists": ({}, LISTS, [[np.int64(NUMBERS[v]) for v in s] for s in Y]),
    "float": ({}, LISTS, [[NUMBERS[v] / 3 for v in s] for s in Y]),
    "bool": ({}, LISTS, [[v == "A" for v in s] for s in Y]),
    "several types": ({}, LISTS, [[{"A": 1, "B": "b\ud800\0", "C": 0.5}[v] for v in s] for s in Y]),
    "int8 arrays": ({}, LISTS, [np.array([NUMBERS[v] for v in s], np.int8) for s in Y]),
    "bool arrays": ({}, LISTS, [np.array(s) == "A" for s in Y]),
    "str arrays": ({}, LISTS, [np.array(s, dtype="U7") for s in Y]),
    "object arrays": ({}, LISTS, [np.array(s, dtype=object) for s in Y]),
    "one label": ({}, LISTS, [["A"] * len(s) for s in Y]),
    "by objects": ({"solver": LBFGS(), "random_state": np.random.default_rng(1)}, LISTS, Y),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def problem(request):
    parameters, X, y = MODELS[request.param]
    return ChainCRF(**parameters).fit(X, y), X, y


@pytest.fixture
def there_and_back(tmp_path):
    def done(model, name="model.chordal"):
        save(model, tmp_path / name)
        return load(tmp_path / name)

    return done


def same(a, b):
    """Equal down to the types, where a plain comparison of lists of arrays cannot say."""
    if sp.issparse(a):
        a, b = a.toarray(), b.toarray()
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


QUESTIONS = {
    "predict": lambda crf, X, y: crf.predict(X),
    "mpm": lambda crf, X, y: crf.predict(X, method="mpm"),
    "marginals": lambda crf, X, y: crf.predict_marginals(X),
    "pairs": lambda crf, X, y: crf.predict_marginals(X, "transitions"),
    "k best": lambda crf, X, y: crf.k_best(X, 3),
    "sample": lambda crf, X, y: crf.set_params(random_state=5).sample(X, 2),
    "likelihood": lambda crf, X, y: crf.log_likelihood(X, y),
    "score": lambda crf, X, y: crf.score(X, y),
    "classes_": lambda crf, X, y: crf.classes_,
    "weights_": lambda crf, X, y: crf.weights_,
    "coef_": lambda crf, X, y: crf.coef_,
    "transitions_": lambda crf, X, y: crf.transitions_,
    "transition_coef_": lambda crf, X, y: crf.transition_coef_,
    "ends": lambda crf, X, y: [crf.start_, crf.end_, crf.intercept_],
    "top": lambda crf, X, y: [crf.top_features(), crf.top_transitions()],
    "report": lambda crf, X, y: [crf.objective_, crf.n_iter_, crf.fit_report_, crf.inference_.name],
}


def test_a_loaded_model_answers_as_the_saved_one(problem, there_and_back):
    crf, X, y = problem
    loaded = there_and_back(crf)
    for name, ask in QUESTIONS.items():
        assert same(ask(crf, X, y), ask(loaded, X, y)), name


@pytest.mark.parametrize("kind", ["values", "all states", "bias and ends", "template of str"])
def test_a_loaded_model_has_the_same_parameters(kind, there_and_back):
    parameters, X, y = MODELS[kind]
    crf = ChainCRF(**parameters).fit(X, y)
    assert repr(there_and_back(crf)) == repr(crf)
    assert there_and_back(crf).get_params() == crf.get_params()


def test_what_is_loaded_is_saved_to_the_same_bytes(problem, tmp_path):
    save(problem[0], tmp_path / "a")
    save(load(tmp_path / "a"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_loaded_model_can_be_pickled_and_cloned(problem, there_and_back):
    crf, X, _ = problem
    loaded = there_and_back(crf)
    copied = pickle.loads(pickle.dumps(loaded))
    assert same(copied.predict_marginals(X), crf.predict_marginals(X))
    fresh = clone(loaded)
    assert not hasattr(fresh, "weights_")
    assert repr(fresh) == repr(loaded)


@pytest.mark.parametrize("way", ["partial_fit", "warm_start"])
@pytest.mark.parametrize("kind", ["lists", "values", "observed pairs", "dense", "sparse"])
def test_training_goes_on_as_if_the_model_had_never_left(kind, way, there_and_back, tmp_path):
    parameters, X, y = MODELS[kind]
    start, rest = slice(0, 3), slice(2, 5)
    kept = ChainCRF(**parameters, max_iter=20, warm_start=True).fit(X[start], y[start])
    loaded = there_and_back(kept)
    before = (tmp_path / "model.chordal").read_bytes()
    new_label = [*y[rest][:-1], ["new"] * len(y[-1])]
    for model in (kept, loaded):
        (model.partial_fit if way == "partial_fit" else model.fit)(X[rest], new_label)
    assert len(loaded.classes_) == 4
    assert same(kept.weights_, loaded.weights_)
    assert same(kept.predict_marginals(X), loaded.predict_marginals(X))
    assert (tmp_path / "model.chordal").read_bytes() == before


def test_a_mapped_vocabulary_copies_itself_when_it_grows(there_and_back, tmp_path):
    for kind in ("lists", "observed pairs"):
        parameters, X, y = MODELS[kind]
        crf = ChainCRF(**parameters).fit(X, y)
        loaded = there_and_back(crf, kind)
        before = (tmp_path / kind).read_bytes()
        source = loaded.reader_.inputs[0]
        known = source.vocabulary.names()
        for round_ in range(3):
            more = [[[f"new{round_}.{k}", str(k)] for k in range(400)]]
            source.read(more, grow=True)
        names = source.vocabulary.names()
        assert names[: len(known)] == known
        assert len(set(names)) == len(names) > len(known) + 1000
        assert [source.vocabulary.find(name) for name in names] == list(range(len(names)))
        assert (tmp_path / kind).read_bytes() == before


def test_a_validated_fit_keeps_its_scores(there_and_back):
    crf = ChainCRF(validation_interval=2, n_iter_no_change=3)
    crf.fit(LISTS, Y, validation_data=(LISTS, Y))
    assert crf.fit_report_.validation
    assert there_and_back(crf).fit_report_ == crf.fit_report_


def test_arrays_that_lists_outgrow_keep_their_labels(there_and_back):
    """The first y is an array of short strings, the others are lists of longer ones."""
    y = [np.array(["a"] * 4), ["longer"], *[["b"] * len(s) for s in Y[2:]]]
    crf = ChainCRF(l2=0.01).fit(LISTS, y)
    assert crf.predict(LISTS)[1].tolist() == ["longer"]
    assert same(there_and_back(crf).predict(LISTS), crf.predict(LISTS))


def test_the_safetensors_package_reads_the_same_arrays(problem, tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    from safetensors import safe_open

    crf = problem[0]
    path = str(tmp_path / "model")
    save(crf, path)
    arrays = numpy_files.load_file(path)
    assert np.array_equal(arrays["weights"].astype(np.float64), crf.weights_)
    assert np.array_equal(arrays["transitions.kept"], crf.layout_["transitions"].kept)
    for name, array in crf.layout_["node"].rows.arrays().items():
        assert np.array_equal(arrays[f"node.{name}"], array)
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert (metadata["format"], metadata["version"]) == ("chordal", "1")
    assert json.loads(metadata["model"])["labels"]["labels"] == crf.labels_.labels


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_short_weights_take_fewer_bytes(dtype, tmp_path):
    crf = ChainCRF().fit(LISTS, Y).compact(dtype=dtype)
    save(crf, tmp_path / "model")
    raw = (tmp_path / "model").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert (
        header["weights"]["dtype"] == {"float16": "F16", "float32": "F32", "float64": "F64"}[dtype]
    )
    assert same(load(tmp_path / "model").weights_, crf.weights_)


def test_arrays_are_used_where_they_were_read_and_cannot_be_written(there_and_back):
    loaded = there_and_back(ChainCRF().fit(LISTS, Y))
    read = [
        loaded.weights_,
        loaded.layout_["transitions"].kept,
        *loaded.layout_["node"].rows.arrays().values(),
    ]
    whole = {id(array.base) for array in read}
    assert len(whole) == 1  # one block of memory
    for array in read:
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 0


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """749,347 weights of 279,177 attributes, 22 MB."""
    rng = np.random.default_rng(0)
    X = [
        [[f"a{k}" for k in rng.integers(300_000, size=40)] for _ in range(20)] for _ in range(1000)
    ]
    y = [[str(k) for k in rng.integers(20, size=20)] for _ in range(1000)]
    path = tmp_path_factory.mktemp("large") / "model"
    save(ChainCRF(max_iter=1).fit(X, y), path)
    return path, X[:2]


FORKED = """
import json, os, re, sys
from chordal import load

model = load(sys.argv[1])
X = json.loads(sys.stdin.readline())
expected = model.predict(X)
begin = model.weights_.ctypes.data
if os.fork() == 0:
    good = model.predict(X) == expected
    whole = open("/proc/self/smaps").read()
    for entry in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", whole, flags=re.M):
        limits = re.match("([0-9a-f]+)-([0-9a-f]+)", entry)
        if limits and int(limits[1], 16) <= begin < int(limits[2], 16):
            sizes = {k: int(n) for k, n in re.findall(r"^(\\w+): +(\\d+) kB", entry, re.M)}
            print(json.dumps([good, sizes]), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="needs Linux's /proc")
def test_forked_processes_share_the_memory_of_a_model(large):
    path, X = large
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, path],
        input=json.dumps(X) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    good, sizes = json.loads(ran.stdout)
    assert good
    assert sizes["Rss"] > 0.9 * path.stat().st_size / 1024
    assert sizes["Private_Dirty"] < 0.1 * sizes["Rss"]


OPENED_AND_CLOSED = """
import gc, os, sys
from chordal import ChainCRF
from chordal.model_file import ModelFileError, load, save

path = sys.argv[1]
save(ChainCRF().fit([[["a"], ["b"]]], [["A", "B"]]), path)
model = load(path)
assert model.predict([[["a"]]]) == [["A"]]
del model
with open(path, "ab") as file:
    file.write(b"x")
try:
    load(path)
    sys.exit("not refused")
except ModelFileError:
    pass
gc.collect()
if os.path.exists("/proc/self/maps"):
    with open("/proc/self/maps") as file:
        assert path not in file.read()
    opened = [os.path.realpath(f"/proc/self/fd/{k}") for k in os.listdir("/proc/self/fd")]
    assert path not in opened
"""


def test_no_handle_stays_open(tmp_path):
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", OPENED_AND_CLOSED]
    path = os.path.realpath(tmp_path / "model")
    run = subprocess.run([*command, path], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_leaves_the_old_model(tmp_path):
    path = tmp_path / "model"
    save(ChainCRF().fit(LISTS, Y), path)
    before = path.read_bytes()
    code = (
        "import resource, sys\n"
        "from chordal.model_file import load, save\n"
        "model = load(sys.argv[1]); limit = int(sys.argv[2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "try: save(model, sys.argv[1])\n"
        "except OSError as error: assert sys.argv[1] in str(error), error\n"
        "else: sys.exit('no error')\n"
    )
    for limit in (0, 100, len(before) - 1):
        run = subprocess.run(
            [sys.executable, "-c", code, str(path), str(limit)], capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        assert [p.name for p in tmp_path.iterdir()] == ["model"]
        assert path.read_bytes() == before


def test_an_interrupted_save_leaves_the_old_model(tmp_path, monkeypatch):
    path = tmp_path / "model"
    crf = ChainCRF().fit(LISTS, Y)
    save(crf, path)
    before = path.read_bytes()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(crf.compact(threshold=0.1), path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == before


class OwnSolver(Solver):
    name = "lbfgs"  # taken by another

    def _run(self, run):
        return Status.STOPPED


def unsavable():
    dense = [np.eye(3), np.eye(3)[:2]]
    labels = [["a", "b", "c"], ["a", "b"]]
    yield (
        "another class",
        NaiveBayes().fit(np.eye(2), [0, 1]),
        "a NaiveBayes cannot be saved",
    )
    yield "tuples", ChainCRF().fit(dense, [[(0, 1)] * 3, [(1, 1)] * 2]), r"got \(\d, 1\)"
    yield "bytes", ChainCRF().fit(dense, [[b"a"] * 3, [b"b"] * 2]), "labels must be str"
    yield "own solver", ChainCRF(solver=OwnSolver()).fit(dense, labels), "your own solver"
    yield "set later", ChainCRF().fit(dense, labels).set_params(l2="x"), "l2 must be a number"
    yield (
        "solver later",
        ChainCRF().fit(dense, labels).set_params(solver="x"),
        "solver must be one of",
    )


@pytest.mark.parametrize(
    ("model", "message"), [pytest.param(*rest, id=k) for k, *rest in unsavable()]
)
def test_what_no_file_can_hold_is_refused_before_writing(model, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_unfitted_models_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(ChainCRF(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


SETTINGS = {
    "normalised": Hinge(Hamming(normalize=True)),
    "slack": Hinge(WeightedHamming({"A": 2, ("B", "A"): 3}), scaling="slack"),
    "matrix": SoftmaxMargin(WeightedHamming(np.array([[0.0, 2.5], [0.3, 0.0]]), normalize=True)),
    "chunk": Hinge(ChunkCost(missed=2.0, false=0.5)),
    "samples": StochasticLikelihood("contrastive", n_samples=3, random_state=4),
}


@pytest.mark.parametrize("objective", SETTINGS.values(), ids=SETTINGS)
def test_an_objective_keeps_its_cost_and_settings(objective, there_and_back):
    X, y = [[["a"], ["b"], ["b"]], [["b"], ["a"]]], [["A", "B", "B"], ["B", "A"]]
    crf = ChainCRF(objective, "adam", max_iter=5, random_state=0).fit(X, y)
    loaded = there_and_back(crf)
    assert type(loaded.objective) is type(objective)
    assert (
        item_facts("objective", loaded.objective)
        == item_facts("objective", objective)
        != objective.name
    )
    again = loaded.set_params(random_state=0).fit(X, y)
    assert np.array_equal(again.weights_, clone(crf).fit(X, y).weights_)


def test_a_cost_of_your_own_is_refused(tmp_path):
    class Own(Cost):
        def add(self, potentials, labels):
            return potentials

    crf = ChainCRF(Hinge(Own()), "adam", max_iter=2).fit([[["a"], ["b"]]], [["A", "B"]])
    with pytest.raises(UnsupportedError, match=r"your own cost \(Own\) cannot be saved"):
        save(crf, tmp_path / "model.chordal")


def test_metadata(tmp_path):
    crf = ChainCRF().fit([[["a"], ["b"]]], [["A", "B"]])
    path = tmp_path / "model.chordal"
    save(crf, path)
    assert metadata_of(path) == {}
    save(crf, path, metadata={"licence": "CC0", "sources": ["a", 1, None]})
    assert metadata_of(path) == {"licence": "CC0", "sources": ["a", 1, None]}
    assert load(path).predict([[["b"]]]) == [["B"]]
    for bad in ({1: "a"}, {"a": object()}, {"a": float("nan")}, ["a"]):
        with pytest.raises((TypeError, ValueError), match="metadata must"):
            save(crf, path, metadata=bad)
    assert metadata_of(path)["licence"] == "CC0"
