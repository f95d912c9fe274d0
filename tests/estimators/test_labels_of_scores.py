"""Scores count labels that are known: neither sets of several labels nor distributions."""

import numpy as np
import pytest

from chordal import ChainCRF

X = [[["a"], ["b"], ["a"]], [["b"], ["b"]]]
Y = [["A", "B", "A"], ["B", "B"]]
UNKNOWN = {
    "sets": [["A", {"A", "B"}, {"A"}], [{"B"}, {"B", "A"}]],
    "distributions": [
        ["A", {"A": 0.5, "B": 0.5}, {"A": 1.0}],
        [{"B": 1, "A": 0}, {"B": 0.9, "A": 0.1}],
    ],
    "None": [["A", None, "A"], ["B", None]],
    "matrices": [np.array([[1, 0], [0.5, 0.5], [1, 0]]), np.array([[0, 1], [0.2, 0.8]])],
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_scores(kind):
    crf = ChainCRF(l2=0.1, validation_interval=1, max_iter=5).fit(X, Y)
    assert crf.score(X, UNKNOWN[kind]) == 1.0
    wrong = [["B", *UNKNOWN["sets"][0][1:]], UNKNOWN["sets"][1]]
    assert crf.score(X, wrong) == pytest.approx(2 / 3)
    found = crf.fit(X, Y, validation_data=(X, UNKNOWN[kind])).fit_report_.validation
    assert found[-1][1] == 1.0


def test_nothing_known():
    crf = ChainCRF().fit(X, Y)
    with pytest.raises(ValueError, match="observed"):
        crf.score(X, [[{"A", "B"}] * 3, [None] * 2])
