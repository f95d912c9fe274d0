"""conlleval's figures on real tags: the CoNLL-2000 test set, and what CRF++ predicted."""

import gzip

import pytest

from chordal.metrics import chunk_scores, conlleval_report

pytestmark = pytest.mark.data

# Printed by conlleval, version of 2004-01-26, on CRF++'s output for its own examples.
CHUNKING = """\
processed 19172 tokens with 9715 phrases; found: 9388 phrases; correct: 7903.
accuracy:  89.54%; precision:  84.18%; recall:  81.35%; FB1:  82.74
             ADJP: precision:  57.14%; recall:  27.91%; FB1:  37.50  84
             ADVP: precision:  65.03%; recall:  55.69%; FB1:  60.00  286
            CONJP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
             INTJ: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
               NP: precision:  82.93%; recall:  81.30%; FB1:  82.10  4979
               PP: precision:  89.37%; recall:  95.57%; FB1:  92.37  2126
              PRT: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
             SBAR: precision:  83.33%; recall:  39.06%; FB1:  53.19  90
               VP: precision:  85.85%; recall:  82.24%; FB1:  84.00  1823
"""
# Tags without a type: conlleval prints such a line twice.
BASENP = """\
processed 19172 tokens with 5051 phrases; found: 4906 phrases; correct: 4298.
accuracy:  94.10%; precision:  87.61%; recall:  85.09%; FB1:  86.33
                 : precision:  87.61%; recall:  85.09%; FB1:  86.33  4906
                 : precision:  87.61%; recall:  85.09%; FB1:  86.33  4906
"""
SEG = """\
processed 981 tokens with 624 phrases; found: 664 phrases; correct: 438.
accuracy:  82.36%; precision:  65.96%; recall:  70.19%; FB1:  68.01
                 : precision:  65.96%; recall:  70.19%; FB1:  68.01  664
                 : precision:  65.96%; recall:  70.19%; FB1:  68.01  664
"""


def last_columns(path, n):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip("\n").split("\n\n")
    rows = [[line.replace("\t", " ").split(" ")[-n:] for line in b.split("\n")] for b in blocks]
    return ([[row[k] for row in block] for block in rows] for k in range(n))


@pytest.mark.parametrize(
    ("name", "report"), [("chunking", CHUNKING), ("basenp", BASENP), ("seg", SEG)]
)
def test_output_of_crfpp(require, name, report):
    y_true, y_pred = last_columns(require(f"tools_examples/crfpp_expected/{name}.out.gz"), 2)
    assert conlleval_report(y_true, y_pred) == report


def test_phrases_of_conll2000(require):
    (y_true,) = last_columns(require("conll2000/test.txt.gz"), 1)
    scores = chunk_scores(y_true, y_true)
    assert (scores.n_tokens, scores.overall.true, scores.overall.correct) == (47377, 23852, 23852)
    assert scores.accuracy == scores.overall.f1 == 1.0
