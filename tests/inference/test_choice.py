"""The method that is chosen where none is named."""

import subprocess
import sys

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.inference import INFERENCE, Inference, Pace, choose, exact_for
from chordal.potentials import Potentials, matching_potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Matching, Tree

RING = [(k, (k + 1) % 9) for k in range(9)]
TRIPLES = [(i, (i + 7) % 60, (3 * i + 1) % 60) for i in range(60) if 2 * i % 60 not in (59, 6)]
QUESTIONS = ("log_partition", "marginals", "map", "relaxed_map", "k_best", "sample", "entropy")
NONE = "-"
#: What is chosen for each question, in the order of QUESTIONS; "=" stands for the column before.
TABLE = [
    (Chain([3, 1, 0], 4), "chain = = ad3 chain = ="),
    (Chain([3], 2), "chain = = qpbo chain = ="),
    (Tree([[-1, 0, 0]], 3), "tree = = ad3 tree = ="),
    (Graph([4], [[]], 2), "tree = = qpbo tree = ="),
    (FactorGraph([4], [[(0, 1, 2), (2, 3)]], 2), "tree = = ad3 tree = ="),
    (Graph([9], [RING], 2), "junction_tree = = qpbo junction_tree = ="),
    (Graph([9], [RING], 3), "junction_tree = = ad3 junction_tree = ="),
    (Grid([(60, 60)], 2), "loopy_bp = portfolio qpbo - gibbs -"),
    (Grid([(60, 60)], 3), "loopy_bp = portfolio ad3 - gibbs -"),
    (FactorGraph([60], [TRIPLES], 5), "loopy_bp = portfolio ad3 - gibbs -"),
    (Matching([2], [3]), "tree = = ad3 tree = ="),
    (Matching([3], [4]), "junction_tree = = ad3 junction_tree = ="),
    (Matching([30], [30]), "loopy_bp = portfolio ad3 - gibbs -"),
]


def name_of(model, question):
    try:
        return choose(model, question).name
    except UnsupportedError:
        return NONE


@pytest.mark.parametrize(("structure", "expected"), TABLE)
def test_the_choice_for_every_question(structure, expected):
    names = [name_of(structure, question) for question in QUESTIONS]
    shown = [b if k == 0 or b != names[k - 1] else "=" for k, b in enumerate(names)]
    assert " ".join(shown) == expected
    for question, name in zip(QUESTIONS, names, strict=True):
        exact = exact_for(structure, question)
        assert exact is None or exact.name == name


def test_every_method_can_be_chosen_by_itself_or_says_why_not():
    # By name alone: a search without a bound of its time, and what the others are tested by.
    alone = [cls.__module__ for cls in INFERENCE.classes() if not declared(cls)]
    assert [name.rpartition(".")[2] for name in alone] == ["exhaustive", "milp"]


def declared(cls):
    return bool(cls.quality) or cls.cost is not Inference.cost


def test_approximations_of_equal_quality_do_not_depend_on_the_folder():
    for question in QUESTIONS:
        ranked = [cls for cls in INFERENCE.classes() if question in cls.quality]
        first = sorted((-cls.quality[question], cls.__name__) for cls in ranked)[:2]
        assert len(first) < 2 or first[0][0] < first[1][0]


@pytest.mark.parametrize("kind", ["Chain([3], 2)", "Tree([[-1, 0]], 2)"])
def test_the_methods_of_other_structures_are_not_imported(kind):
    code = (
        "import sys; from chordal.inference import choose; from chordal.structures import Chain, "
        f"Tree; choose({kind}, 'map'); print(*sys.modules)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    names = {name.rpartition(".")[2] for name in loaded if name.startswith("chordal.inference.")}
    assert [name for name in sorted(names) if name[0] != "_"] == [kind.partition("(")[0].lower()]
    assert "scipy" not in loaded


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
    assert choose(different, "map").name == choose(Grid([(60, 60)], 3), "map").name == "portfolio"
    # Cheaper than exact methods for any scores, unless there are no loops.
    assert choose(two_labels((3, 3), [1, 0, 0, 1]), "map").name == "max_flow"
    assert choose(two_labels((3, 3), [0, 1, 1, 0]), "map").name == "junction_tree"
    assert choose(two_labels((1, 3), [1, 0, 0, 1]), "map").name == "tree"
    pairs = matching_potentials([np.ones((30, 30))], [np.zeros(30)])
    assert choose(pairs, "map").name == "matching"


def test_relaxations():
    for n_labels, name in ((2, "qpbo"), (3, "ad3")):
        assert choose(Grid([(60, 60)], n_labels), "relaxed_map").name == name


@pytest.mark.parametrize(
    ("structure", "name"),
    [
        (Grid([(60, 60)], 2), "qpbo"),
        (Grid([(60, 60)], 3), "trw_s"),
        (FactorGraph([60], [TRIPLES], 5), "ad3"),
        (Graph([9], [RING], 3), "junction_tree"),
    ],
)
def test_who_asks_often_never_waits_for_seconds(structure, name):
    assert choose(structure, "map", Pace.MOMENTS).name == name


def test_patience_reaches_further():
    square = Grid([(20, 20)], 2)
    assert exact_for(square) is None
    for question in ("log_partition", "marginals", "map", "sample", "entropy"):
        method = choose(square, question, pace=Pace.MINUTES, memory_limit=1e9)
        assert method.name == "elimination"
        method.require(question, square)
        assert method.memory_limit == 1e9
    assert exact_for(square, "k_best", pace=Pace.MINUTES, memory_limit=1e9) is None
    assert exact_for(Grid([(5, 20)], 2), pace=Pace.MINUTES).name == "junction_tree"


def test_a_question_decides_too():
    # Chains answer this one, no method for graphs with loops does.
    assert choose(Chain([3], 2), "span_log_probability").name == "chain"
    with pytest.raises(UnsupportedError, match="no inference method can compute 'span_log"):
        choose(Grid([(60, 60)], 5), "span_log_probability")


def test_an_exact_answer_that_is_too_much_work_is_left_to_an_approximation():
    grid = Grid([(10, 12)], n_labels=3)
    assert choose(grid, "map").name == "junction_tree"
    assert choose(grid, "map", Pace.MOMENTS, max_work=300.0).name == "trw_s"
    assert choose(grid, "map", max_work=300.0).name == "portfolio"
    narrow = Grid([(3, 40)], n_labels=2)
    assert choose(narrow, "map", max_work=300.0).name == "junction_tree"
