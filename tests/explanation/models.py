"""One small fitted model of every structure with random weights, and an example of each."""

from functools import cache
from itertools import pairwise, product

import numpy as np

from chordal import (
    HMM,
    ChainCRF,
    CliqueTemplate,
    Columns,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MultiLabelCRF,
    NaiveBayes,
    TemplateCRF,
    TwoStageCRF,
    TypedGraphCRF,
)

WORDS = [["the", "cat", "sleeps", "now"], ["a", "dog"], ["the", "dog", "sees", "a", "cat"]]
TAGS = [["D", "N", "V", "A"], ["D", "N"], ["D", "N", "V", "D", "N"]]
LISTS = [[[f"w={w}", f"end={w[-1]}", "bias"] for w in sentence] for sentence in WORDS]
DICTS = [[{"w": w, "length": len(w) / 3, "cap": False} for w in s] for s in WORDS]
VECTORS = [[{"w": w, "vec": np.array([len(w), -1.5])} for w in s] for s in WORDS]
ROWS = [[[w, w[-1]] for w in sentence] for sentence in WORDS]
TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[0,1]/%x[1,1]\nB0:%x[0,0]\nB"


def shaken(model, seed):
    """The model with random weights: nothing is special about those of a fit."""
    rng = np.random.default_rng(seed)
    model.weights_ = rng.normal(scale=0.7, size=len(model.weights_))
    return model


def arrays(rng, width=3):
    return [rng.normal(size=(len(s), width)) for s in WORDS]


def sparse(X):
    from scipy.sparse import csr_array

    return [csr_array(np.where(x > 0.3, x, 0.0)) for x in X]


def seen_steps(x):
    return [[f"pair={a[0]}", f"of={b[0]}"] for a, b in pairwise(x)]


def runs(x):
    return np.arange(len(x) - 2)[:, None] + np.arange(3)


def ends(x):
    return [(0, len(x) - 1)] if len(x) > 2 else []


def graph(rng, edges, n=5, features=False):
    rows = [rng.normal(size=(n, 2)), np.array(edges)]
    return tuple([*rows, rng.normal(size=(len(edges), 2))] if features else rows)


TREE = [(0, 1), (1, 2), (1, 3), (3, 4)]
LOOP = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]
LABELS = [["a", "b", "c", "a", "b"]]


def chains(rng):
    numbers = arrays(rng)
    full = {"transitions": "all", "pairs": "all", "fit_intercept": True, "ends": True}
    yield "lists", ChainCRF(**full).fit(LISTS, TAGS), LISTS[2]
    yield "seen pairs", ChainCRF().fit(LISTS, TAGS), LISTS[0]
    yield "dicts", ChainCRF(**full).fit(DICTS, TAGS), DICTS[2]
    yield "repeated", ChainCRF(**full).fit(LISTS, TAGS), [["bias", "bias", "w=cat"], ["w=dog"]]
    yield "vectors", ChainCRF(**full).fit(VECTORS, TAGS), VECTORS[2]
    yield "arrays", ChainCRF(**full).fit(numbers, TAGS), numbers[2]
    yield "float32", ChainCRF().fit([x.astype("f4") for x in numbers], TAGS), numbers[0]
    yield "sparse", ChainCRF(**full).fit(sparse(numbers), TAGS), sparse(numbers)[2]
    yield "steps", ChainCRF(transition_features=seen_steps).fit(LISTS, TAGS), LISTS[2]
    yield "no links", ChainCRF(transitions="none").fit(LISTS, TAGS), LISTS[2]
    yield "template", ChainCRF(feature_template=TEMPLATE).fit(ROWS, TAGS), ROWS[2]
    columns = Columns.from_sequences(ROWS[:1])
    yield "columns", ChainCRF(feature_template=TEMPLATE).fit(ROWS, TAGS), columns
    yield "one", ChainCRF(**full).fit(LISTS, TAGS), LISTS[0][:1]


def graphs(rng):
    tree, loop = graph(rng, TREE), graph(rng, LOOP)
    edged = graph(rng, LOOP, features=True)
    kinds = {"symmetric": [0], "antisymmetric": [1]}
    yield "tree", GraphCRF().fit([tree], LABELS), tree
    yield "loop", GraphCRF(tables="full").fit([loop], LABELS), loop
    yield "edges", GraphCRF(tables="full", column_tables=kinds).fit([edged], LABELS), edged
    lists = ([["x"], ["y"], ["x", "y"]], np.array([(0, 2)]))
    yield "words", GraphCRF(pairs="all").fit([lists], [["a", "b", "a"]]), lists
    image = rng.normal(size=(2, 3, 2))
    gold = np.array([[0, 1, 2], [1, 1, 0]])
    yield "grid", GridCRF(contrast=0.5).fit([image], [gold]), image
    yield "directions", GridCRF(directions=True, neighbours=8).fit([image], [gold]), image
    nodes = {"word": rng.normal(size=(3, 2)), "text": rng.normal(size=(1, 1))}
    links = [("word", "word"), ("word", "text")]
    edges = {links[0]: [(0, 1), (1, 2)], links[1]: [(0, 0), (1, 0), (2, 0)]}
    typed = TypedGraphCRF(node_types=["word", "text"], edge_types=links)
    gold = {"word": ["N", "V", "N"], "text": ["news"]}
    other = {"word": ["V", "N", "A"], "text": ["fun"]}
    yield "typed", typed.fit([(nodes, edges), (nodes, edges)], [gold, other]), (nodes, edges)


def others(rng):
    X = rng.normal(size=(30, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    sets = np.array([X[:, 0] > 0, X[:, 1] > 0.5, X.sum(axis=1) > 0]).T.astype(int)
    positive = np.abs(X)
    yield "three classes", CRFClassifier().fit(X, y), X[3]
    yield "two classes", CRFClassifier().fit(X, y > 0), X[4]
    yield "sparse row", CRFClassifier().fit(sparse([X])[0], y), sparse([X])[0][[5]]
    yield "multi-label", MultiLabelCRF().fit(X, sets), X[3]
    yield "multi-label, full", MultiLabelCRF(structure="full").fit(sparse([X])[0], sets), X[3]
    yield "multi-label, apart", MultiLabelCRF(structure="independent").fit(X, sets), X[3]
    words = CliqueTemplate("words", features=lambda x: [[f"w={w}", "any"] for w in x])
    pairs = CliqueTemplate("pairs", "steps", seen_pairs)
    triplets = CliqueTemplate("triplets", runs, order=3)
    last = CliqueTemplate("last", "last")
    link = CliqueTemplate("ends", ends, tables="potts")
    made = TemplateCRF([words, pairs, triplets, last, link], pairs="all")
    yield "templates", made.fit(WORDS, TAGS), WORDS[2]
    yield "hmm", HMM().fit(arrays(rng), TAGS), arrays(rng)[0]
    yield "naive bayes", NaiveBayes("poisson").fit(np.floor(3 * positive), y), np.floor(X[2] ** 2)
    numbers = arrays(rng, 2)
    yield "two stages", TwoStageCRF(cv=3).fit(2 * numbers, 2 * TAGS), numbers[2]


def seen_pairs(x):
    return [[f"{a}>{b}"] for a, b in pairwise(x)]


GENERATIVE = ("hmm", "naive bayes", "two stages")

NAMES = [
    "lists",
    "seen pairs",
    "dicts",
    "repeated",
    "vectors",
    "arrays",
    "float32",
    "sparse",
    "steps",
    "no links",
    "template",
    "columns",
    "one",
    "tree",
    "loop",
    "edges",
    "words",
    "grid",
    "directions",
    "typed",
    "three classes",
    "two classes",
    "sparse row",
    "multi-label",
    "multi-label, full",
    "multi-label, apart",
    "templates",
    "hmm",
    "naive bayes",
    "two stages",
]


@cache
def models(seed=0):
    """Fitted models of every structure with an example each, by name."""
    rng = np.random.default_rng(seed)
    found = {}
    for k, (name, model, x) in enumerate([*chains(rng), *graphs(rng), *others(rng)]):
        found[name] = (model if name in GENERATIVE else shaken(model, [seed, k]), x)
    assert list(found) == NAMES
    return found


def listed(model, x):
    """One example as `predict` takes examples."""
    if isinstance(x, Columns) or (getattr(x, "ndim", 0) == 2 and model.classifies):
        return x
    return np.asarray(x)[None] if model.classifies else [x]


class BruteForce:
    """All labellings of one example with their scores, in the order of `classes_`."""

    def __init__(self, model, x):
        self.potentials = model.potentials(listed(model, x))
        counts = self.potentials.structure.label_counts
        self.labellings = np.array(list(product(*map(range, counts))))
        self.scores = np.array([self.potentials.score(own)[0] for own in self.labellings])

    def marginal(self, v, a):
        """The unnormalised log-probability of a label."""
        own = self.scores[self.labellings[:, v] == a]
        return own.max() + np.log(np.exp(own - own.max()).sum())

    def conditional(self, v, a, labels):
        """The score of the labelling in which v has another label."""
        changed = np.array(labels)
        changed[v] = a
        return self.potentials.score(changed)[0]
