"""Models of every kind, small."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from chordal import (
    ChainCRF,
    CliqueTemplate,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    MultiLabelCRF,
    TemplateCRF,
)
from chordal.costs.hamming import Hamming
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.tree_reweighted import TreeReweightedInference
from chordal.model_file import ModelFileError, load, save
from chordal.objectives.hinge import Hinge

from .chain_parts import COLUMNS, DENSE, TEMPLATE, X, Y

RNG = np.random.default_rng(5)

NODES = [RNG.normal(size=(n, 3)) for n in (6, 4, 5)]
EDGES = [np.array([(i, (i + 1) % len(x)) for i in range(len(x))]) for x in NODES]
OF_EDGES = [RNG.normal(size=(len(e), 2)) for e in EDGES]
LABELS = [["abc"[int(v > 0) + (v > 1)] for v in x[:, 0]] for x in NODES]
GRAPHS = list(zip(NODES, EDGES, strict=True))
OBSERVED = list(zip(NODES, EDGES, OF_EDGES, strict=True))
NAMED = [
    ([{"w": str(int(v > 0)), "x": float(v)} for v in x[:, 0]], edges)
    for x, edges in zip(NODES, EDGES, strict=True)
]
SPARSE = [(sp.csr_array(np.round(x)), edges) for x, edges in GRAPHS]
IMAGES = [RNG.normal(size=(3, 4, 2)) for _ in range(3)]
PIXELS = [(image[..., 0] > 0).astype(np.int16) for image in IMAGES]
VOLUMES = [RNG.normal(size=(2, 2, 2, 1)) for _ in range(3)]
WORDS = [["the", "cat", "sees", "the", "cat"], ["a", "dog"], ["the", "dog", "sees"]]
TAGS = [["D", "N", "V", "D", "N"], ["D", "N"], ["D", "N", "V"]]
TARGETS = [np.array([0, -1, 2]), np.array([1, 0]), np.array([2, -1, 0, 1])]
PAIRS = [RNG.normal(size=(len(y), 3, 2)) + (y[:, None] == np.arange(3))[..., None] for y in TARGETS]


def attributes(x):
    return [[word, word[0]] for word in x]


def runs(n):
    return lambda x: np.arange(max(0, len(x) - n + 1))[:, None] + np.arange(n)


def both_words(x):
    return [[f"{a}|{b}"] for a, b in itertools.pairwise(x)]


def templates():
    return [
        CliqueTemplate("words", features=attributes),
        CliqueTemplate("pairs", runs(2), both_words, tables="symmetric"),
        CliqueTemplate("triplets", runs(3), order=3, tables="potts"),
    ]


def differences(a, b):
    return np.abs(a - b)


def near(a, b):
    return -np.abs(np.subtract.outer(a, b))[:, :, None]


def by_number(y):
    return [np.array([ord(v) for v in own], dtype=np.uint8) for own in y]


MODELS = {
    "graph": (GraphCRF(l2=0.3), GRAPHS, LABELS, {}),
    "graph, observed": (GraphCRF(tables="full", fit_intercept=False), OBSERVED, LABELS, {}),
    "graph, columns": (
        GraphCRF(column_tables={"antisymmetric": [1]}, l2={"edges antisymmetric": 0.2}),
        OBSERVED, LABELS, {},
    ),
    "graph, named": (GraphCRF("pseudo_likelihood", l1=0.1), NAMED, LABELS, {}),
    "graph, sparse": (GraphCRF(tables="potts", ignore_label="c"), SPARSE, by_number(LABELS), {}),
    "graph, groups": (
        GraphCRF(l2={"edges": 3.0}, class_weight={"a": 2.0, "b": 1.0, "c": 1.0}, freeze=("edges",),
                 objective=Hinge(Hamming(normalize=True)), solver="adam", max_iter=5),
        GRAPHS, LABELS, {},
    ),
    "graph, approximate": (
        GraphCRF(inference=LoopyBPInference(damping=0.3, max_iter=20)), GRAPHS, LABELS, {},
    ),
    "graph, trees": (
        GraphCRF("piecewise", inference=TreeReweightedInference(3, random_state=2)), GRAPHS,
        LABELS, {},
    ),
    "grid": (GridCRF(), IMAGES, PIXELS, {}),
    "grid, directions": (GridCRF(directions=True, tables="full", neighbours=8), IMAGES, PIXELS, {}),
    "grid, contrast": (GridCRF(contrast="auto", contrast_columns=[1]), IMAGES, PIXELS, {}),
    "grid, given contrast": (GridCRF(contrast=0.5, fit_intercept=False), IMAGES, PIXELS, {}),
    "grid, function": (
        GridCRF(edge_features=differences, tables="potts"), IMAGES, PIXELS,
        {"edge_features": differences},
    ),
    "grid, columns": (
        GridCRF(contrast=0.5, edge_features=differences, directions=True,
                column_tables={"antisymmetric": [1], "full": [0, 2]}),
        IMAGES, PIXELS, {"edge_features": differences},
    ),
    "volume": (GridCRF(neighbours=6), VOLUMES, [v[..., 0] > 0 for v in VOLUMES], {}),
    "templates": (TemplateCRF(templates()), WORDS, TAGS, {"templates": templates()}),
    "all states": (
        TemplateCRF(templates(), pairs="all", inference="junction_tree"), WORDS, TAGS,
        {"templates": templates()},
    ),
    "matching": (MatchingModel(l2=0.1, max_iter=20), PAIRS, TARGETS, {}),
    "matching, function": (
        MatchingModel("perceptron", "sgd", features=near, l2=0.1, max_iter=3, random_state=0),
        [([1.0, 5.0], [5.2, 1.1]), ([3.0, 9.0], [2.8])], [[1, 0], [0, -1]], {"features": near},
    ),
}  # fmt: skip


TABLE = RNG.normal(size=(40, 3))
TWO = (TABLE[:, 0] > 0).astype(int)
THREE = TWO + (TABLE[:, 1] > 0.5)
CLASSIFIERS = {
    "two": (CRFClassifier(), TABLE, TWO),
    "three": (CRFClassifier("crammer_singer", "adam", max_iter=5, random_state=0), TABLE, THREE),
    "strings": (CRFClassifier(fit_intercept=False), TABLE, np.array(list("abé"))[THREE]),
    "objects": (CRFClassifier(), TABLE, np.array(["a", "b"], dtype=object)[TWO]),
    "floats": (CRFClassifier(l1=0.2), TABLE, THREE.astype(np.float32)),
    "bools": (CRFClassifier(class_weight="balanced"), TABLE, TWO == 1),
    "small numbers": (CRFClassifier(class_weight={0: 1, 1: 3}), TABLE, TWO.astype(np.uint8)),
    "sparse": (CRFClassifier("one_vs_rest"), sp.csr_array(np.round(TABLE)), THREE),
}


def same(a, b):
    """Equal to the last bit and down to the types."""
    if isinstance(a, np.ndarray) and a.dtype == object:
        return b.dtype == object and same(a.tolist(), b.tolist())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The bytes of one model of each kind."""
    path = tmp_path_factory.mktemp("models") / "model"
    raw = {}
    kinds = {
        "GraphCRF": MODELS["graph, named"],
        "GridCRF": MODELS["grid, contrast"],
        "TemplateCRF": MODELS["templates"],
        "MatchingModel": MODELS["matching"],
        "CRFClassifier": (*CLASSIFIERS["three"], {}),
        "MultiLabelCRF": (MultiLabelCRF(), TABLE, (TABLE > 0).astype(int), {}),
        "ChainCRF": (ChainCRF(), [[["a"], ["b"]]], [["A", "B"]], {}),
    }
    for name, (model, inputs, y, functions) in kinds.items():
        save(clone(model).fit(inputs, y), path)
        raw[name] = (path.read_bytes(), inputs, functions)
    return raw


@pytest.fixture
def written(tmp_path):
    def done(raw):
        path = tmp_path / "model"
        path.write_bytes(raw)
        return path

    return done


@pytest.fixture(scope="session")
def chain_files(tmp_path_factory):
    """The bytes of small chain models, by the kind of their features."""
    path = tmp_path_factory.mktemp("models") / "model"
    models = {
        "attributes": ChainCRF(fit_intercept=True, ends=True).fit(X, Y),
        "template": ChainCRF(feature_template=TEMPLATE).fit(COLUMNS, Y),
        "dense": ChainCRF().fit(DENSE, [np.array(y) for y in Y]),
    }
    raw = {}
    for kind, model in models.items():
        save(model, path)
        raw[kind] = path.read_bytes()
    return raw


@pytest.fixture
def refused(tmp_path):
    def check(raw, message=""):
        path = tmp_path / "hostile"
        path.write_bytes(raw)
        with pytest.raises(ModelFileError, match=message) as caught:
            load(path)
        assert str(caught.value).startswith(str(path))

    return check
