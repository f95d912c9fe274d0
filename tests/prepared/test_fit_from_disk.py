"""A fit from a prepared data set gives the weights of the fit in memory, bit for bit."""

from itertools import pairwise

import numpy as np
import pytest

from chordal import (
    ChainCRF,
    Checkpoint,
    CheckpointError,
    CliqueTemplate,
    CRFClassifier,
    Dataset,
    DatasetError,
    GraphCRF,
    GridCRF,
    MatchingModel,
    MultiLabelCRF,
    TemplateCRF,
    TypedGraphCRF,
)
from chordal.estimators._training import preparing
from chordal.features import Spilled, parts
from chordal.oracle.training import SummedOracle

RNG = np.random.default_rng(0)
N = 60
LENGTHS = RNG.integers(1, 9, size=N)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 7)
    monkeypatch.setattr(parts, "WINDOW", 50)


def words():
    X = [
        [[f"t{(tag := RNG.integers(9))}", f"twin{tag}", f"w{RNG.zipf(1.5)}"] for _ in range(n)]
        for n in LENGTHS
    ]
    return X, [[f"L{min(int(token[0][1:]), 4)}" for token in x] for x in X]


X, Y = words()
VALUES = [[{name: 0.5 + k for k, name in enumerate(token)} for token in x] for x in X]
DENSE = [RNG.normal(size=(n, 4)) for n in LENGTHS]
FEW = [(RNG.random((n, 9)) < 0.1).astype(float) for n in LENGTHS]
VECTORS = [
    [
        {"w": token[2], "v": RNG.normal(size=3)} if i % 3 else {"w": token[2]}
        for i, token in enumerate(x, start=k)
    ]
    for k, x in enumerate(X)
]
PARTLY = [[None if RNG.random() < 0.3 else label for label in y] for y in Y]
SETS = [[{label, "L0"} if RNG.random() < 0.3 else label for label in y] for y in Y]
SOFT = [[{label: 0.75, "L4": 0.25} if label != "L4" else label for label in y] for y in Y]
COLUMNS = [[[token[2], token[0]] for token in x] for x in X]
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,1]/%x[0,1]\nB01:%x[0,1]\nB\n"


def pairs(x):
    return [[f"{a[0]}+{b[0]}"] for a, b in pairwise(x)]


CHAINS = {
    "lbfgs": (ChainCRF, {}, X, Y),
    "all pairs": (ChainCRF, {"pairs": "all", "fit_intercept": True, "ends": True}, X, Y),
    "rare pairs left out": (ChainCRF, {"min_freq": 3}, X, Y),
    "l1": (ChainCRF, {"l1": 0.1}, X, Y),
    "adam": (ChainCRF, {"solver": "adam"}, X, Y),
    "minibatch_lbfgs": (ChainCRF, {"solver": "minibatch_lbfgs"}, X, Y),
    "sgd": (ChainCRF, {"solver": "sgd"}, X, Y),
    "averaged_perceptron": (ChainCRF, {"solver": "averaged_perceptron"}, X, Y),
    "hinge": (ChainCRF, {"objective": "hinge"}, X, Y),
    "newton_cg": (ChainCRF, {"solver": "newton_cg"}, X, Y),
    "values": (ChainCRF, {}, VALUES, Y),
    "dense": (ChainCRF, {}, DENSE, Y),
    "few numbers": (ChainCRF, {}, FEW, Y),
    "vectors": (ChainCRF, {}, VECTORS, Y),
    "not observed": (ChainCRF, {}, X, PARTLY),
    "left out": (ChainCRF, {"objective": "softmax_margin"}, X, PARTLY),
    "sets": (ChainCRF, {}, X, SETS),
    "completed sets": (ChainCRF, {"objective": "hinge", "max_iter": 5}, X, SETS),
    "soft": (ChainCRF, {}, X, SOFT),
    "ignored label": (ChainCRF, {"ignore_label": "L2"}, X, Y),
    "template of columns": (ChainCRF, {"feature_template": TEMPLATE}, COLUMNS, Y),
    "transition features": (ChainCRF, {"transition_features": pairs}, X, Y),
    "class_weight": (ChainCRF, {"objective": "hinge", "class_weight": "balanced"}, X, Y),
}

EDGES = [np.array([[i, i + 1] for i in range(n - 1)] or np.zeros((0, 2), int)) for n in LENGTHS]
LOOPS = [
    np.array([*edges.tolist(), *([[0, n - 1]] if n > 3 else [])] or np.zeros((0, 2), int))
    for edges, n in zip(EDGES, LENGTHS, strict=True)
]
GRAPHS = list(zip(DENSE, LOOPS, strict=True))
EDGE_ROWS = [
    (x, edges, RNG.normal(size=(len(edges), 2))) for x, edges in zip(DENSE, LOOPS, strict=True)
]
NAMED_NODES = list(zip(X, LOOPS, strict=True))
NODE_LABELS = [np.array([int(label[1]) for label in y]) for y in Y]
TYPED = [
    (
        {"word": RNG.normal(size=(n, 2)), "text": RNG.normal(size=(1, 2))},
        {("word", "text"): np.array([[i, 0] for i in range(n)])},
    )
    for n in LENGTHS
]
TYPED_LABELS = [
    {"word": ["N" if v > 1 else "V" for v in own], "text": [str(own[0] % 2)]} for own in NODE_LABELS
]
IMAGES = [RNG.normal(size=(3, int(n), 2)) for n in LENGTHS]
PIXELS = [(image[..., 0] > 0).astype(int) for image in IMAGES]
TABLE = RNG.normal(size=(N, 5))
CLASSES = (TABLE[:, 0] > 0).astype(int) + (TABLE[:, 1] > 0.5)
MATRIX = (TABLE[:, :4] + RNG.normal(size=(N, 4)) > 0).astype(int)
MATCHINGS = [RNG.normal(size=(3, int(n), 2)) for n in LENGTHS]
TARGETS = [np.array([0, -1, -1]) for _ in MATCHINGS]
SKIP = [
    CliqueTemplate("words", features=lambda x: [[token[2]] for token in x]),
    CliqueTemplate("steps", "steps"),
    CliqueTemplate(
        "skip",
        lambda x: [(i, j) for j in range(len(x)) for i in range(j) if x[i][2] == x[j][2]],
    ),
    CliqueTemplate("triples", lambda x: [(i, i + 1, i + 2) for i in range(len(x) - 2)], order=3),
]

OTHERS = {
    "graphs": (GraphCRF, {}, GRAPHS, NODE_LABELS),
    "graphs that are chains in some parts": (
        GraphCRF, {}, list(zip(DENSE, EDGES[:30] + LOOPS[30:], strict=True)), NODE_LABELS
    ),
    "features of edges": (GraphCRF, {"objective": "hinge"}, EDGE_ROWS, NODE_LABELS),
    "pseudo-likelihood": (GraphCRF, {"objective": "pseudo_likelihood"}, GRAPHS, NODE_LABELS),
    "named nodes": (GraphCRF, {}, NAMED_NODES, NODE_LABELS),
    "typed": (
        TypedGraphCRF,
        {"node_types": ("word", "text"), "edge_types": [("word", "text")]},
        TYPED,
        TYPED_LABELS,
    ),
    "grid": (GridCRF, {"max_iter": 5, "contrast": "auto"}, IMAGES, PIXELS),
    "classifier": (CRFClassifier, {}, TABLE, CLASSES),
    "balanced classifier": (CRFClassifier, {"class_weight": "balanced"}, TABLE, CLASSES),
    "classifier by hinge": (CRFClassifier, {"objective": "hinge"}, TABLE, CLASSES),
    "labels in a tree": (MultiLabelCRF, {}, TABLE, MATRIX),
    "independent labels": (MultiLabelCRF, {"structure": "independent"}, TABLE, MATRIX),
    "matching": (MatchingModel, {}, MATCHINGS, TARGETS),
    "templates": (TemplateCRF, {"templates": SKIP}, X, Y),
}  # fmt: skip
CASES = {**CHAINS, **OTHERS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_the_fit_in_memory(case, tmp_path):
    kind, parameters, examples, labels = CASES[case]
    parameters = {"max_iter": 12, "random_state": 0, **parameters}
    whole = kind(**parameters).fit(examples, labels)
    data = kind(**parameters).prepare(tmp_path / "data", examples, labels)
    assert data.n_examples == N
    assert data.n_parts > 1
    found = kind(**parameters).fit(data)
    np.testing.assert_array_equal(found.weights_, whole.weights_)
    assert repr(found.classes_) == repr(whole.classes_)
    assert repr(found.predict(examples[:5])) == repr(whole.predict(examples[:5]))
    again = kind(**parameters).fit(tmp_path / "data")
    np.testing.assert_array_equal(again.weights_, whole.weights_)


LEARNED_BEFORE = ("grid", "labels in a tree")  # contrast and tree: those of the training data
VALIDATED = [case for case in CASES if case not in LEARNED_BEFORE]


def validating(case, **more):
    """An estimator, its training data and its validation data."""
    kind, parameters, examples, labels = CASES[case]
    settings = {"max_iter": 4, "random_state": 0, "validation_interval": 1, **parameters, **more}
    return kind(**settings), (examples[:40], labels[:40]), (examples[40:], labels[40:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", VALIDATED)
def test_validation_data_on_disk_score_as_those_in_memory(case, tmp_path):
    model, train, held = validating(case)
    model.prepare(tmp_path / "held", *held)
    expected = model.fit(*train, validation_data=held).fit_report_.validation
    assert expected
    for given in (tmp_path / "held", Dataset(tmp_path / "held"), [str(tmp_path / "held")]):
        assert model.fit(*train, validation_data=given).fit_report_.validation == expected
    data = model.prepare(tmp_path / "train", *train)
    assert model.fit(data, validation_data=tmp_path / "held").fit_report_.validation == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LEARNED_BEFORE)
def test_validation_data_with_another_contrast_or_tree_are_refused(case, tmp_path):
    model, train, (examples, labels) = validating(case)
    if case == "grid":
        held = [3.0 * x for x in examples], labels
    else:
        held = examples, labels[:, [2, 0, 3, 1]]
    model.prepare(tmp_path / "held", *held)
    with pytest.raises(DatasetError, match="held"):
        model.fit(*train, validation_data=tmp_path / "held")


def test_validation_data_that_are_no_pair_and_no_data_set(tmp_path):
    with pytest.raises(ValueError, match=r"pair \(X, y\).*or a prepared data set"):
        ChainCRF().fit(X, Y, validation_data=3)
    with pytest.raises(FileNotFoundError, match="no prepared data set"):
        ChainCRF().fit(X, Y, validation_data=tmp_path / "none")


def test_columns_of_large_numbers_are_scaled_by_nearly_the_same(tmp_path):
    large = [x * [1.0, 1.0, 3000.0, 1.0] for x in DENSE]  # a size is a sum over parts
    whole = ChainCRF(max_iter=10).fit(large, Y)
    found = ChainCRF(max_iter=10).fit(ChainCRF().prepare(tmp_path / "data", large, Y))
    np.testing.assert_allclose(found.weights_, whole.weights_, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_sparse_matrices(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    rows = [sparse.csr_array(x) for x in FEW]
    whole = ChainCRF(max_iter=10).fit(rows, Y)
    found = ChainCRF(max_iter=10).fit(ChainCRF().prepare(tmp_path / "data", rows, Y))
    np.testing.assert_array_equal(found.weights_, whole.weights_)
    table = sparse.csr_array(np.concatenate(FEW)[:N])
    for kind, y in ((CRFClassifier, CLASSES), (MultiLabelCRF, MATRIX)):
        whole = kind().fit(table, y)
        found = kind().fit(kind().prepare(tmp_path / kind.__name__, table, y))
        np.testing.assert_array_equal(found.weights_, whole.weights_)


def test_a_list_of_data_sets_is_one(tmp_path):
    a = ChainCRF().prepare(tmp_path / "a", X[:25], Y[:25])
    ChainCRF().prepare(tmp_path / "b", X[25:], Y[25:])
    whole = ChainCRF(max_iter=10).fit(X, Y)
    found = ChainCRF(max_iter=10).fit([a, tmp_path / "b"])
    np.testing.assert_array_equal(found.weights_, whole.weights_)
    assert found.reader_.inputs[0].vocabulary.names() == whole.reader_.inputs[0].vocabulary.names()
    again = ChainCRF(max_iter=10).fit([str(tmp_path / "a"), str(tmp_path / "b")])
    np.testing.assert_array_equal(again.weights_, whole.weights_)


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({}, {"callback": 3}, "callback must be"),
        ({}, {"validation_data": 3}, "validation_data must be"),
        ({}, {"checkpoint": "no folder/run.checkpoint"}, "the folder of checkpoint"),
        ({"objective": "hinge", "l1": 1.0}, {}, "no solver supports l1 > 0"),
    ],
)
def test_wrong_arguments_are_refused_before_any_batch_is_read(parameters, arguments, message):
    batches = iter([(X, Y)])
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        ChainCRF(**parameters).fit(batches, **arguments)
    assert next(batches) == (X, Y)


def test_batches_of_an_iterator_and_parts_that_are_appended(tmp_path):
    whole = ChainCRF(max_iter=10).fit(X, Y)
    batches = ((X[a : a + 9], Y[a : a + 9]) for a in range(0, N, 9))
    np.testing.assert_array_equal(ChainCRF(max_iter=10).fit(batches).weights_, whole.weights_)
    ChainCRF().prepare(tmp_path / "data", X[:20], Y[:20])
    old = Dataset(tmp_path / "data")
    data = ChainCRF().prepare(tmp_path / "data", X[20:], Y[20:], append=True)
    np.testing.assert_array_equal(ChainCRF(max_iter=10).fit(data).weights_, whole.weights_)
    first = ChainCRF(max_iter=10).fit(X[:20], Y[:20])
    np.testing.assert_array_equal(ChainCRF(max_iter=10).fit(old).weights_, first.weights_)
    assert (old.n_examples, data.n_examples, data.generation) == (20, N, 2)


LATE_SETS = [{f"L{j + 2 * (i > 30)}" for j in np.flatnonzero(row)} for i, row in enumerate(MATRIX)]
LATE = [
    ({"word": x["word"], "text": x["text"]}, {("word", "text"): e[("word", "text")][: i and None]})
    for i, (x, e) in enumerate(TYPED)
]
STREAMED = {
    "labels in a tree": (MultiLabelCRF, {}, TABLE, MATRIX),
    "labels that come later": (MultiLabelCRF, {"structure": "full"}, TABLE, LATE_SETS),
    "independent labels": (MultiLabelCRF, {"structure": "independent"}, TABLE, LATE_SETS),
    "contrast": (GridCRF, {"max_iter": 5, "contrast": "auto"}, IMAGES, PIXELS),
    "classes that come later": (CRFClassifier, {}, TABLE, np.sort(CLASSES)),
    "typed": (*OTHERS["typed"][:2], LATE, TYPED_LABELS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", STREAMED)
def test_what_all_batches_tell_is_what_all_data_tell(case, tmp_path):
    kind, parameters, examples, labels = STREAMED[case]

    def made():
        return kind(**parameters, warm_start=True)

    def batches(first=0):
        for a in range(first, N, 9):
            yield examples[a : a + 9], labels[a : a + 9]

    whole = made().fit(examples, labels)
    found = made().fit(batches())
    np.testing.assert_array_equal(found.weights_, whole.weights_)
    data = made().prepare(tmp_path / "data", batches())
    np.testing.assert_array_equal(made().fit(data).weights_, whole.weights_)
    if case == "classes that come later":
        return  # the last batches have few of them
    found.fit(batches(36))
    np.testing.assert_array_equal(found.weights_, whole.fit(examples[36:], labels[36:]).weights_)


def test_a_tree_counts_the_weights_of_examples(tmp_path):
    a, b = RNG.integers(2, size=(2, 200))
    y = np.stack([a, a, b, b], axis=1)
    y[100:] = np.stack([a, b, a, b], axis=1)[100:]
    X, weight = RNG.normal(size=(200, 2)), np.repeat([0.1, 1.0], 100)
    expected = MultiLabelCRF(max_iter=3).fit(X, y, weight).edges_.tolist()
    assert expected != MultiLabelCRF(max_iter=3).fit(X, y, weight[::-1]).edges_.tolist()
    data = MultiLabelCRF().prepare(tmp_path / "data", X, y, weight)
    assert MultiLabelCRF(max_iter=3).fit(data).edges_.tolist() == expected
    batches = ((X[k : k + 50], y[k : k + 50], weight[k : k + 50]) for k in range(0, 200, 50))
    assert MultiLabelCRF(max_iter=3).fit(batches).edges_.tolist() == expected


def test_learning_goes_on_from_data_on_disk(tmp_path):
    settings = {"max_iter": 10, "warm_start": True}
    whole = ChainCRF(**settings).fit(X[:20], Y[:20])
    found = ChainCRF(**settings).fit(X[:20], Y[:20])
    data = ChainCRF().prepare(tmp_path / "data", X[20:], Y[20:])
    np.testing.assert_array_equal(found.fit(data).weights_, whole.fit(X[20:], Y[20:]).weights_)
    whole.partial_fit(X[:20], Y[:20])
    found.partial_fit(ChainCRF().prepare(tmp_path / "more", X[:20], Y[:20]))
    np.testing.assert_array_equal(found.weights_, whole.weights_)


def test_weights_of_examples(tmp_path):
    weight = RNG.random(N)
    whole = ChainCRF(max_iter=10).fit(X, Y, sample_weight=weight)
    data = ChainCRF().prepare(tmp_path / "data", X, Y, sample_weight=weight)
    np.testing.assert_array_equal(ChainCRF(max_iter=10).fit(data).weights_, whole.weights_)
    with pytest.raises(ValueError, match="weights of its examples"):
        ChainCRF().fit(data, sample_weight=weight)
    plain = ChainCRF().prepare(tmp_path / "plain", X, Y)
    found = ChainCRF(max_iter=10).fit(plain, sample_weight=weight)
    np.testing.assert_array_equal(found.weights_, whole.weights_)


def test_shards_lie_in_a_file_and_few_are_in_memory(tmp_path, monkeypatch):
    seen = []
    made = SummedOracle.__post_init__

    def watched(self):
        seen.append(self.shards)
        made(self)

    monkeypatch.setattr(SummedOracle, "__post_init__", watched)
    ChainCRF(max_iter=2, n_jobs=2).fit(ChainCRF().prepare(tmp_path / "data", X, Y))
    assert isinstance(seen[0], Spilled)
    rows = seen[0][0].rows[0]
    assert not rows.wide_codes.flags.owndata
    assert not rows.wide_codes.flags.writeable
    ChainCRF(max_iter=2).fit(X, Y)
    assert isinstance(seen[1], list)


class Killed(Exception):
    """Takes the place of a signal."""


@pytest.mark.filterwarnings("ignore:solver")
@pytest.mark.parametrize("solver", ["lbfgs", "owlqn", "adam", "sgd", "block_frank_wolfe"])
def test_a_checkpoint_of_a_fit_from_disk_is_gone_on_from(solver, tmp_path):
    prepared, path = ChainCRF().prepare(tmp_path / "data", X, Y), tmp_path / "c"
    other = ChainCRF().prepare(tmp_path / "other", X[:-1], Y[:-1])
    l1 = 0.1 if solver == "owlqn" else 0.0
    make = lambda: ChainCRF(  # noqa: E731
        solver=solver, l1=l1, max_iter=6, tol=0.0, random_state=0
    )
    whole, kept = make().fit(X, Y), Checkpoint(path, interval=1)

    def killed(state):
        if state.iteration == 4:
            raise Killed

    with pytest.raises(Killed):
        make().fit(prepared, checkpoint=kept, callback=killed)
    begun = []
    found = make().fit(
        prepared, checkpoint=kept, callback=lambda state: begun.append(state.iteration)
    )
    assert begun[0] == 4
    assert (found.weights_ == whole.weights_).all()
    with pytest.raises(CheckpointError, match="differs in the training data, their labels"):
        make().fit(other, checkpoint=kept)


def test_a_warm_start_with_other_settings(tmp_path):
    """Templates are those of the settings as they are now, on disk and in memory."""
    data = ChainCRF().prepare(tmp_path / "data", X, Y)
    fits = []
    for given in ((data,), (X, Y)):
        model = ChainCRF(max_iter=5, transitions="none", warm_start=True).fit(*given)
        fits.append(model.set_params(transitions="seen", ends=True).fit(*given))
    assert len(fits[0].layout_["transitions"].kept) > 0
    np.testing.assert_array_equal(fits[0].weights_, fits[1].weights_)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ChainCRF(max_iter=5), [[{own: 0.75, "other": 0.25} for own in y] for y in Y]),
        (ChainCRF("softmax_margin", max_iter=5, class_weight="balanced"), Y),
    ],
    ids=["distributions", "balanced"],
)
def test_a_part_without_positions_changes_nothing(model, y, tmp_path):
    model.prepare(tmp_path / "data", X, y)
    data = model.prepare(tmp_path / "data", [[], []], [[], []], append=True)
    expected = model.fit(X, y).weights_
    np.testing.assert_array_equal(model.fit(data).weights_, expected)
