"""A new online solver is one file: its rule in Python serves every structure, chains too."""

import sys

import numpy as np
import pytest

import chordal.solvers
from chordal import ChainCRF, GraphCRF, UnsupportedError
from chordal.solvers import SOLVERS
from chordal.testing import check_online_solver

FILE = '''
"""A perceptron whose steps shrink with what a weight has moved before."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal.oracle.rules import MistakeRule
from chordal.solvers._online import MistakeDriven


@dataclass(frozen=True)
class ShrinkingRule(MistakeRule):
    averaged: bool = True
    memory: float = 1.0

    def step(self, mistake, w, memory):
        memory += mistake.difference**2
        w += mistake.weight * mistake.difference / np.sqrt(memory)
        return mistake.weight * mistake.n_wrong / mistake.n_labels


@final
class ShrinkingPerceptron(MistakeDriven):
    loss: ClassVar[str] = "perceptron"

    def _rule(self):
        return ShrinkingRule()
'''


@pytest.fixture
def solver(tmp_path):
    (tmp_path / "shrinking_perceptron.py").write_text(FILE, encoding="utf-8")
    chordal.solvers.__path__.append(str(tmp_path))
    yield "shrinking_perceptron"
    chordal.solvers.__path__.remove(str(tmp_path))
    sys.modules.pop("chordal.solvers.shrinking_perceptron", None)
    SOLVERS._found.pop("shrinking_perceptron", None)


def test_it_is_found_by_name_and_keeps_the_contract(solver):
    assert solver in SOLVERS
    check_online_solver(SOLVERS.get(solver))


def test_it_learns_chains_and_graphs(solver):
    rng = np.random.default_rng(0)
    y = [rng.integers(3, size=6) for _ in range(20)]
    X = [np.eye(3)[labels] + 0.1 * rng.normal(size=(6, 3)) for labels in y]
    crf = ChainCRF(solver=solver, max_iter=10, random_state=0).fit(X, y)
    assert crf.score(X, y) == 1.0
    ring = [(i, (i + 1) % 6) for i in range(6)]
    graphs = [(x, ring) for x in X]
    graph = GraphCRF(solver=solver, max_iter=10, random_state=0).fit(graphs, y)
    assert graph.score(graphs, y) > 0.95
    with pytest.raises(UnsupportedError, match=f"'{solver}' minimises .*'perceptron', not 'hinge'"):
        ChainCRF("hinge", solver).fit(X, y)
