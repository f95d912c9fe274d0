"""chordal infer: models in the formats of UAI, libDAI and toulbar2."""

import io
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal.formats.uai import (
    apply_evidence,
    read_map,
    read_mar,
    read_pr,
    read_uai,
    write_fg,
)
from chordal.inference import INFERENCE
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.potentials import Potentials
from chordal.structures import Graph, Grid

from .conftest import run

# A loop of three variables and a clique of three, with a labelling that is forbidden.
MODEL = """MARKOV 4  2 3 2 2  4   2 0 1  2 1 2  2 2 0  3 1 2 3
6  1 2 .5  3 .1 1    6  1 4  2 .3  .2 1   4  2 1  1 3
12  1 2  0 1  3 1   .5 .5  2 2  1 4
"""
TRUTH = ExhaustiveInference()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("infer")
    (folder / "m.uai").write_text(MODEL)
    (folder / "m.evid").write_text("2 1 0 3 1\n")
    (folder / "two.evid").write_text("2\n1 1 0\n1 0 1\n")
    write_fg(read_uai(folder / "m.uai"), folder / "m.fg")
    return folder


@pytest.fixture(scope="module")
def conditioned(folder):
    return apply_evidence(read_uai(folder / "m.uai"), {1: 0, 3: 1})


def log10(x):
    return x / np.log(10.0)


@pytest.mark.parametrize("name", ["m.uai", "m.fg"])
def test_json(chordal, folder, conditioned, name):
    def ask(task):
        words = (folder / name, "--evidence", folder / "m.evid", "--task", task)
        return json.loads(chordal("infer", *words, "--method", "exhaustive", "--json"))

    expected = TRUTH.marginals(conditioned)
    log_partition = log10(expected.log_partition[0])
    found = ask("PR")
    assert found["log10_partition"] == pytest.approx(log_partition, rel=1e-12)
    assert (found["labels"], found["marginals"]) == (None, None)
    found = ask("MAR")
    assert found["log10_partition"] == pytest.approx(log_partition, rel=1e-12)
    rows = np.split(expected.parts.unary, [2, 5, 7])
    for row, of_truth in zip(found["marginals"], rows, strict=True):
        assert_allclose(row, of_truth, rtol=1e-12)
    found = ask("MAP")
    best = TRUTH.map(conditioned)
    assert found["labels"] == best.labels.tolist()
    assert found["log10_score"] == pytest.approx(log10(best.score[0]), rel=1e-12)
    assert found["log10_bound"] == found["log10_score"]
    assert (found["method"], found["exact"], found["status"]) == ("exhaustive", True, "converged")


def test_results_in_the_format_of_uai(chordal, folder, conditioned):
    words = (folder / "m.uai", "-e", folder / "m.evid", "-m", "exhaustive", "-t")
    truth = TRUTH.marginals(conditioned)
    text = chordal("infer", *words, "PR")
    assert read_pr(io.BytesIO(text)) == pytest.approx(log10(truth.log_partition[0]), rel=1e-12)
    rows = read_mar(io.BytesIO(chordal("infer", *words, "MAR")))
    assert_allclose(np.concatenate(rows), truth.parts.unary, rtol=1e-12)
    labels = read_map(io.BytesIO(chordal("infer", *words, "MAP")))
    assert labels.tolist() == TRUTH.map(conditioned).labels.tolist()
    done = run("infer", *words, "PR")
    assert done.stderr.startswith(b"exhaustive, exact; converged; ")


def test_samples_of_evidence(chordal, refused, folder):
    words = ("infer", folder / "m.uai", "-t", "PR", "-m", "exhaustive", "-e", folder / "two.evid")
    p = read_uai(folder / "m.uai")
    for sample, evidence in (("1", {1: 0}), ("2", {0: 1})):
        found = json.loads(chordal(*words, "--sample", sample, "--json"))
        expected = log10(TRUTH.log_partition(apply_evidence(p, evidence))[0])
        assert found["log10_partition"] == pytest.approx(expected, rel=1e-12)
    assert "has 2 samples; choose one with --sample" in refused(*words)
    assert "there is no sample 3" in refused(*words, "--sample", "3")
    assert "--sample needs --evidence" in refused(
        "infer", folder / "m.uai", "-t", "PR", "--sample", "2", code=2
    )


def test_the_method_is_chosen_by_the_structure(chordal, tmp_path):
    (tmp_path / "pair.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 1 2 3 4")
    found = json.loads(chordal("infer", tmp_path / "pair.uai", "-t", "MAR", "--json"))
    assert found["marginals"][0] == pytest.approx([0.3, 0.7])
    assert found["method"] in INFERENCE.names()


def test_an_approximation_says_so(chordal, folder):
    words = ("infer", folder / "m.uai", "--method", "ad3", "--task", "MAP")
    found = json.loads(chordal(*words, "--json"))
    best = TRUTH.map(read_uai(folder / "m.uai"))
    assert found["log10_score"] <= log10(best.score[0]) + 1e-12 <= found["log10_bound"] + 2e-12
    assert found["exact"] == (found["log10_bound"] - found["log10_score"] < 1e-9)
    assert found["iterations"] >= 1


def test_messages_that_do_not_settle_are_named(tmp_path):
    # Strong edges of random sign between all pairs: messages go round.
    rng, n = np.random.default_rng(3), 10
    edges = [(a, b) for a in range(n) for b in range(a)]
    coupling = 6.0 * rng.normal(size=(len(edges), 1)) * np.array([[1.0, -1.0, -1.0, 1.0]])
    p = Potentials(Graph([n], [edges], 2), 0.3 * rng.normal(size=2 * n), coupling.ravel())
    write_fg(p, tmp_path / "m.fg")
    ended = LoopyBPInference().marginals(p).convergence
    assert not ended.status.succeeded
    done = run("infer", tmp_path / "m.fg", "--task", "MAR", "--method", "loopy_bp")
    assert f"not converged in {ended.n_iter} iterations" in done.stderr.decode()


def test_a_model_from_standard_input(chordal):
    words = ("infer", "-", "--task", "PR", "--method", "exhaustive")
    out = chordal(*words, input=b"MARKOV 1 2 1 1 0 2 25 75")
    assert read_pr(io.BytesIO(out)) == pytest.approx(2.0, rel=1e-14)


def test_evidence_of_probability_zero(chordal, refused, tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 0 4")
    (tmp_path / "m.evid").write_text("2 0 0 1 1")
    words = ("infer", tmp_path / "m.uai", "-e", tmp_path / "m.evid", "-m", "exhaustive", "-t")
    assert chordal(*words, "PR") == b"PR\n-inf\n"
    found = json.loads(chordal(*words, "PR", "--json"))
    assert (found["log10_partition"], found["status"]) == (None, "infeasible")
    for task in ("MAR", "MAP"):
        assert "no labelling of example 0 is allowed" in refused(*words, task)


def test_what_is_refused(refused, folder, tmp_path):
    model = folder / "m.uai"
    assert "No such file" in refused("infer", tmp_path / "none.uai", "-t", "PR")
    assert "must be one of PR, MAR, MAP; got 'pr'" in refused("infer", model, "-t", "pr", code=2)
    assert "--task" in refused("infer", model, code=2)
    message = refused("infer", model, "-t", "PR", "-m", "guess", code=2)
    assert all(name in message for name in INFERENCE.names())
    assert "does not support FactorGraph" in refused("infer", model, "-t", "PR", "-m", "chain")
    assert "does not compute 'map'" in refused("infer", model, "-t", "MAP", "-m", "gibbs")
    (tmp_path / "cut.uai").write_text(MODEL[:-10])
    assert "cut.uai:3:27: expected 12 words" in refused("infer", tmp_path / "cut.uai", "-t", "PR")
    (tmp_path / "far.evid").write_text("1 9 0")
    words = ("infer", model, "-e", tmp_path / "far.evid", "-t", "PR")
    assert "variable 9 is observed" in refused(*words)


COSTS = {
    "m.wcsp": "tiny 2 2 3 10  2 2  1 0 0 1  0 3  1 1 0 1  0 1  2 0 1 0 2  0 0 10  1 1 10",
    "m.cfn": """{"problem": {"name": "tiny", "mustbe": "<10"}, "variables": {"x": 2, "y": 2},
        "functions": {"a": {"scope": ["x"], "costs": [3, 0]}, "b": {"scope": ["y"],
        "costs": [1, 0]}, "c": {"scope": ["x", "y"], "costs": [10, 0, 0, 10]}}}""",
}


@pytest.mark.parametrize("name", COSTS)
def test_cost_functions_of_toulbar2(chordal, tmp_path, name):
    """Equal labels are forbidden: 0 1 costs 3, and 1 0 costs 1."""
    path = tmp_path / name
    path.write_text(COSTS[name])
    found = json.loads(chordal("infer", path, "--task", "MAP", "--json"))
    assert found["labels"] == [1, 0]
    assert found["log10_score"] == pytest.approx(log10(-1.0))
    found = json.loads(chordal("infer", path, "--task", "PR", "--json"))
    assert found["log10_partition"] == pytest.approx(log10(np.logaddexp(-3.0, -1.0)))


def grid(path, size, n_labels):
    rng = np.random.default_rng(0)
    s = Grid([(size, size)], n_labels)
    unary = rng.normal(size=s.n_states)
    write_fg(Potentials(s, unary, rng.normal(size=(n_labels, n_labels))), path)
    return path


def test_options_of_the_method(chordal, refused, tmp_path):
    words = ("infer", grid(tmp_path / "m.fg", 6, 3), "--task", "MAP", "--method", "trw_s")
    found = json.loads(chordal(*words, "--option", "max_iter=1", "-o", "tol=0.0", "--json"))
    assert (found["iterations"], found["status"]) == (1, "max_iterations")
    assert "has no option 'iters'; it has: max_iter, min_progress, tol" in refused(
        *words, "-o", "iters=3", code=2
    )
    assert "must be NAME=VALUE, got 'max_iter'" in refused(*words, "-o", "max_iter", code=2)
    assert "--max-iter must be an integer of at least 1, got 0" in refused(
        *words, "-o", "max_iter=0"
    )
    assert "--option needs --method" in refused(*words[:4], "--option", "max_iter=3", code=2)


def test_limits(chordal, refused, tmp_path):
    words = ("infer", grid(tmp_path / "m.fg", 40, 12), "--task", "MAP", "--time-limit", "1e-6")
    found = json.loads(chordal(*words, "--method", "trw_s", "--json"))
    assert (found["status"], found["exact"]) == ("max_time", False)
    words = ("infer", grid(tmp_path / "n.fg", 13, 2), *words[2:])
    message = refused(*words, "--method", "junction_tree")
    assert "did not answer 'map' within --time-limit 1e-06 seconds; raise it, or use" in message
    words = ("infer", tmp_path / "m.fg", "--task", "MAP")
    message = refused(*words, "--method", "loopy_bp", "--memory-limit", "10k")
    assert "'loopy_bp' would need about" in message
    assert "--memory-limit is 10.0 kB" in message
    assert "such as 500M or 2G, got 'much'" in refused(*words, "--memory-limit", "much", code=2)
    assert "--time-limit must be a number above 0" in refused(*words, "--time-limit", "0")


def test_too_little_time_for_an_exact_answer(tmp_path):
    path = grid(tmp_path / "m.fg", 14, 2)
    for task, name in (("PR", "loopy_bp"), ("MAR", "loopy_bp")):
        done = run("infer", path, "--task", task, "--time-limit", "0.001")
        said = done.stderr.decode()
        assert re.match(rf"\w+ was not ready in 0.0007 s: {name} is used\n{name}, an appro", said)
        assert done.stdout.startswith(task.encode())


def test_too_little_memory_for_an_exact_answer_is_said(tmp_path):
    words = ("infer", grid(tmp_path / "m.fg", 13, 2), "--task", "PR")
    stderr = run(*words, "--memory-limit", "60k").stderr.decode()
    assert re.match(r"an exact answer would need [\d.]+ [kM]B of memory, and the limit ", stderr)
    assert "is 60.0 kB (--memory-limit): loopy_bp is used\nloopy_bp, an approx" in stderr
    assert run(*words).stderr.startswith(b"junction_tree, exact;")


def test_ctrl_c_prints_the_best_labelling_so_far(tmp_path):
    rng = np.random.default_rng(0)
    edges = [(a, b) for a in range(120) for b in range(a)]  # no exact method, and a large gap
    model = Potentials(Graph([120], [edges], 2), rng.normal(size=240), rng.normal(size=4 * 7140))
    write_fg(model, tmp_path / "dense.fg")
    command = [
        sys.executable,
        "-m",
        "chordal",
        "infer",
        str(tmp_path / "dense.fg"),
        "--task",
        "MAP",
    ]
    with subprocess.Popen(
        [*command, "--time-limit", "60", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        time.sleep(6.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)
    facts = json.loads(out)
    assert facts["status"] == "interrupted", err
    assert process.returncode == 130
    assert facts["method"] == "portfolio"
    assert facts["found_by"]
    score = model.score(np.array(facts["labels"], dtype=np.int32))[0]
    assert_allclose(facts["log10_score"], log10(score), rtol=1e-9)
    assert facts["log10_bound"] >= facts["log10_score"]
