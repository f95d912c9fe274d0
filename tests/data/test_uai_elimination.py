"""Variable elimination on problems of the UAI-2014 competition, also on wide ones."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import UnsupportedError
from chordal.formats.uai import (
    condition_on,
    read_evidence,
    read_map,
    read_mar,
    read_model,
    read_pr,
)
from chordal.inference import Pace, exact_for
from chordal.inference.elimination import EliminationInference
from chordal.inference.junction_tree import JunctionTreeInference

pytestmark = pytest.mark.data

QUICK = ["Promedus_16", "Promedus_34", "Segmentation_13", "Segmentation_16", "Pedigree_13"]
#: Too much for all tables at once, not for one at a time.
WIDE = ["DBN_13", "DBN_15", "Grids_15", "linkage_16"]


@pytest.fixture(scope="module")
def verified(require):
    return json.loads(require("uai/verified.json").read_text())


def problem(require, name):
    """The model given its evidence, and where its files are."""
    place = require(f"uai/{name}.uai.gz")
    stem = place.with_suffix("")
    (evidence,) = read_evidence(stem.with_name(stem.name + ".evid"))
    return condition_on(read_model(place), evidence), stem


def log10(value):
    return float(value[0]) / np.log(10.0)


@pytest.mark.parametrize("name", QUICK)
def test_partition_functions(require, verified, name):
    potentials, _ = problem(require, f"uai2014/{name}")
    found = log10(EliminationInference().log_partition(potentials))
    expected = verified["uai2014"][f"{name}.uai"]["log10Z"]
    assert_allclose(found, expected, rtol=0.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
def test_it_reaches_further_than_a_junction_tree(require, name):
    potentials, stem = problem(require, f"uai2014/{name}")
    structure = potentials.structure
    with pytest.raises(UnsupportedError, match=r"'junction_tree' would need \d+\.\d GB"):
        JunctionTreeInference(memory_limit=1e9).log_partition(potentials)
    method = exact_for(structure, pace=Pace.MINUTES, memory_limit=1e9)
    assert method.name == "elimination"
    need = method.tree_size(structure, "marginals").bytes
    found = method.marginals(potentials)
    # The files have six digits.
    given = read_pr(stem.with_name(stem.name + ".PR"))
    unit = 10.0 ** (np.floor(np.log10(abs(given))) - 5)
    assert_allclose(log10(found.log_partition), given, rtol=0.0, atol=0.5 * unit + 1e-6)
    expected = np.concatenate(read_mar(stem.with_name(stem.name + ".MAR.gz")))
    error = np.abs(found.parts.unary - expected).max()
    print(f"{name:12} {need / 1e9:.2f} GB, largest error of marginals {error:.1e}")
    assert error < 1e-6


def test_what_is_too_wide_is_refused_at_once(require):
    potentials, _ = problem(require, "uai2014/linkage_16")
    for method in (JunctionTreeInference(), EliminationInference(order="auto")):
        with pytest.raises(UnsupportedError, match=r"GB .*cells.*clique of \d+ variables"):
            method.log_partition(potentials)


@pytest.mark.parametrize("number", [12, 14, 19])
def test_best_labellings_of_segmentations(require, verified, number):
    potentials, stem = problem(require, f"uai2014_map/Segmentation_{number}")
    best = EliminationInference().map(potentials)
    expected = verified["uai2014_map"][stem.name]
    assert_allclose(log10(best.score), expected["exact_log10"], rtol=0.0, atol=1e-6)
    given = potentials.score(read_map(stem.with_name(stem.name + ".MAP")))
    assert_allclose(log10(given), expected["given_log10"], rtol=0.0, atol=1e-4)
    assert best.score[0] > given[0]
