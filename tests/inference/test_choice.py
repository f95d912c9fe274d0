"""The method that is chosen where none is named."""

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.features import matching_potentials
from chordal.inference import choose, exact_for
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Tree

RING = [(k, (k + 1) % 9) for k in range(9)]


@pytest.mark.parametrize(
    ("structure", "name"),
    [
        (Chain([3, 1], 4), "chain"),
        (Tree([[-1, 0, 0]], 2), "tree"),
        (Graph([4], [[(0, 3)]], 2), "tree"),
        (FactorGraph([4], [[(0, 1, 2), (2, 3)]], 2), "tree"),
        (Graph([9], [RING], 3), "junction_tree"),
        (Grid([(5, 100)], 2), "junction_tree"),
    ],
)
def test_exact_wherever_it_is_affordable(structure, name):
    for question in ("marginals", "map", "sample"):
        assert exact_for(structure, question).name == name
        assert choose(structure, question).name == name


def test_what_is_too_wide_gets_an_approximation():
    wide = Grid([(60, 60)], 5)
    assert exact_for(wide) is None
    for question in ("marginals", "map"):
        method = choose(wide, question)
        assert question in method.answers
        assert method.supports(wide)
        assert not method.exact_on(wide)


def two_labels(size, table):
    return Potentials(Grid([size], 2), np.zeros(2 * size[0] * size[1]), table)


def test_scores_decide_too():
    alike, different = two_labels((60, 60), [1, 0, 0, 1]), two_labels((60, 60), [0, 1, 1, 0])
    for question in ("map", "marginals"):
        assert exact_for(alike.structure, question) is None  # whatever the scores are
    assert choose(alike, "map").name == exact_for(alike, "map").name == "max_flow"
    assert exact_for(alike, "marginals") is None
    assert exact_for(different, "map") is None
    assert choose(different, "map").name == "qpbo"
    assert choose(Grid([(60, 60)], 3), "map").name == "trw_s"
    # Cheaper than exact methods for any scores, unless there are no loops.
    assert choose(two_labels((3, 3), [1, 0, 0, 1]), "map").name == "max_flow"
    assert choose(two_labels((3, 3), [0, 1, 1, 0]), "map").name == "junction_tree"
    assert choose(two_labels((1, 3), [1, 0, 0, 1]), "map").name == "tree"
    pairs = matching_potentials([np.ones((30, 30))], [np.zeros(30)])
    assert choose(pairs, "map").name == "matching"


def test_relaxations():
    for n_labels, name in ((2, "qpbo"), (3, "ad3")):
        assert choose(Grid([(60, 60)], n_labels), "relaxed_map").name == name


def test_patience_reaches_further():
    square = Grid([(20, 20)], 2)
    assert exact_for(square) is None
    for question in ("log_partition", "marginals", "map", "sample", "entropy"):
        method = choose(square, question, patient=True)
        assert method.name == "elimination"
        method.require(question, square)
    assert exact_for(square, "k_best", patient=True) is None
    assert exact_for(Grid([(5, 20)], 2), patient=True).name == "junction_tree"


def test_a_question_decides_too():
    # Chains answer this one, no method for graphs with loops does.
    assert choose(Chain([3], 2), "span_log_probability").name == "chain"
    with pytest.raises(UnsupportedError, match="no inference method answers 'span_log"):
        choose(Grid([(60, 60)], 5), "span_log_probability")
