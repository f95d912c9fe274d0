"""Data and models of rows, sets of labels and graphs, small enough for brute force."""

import itertools

import numpy as np

from chordal import (
    CliqueTemplate,
    CRFClassifier,
    GraphCRF,
    MultiLabelCRF,
    TemplateCRF,
    TypedGraphCRF,
)

NAMES = ["sea", "beach", "town"]


def table(n=150, n_features=4, n_classes=3, seed=0):
    """Rows of numbers and classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, size=n)
    return np.eye(n_features)[y] * 1.5 + rng.normal(size=(n, n_features)), np.array(list("abcd"))[y]


def classifier(n_classes=3):
    return CRFClassifier(l2=1.0).fit(*table(n_classes=n_classes))


def label_rows(n=80, seed=0):
    """Rows and sets of labels; beach mostly comes with sea."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = X[:, :3] + 0.7 * rng.normal(size=(n, 3)) > 0
    Y[:, 1] = np.where(rng.random(n) < 0.8, Y[:, 0], Y[:, 1])
    return X, [{name for name, own in zip(NAMES, row, strict=True) if own} for row in Y]


def label_model():
    return MultiLabelCRF(l2=0.5).fit(*label_rows(seed=1))


def rings(n, seed=0, size=None):
    """Rings with a chord, in which neighbours mostly agree."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        m = size or int(rng.integers(4, 7))
        labels = ["abc"[3 * k // m] for k in range(m)]
        nodes = np.eye(3)[["abc".index(own) for own in labels]] + 0.8 * rng.normal(size=(m, 3))
        edges = np.array([(k, (k + 1) % m) for k in range(m)] + [(0, m // 2)])
        X.append((nodes, edges, rng.normal(size=(len(edges), 2))))
        y.append(labels)
    return X, y


def graph_model():
    return GraphCRF(l2=0.3, tables="full", prediction="map").fit(*rings(30, seed=1))


def texts(n, seed=0):
    """Texts with words: nodes of two types."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        m = int(rng.integers(2, 5))
        topic, words = str(rng.choice(["art", "law", "sport"])), rng.choice(list("NV"), size=m)
        nodes = {
            "word": [{f"w{own}{rng.integers(3)}": 1.0} for own in words],
            "text": np.array([[["art", "law", "sport"].index(topic)]]) + rng.normal(size=(1, 1)),
        }
        chain, up = [(k, k + 1) for k in range(m - 1)], [(k, 0) for k in range(m)]
        X.append((nodes, {("word", "word"): chain, ("word", "text"): up}))
        y.append({"word": words.tolist(), "text": [topic]})
    return X, y


def typed_model():
    links = [("word", "word"), ("word", "text")]
    model = TypedGraphCRF(node_types=["word", "text"], edge_types=links, l2=0.3)
    return model.fit(*texts(30, seed=1))


def triplets(x):
    return np.arange(max(len(x) - 2, 0))[:, None] + np.arange(3)


SENTENCES = [["the", "cat", "sleeps"], ["a", "dog"], ["cat", "sleeps"], ["a", "cat", "sees"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["N", "V"], ["D", "N", "V"]]


def template_model():
    templates = [
        CliqueTemplate("words", features=lambda x: [[word] for word in x]),
        CliqueTemplate("ends", features=lambda x: [[word[-1]] for word in x]),
        CliqueTemplate("pairs", "steps"),
        CliqueTemplate("triplets", triplets, order=3),
    ]
    return TemplateCRF(templates, l2=0.1).fit(SENTENCES, TAGS)


def enumerated(model, x):
    """Every labelling of an example by numbers of labels, with its probability."""
    potentials = model.potentials([x] if not isinstance(x, np.ndarray) else x[None])
    every = list(itertools.product(*map(range, potentials.structure.label_counts.tolist())))
    scores = np.array([potentials.score(np.array(labels))[0] for labels in every])
    chances = np.exp(scores - scores.max())
    return np.array(every), chances / chances.sum()
