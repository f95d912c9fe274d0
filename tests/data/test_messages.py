"""Loopy belief propagation on models whose answers are given."""

import json

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
    assert found.convergence.status is Status.CONVERGED
    assert_allclose(found.parts.unary, given, atol=1e-4)


def test_bounds_enclose_the_exact_answer_of_the_course(course, grid):
    from chordal.inference.exhaustive import ExhaustiveInference

    truth = ExhaustiveInference(max_labellings=10**5).marginals(grid)
    exact = course["pa5_exact_marginals_computed"].ravel()
    assert_allclose(truth.parts.unary, exact, atol=1e-9)
    assert MeanFieldInference().log_partition(grid) <= truth.log_partition + 1e-9
    assert TreeReweightedInference().log_partition(grid) >= truth.log_partition - 1e-9


@pytest.mark.parametrize("name", ["Promedus_30", "Promedus_22", "Promedus_32", "Promedus_26"])
def test_errors_on_diagnosis_networks_are_small(require, name):
    # Measured: log10 Z too low by 0.01 to 0.14, marginals off by 0.002 to 0.036 on average.
    uai = pytest.importorskip("chordal.formats.uai")
    folder = require("uai/uai2014")
    known = json.loads(require("uai/verified.json").read_text())["uai2014"][f"{name}.uai"]
    model = uai.read_model(folder / f"{name}.uai.gz")
    for evidence in uai.read_evidence(folder / f"{name}.uai.evid")[:1]:
        model = uai.apply_evidence(model, evidence)
    found = LoopyBPInference(damping=0.2, tol=1e-6).marginals(model)
    assert_allclose(found.log_partition / np.log(10.0), known["log10Z"], atol=0.3)
    given = np.concatenate([np.ravel(m) for m in uai.read_mar(folder / f"{name}.uai.MAR.gz")])
    assert np.abs(found.parts.unary - given).mean() < 0.05
