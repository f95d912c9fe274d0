"""The method that is chosen where none is named."""

import pytest

from chordal._errors import UnsupportedError
from chordal.inference import choose, exact_for
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
