"""chordal.compat.pycrfsuite, call by call beside python-crfsuite."""

import os

import numpy as np
import pycrfsuite as theirs
import pytest

from chordal.compat import pycrfsuite as ours

BOTH = pytest.mark.parametrize("module", [ours, theirs], ids=["ours", "theirs"])
ALGORITHMS = ["lbfgs", "l2sgd", "ap", "averaged-perceptron", "pa", "passive-aggressive", "arow"]

WEATHER = [
    {"walk": 1, "shop": 0.5},
    {"walk": 1},
    {"walk": 1, "clean": 0.5},
    {"shop": 0.5, "clean": 0.5},
    {"walk": 0.5, "clean": 1},
    {"clean": 1, "shop": 0.1},
    {"walk": 1, "shop": 0.5},
    {},
    {"clean": 1},
    {"солнце": "не светит".encode(), "clean": 1, "never": False},
]
LABELS = ["sunny", "sunny", "sunny", "rainy", "rainy", "rainy", "sunny", "sunny", "rainy", "好"]


def train(module, path, instances, algorithm=None, holdout=-1, **params):
    trainer = module.Trainer(algorithm, params, verbose=False)
    for instance in instances:
        trainer.append(*instance)
    trainer.train(str(path), holdout)
    return trainer


def opened(module, path):
    tagger = module.Tagger()
    tagger.open(str(path))
    return tagger


def weights(info):
    return info.state_features | info.transitions


# ------------------------------------------------------------------------------------------- items

ITEMS = [
    [["foo"], {"bar": {"baz": 1}}],
    [{"a": True, "b": False, "c": "d", "e": ["x", "y"], "g": {"h": {"i": 2.5}}, "j": {}}],
    [{"set": {"x"}, "bytes": "é".encode()}, {b"key": b"value"}],
    [[], {}, ("t", "u"), {"k": 0, "z": 0.0}],
    [{"k": np.float32(0.5), "n": np.int64(3), "t": np.bool_(True)}],
    [{"a": 1}.keys(), ["a", "a"], iter(["it"])],
    [],
]


@pytest.mark.parametrize("items", ITEMS)
def test_items_are_read_as_theirs(items):
    items = [list(i) if hasattr(i, "__next__") else i for i in items]
    mine, real = ours.ItemSequence(items), theirs.ItemSequence(items)
    assert mine.items() == real.items()
    assert len(mine) == len(real)
    assert repr(mine) == repr(real)
    assert ours.ItemSequence(mine).items() == mine.items()


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ("foo", TypeError, "xseq must be a list of items, got str"),
        ({"a": 1}, TypeError, "xseq must be a list of items, got dict"),
        (5, TypeError, "xseq must be a list of items, got int"),
        (["foo"], TypeError, r"xseq\[0\] must be a dict or a list of attribute names, got str"),
        ([["a"], 3], TypeError, r"xseq\[1\] must be a dict or a list"),
        ([[{"foo": 1.0}]], TypeError, r"names must be str, got dict in xseq\[0\]"),
        ([{1: 2}], TypeError, "names must be str, got int"),
        ([["a"], {"a": None}], TypeError, r"attribute 'a' in xseq\[1\] must be a str, a number"),
        ([{"a": float("nan")}], ValueError, "must be finite"),
        ([{"a": np.zeros(3)}], TypeError, "attribute 'a'"),
        ([{"a": b"\xff"}], ValueError, "utf-8"),
    ],
)
def test_bad_items(tmp_path, items, error, message):
    with pytest.raises(error, match=message):
        ours.ItemSequence(items)
    trainer = ours.Trainer(verbose=False)
    with pytest.raises(error, match=message if error is TypeError else None):
        trainer.append(items, ["x"] * (1 if items == 5 else len(items)))
    trainer.append([["a"]], ["x"])  # the mistake left nothing behind
    trainer.train(str(tmp_path / "model"))
    tagger = opened(ours, tmp_path / "model")
    with pytest.raises(error, match=message if error is TypeError else None):
        tagger.tag(items)


def test_items_nested_without_end():
    item = {}
    item["a"] = item
    with pytest.raises(ValueError, match="nested too deeply"):
        ours.ItemSequence([item])


# ------------------------------------------------------------------------------------------ trainer


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_parameters_and_defaults(algorithm):
    mine, real = ours.Trainer(algorithm), theirs.Trainer(algorithm)
    assert mine.params() == real.params()
    assert mine.get_params() == real.get_params()
    for name in mine.params():
        assert mine.help(name)
    mine.set("feature.possible_states", True)
    mine.set("max_iterations", "50")
    assert mine.get("feature.possible_states") is True
    assert mine.get("max_iterations") == 50
    mine.set_params(mine.get_params())
    mine.select("lbfgs")
    assert mine.get_params() == theirs.Trainer().get_params()


@BOTH
def test_unknown_names(module):
    trainer = module.Trainer("l2sgd")
    for call in (
        lambda: trainer.set("c1", 1),
        lambda: trainer.get("c1"),
        lambda: trainer.help("c1"),
        lambda: module.Trainer(params={"foo": 1}),
    ):
        with pytest.raises(ValueError, match="Parameter not found"):
            call()
    for arguments in (("foo",), ("lbfgs", "semi")):
        with pytest.raises(ValueError, match=r"algorithm|type"):
            trainer.select(*arguments)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("c1", "abc", "c1 must be a number of at least 0, got 'abc'"),
        ("c2", -1, "c2 must be a number of at least 0, got -1"),
        ("c2", float("nan"), "c2 must be a number"),
        ("c2", None, "c2 must be a number"),
        ("max_iterations", 3.5, "max_iterations must be an integer of at least 0, got 3.5"),
        ("num_memories", 0, "num_memories must be an integer of at least 1"),
        ("feature.possible_states", 2, "must be True or False, got 2"),
        ("linesearch", "Foo", "linesearch must be one of MoreThuente"),
        ("type", 3, "type must be an integer of at least 0 and at most 2, got 3"),
        ("c", 0, "c must be a number above 0, got 0"),
    ],
)
def test_bad_parameters(name, value, message):
    trainer = ours.Trainer("pa" if name in ("type", "c") else "lbfgs")
    with pytest.raises(ValueError, match=message):
        trainer.set(name, value)


@BOTH
def test_misuse_of_append_and_train(module, tmp_path):
    trainer = module.Trainer(verbose=False)
    with pytest.raises(ValueError, match=r"items and labels differ: \|x\| = 2, \|y\| = 1"):
        trainer.append([["a"], ["b"]], ["x"])
    for labels, group in (([1], 0), (None, 0), (["x"], "b")):
        with pytest.raises(TypeError):
            trainer.append([["a"]], labels, group)
    trainer.clear()
    with pytest.raises(ValueError, match="The data is empty"):
        trainer.train(str(tmp_path / "model"))


def test_a_file_that_cannot_be_written():
    with pytest.raises(OSError, match="nonexistent"):
        train(ours, "/nonexistent/folder/model", [(WEATHER, LABELS)])


def test_nothing_to_train_on(tmp_path):
    with pytest.raises(ValueError, match="outside of the holdout group"):
        train(ours, tmp_path / "model", [(WEATHER, LABELS, 3)], holdout=3)
    with pytest.raises(TypeError, match="holdout must be an integer"):
        train(ours, tmp_path / "model", [(WEATHER, LABELS)], holdout="1")


def test_items_are_read_at_once(tmp_path):
    trainer = ours.Trainer(verbose=False)
    item = {"a": 1.0}
    trainer.append([item], ["x"])
    item["b"] = 1.0
    trainer.append(iter([["c"]]), iter(["y"]))
    trainer.train(str(tmp_path / "model"))
    assert list(opened(theirs, tmp_path / "model").info().attributes) == ["a", "c"]


def test_no_file_is_written_without_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train(ours, "", [(WEATHER, LABELS)]).logparser.last_iteration["loss"] > 0
    assert os.listdir(tmp_path) == []


@BOTH
def test_messages(module, tmp_path):
    class Capturing(module.Trainer):
        def __init__(self):
            self.messages = []

        def message(self, message):
            self.messages.append(message)

    trainer = Capturing()
    trainer.select("lbfgs")
    trainer.append(WEATHER, LABELS)
    assert not trainer.messages
    trainer.train(str(tmp_path / "model"))
    for line in ("Feature generation\n", "type: CRF1d\n", "c2: 1.000000\n", "Storing the model\n"):
        assert line in trainer.messages


@BOTH
def test_an_exception_in_a_message_ends_the_training(module, tmp_path):
    class Failing(module.Trainer):
        def message(self, message):
            if message.startswith("Loss"):
                raise KeyError("stop")

    trainer = Failing()
    trainer.append(WEATHER, LABELS)
    with pytest.raises(KeyError, match="stop"):
        trainer.train(str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


@BOTH
def test_stages_are_printed(module, tmp_path, capsys):
    seen = []

    class Watching(module.Trainer):
        def on_iteration(self, log, info):
            seen.append((info["num"], log.splitlines()[0]))
            super().on_iteration(log, info)

    trainer = Watching()
    trainer.append(WEATHER, LABELS)
    trainer.train(str(tmp_path / "model"))
    assert seen[0] == (1, "***** Iteration #1 *****")
    assert [n for n, _ in seen] == list(range(1, len(seen) + 1))
    printed = capsys.readouterr().out
    assert printed == "".join(trainer.logparser.log)
    assert "0....1....2....3....4....5....6....7....8....9....10\n" in printed


def log_without_times(trainer):
    """Lines whose numbers do not depend on the machine or the path of the optimisation."""
    skip = ("Seconds", "Total seconds", "Loss", "Feature norm", "Error norm", "Line search")
    lines = "".join(trainer.logparser.log).splitlines()
    return sorted({line for line in lines if not line.startswith((*skip, "*****", "Active"))})


def test_the_log_is_theirs(tmp_path):
    instances = [(WEATHER, LABELS), (WEATHER[:4], LABELS[:4]), (WEATHER[2:], LABELS[2:], 1)]
    mine, real = [
        train(module, tmp_path / "model", instances, holdout=1) for module in (ours, theirs)
    ]
    a, b = mine.logparser, real.logparser
    assert log_without_times(mine) == log_without_times(real)
    assert [e for e, *_ in a.events if e != "iteration"] == [
        e for e, *_ in b.events if e != "iteration"
    ]
    assert a.featgen_num_features == b.featgen_num_features
    assert a.featgen_percent == b.featgen_percent == 100
    assert len(a.iterations) == a.last_iteration["num"]
    assert a.last_iteration["loss"] == pytest.approx(b.last_iteration["loss"], abs=2e-5)
    assert set(b.last_iteration) - set(a.last_iteration) == {"linesearch_step"}
    for key in ("scores", "avg_precision", "avg_recall", "avg_f1"):
        assert a.last_iteration[key] == b.last_iteration[key]
    for key in ("item_accuracy", "instance_accuracy", "item_accuracy_float", "active_features"):
        assert a.last_iteration[key] == b.last_iteration[key]
    for name in ("featgen_seconds", "training_seconds", "storing_seconds"):
        assert getattr(a, name) >= 0


# ---------------------------------------------------------------------------- the model is theirs

NESTED = [
    (
        [
            {"foo": {"bar": "baz", "spam": 0.5, "egg": ["x", "y"], "ham": {"x": -0.5, "y": -0.1}}},
            {"foo": {"bar": "ham", "spam": -0.5, "ham": {"x", "y"}}, "zero": {"in": 0}},
        ],
        ["first", "second"],
    ),
    ([{"zero": {"in": 1.0}}, ["foo:egg:x", "foo:egg:x"]], ["first", "third"]),
]
ZEROS = [([{"a": 0, "b": 1}, {"a": 1}, {"c": False}], ["x", "y", "z"])]
PARAMETERS = [
    {},
    {"c1": 0.05, "c2": 0.05},
    {"c2": 0.01, "feature.possible_states": True},
    {"feature.possible_transitions": True},
    {"feature.minfreq": 1.0, "feature.possible_states": True, "feature.possible_transitions": True},
    {"feature.minfreq": 0.5},
    {"feature.minfreq": 2},
]


@pytest.mark.parametrize("params", PARAMETERS, ids=str)
@pytest.mark.parametrize("instances", [[(WEATHER, LABELS)], NESTED, ZEROS])
def test_features_and_weights(tmp_path, instances, params):
    params = {**params, "epsilon": 1e-7, "delta": 0.0, "max_iterations": 1000}
    mine, real = [train(m, tmp_path / m.__name__, instances, **params) for m in (ours, theirs)]
    assert mine.logparser.featgen_num_features == real.logparser.featgen_num_features
    info = opened(theirs, tmp_path / ours.__name__).info()  # their tagger reads our file
    expected = opened(theirs, tmp_path / theirs.__name__).info()
    assert list(info.labels) == list(expected.labels)
    a, b = weights(info), weights(expected)
    for key in a.keys() | b.keys():
        assert a.get(key, 0.0) == pytest.approx(b.get(key, 0.0), abs=2e-4), key
    if not params.get("c1"):
        assert list(a) == list(b)
        assert list(info.attributes) == list(expected.attributes)


def test_random_sentences(sentences, tmp_path):
    X, y = sentences
    X = [[[name or "empty" for name in item] for item in x] for x in X]  # theirs cannot list ""
    instances = list(zip(X, y, strict=True))
    params = {"feature.possible_transitions": True, "epsilon": 1e-7, "delta": 0.0}
    for module in (ours, theirs):
        train(module, tmp_path / module.__name__, instances, **params)
    mine, real = opened(ours, tmp_path / ours.__name__), opened(theirs, tmp_path / theirs.__name__)
    a, b = weights(mine.info()), weights(real.info())
    assert list(a) == list(b)
    np.testing.assert_allclose(list(a.values()), list(b.values()), rtol=0, atol=1e-4)
    assert [mine.tag(x) for x, _ in instances] == [real.tag(x) for x, _ in instances]


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_online_algorithms(sentences, tmp_path, algorithm):
    """Their results depend on the order of instances, which differs: not equal, but alike."""
    X, y = sentences
    y = [[f"{item[0]}"[-1] for item in x] for x in X]  # a digit that can be learned
    instances = [*zip(X, y, strict=True), (X[0], y[0], 1)]
    mine, real = [
        train(m, tmp_path / m.__name__, instances, algorithm, 1, max_iterations=20)
        for m in (ours, theirs)
    ]
    a, b = mine.logparser, real.logparser
    assert a.featgen_num_features == b.featgen_num_features
    assert [i["num"] for i in a.iterations] == [i["num"] for i in b.iterations]
    assert set(a.last_iteration) == set(b.last_iteration)
    assert [e for e, *_ in a.events] == [e for e, *_ in b.events]
    assert a.iterations[-1]["loss"] < a.iterations[0]["loss"]
    right = []
    for module in (ours, theirs):
        tagger = opened(module, tmp_path / module.__name__)
        assert tagger.tag(X[0]) == opened(theirs, tmp_path / module.__name__).tag(X[0])
        right.append(np.mean([tagger.tag(x) == labels for x, labels in zip(X, y, strict=True)]))
    assert min(right) >= 0.9
    again = train(ours, tmp_path / "again", instances, algorithm, 1, max_iterations=20)
    assert again.logparser.last_iteration["loss"] == a.last_iteration["loss"]
    assert (tmp_path / "again").read_bytes() == (tmp_path / ours.__name__).read_bytes()


@pytest.mark.parametrize("options", [{"type": 0}, {"type": 2, "c": 0.1}, {"averaging": False}])
def test_variants_of_passive_aggressive(tmp_path, options):
    for module in (ours, theirs):
        train(module, tmp_path / "model", [(WEATHER, LABELS)], "pa", **options)
        assert opened(theirs, tmp_path / "model").tag(WEATHER) == LABELS


# ------------------------------------------------------------------------------------------- tagger


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("weather") / "model"
    train(theirs, path, [(WEATHER, LABELS), (WEATHER[::-1], LABELS[::-1])], c2=0.1)
    return path


def test_answers_on_one_file(model, tmp_path):
    mine, real = opened(ours, model), opened(theirs, model)
    assert mine.labels() == real.labels()
    for xseq in (WEATHER, theirs.ItemSequence(WEATHER).items(), WEATHER[:1], [["unknown"], []]):
        assert mine.tag(xseq) == real.tag(xseq)
        assert mine.tag(ours.ItemSequence(xseq)) == real.tag()
        assert mine.tag() == real.tag()
        path = mine.tag()
        assert mine.probability(path) == pytest.approx(real.probability(path), rel=1e-9)
        for label in mine.labels():
            for t in range(len(xseq)):
                assert mine.marginal(label, t) == pytest.approx(real.marginal(label, t), abs=1e-9)
    assert mine.tag([]) == real.tag([]) == []
    assert mine.probability([]) == real.probability([]) == 0.0
    assert mine.marginal("sunny", 0) == real.marginal("sunny", 0) == 0.0
    a, b = mine.info(), real.info()
    assert (a.header, a.labels, a.attributes) == (b.header, b.labels, b.attributes)
    assert list(weights(a)) == list(weights(b))
    np.testing.assert_allclose(
        list(weights(a).values()), list(weights(b).values()), rtol=0, atol=1e-6
    )
    mine.dump(tmp_path / "mine")
    real.dump(str(tmp_path / "real"))
    assert (tmp_path / "mine").read_bytes() == (tmp_path / "real").read_bytes()


def test_dump_to_standard_output(model, capsys):
    opened(ours, model).dump()
    assert "(1) sunny --> sunny: " in capsys.readouterr().out


@BOTH
def test_open_and_close(module, model):
    tagger = module.Tagger()
    with tagger.open(str(model)) as inside:
        assert inside is tagger
        labels = tagger.labels()
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()
    with tagger.open_inmemory(model.read_bytes()):
        assert tagger.labels() == labels
        assert tagger.tag() == []


@BOTH
def test_misuse_of_a_tagger(module, model):
    tagger = opened(module, model)
    tagger.set(WEATHER)
    with pytest.raises(ValueError, match=r"differ: \|x\| = 10, \|y\| = 2"):
        tagger.probability(LABELS[:2])
    for call in (lambda: tagger.probability(["?"] * 10), lambda: tagger.marginal("?", 0)):
        with pytest.raises(RuntimeError, match=r"label identifier: \?"):
            call()
    for position in (10, -1):
        with pytest.raises(ValueError, match="out of range of 10"):
            tagger.marginal("sunny", position)


@pytest.mark.parametrize("closed", [False, True])
def test_a_tagger_without_a_model(model, closed):
    tagger = ours.Tagger()
    if closed:
        tagger.open(model)
        tagger.set(WEATHER)
        tagger.close()
    for call in (
        tagger.labels,
        tagger.tag,
        lambda: tagger.tag(WEATHER),  # crashes theirs
        lambda: tagger.set(WEATHER),
        lambda: tagger.probability(LABELS),
        lambda: tagger.marginal("sunny", 0),
    ):
        with pytest.raises(ValueError, match="The tagger is not opened"):
            call()
    for call in (tagger.info, tagger.dump):
        with pytest.raises(RuntimeError, match="Tagger is closed"):
            call()
    tagger.close()


@BOTH
def test_files_that_are_no_models(module, tmp_path):
    tagger = module.Tagger()
    with pytest.raises(OSError, match="nowhere"):
        tagger.open(str(tmp_path / "nowhere"))
    for content in (b"", b"foo", b"lCRFfoo"):
        path = tmp_path / "bad"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="bad"):
            tagger.open(str(path))
        with pytest.raises(ValueError, match="model"):
            tagger.open_inmemory(content)
    with pytest.raises(TypeError):
        tagger.open_inmemory("text")


def test_a_damaged_model_leaves_the_tagger_closed(model):
    tagger = opened(ours, model)
    with pytest.raises(ValueError, match="not a sound CRFsuite model"):
        tagger.open_inmemory(b"lCRFfoo" * 100)  # crashes theirs
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()


def test_names():
    names = {name for name in vars(theirs) if name[0].isupper()}
    assert names <= set(dir(ours))
    assert theirs.CRFSUITE_VERSION == ours.CRFSUITE_VERSION


@pytest.mark.parametrize("c2", [0.0, 0.1])
def test_the_path_of_owlqn_is_theirs(sentences, tmp_path, c2):
    """Early iterations are compared, before rounding has driven the two apart."""
    instances = list(zip(*sentences, strict=True))
    params = {"c1": 0.3, "c2": c2, "max_iterations": 15}
    mine, real = [train(m, tmp_path / "model", instances, **params) for m in (ours, theirs)]
    for a, b in zip(mine.logparser.iterations, real.logparser.iterations, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
        assert a["feature_norm"] == pytest.approx(b["feature_norm"], rel=1e-3)
        assert a["active_features"] == b["active_features"]
        assert a["linesearch_trials"] == b["linesearch_trials"]
