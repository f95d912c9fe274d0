"""The UAI competition's problems and libDAI's examples, against the solutions that come with them.

`verified.json` holds values that were computed once more by another program.
"""

import gzip
import json
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal.formats.uai import (
    apply_evidence,
    condition_on,
    read_evidence,
    read_fg,
    read_map,
    read_mar,
    read_pr,
    read_uai,
)
from chordal.inference import INFERENCE, exact_for
from chordal.inference.ad3 import AD3Inference
from chordal.inference.milp import MILPInference

pytestmark = pytest.mark.data

LOG_10 = np.log(10.0)

#: By a junction tree, within a second and within some seconds.
QUICK = [
    *[f"Promedus_{k}" for k in (13, 16, 22, 26, 30, 32, 34, 36)],
    *[f"Segmentation_{k}" for k in (11, 13, 15, 16)],
    "Pedigree_13",
    "grid10x10.f10",
]
LONGER = ["CSP_11", "CSP_13", "DBN_11", "Grids_11", "Grids_13", "ObjectDetection_56", "Pedigree_11"]
#: By elimination, one table at a time: `test_uai_elimination.py`.
WIDE = ["DBN_13", "DBN_15", "Grids_15", "Grids_17", "linkage_16"]
SMALL = [
    "junctiontrees_asia",
    "junctiontrees_paskin",
    *["merlin_" + name for name in ("ChestClinic", "cancer", "paskin", "simple5", "simple6")],
    "merlin_uai-test-model2",
    "pgmpy_grid4x4",
    "pgmpy_grid4x4_with_triplets",
    "toulbar2_network",
    "toulbar2_water",
]


@pytest.fixture(scope="module")
def folder(require):
    return require("uai")


@pytest.fixture(scope="module")
def verified(folder):
    return json.loads((folder / "verified.json").read_text())


def problem(folder, name):
    """The model given its evidence, and the evidence."""
    potentials = read_uai(folder / f"{name}.uai.gz")
    (evidence,) = read_evidence(folder / f"{name}.uai.evid")
    return potentials, evidence


def rows_of(potentials, evidence, parts):
    """Marginals of all variables, also of the observed ones."""
    rows = np.split(parts.unary, parts.structure.state_offsets[1:-1])
    for variable, label in evidence.items():
        rows[variable] = np.eye(potentials.structure.label_counts[variable])[label]
    return rows


def unit_of(path):
    """Half a unit in the last digit of the number in a .PR file."""
    digits = path.read_text().split()[1].partition(".")[2]
    return 0.5 * 10.0 ** -len(digits)


def test_every_problem_is_on_one_list(folder):
    names = {path.name.removesuffix(".uai.gz") for path in (folder / "uai2014").glob("*.uai.gz")}
    assert names == {*QUICK, *LONGER, *WIDE}


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)]
)
def test_partition_function_and_marginals(folder, verified, name):
    potentials, evidence = problem(folder / "uai2014", name)
    conditioned = condition_on(potentials, evidence)
    method = exact_for(conditioned.structure)
    assert method is not None
    found = method.marginals(conditioned)
    log10_partition = float(found.log_partition[0]) / LOG_10
    given = folder / "uai2014" / f"{name}.uai.PR"
    assert log10_partition == pytest.approx(read_pr(given), abs=unit_of(given) + 1e-6)
    if f"{name}.uai" in verified["uai2014"]:
        exact = verified["uai2014"][f"{name}.uai"]["log10Z"]
        assert log10_partition == pytest.approx(exact, abs=1e-6)
    if name == "grid10x10.f10":  # comes without marginals
        return
    rows = rows_of(potentials, evidence, found.parts)
    expected = read_mar(folder / "uai2014" / f"{name}.uai.MAR.gz")
    for row, of_truth in zip(rows, expected, strict=True):
        assert_allclose(row, of_truth, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_small_models(folder, verified, name):
    known = verified["small"][f"{name}.uai"]
    potentials = read_uai(folder / "small" / f"{name}.uai")
    paths = [folder / "small" / (name + end) for end in (".evid", ".uai.evid")]
    evidence = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*the rest of the file is ignored", UserWarning)
        for path in paths:
            if path.exists():
                (evidence,) = read_evidence(path)
    assert evidence == {int(v): label for v, label in known["evidence"].items()}
    conditioned = apply_evidence(potentials, evidence)
    method = exact_for(conditioned.structure)
    found, best = method.marginals(conditioned), MILPInference().map(conditioned)
    assert found.log_partition[0] / LOG_10 == pytest.approx(known["log10Z"], abs=1e-9)
    assert best.score[0] / LOG_10 == pytest.approx(known["map_log10"], abs=1e-9)
    assert method.map(conditioned).score[0] == pytest.approx(best.score[0], abs=1e-9)
    assert potentials.score(known["map"])[0] == pytest.approx(best.score[0], abs=1e-9)
    rows = rows_of(potentials, {}, found.parts)
    for variable, expected in (known["marginals"] or {}).items():
        assert_allclose(rows[int(variable)], expected, rtol=0.0, atol=1e-9)


def test_evidence_that_is_impossible(folder):
    potentials = read_uai(folder / "small" / "merlin_uai-test-model.uai")
    (evidence,) = read_evidence(folder / "small" / "merlin_uai-test-model.evid")
    conditioned = condition_on(potentials, evidence)
    assert exact_for(conditioned.structure).log_partition(conditioned)[0] == -np.inf


def test_pedigree(folder):
    potentials = read_uai(folder / "small" / "merlin_pedigree1.uai")
    (evidence,) = read_evidence(folder / "small" / "merlin_pedigree1.evid")
    conditioned = condition_on(potentials, evidence)
    method = exact_for(conditioned.structure)
    whole = exact_for(potentials.structure).log_partition(potentials)
    # P(evidence) from its own marginals, one observed variable after another.
    expected, seen = whole[0], {}
    for variable, label in evidence.items():
        step = condition_on(potentials, seen)
        parts = exact_for(step.structure).marginals(step).parts
        expected += np.log(rows_of(potentials, seen, parts)[variable][label])
        seen[variable] = label
    assert_allclose(method.log_partition(conditioned), expected, rtol=1e-10)


@pytest.mark.parametrize("number", [12, 14, 19])
@pytest.mark.parametrize("method", [MILPInference(), AD3Inference()], ids=lambda m: m.name)
def test_segmentations(folder, verified, number, method):
    """The labelling that comes with them is not the best; the difference is 0.597."""
    potentials, _ = problem(folder / "uai2014_map", f"Segmentation_{number}")
    given = read_map(folder / "uai2014_map" / f"Segmentation_{number}.uai.MAP")
    best = method.map(potentials)
    known = verified["uai2014_map"][f"Segmentation_{number}.uai"]
    assert best.score[0] / LOG_10 == pytest.approx(known["exact_log10"], abs=1e-6)
    assert potentials.score(known["assignment"])[0] == pytest.approx(best.score[0], abs=1e-6)
    assert potentials.score(given)[0] / LOG_10 == pytest.approx(known["given_log10"], abs=1e-6)
    assert_allclose(best.gap, 0.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("number", [63, 66, 69])
def test_promedas(folder, number):
    potentials, evidence = problem(folder / "uai2014_map", f"Promedas_{number}")
    given = read_map(folder / "uai2014_map" / f"Promedas_{number}.uai.MAP")
    best = MILPInference().map(condition_on(potentials, evidence))
    assert best.score[0] == pytest.approx(potentials.score(given)[0], abs=1e-6)
    bound = AD3Inference().map(condition_on(potentials, evidence)).bound
    assert bound[0] >= best.score[0] - 1e-9


@pytest.mark.parametrize("name", ["Grids_26", "Grids_29", "Grids_30", "wcsp_15"])
def test_the_bound_of_hard_problems(folder, name):
    potentials, _ = problem(folder / "uai2014_map", name)
    given = potentials.score(read_map(folder / "uai2014_map" / f"{name}.uai.MAP"))[0]
    found = AD3Inference(max_iter=300).map(potentials)
    print(f"{name}: given {given:.2f}, found {found.score[0]:.2f}, bound {found.bound[0]:.2f}")
    assert found.score[0] > -np.inf
    assert found.bound[0] >= given


def report_of(folder, method):
    """method → {variable: marginals} and its errors, as libDAI's tests print them."""
    text = gzip.decompress((folder / "libdai" / "testfast.out.gz").read_bytes()).decode()
    block = re.search(rf"^{method} .*\n((?:# .*\n)+)", text, re.MULTILINE)
    rows = re.findall(r"\(\{x(\d+)\}, \(([^)]*)\)\)", block[1])
    numbers = re.findall(r"[-+]?\d\.\d+e[-+]\d+", block[0].partition("\n")[0])
    return {int(v): np.array(p.split(","), dtype=float) for v, p in rows}, list(map(float, numbers))


def test_libdai_exact(folder):
    potentials = read_fg(folder / "libdai" / "testfast.fg")
    found = exact_for(potentials.structure).marginals(potentials)
    rows = rows_of(potentials, {}, found.parts)
    expected, _ = report_of(folder, "EXACT")
    assert len(expected) == len(rows)
    for variable, of_truth in expected.items():
        assert_allclose(rows[variable], of_truth, rtol=0.0, atol=5.1e-5)


def test_libdai_loopy_bp(folder):
    """The same fixed point, with the same error of log Z."""
    if "loopy_bp" not in INFERENCE.names():
        pytest.skip("there is no loopy_bp")
    potentials = read_fg(folder / "libdai" / "testfast.fg")
    exact = exact_for(potentials.structure).marginals(potentials)
    found = INFERENCE.resolve("loopy_bp").marginals(potentials)
    rows = rows_of(potentials, {}, found.parts)
    expected, numbers = report_of(folder, "BP")
    for variable, of_libdai in expected.items():
        assert_allclose(rows[variable], of_libdai, rtol=0.0, atol=5.1e-5)
    largest = np.abs(found.parts.unary - exact.parts.unary).max()
    assert largest == pytest.approx(numbers[0], abs=1e-5)
    error = float((found.log_partition - exact.log_partition)[0])
    assert error == pytest.approx(numbers[4], abs=1e-6)


@pytest.mark.parametrize(
    "name", ["alarm", "hoi1", "hoi2", "hoi3", "hoi4", "jtreemapbug", "maxprodbug", "zeroes1"]
)
def test_libdai_models(folder, name):
    """Two exact methods that have nothing in common agree on the best score."""
    potentials = read_fg(folder / "libdai" / f"{name}.fg")
    method = exact_for(potentials.structure)
    best = MILPInference().map(potentials)
    assert_allclose(method.map(potentials).score, best.score, rtol=1e-9)
    if name == "alarm":  # a Bayesian network, with rows that sum to 0.9999 among others
        assert_allclose(method.log_partition(potentials), 0.0, atol=1e-3)


def test_errors_of_loopy_bp(folder, verified):
    """How far loopy belief propagation is from the truth, printed; messages settle on most."""
    if "loopy_bp" not in INFERENCE.names():
        pytest.skip("there is no loopy_bp")
    method = INFERENCE.resolve("loopy_bp", damping=0.3, max_iter=300)
    worst = {}
    for name in [*QUICK, *LONGER, *WIDE]:
        if name == "grid10x10.f10":
            continue
        potentials, evidence = problem(folder / "uai2014", name)
        found = method.marginals(condition_on(potentials, evidence))
        rows = rows_of(potentials, evidence, found.parts)
        expected = read_mar(folder / "uai2014" / f"{name}.uai.MAR.gz")
        errors = [np.abs(a - b).max() for a, b in zip(rows, expected, strict=True)]
        log_error = found.log_partition[0] / LOG_10 - read_pr(folder / "uai2014" / f"{name}.uai.PR")
        worst[name] = max(errors)
        print(
            f"{name:20} {found.convergence.status.name:15} log10 Z {log_error:+8.3f}   marginals: "
            f"mean {np.mean(errors):.4f}, largest {max(errors):.4f}"
        )
    assert np.median(list(worst.values())) < 0.5
    assert min(worst.values()) < 0.01
