"""Small files in the formats that commands of the pages read."""

import gzip
import json
import random

PLACES = [
    [("the", "DT"), ("cat", "NN")],
    [("a", "DT"), ("small", "JJ"), ("dog", "NN")],
    [("Anna", "NNP")],
    [("New", "NNP"), ("York", "NNP")],
    [("an", "DT"), ("old", "JJ"), ("train", "NN")],
    [("Rome", "NNP")],
]
VERBS = [[("sleeps", "VBZ")], [("has", "VBZ"), ("seen", "VBN")], [("lives", "VBZ")]]
LINKS = [[("in", "IN")], [("near", "IN")], [("of", "IN")]]
TEMPLATE = "U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\n\nB\n"
PATTERN = "u:w=%x[0,0]\nu:p=%x[-1,0]\n*:pos=%x[0,1]\nb\n"


def chunked(draw):
    """Words, parts of speech and chunks of a sentence."""
    chosen = [(draw.choice(PLACES), "NP"), (draw.choice(VERBS), "VP")]
    while draw.random() < 0.6:
        chosen += [(draw.choice(LINKS), "PP"), (draw.choice(PLACES), "NP")]
    rows = [
        (*token, f"{'I' if k else 'B'}-{kind}")
        for words, kind in chosen
        for k, token in enumerate(words)
    ]
    return [*rows, (".", ".", "O")] if draw.random() < 0.7 else rows


def named(draw):
    """Words and entities of a sentence."""
    return [
        (word, chunk[0] + "-LOC" if part == "NNP" else "O") for word, part, chunk in chunked(draw)
    ]


def columns(sentence, n, seed, size=None):
    """A text of n sentences, of the first `size` columns."""
    draw = random.Random(seed)
    rows = [[row[:size] for row in sentence(draw)] for _ in range(n)]
    return "\n".join("".join(" ".join(row) + "\n" for row in own) for own in rows)


def write_chunks(folder):
    (folder / "train.txt").write_text(columns(chunked, 40, seed=0))
    (folder / "dev.txt").write_text(columns(chunked, 10, seed=1))
    (folder / "test.txt").write_text(columns(chunked, 10, seed=2))
    (folder / "template").write_text(TEMPLATE)
    (folder / "pattern").write_text(PATTERN)


def write_unlabelled_chunks(folder):
    write_chunks(folder)
    (folder / "test.txt").write_text(columns(chunked, 10, seed=2, size=2))


def write_entities(folder):
    for seed, name in enumerate(("train", "dev", "test")):
        (folder / f"{name}.txt").write_text(columns(named, 20, seed=seed))
    (folder / "template").write_text(TEMPLATE)
    (folder / "article.txt").write_text("Anna lives in New York. The cat sleeps.\n")
    (folder / "card.json").write_text(json.dumps({"language": "en"}))


def write_parts(folder):
    write_entities(folder)
    (folder / "part1.txt").write_text(columns(named, 20, seed=3))
    (folder / "part2.txt.gz").write_bytes(gzip.compress(columns(named, 20, seed=4).encode()))
    (folder / "more.txt").write_text(columns(named, 5, seed=5))


def write_letters(folder):
    """Entities, images of letters and digits, and graphs, each with a model."""
    import numpy as np

    import chordal
    from chordal.formats.graphs import Graph, write_graphs

    write_entities(folder)
    rng = np.random.default_rng(0)
    lengths = [4, 3, 5]
    X, y = rng.random((sum(lengths), 128)), rng.choice(["a", "b"], size=sum(lengths))
    np.savez(folder / "letters.npz", X=X, y=y, lengths=lengths)
    ends = np.cumsum(lengths)[:-1]
    model = chordal.ChainCRF().fit(np.split(X, ends), np.split(y, ends))
    chordal.save(model, folder / "ocr.model")

    digits, kinds = rng.random((6, 64)), np.arange(6) % 2
    np.savez(folder / "digits.npz", X=digits, y=kinds)
    chordal.save(chordal.CRFClassifier().fit(digits, kinds), folder / "digits.model")

    ring = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    graphs = [Graph(rng.random((4, 2)), ring, labels=["a", "a", "b", "b"]) for _ in range(5)]
    write_graphs(graphs, folder / "graphs.jsonl")
    model = chordal.GraphCRF().fit([own.x for own in graphs], [own.labels for own in graphs])
    chordal.save(model, folder / "graphs.model")
