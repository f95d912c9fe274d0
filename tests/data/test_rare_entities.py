"""Costs of errors raise the recall of a rare entity type on CoNLL-2002, Spanish."""

import gzip

import pytest

from chordal import ChainCRF
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.metrics import chunk_scores
from chordal.objectives.hinge import Hinge
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.preprocessing import default_template

pytestmark = [pytest.mark.data, pytest.mark.slow]

MISSED = {"B-MISC": 10.0, "I-MISC": 10.0}


@pytest.fixture(scope="module")
def sentences(require):
    def read(name):
        with gzip.open(require(f"conll2002/{name}.gz"), "rt", encoding="utf-8") as file:
            blocks = file.read().strip().split("\n\n")
        rows = [[line.split() for line in block.splitlines()] for block in blocks]
        return [[row[:-1] for row in s] for s in rows], [[row[-1] for row in s] for s in rows]

    (X, y), test = read("esp.train"), read("esp.testa")
    return X[:2000], y[:2000], *test


@pytest.mark.parametrize("objective", [SoftmaxMargin, Hinge])
def test_the_recall_of_misc_rises_with_the_price_of_missing_it(sentences, objective):
    X, y, test_X, test_y = sentences
    template = default_template("ner", n_columns=len(X[0][0]))
    found = []
    for cost in ("hamming", WeightedHamming(MISSED)):
        crf = ChainCRF(objective(cost), feature_template=template, min_freq=2, max_iter=80).fit(
            X, y
        )
        found.append(chunk_scores(test_y, crf.predict(test_X)).types["MISC"])
    plain, weighted = found
    assert weighted.recall > plain.recall + 0.03
    assert weighted.found > plain.found
