"""Random tag sequences, and conlleval's rules said a second time, one token after the other."""

import random
from collections import Counter

import pytest

# Labels of many kinds: usual ones, ones that conlleval has no rule for, and odd ones.
POOLS = {
    "iob": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "iobes": ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in "XY")],
    "bilou": ["O", *(f"{prefix}-{kind}" for prefix in "BILU" for kind in ("X-1", "é", "0"))],
    "words": ["B", "M", "E", "S"],
    "typeless": ["B", "I", "O"],
    "brackets": ["[-X", "]-X", "O", "B-X", "I-X"],
    "dots": [".", "O", ".-X", "B-X", "I-X", "E-X"],
    "plain": ["NN", "VB", "-"],
    "long": ["O", "B-a-type-of-more-than-17", "I-a-type-of-more-than-17", "B-日本", "I-日本"],
    "odd": [
        f"{prefix}{kind}"
        for prefix in ["B", "I", "E", "S", "O", ".", "[", "]", "U", ""]
        for kind in ("", "-X", "-Y", "-0", "-", "--")
        if prefix + kind
    ],
}


def random_corpus(rng, labels, n_sequences=20, length=9):
    """True sequences, and predicted ones that agree more or less."""
    agreement = rng.random()
    y_true = [
        [rng.choice(labels) for _ in range(rng.randint(1, length))]
        for _ in range(rng.randint(1, n_sequences))
    ]
    y_pred = [
        [label if rng.random() < agreement else rng.choice(labels) for label in sequence]
        for sequence in y_true
    ]
    return y_true, y_pred


@pytest.fixture(params=POOLS)
def corpora(request):
    """Sixty pairs of random corpora over one set of labels."""
    rng = random.Random(request.param)
    return [random_corpus(rng, POOLS[request.param]) for _ in range(60)]


@pytest.fixture
def iob_corpus():
    """One pair of corpora with usual tags, 300 sequences."""
    rng = random.Random(1)
    y_true = [[rng.choice(POOLS["iob"]) for _ in range(rng.randint(1, 9))] for _ in range(300)]
    y_pred = [[a if rng.random() < 0.8 else rng.choice(POOLS["iob"]) for a in s] for s in y_true]
    return y_true, y_pred


@pytest.fixture
def walk_conlleval():
    return walk


def split(label):
    prefix, _, kind = label.partition("-")
    return prefix, "" if kind == "0" else kind


def begins(before, here):
    """Whether a chunk begins at a tag that stands after another."""
    if here[0] in ("[", "]"):
        return True
    if before[0] + here[0] in {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}:
        return True
    return here[0] not in ("O", ".") and before[1] != here[1]


def ends(before, here):
    """Whether a chunk ends between two tags."""
    if before[0] in ("[", "]"):
        return True
    if before[0] + here[0] in {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}:
        return True
    return before[0] not in ("O", ".") and before[1] != here[1]


def walk(y_true, y_pred):
    """conlleval's counters: tokens, right tokens, and chunks by type (true, found, correct)."""
    outside = ("O", "")
    tokens, right, inside = 0, 0, False
    true, found, correct = Counter(), Counter(), Counter()
    last_true = last_pred = outside
    for t_labels, p_labels in zip(y_true, y_pred, strict=True):
        rows = [(split(a), split(b)) for a, b in zip(t_labels, p_labels, strict=True)]
        for k, (t, p) in enumerate([*rows, (outside, outside)]):
            if inside:
                t_ends, p_ends = ends(last_true, t), ends(last_pred, p)
                if t_ends and p_ends and last_true[1] == last_pred[1]:
                    inside = False
                    correct[last_true[1]] += 1
                elif t_ends != p_ends or t[1] != p[1]:
                    inside = False
            t_begins, p_begins = begins(last_true, t), begins(last_pred, p)
            inside = inside or (t_begins and p_begins and t[1] == p[1])
            true[t[1]] += t_begins
            found[p[1]] += p_begins
            tokens += k < len(rows)
            right += k < len(rows) and t == p
            last_true, last_pred = t, p
    correct[last_true[1]] += inside
    return tokens, right, true, found, correct
