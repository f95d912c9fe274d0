"""Exact methods on problems of the UAI-2014 competition: log10 Z, marginals and best labellings."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.formats.uai import (
    condition_on,
    read_evidence,
    read_map,
    read_mar,
    read_model,
    read_pr,
)
from chordal.inference.elimination import EliminationInference
from chordal.inference.junction_tree import JunctionTreeInference

pytestmark = pytest.mark.data

QUICK = [
    *(f"Promedus_{k}" for k in (13, 16, 22, 26, 30, 32, 34, 36)),
    *(f"Segmentation_{k}" for k in (11, 13, 15, 16)),
    "Pedigree_13",
]
LONG = ["CSP_13", "DBN_11", "Grids_11", "Grids_13", "ObjectDetection_56", "Pedigree_11"]
#: Too much for all tables at once, not for one at a time.
WIDE = ["CSP_11", "DBN_13", "DBN_15", "Grids_15", "Grids_17"]

SMALL = [
    "junctiontrees_asia",
    "junctiontrees_paskin",
    "merlin_ChestClinic",
    "merlin_cancer",
    "merlin_paskin",
    "merlin_simple5",
    "merlin_simple6",
    "merlin_uai-test-model2",
    "pgmpy_grid4x4",
    "pgmpy_grid4x4_with_triplets",
    "toulbar2_network",
    "toulbar2_water",
]


@pytest.fixture(scope="module")
def verified(require):
    return json.loads(require("uai/verified.json").read_text())


def problem(require, name):
    """The model given its evidence, and the path of its files."""
    place = require(f"uai/{name}.uai.gz")
    stem = place.with_suffix("")
    evidence = read_evidence(stem.with_name(stem.name + ".evid"))
    return condition_on(read_model(place), evidence[0] if evidence else {}), stem


def log10(value):
    return value / np.log(10.0)


def check(require, verified, name):
    potentials, stem = problem(require, f"uai2014/{name}")
    log_z, parts, _ = JunctionTreeInference().marginals(potentials)
    assert_allclose(log10(log_z[0]), read_pr(stem.with_name(stem.name + ".PR")), rtol=1e-5)
    if f"{name}.uai" in verified["uai2014"]:
        expected = verified["uai2014"][f"{name}.uai"]["log10Z"]
        assert_allclose(log10(log_z[0]), expected, rtol=0.0, atol=1e-6)
        expected = EliminationInference().log_partition(potentials)
        assert_allclose(log_z, expected, rtol=1e-12, atol=1e-9)
    s, given = potentials.structure, read_mar(stem.with_name(stem.name + ".MAR.gz"))
    assert len(given) == s.n_variables
    for variable, expected in enumerate(given):
        if s.label_counts[variable] == len(expected):  # not observed
            found = parts.unary[slice(*s.state_offsets[variable : variable + 2])]
            assert_allclose(found, expected, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("name", QUICK)
def test_partition_functions_and_marginals(require, verified, name):
    check(require, verified, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_partition_functions_and_marginals_of_larger_ones(require, verified, name):
    check(require, verified, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
def test_elimination_reaches_further(require, name):
    potentials, stem = problem(require, f"uai2014/{name}")
    with pytest.raises(UnsupportedError, match="'junction_tree' would need"):
        JunctionTreeInference().marginals(potentials)
    found = log10(EliminationInference().log_partition(potentials)[0])
    assert_allclose(found, read_pr(stem.with_name(stem.name + ".PR")), rtol=1e-5)


def test_too_wide_is_refused_at_once(require):
    potentials, _ = problem(require, "uai2014/linkage_16")
    for method in (JunctionTreeInference(), EliminationInference()):
        with pytest.raises(UnsupportedError, match=r"GB .*cells.*clique of \d+ variables"):
            method.log_partition(potentials)


@pytest.mark.parametrize("number", [12, 14, 19])
def test_best_labellings_of_segmentations(require, verified, number):
    potentials, stem = problem(require, f"uai2014_map/Segmentation_{number}")
    best = EliminationInference().map(potentials)
    expected = verified["uai2014_map"][stem.name]
    assert_allclose(log10(best.score[0]), expected["exact_log10"], rtol=0.0, atol=1e-6)
    given = potentials.score(read_map(stem.with_name(stem.name + ".MAP")))
    assert_allclose(log10(given[0]), expected["given_log10"], rtol=0.0, atol=1e-4)
    assert best.score[0] >= given[0]


@pytest.mark.parametrize("name", SMALL)
def test_tiny_models(require, verified, name):
    expected = verified["small"][f"{name}.uai"]
    evidence = {int(v): label for v, label in expected["evidence"].items()}
    potentials = condition_on(read_model(require(f"uai/small/{name}.uai")), evidence)
    method = JunctionTreeInference()
    log_z, parts, _ = method.marginals(potentials)
    assert_allclose(log10(log_z[0]), expected["log10Z"], rtol=1e-12, atol=1e-9)
    assert_allclose(log10(method.map(potentials).score[0]), expected["map_log10"], atol=1e-9)
    s = potentials.structure
    for variable, row in (expected["marginals"] or {}).items():
        found = parts.unary[slice(*s.state_offsets[int(variable) : int(variable) + 2])]
        assert_allclose(found, row, rtol=0.0, atol=1e-9)


def test_evidence_of_probability_zero(require):
    model = read_model(require("uai/small/merlin_uai-test-model.uai"))
    potentials = condition_on(model, {2: 1, 4: 1})
    assert JunctionTreeInference().log_partition(potentials)[0] == -np.inf
    with pytest.raises(InfeasibleError):
        JunctionTreeInference().marginals(potentials)
