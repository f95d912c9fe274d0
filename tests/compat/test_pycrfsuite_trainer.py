"""chordal.compat.pycrfsuite: parameters, misuse, messages and logs of a trainer, call by call."""

import os
import re
import warnings

import pycrfsuite as theirs
import pytest

from chordal.compat import pycrfsuite as ours

from .crfsuite_pair import BOTH, LABELS, WEATHER, opened, train

ALGORITHMS = ["lbfgs", "l2sgd", "ap", "averaged-perceptron", "pa", "passive-aggressive", "arow"]


def test_names():
    names = {name for name in vars(theirs) if name[0].isupper()}
    assert names <= set(dir(ours))
    assert theirs.CRFSUITE_VERSION == ours.CRFSUITE_VERSION


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


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
@pytest.mark.parametrize(
    "instances", [[], [([], [])], [(WEATHER, LABELS, 3)]], ids=["none", "empty", "held out"]
)
def test_nothing_to_train_on(tmp_path, algorithm, instances):
    """The files are the same, byte for byte."""
    holdout = 3 if instances and instances[0][0] else -1
    train(theirs, tmp_path / "theirs", instances, algorithm, holdout)
    with pytest.warns(UserWarning, match="nothing to train on"):
        trainer = train(ours, tmp_path / "ours", instances, algorithm, holdout)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert trainer.logparser.featgen_num_features == 0
    assert trainer.logparser.events[-1][0] == "end"
    if holdout == 3:
        assert opened(ours, tmp_path / "ours").labels() == list(dict.fromkeys(LABELS))
    else:
        with pytest.raises(ValueError, match="no labels: it was trained without data"):
            opened(ours, tmp_path / "ours")


def test_messages_when_there_is_nothing_to_train_on(tmp_path):
    logs = []
    for module in (ours, theirs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = train(module, tmp_path / "model", [])
        events = [event for event, _, _ in trainer.logparser.events]
        log = re.sub(r"\d+\.\d{3}\n", "\n", "".join(trainer.logparser.log))
        logs.append((events, sorted(log.splitlines())))  # parameters have orders of their own
    assert logs[0] == logs[1]


def test_a_holdout_that_is_no_number(tmp_path):
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
