"""Prepared data that are damaged, foreign or hostile are refused, and nothing is half-written."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

from chordal import (
    HMM,
    ChainCRF,
    CheckpointError,
    CRFClassifier,
    Dataset,
    DatasetError,
    GraphCRF,
    GridCRF,
    ModelFileError,
    MultiLabelCRF,
    NaiveBayes,
    TwoStageCRF,
    TypedGraphCRF,
    _container,
    _scratch,
)
from chordal.estimators._training import preparing
from chordal.prepared import _dataset, _writer

RNG = np.random.default_rng(2)
X = [[[f"w{RNG.zipf(1.5)}", f"t{RNG.integers(5)}"] for _ in range(4)] for _ in range(20)]
Y = [[f"L{int(token[1][1:]) % 3}" for token in x] for x in X]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 5)


@pytest.fixture
def folder(tmp_path):
    ChainCRF().prepare(tmp_path / "data", X, Y)
    return tmp_path / "data"


def parts(folder):
    return sorted(folder.glob("part-*"))


def fit(folder):
    return ChainCRF(max_iter=3).fit(folder)


def test_flipped_bytes_are_found(folder):
    for path in (*parts(folder), *folder.glob("vocabulary*"), folder / "index.json"):
        whole = path.read_bytes()
        for place in RNG.integers(len(whole), size=12):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << RNG.integers(8)
            path.write_bytes(damaged)
            with pytest.raises(DatasetError):
                Dataset(folder).verify()
            with pytest.raises(DatasetError):
                fit(folder)
        path.write_bytes(whole)
    Dataset(folder).verify()


@pytest.mark.parametrize("kind", [DatasetError, CheckpointError, ModelFileError])
def test_errors_cross_from_worker_processes(kind):
    error = pickle.loads(pickle.dumps(kind("place", "it is damaged")))
    assert type(error) is kind
    assert str(error) == "place: it is damaged"


def test_files_that_are_cut_short_or_missing(folder):
    for path in (*parts(folder), *folder.glob("vocabulary*"), folder / "index.json"):
        whole = path.read_bytes()
        for size in (0, 5, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            with pytest.raises(DatasetError):
                Dataset(folder).verify()
        path.unlink()
        with pytest.raises((DatasetError, FileNotFoundError)):
            fit(folder)
        path.write_bytes(whole)


def test_parts_of_another_data_set(folder, tmp_path):
    ChainCRF().prepare(tmp_path / "other", X[::-1], Y[::-1])
    for own, other in zip(parts(folder), parts(tmp_path / "other"), strict=True):
        shutil.copy(other, own)
    with pytest.raises(DatasetError, match="belongs to another"):
        fit(folder)
    ChainCRF().prepare(tmp_path / "again", X, Y)
    first, second = parts(tmp_path / "again")
    shutil.copy(second, first)
    with pytest.raises(DatasetError, match="belongs to another"):
        fit(tmp_path / "again")


def test_the_vocabulary_of_another_data_set(folder, tmp_path):
    other = [[[name.upper() for name in token] for token in x] for x in X]
    ChainCRF().prepare(tmp_path / "other", other, Y)
    shutil.copy(tmp_path / "other" / "vocabulary-1.chordal", folder)
    with pytest.raises(DatasetError, match=r"vocabulary-1.chordal: .* belongs to another"):
        fit(folder)


def with_arrays(folder, change):
    """Write a part again, with a right checksum, after its facts and arrays were changed."""
    path = parts(folder)[0]
    facts, arrays = _container.read(path, _dataset.PART)
    facts, arrays = json.loads(json.dumps(facts)), {k: np.array(v) for k, v in arrays.items()}
    change(facts, arrays)
    _container.write(path, facts, arrays, _dataset.PART)


HOSTILE = {
    "an attribute that is not there": lambda f, a: a["0.ids"].__setitem__(3, 10**6),
    "a negative attribute": lambda f, a: a["0.ids"].__setitem__(3, -1),
    "offsets that fall": lambda f, a: a["0.offsets"].__setitem__(3, 0),
    "offsets beyond the end": lambda f, a: a["0.offsets"].__setitem__(-1, 2**40),
    "a negative size": lambda f, a: a["sizes"].__setitem__(0, -4),
    "a huge size": lambda f, a: a["sizes"].__setitem__(0, 2**62),
    "a label that is not there": lambda f, a: a["gold.codes"].__setitem__(0, 77),
    "a negative label": lambda f, a: a["gold.codes"].__setitem__(0, -1),
    "too few labels": lambda f, a: a.update({"gold.codes": a["gold.codes"][:-1]}),
    "more labels than there are": lambda f, a: f.update(n_labels=50),
    "labels that are no number": lambda f, a: f.update(n_labels="3"),
    "values that are not finite": lambda f, a: a.update(
        {"0.values": np.full(len(a["0.ids"]), np.nan)}
    ),
    "too few values": lambda f, a: a.update({"0.values": np.ones(3)}),
    "ids of another type": lambda f, a: a.update({"0.ids": a["0.ids"].astype(np.int64)}),
    "an array that is missing": lambda f, a: a.pop("0.ids"),
    "no sizes": lambda f, a: a.pop("sizes"),
    "no templates": lambda f, a: f.update(templates=[]),
    "templates that are no list": lambda f, a: f.update(templates=7),
    "a template without facts": lambda f, a: f["templates"].__setitem__(0, None),
    "another order": lambda f, a: f["templates"][1].update(order=3),
    "an unknown pattern": lambda f, a: f["templates"][1].update(cliques="all"),
    "listed cliques without a list": lambda f, a: f["templates"][1].update(cliques="listed"),
    "rows where there are none": lambda f, a: f["templates"][2].update(rows="sparse"),
    "dense rows": lambda f, a: f["templates"][0].update(rows="dense"),
    "an unknown kind of target": lambda f, a: f.update(target="odd"),
    "no target": lambda f, a: f.pop("target"),
    "a target that is a list": lambda f, a: f.update(target=["hard"]),
    "types": lambda f, a: a.update(kinds=np.zeros(int(a["sizes"].sum()), np.int64)),
    "a matching": lambda f, a: f.update(exclusive=True),
    "negative weights": lambda f, a: a.update(weight=-np.ones(len(a["sizes"]))),
    "weights of others": lambda f, a: a.update(weight=np.ones(3)),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_arrays_that_do_not_fit_together(case, folder):
    with_arrays(folder, HOSTILE[case])
    with pytest.raises(DatasetError):
        fit(folder)


SCOPES = {
    "a variable that is not there": lambda f, a: a["1.scopes"].__setitem__(0, 9),
    "a variable twice": lambda f, a: a["1.scopes"].__setitem__(0, a["1.scopes"][1]),
    "a negative variable": lambda f, a: a["1.scopes"].__setitem__(0, -1),
    "too few scopes": lambda f, a: a.update({"1.scopes": a["1.scopes"][:-2]}),
    "negative counts": lambda f, a: a["1.counts"].__setitem__(0, -1),
    "dense rows that are cut": lambda f, a: a.update({"0.data": a["0.data"][:-1]}),
    "infinity": lambda f, a: a["0.data"].__setitem__(0, np.inf),
}


@pytest.mark.parametrize("case", SCOPES)
def test_graphs_that_do_not_fit_together(case, tmp_path):
    graphs = [(RNG.normal(size=(4, 2)), [[0, 1], [1, 2], [0, 3]]) for _ in range(20)]
    GraphCRF().prepare(tmp_path / "data", graphs, [[0, 1, 0, 1]] * 20)
    with_arrays(tmp_path / "data", SCOPES[case])
    with pytest.raises(DatasetError):
        GraphCRF().fit(tmp_path / "data")


def with_index(folder, change):
    index = json.loads((folder / "index.json").read_text())
    index.pop("checksum")
    change(index)
    index["checksum"] = _dataset.checksum(index)
    (folder / "index.json").write_text(json.dumps(index))


INDEX = {
    "a newer version": (lambda i: i.update(version=99), "newer chordal"),
    "no version": (lambda i: i.pop("version"), "version"),
    "another format": (lambda i: i.update(format="other"), "not that of a chordal"),
    "no parts": (lambda i: i.update(parts=[]), "no parts"),
    "a file elsewhere": (lambda i: i["parts"][0].update(file="../x"), "cannot be called"),
    "an absolute file": (lambda i: i.update(vocabulary="/etc/passwd"), "cannot be called"),
    "a negative number": (lambda i: i["parts"][0].update(examples=-1), "whole number"),
    "an infinite number": (lambda i: i.update(generation=np.inf), "generation must be a whole"),
    "half a number": (lambda i: i.update(generation=1.5), "generation must be a whole"),
    "labels twice": (lambda i: i["facts"]["labels"].update(labels=["a", "a", "b"]), "twice"),
    "labels of lists": (lambda i: i["facts"]["labels"].update(labels=[[[]], "a", "b"]), "labels"),
    "other templates": (lambda i: i["facts"]["templates"].pop(), "templates"),
    "an odd input": (lambda i: i["facts"]["templates"][0]["rows"].update(kind="odd"), "odd"),
}


def test_numbers_beyond_all_integers(tmp_path):
    """The index of other models has numbers of its own."""
    folder = tmp_path / "data"
    MultiLabelCRF(structure="full").prepare(folder, *TABLE)
    with_index(folder, lambda index: index["facts"]["edges"].__setitem__(0, [0, 10**30]))
    with pytest.raises(DatasetError, match="too large"):
        MultiLabelCRF(structure="full").fit(folder)


@pytest.mark.parametrize("case", INDEX)
def test_an_index_that_is_not_valid(case, folder):
    change, message = INDEX[case]
    with_index(folder, change)
    with pytest.raises(DatasetError, match=message):
        fit(folder)


def test_folders_that_are_no_data_set(tmp_path):
    with pytest.raises(FileNotFoundError):
        Dataset(tmp_path / "nothing")
    with pytest.raises(DatasetError, match=r"no index\.json"):
        Dataset(tmp_path)
    (tmp_path / "index.json").write_text("[1]")
    with pytest.raises(DatasetError, match="not that of a chordal"):
        Dataset(tmp_path)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(DatasetError, match="cannot be read"):
        Dataset(tmp_path)


def test_data_prepared_for_other_templates(folder, tmp_path):
    with pytest.raises(DatasetError, match=r"another model, a ChainCRF: its templates are 'node'"):
        GraphCRF().fit(folder)
    with pytest.raises(DatasetError, match=r"template 'edge' has features=False in the data set"):
        ChainCRF(transition_features=lambda x: [["a"]] * (len(x) - 1)).fit(folder)
    with pytest.raises(DatasetError, match="feature_template"):
        ChainCRF(feature_template="U00:%x[0,0]\nB").fit(folder)
    ChainCRF().prepare(tmp_path / "dense", [RNG.normal(size=(4, 2))] * 20, Y)
    with pytest.raises(
        DatasetError, match=r"do not fit together: parts 1 and 0 .* dense rows of 2"
    ):
        ChainCRF().fit([folder, tmp_path / "dense"])


IMAGES = [RNG.normal(size=(2, 3, 2)) for _ in range(3)], [np.eye(2, 3, dtype=int)] * 3
TABLE = RNG.normal(size=(9, 2)), RNG.integers(2, size=(9, 3))
READ_BY = {
    "ignored labels": (ChainCRF, {}, {"ignore_label": "L2"}, (X, Y)),
    "labels that were ignored": (ChainCRF, {"ignore_label": "L2"}, {}, (X, Y)),
    "neighbours": (GridCRF, {}, {"neighbours": 8}, IMAGES),
    "contrast": (GridCRF, {"contrast": 1.0}, {"contrast": 2.0}, IMAGES),
    "contrast columns": (
        GridCRF, {"contrast": 1.0}, {"contrast": 1.0, "contrast_columns": [0]}, IMAGES,
    ),
    "edges of labels": (MultiLabelCRF, {}, {"structure": "full"}, TABLE),
}  # fmt: skip


@pytest.mark.parametrize("case", READ_BY)
def test_settings_by_which_examples_were_read(case, tmp_path):
    """Other settings would silently be those of the data set."""
    model, before, now, given = READ_BY[case]
    model(**before).prepare(tmp_path / "data", *given)
    (name,) = (own for own in {**before, **now} if before.get(own) != now.get(own))
    differs = f"it was read with {name}=.*, not {name}="
    with pytest.raises(DatasetError, match=differs):
        model(**now).fit(tmp_path / "data")
    with pytest.raises(DatasetError, match=differs):
        model(**now).prepare(tmp_path / "data", *given, append=True)
    with pytest.raises(DatasetError, match=differs):
        model(**now, max_iter=1).fit(*given).predict(tmp_path / "data")
    model(**before, max_iter=1).fit(tmp_path / "data")


def test_wrapped_models_say_what_differs(folder, tmp_path):
    for model, what in (
        (HMM(), "its rows are attributes or rows of numbers, not symbols"),
        (HMM("gaussian"), "its rows are attributes, not numbers"),
        (NaiveBayes(), "sequences of several positions, not rows"),
        (TwoStageCRF(NaiveBayes()), "keeps the attributes of tokens, and the unary reads tokens"),
    ):
        with pytest.raises(DatasetError, match=f"another model, a ChainCRF: .*{what}"):
            model.fit(Dataset(folder))
        assert not hasattr(model, "crf_")
    with pytest.raises(ValueError, match="includes its labels"):
        HMM().fit(Dataset(folder), Y)
    with pytest.raises(FileNotFoundError, match="no prepared data set 'nowhere'"):
        HMM().fit("nowhere")
    with pytest.raises(TypeError, match="batch 1 must be a tuple"):
        HMM().fit(iter([([["a"]], [["A"]]), [1]]))
    symbols = HMM().prepare(tmp_path / "symbols", [["a", "b"]] * 4, [["A", "B"]] * 4)
    for model in (ChainCRF(), HMM("gaussian")):
        with pytest.raises(DatasetError, match="a HMM: its rows are symbols, not"):
            model.fit(symbols)
    graph = GraphCRF().prepare(
        tmp_path / "graph", [(RNG.normal(size=(2, 1)), [(0, 1)])], [["A", "B"]]
    )
    with pytest.raises(DatasetError, match="a GraphCRF: its templates are 'nodes'"):
        TwoStageCRF().fit(graph)


def test_y_and_empty_data(folder, tmp_path):
    with pytest.raises(ValueError, match="includes its labels"):
        ChainCRF().fit(Dataset(folder), Y)
    with pytest.raises(ValueError, match="includes its labels"):
        fit(folder).score(Dataset(folder), Y)
    with pytest.raises(ValueError, match="nothing to prepare"):
        ChainCRF().prepare(tmp_path / "none", [], [])
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match="nothing to prepare"):
        ChainCRF().fit(iter([]))
    with pytest.raises(TypeError, match=r"batch 0 must be a tuple \(X, y\)"):
        ChainCRF().fit(iter([X]))
    odd = [(np.ones((2, 2)), np.eye(2)), (np.ones((2, 2)), [{"a"}, {"b"}])]
    with pytest.raises(ValueError, match=r"sets of labels in all batches or .*; batches 0 and 1"):
        MultiLabelCRF().fit(iter(odd))
    with pytest.raises(ValueError, match="batch 1: y must hold 0 and 1, got 3"):
        MultiLabelCRF().fit(iter([odd[0], (np.ones((2, 2)), 3 * np.eye(2))]))


def test_a_batch_that_cannot_be_read_is_named_and_leaves_nothing(tmp_path):
    batches = [(X[:10], Y[:10]), (X[10:], Y[10:19])]
    with pytest.raises(ValueError, match="batch 1: "):
        ChainCRF().prepare(tmp_path / "data", iter(batches))
    assert not (tmp_path / "data").exists()
    dense = [(X[:10], Y[:10]), ([RNG.normal(size=(4, 2))] * 10, Y[10:])]
    with pytest.raises(TypeError, match="batch 1: "):
        ChainCRF().prepare(tmp_path / "data", iter(dense))
    assert not (tmp_path / "data").exists()


def test_what_was_found_in_other_data_is_refused(tmp_path):
    """Rows that depend on a contrast, or on a tree of labels, do not mix with those of others."""
    images = [RNG.normal(size=(3, 4, 2)) * size for size in (1.0, 9.0)]
    pixels = [(image[..., 0] > 0).astype(int) for image in images]
    table = RNG.normal(size=(40, 2))
    a, b = RNG.integers(2, size=(2, 40))
    matrices = np.stack([a, a, b, b], axis=1), np.stack([a, b, a, b], axis=1)
    for model, examples, labels, what in (
        (GridCRF(contrast="auto"), ([images[0]], [images[1]]), ([pixels[0]], [pixels[1]]), "contr"),
        (MultiLabelCRF(), (table, table), matrices, "edges"),
    ):
        first, second = (
            model.prepare(tmp_path / f"{what}-{k}", own, y)
            for k, (own, y) in enumerate(zip(examples, labels, strict=True))
        )
        with pytest.raises(DatasetError, match=f"{what}.* than the data set .* has"):
            model.fit([first, second])
        model.fit(first)
        with pytest.raises(DatasetError, match=f"{what}.* than the model has"):
            model.predict(second)
        with pytest.raises(DatasetError, match=f"{what}.* than the model has"):
            model.set_params(warm_start=True).fit(second)


def graphs(n, features):
    """Graphs with two nodes and an edge, which may have features."""
    own = (np.ones((1, 2)),) if features else ()
    return [(np.eye(2), [(0, 1)], *own)] * n, [["a", "b"]] * n


@pytest.mark.parametrize("later", [False, True])
def test_edge_features_that_some_graphs_have(tmp_path, later):
    first, second = graphs(3, not later), graphs(3, later)
    for name, given in (("one", first), ("two", second)):
        GraphCRF().prepare(tmp_path / name, *given)
    unlike = "edge features, unlike the graphs that were read before"
    with pytest.raises(ValueError, match=f"batch 1: X has .*{unlike}"):
        GraphCRF().fit(iter([first, second]))
    with pytest.raises(ValueError, match=unlike):
        GraphCRF().prepare(tmp_path / "one", *second, append=True)
    both = [tmp_path / "one", tmp_path / "two"]
    with pytest.raises(DatasetError, match="only one has features of template 'edges'"):
        GraphCRF().fit(both)
    model = GraphCRF().fit(both[0])
    with pytest.raises(ValueError, match="only one of model and data has features of template"):
        model.predict(both[1])


def test_edge_features_of_graphs_of_typed_nodes_that_are_appended(tmp_path):
    nodes, edges, y = {"u": np.eye(2)}, {("u", "u"): [(0, 1)]}, [{"u": ["a", "b"]}]
    model = TypedGraphCRF(node_types=["u"], edge_types=[("u", "u")])
    model.prepare(tmp_path / "data", [(nodes, edges)], y)
    with pytest.raises(ValueError, match=r"X\[0\]\[2\] has edge features \('u', 'u'\), unlike"):
        model.prepare(
            tmp_path / "data", [(nodes, edges, {("u", "u"): np.ones((1, 2))})], y, append=True
        )


def test_preparing_does_not_change_a_fitted_model(tmp_path):
    images = [RNG.normal(size=(3, 4, 2)) * size for size in (1.0, 9.0)]
    pixels = [(image[..., 0] > 0).astype(int) for image in images]
    table, classes = RNG.normal(size=(30, 3)), np.arange(30) % 3
    matrix = RNG.integers(2, size=(30, 4))
    for model, (X, y), other in (
        (GridCRF(contrast="auto"), (images[:1], pixels[:1]), (images[1:], pixels[1:])),
        (CRFClassifier(), (table, classes), (table[:, :2], classes + 5)),
        (MultiLabelCRF(), (table, matrix), (table[:, :2], matrix[:, :3])),
    ):
        before = repr(vars(model.fit(X, y)))
        model.prepare(tmp_path / type(model).__name__, *other)
        assert repr(vars(model)) == before


def test_nothing_is_overwritten(folder, tmp_path):
    with pytest.raises(FileExistsError, match="use append=True"):
        ChainCRF().prepare(folder, X, Y)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file").write_text("mine")
    for append in (False, True):
        with pytest.raises(FileExistsError, match="not a data set"):
            ChainCRF().prepare(tmp_path / "else", X, Y, append=append)
    assert os.listdir(tmp_path / "else") == ["file"]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_full_disk_leaves_what_was_there(folder, monkeypatch, after):
    before, left = sorted(os.listdir(folder)), after
    whole = fit(folder).weights_
    real = _writer.write

    def full(path, *rest):
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        left -= 1
        real(path, *rest)

    monkeypatch.setattr(_writer, "write", full)
    with pytest.raises(OSError, match="No space left"):
        ChainCRF().prepare(folder, X, Y, append=True)
    assert sorted(os.listdir(folder)) == before
    np.testing.assert_array_equal(fit(folder).weights_, whole)


KILLED = """
import os, signal, sys
from chordal import ChainCRF
from chordal.estimators._training import preparing
preparing.PART = 4

def batches():
    for _ in range(6):
        yield [[["a"], ["b"]]] * 2, [["A", "B"]] * 2
    os.kill(os.getpid(), signal.SIGKILL)

ChainCRF().prepare(sys.argv[1], batches(), append=len(sys.argv) > 2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_the_next_writer_removes_what_a_killed_one_left(folder, tmp_path):
    for place, more in ((tmp_path / "new", []), (folder, ["append"])):
        subprocess.run([sys.executable, "-c", KILLED, place, *more])
        known = Dataset(folder).parts if more else []
        assert len(parts(place)) > len(known)
        ChainCRF().prepare(place, X, Y, append=bool(more))
        made = Dataset(place)
        assert made.n_examples == len(X) * (2 if more else 1)
        assert [path.name for path in parts(place)] == sorted(own.file for own in made.parts)
        np.testing.assert_array_equal(fit(place).classes_, ["L0", "L1", "L2"])
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "part-00000-1.chordal.bak").touch()
    with pytest.raises(FileExistsError, match="is not a data set"):
        ChainCRF().prepare(foreign, X, Y)


def test_a_full_disk_is_said_once():
    """A temporary file is written while there is a temporary folder."""
    with (
        pytest.raises(OSError, match="set TMPDIR") as caught,
        _scratch.scratch_folder("folds"),
        _scratch.scratch_file("batches"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value).count("cannot keep") == 1


LIMITED = """
import resource, signal, sys
from chordal import ChainCRF
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
X = [[["a", "b"], ["c"]]] * 100
y = [["A", "B"]] * 100
batches = sys.argv[1] == "batches"
ChainCRF(solver=sys.argv[2]).fit(iter([(X, y)]) if batches else sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.parametrize("source", ["data set", "batches"])
def test_a_full_disk_in_training_names_the_folder(folder, tmp_path, source, solver):
    given = str(folder) if source == "data set" else "batches"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    made = subprocess.run(
        [sys.executable, "-c", LIMITED, given, solver],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
    )
    last = made.stderr.strip().splitlines()[-1]
    assert last.startswith("OSError"), made.stderr
    assert str(scratch) in last
    assert "set TMPDIR" in last
    assert not os.listdir(scratch)


def test_a_writer_that_comes_late_does_not_replace(tmp_path):
    late = _writer.Writer(tmp_path / "data")
    data = ChainCRF().prepare(tmp_path / "data", X, Y)
    with pytest.raises(FileExistsError, match="already has a data set"), late:
        pass
    data.verify()
    ChainCRF().prepare(tmp_path / "data", X, Y, append=True)  # it is not locked


def test_two_writers_at_once(folder):
    with (
        _writer.Writer(folder, append=True),
        pytest.raises(DatasetError, match="another process is writing"),
    ):
        ChainCRF().prepare(folder, X, Y, append=True)
    ChainCRF().prepare(folder, X, Y, append=True)


def test_many_processes_read_while_one_appends(folder):
    code = (
        "import sys; from chordal import ChainCRF\n"
        "print(repr(ChainCRF(max_iter=3).fit(sys.argv[1]).weights_.sum()))"
    )
    old = Dataset(folder)
    whole = ChainCRF(max_iter=3).fit(old).weights_
    readers = [
        subprocess.Popen([sys.executable, "-c", code, folder], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    sums = {
        float(reader.communicate()[0].strip()[:60].removeprefix("np.float64(").rstrip(")"))
        for reader in readers
    }
    assert sums == {float(whole.sum())}
    for _ in range(3):
        ChainCRF().prepare(folder, X[::-1], Y[::-1], append=True)
    np.testing.assert_array_equal(ChainCRF(max_iter=3).fit(old).weights_, whole)
    assert Dataset(folder).n_examples == 4 * len(X)
    assert len(list(folder.glob("vocabulary*"))) == 2
