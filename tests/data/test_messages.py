"""Loopy belief propagation on models whose answers are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._status import Status
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.mean_field import MeanFieldInference
from chordal.inference.tree_reweighted import TreeReweightedInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def course(require):
    return np.load(require("pgm_course/coursera_pgm_pa3_pa4_pa5.npz"))


def factors(data, name):
    """(scope, table) of each factor."""
    ptr, val_ptr = data[f"{name}_scope_ptr"], data[f"{name}_val_ptr"]
    for k in range(len(ptr) - 1):
        here = slice(ptr[k], ptr[k + 1])
        card = data[f"{name}_card"][here]
        yield (
            data[f"{name}_scope"][here].tolist(),
            data[f"{name}_val"][val_ptr[k] : val_ptr[k + 1]].reshape(card),
        )


@pytest.fixture(scope="module")
def grid(course):
    """The course's 4×4 grid of two labels."""
    scopes, tables = zip(*factors(course, "pa5_grid"), strict=True)
    graph = FactorGraph([16], [scopes], n_labels=2)
    with np.errstate(divide="ignore"):
        scores = np.log(np.concatenate([table.ravel() for table in tables]))
    return Potentials(graph, np.zeros(32), scores)


def test_the_marginals_of_the_course(course, grid):
    given = np.concatenate([table.ravel() for _, table in factors(course, "pa5_lbp_marginals")])
    found = LoopyBPInference().marginals(grid)
    assert found.run.status is Status.CONVERGED
    assert_allclose(found.parts.unary, given, atol=1e-4)


def test_bounds_enclose_the_exact_answer_of_the_course(course, grid):
    from chordal.inference.exhaustive import ExhaustiveInference

    truth = ExhaustiveInference(max_labellings=10**5).marginals(grid)
    exact = course["pa5_exact_marginals_computed"].ravel()
    assert_allclose(truth.parts.unary, exact, atol=1e-9)
    assert MeanFieldInference().log_partition(grid) <= truth.log_partition + 1e-9
    assert TreeReweightedInference().log_partition(grid) >= truth.log_partition - 1e-9
