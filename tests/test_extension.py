"""What is added is one file: each is written into a folder, registered, and meets its contract."""

import sys
from textwrap import dedent

import numpy as np
import pytest

from chordal import ChainCRF, estimators
from chordal.costs import COSTS
from chordal.estimators import ESTIMATORS
from chordal.inference import INFERENCE, choose
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives import OBJECTIVES
from chordal.potentials import Potentials
from chordal.solvers import SOLVERS
from chordal.structures import STRUCTURES, Graph
from chordal.testing import (
    MODELS,
    check_cost,
    check_estimator,
    check_inference,
    check_objective,
    check_online_solver,
    feasible_labels,
)

X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]]
Y = [["D", "N", "V"], ["D", "N"]]


def write(folder, name, text):
    (folder / f"{name}.py").write_text(dedent(text))


def models():
    rng = np.random.default_rng(0)
    return [(MODELS[name](rng), rng) for name in MODELS]


def test_an_inference_method(tmp_path):
    write(
        tmp_path,
        "independent",
        '''
        """Variables without cliques."""

        from chordal.inference import Decoded, Inference, most_probable_labels
        from chordal.potentials import refuse_infeasible


        class IndependentInference(Inference):
            """The best label of each variable by itself."""

            answers = frozenset({"map"})

            def supports(self, structure):
                return structure.n_cliques == 0

            def exact_on(self, structure):
                return self.supports(structure)

            def cost(self, structure, question):
                """One look at every score."""
                return 1.0

            def map(self, potentials):
                self.require("map", potentials.structure)
                labels = most_probable_labels(potentials)
                score = potentials.score(labels)
                refuse_infeasible(score)
                return Decoded(labels, score)
        ''',
    )
    apart, joined = Graph([3], [[]], 2), Graph([3], [[(0, 1)]], 2)
    with INFERENCE.extended(tmp_path):
        for model, rng in models():
            check_inference(INFERENCE.resolve("independent"), model, rng)
        with pytest.raises(ValueError, match=r"unknown inference 'x'.*'icm', 'independent'"):
            INFERENCE.get("x")
        # No list names it, yet it is chosen where it is the cheapest.
        assert choose(apart, "map").name == "independent"
        assert choose(apart, "marginals").name == choose(joined, "map").name == "tree"
    assert choose(apart, "map").name == "tree"


def test_an_approximate_inference_method(tmp_path):
    write(
        tmp_path,
        "best_guess",
        '''
        """Variables as if they had no neighbours."""

        from chordal.inference import Decoded, Inference, most_probable_labels


        class BestGuessInference(Inference):
            """The best label of each variable by itself, with a rough bound."""

            answers = frozenset({"map"})
            quality = {"map": 1000}

            def supports(self, structure):
                return True

            def exact_on(self, structure):
                return False

            def map(self, potentials):
                labels = most_probable_labels(potentials)
                return Decoded(labels, potentials.score(labels), potentials.bound())
        ''',
    )
    ring = Graph([40], [[(i, j) for i in range(40) for j in range(i)]], 3)
    with INFERENCE.extended(tmp_path):
        for model, rng in models():
            check_inference(INFERENCE.resolve("best_guess"), model, rng)
        assert choose(ring, "map").name == "best_guess"
    assert choose(ring, "map").name == "portfolio"


def test_an_objective(tmp_path):
    write(
        tmp_path,
        "tempered",
        '''
        """The likelihood at twice the temperature."""

        from chordal.objectives import Evaluation, Objective


        class Tempered(Objective):
            """2 log Z(score / 2) − score(gold)."""

            needs = frozenset({"marginals"})
            convex = True
            smooth = True

            def evaluate(self, potentials, labels, inference, weight=None, overwrite=False):
                warm = potentials.like(potentials.unary / 2, potentials.tables / 2)
                log_z, parts, _ = inference.marginals(warm, weight, overwrite=True)
                parts.add_indicators(labels, -1.0, weight)
                values = 2 * log_z - potentials.score(labels)
                return Evaluation(values if weight is None else weight * values, parts)
        ''',
    )
    with OBJECTIVES.extended(tmp_path):
        method = ExhaustiveInference(max_labellings=100)
        checked = 0
        for model, rng in models():
            if method.supports(model.structure):
                labels = feasible_labels(model, rng)
                check_objective(OBJECTIVES.resolve("tempered"), model, labels, method, rng)
                checked += 1
        assert checked > 10
        assert ChainCRF("tempered").fit(X, Y).predict(X) == Y
    with pytest.raises(ValueError, match="unknown objective 'tempered'"):
        ChainCRF("tempered").fit(X, Y)


def test_a_cost(tmp_path):
    write(
        tmp_path,
        "double",
        '''
        """Two for every wrong label."""

        from chordal.costs import Cost


        class Double(Cost):
            """Each wrong label costs two."""

            def add(self, potentials, labels):
                potentials.unary += 2.0
                potentials.unary[potentials.structure.state_offsets[:-1] + labels] -= 2.0
                return potentials
        ''',
    )
    with COSTS.extended(tmp_path):
        for model, rng in models():
            check_cost(COSTS.resolve("double"), model, feasible_labels(model, rng), rng)


def test_an_online_solver(tmp_path):
    write(
        tmp_path,
        "shrinking_perceptron",
        '''
        """A perceptron whose steps shrink with what a weight has moved before."""

        from typing import ClassVar, final

        import numpy as np

        from chordal.oracle.rules.mistake import MistakeRule
        from chordal.solvers._online import MistakeDriven


        @final
        class ShrinkingPerceptron(MistakeDriven):
            objectives: ClassVar[tuple[str, ...]] = ("perceptron",)

            def _rule(self):
                return MistakeRule(self._step, memory=1.0)

            def _step(self, mistake, w, memory):
                memory += mistake.difference**2
                w += mistake.weight * mistake.difference / np.sqrt(memory)
                return mistake.weight * mistake.n_wrong / mistake.n_labels
        ''',
    )
    with SOLVERS.extended(tmp_path):
        check_online_solver(SOLVERS.get("shrinking_perceptron"))
        crf = ChainCRF(solver="shrinking_perceptron", random_state=0)
        assert crf.fit(X, Y).predict(X) == Y


def test_an_estimator(tmp_path):
    write(
        tmp_path,
        "skip_crf",
        '''
        """Skip chains: equal words share a label."""

        from chordal import CliqueTemplate, TemplateCRF
        from chordal.estimators import Estimator


        def pairs(x):
            return [(i, i + 1) for i in range(len(x) - 1)]


        def equal(x):
            return [(i, j) for j in range(len(x)) for i in range(j) if x[i] == x[j]]


        def words(x):
            return [[word] for word in x]


        class SkipCRF(Estimator):
            """A chain of words, with an edge between equal ones."""

            def __init__(self, l2=1.0):
                self.l2 = l2

            def fit(self, X, y):
                templates = [
                    CliqueTemplate("words", features=words),
                    CliqueTemplate("pairs", pairs),
                    CliqueTemplate("skip", equal),
                ]
                self.crf_ = TemplateCRF(templates, l2=self.l2).fit(X, y)
                self.weights_ = self.crf_.weights_
                return self

            def predict(self, X):
                self._check_fitted()
                return self.crf_.predict(X)

            def score(self, X, y):
                return self.crf_.score(X, y)
        ''',
    )
    texts = [["we", "meet", "Ann", "Ann"], ["Ann", "sleeps"]]
    labels = [["O", "O", "B", "B"], ["B", "O"]]
    with ESTIMATORS.extended(tmp_path):
        check_estimator(ESTIMATORS.resolve("skip_crf", l2=0.1), texts, labels)
        assert estimators.SkipCRF is ESTIMATORS.get("skip_crf")
    assert not hasattr(estimators, "SkipCRF")


def test_a_structure(tmp_path):
    write(
        tmp_path,
        "ring",
        '''
        """Rings of variables."""

        import numpy as np

        from chordal.structures import Structure, offsets_of


        class Ring(Structure):
            """One ring of n variables."""

            def __init__(self, n, n_labels):
                edges = np.stack([np.arange(n), np.arange(1, n + 1) % n], axis=1)
                ends = offsets_of([n])
                counts, pairs = np.full(n, n_labels), 2 * np.arange(n + 1)
                super().__init__(counts, ends, edges.ravel(), pairs, ends)
        ''',
    )
    with STRUCTURES.extended(tmp_path):
        ring, rng = STRUCTURES.get("ring")(5, 2), np.random.default_rng(0)
        model = Potentials(ring, rng.normal(size=10), rng.normal(size=4))
        assert choose(ring).name == "junction_tree"
        check_inference(choose(ring), model, rng)


def test_a_folder_is_added_for_good_or_for_a_while(tmp_path):
    write(
        tmp_path, "half", "from chordal.costs.hamming import Hamming\n\nclass Half(Hamming): ...\n"
    )
    package = sys.modules["chordal.costs"]
    with COSTS.extended(tmp_path):
        assert "half" in COSTS
        assert COSTS.get("half").__name__ == "Half"
    assert "half" not in COSTS
    assert "chordal.costs.half" not in sys.modules
    assert not hasattr(package, "half")
    assert str(tmp_path) not in package.__path__


def test_a_name_that_is_taken_is_refused(tmp_path):
    write(tmp_path, "hamming", "")
    with pytest.raises(ValueError, match=r"and chordal\.costs both have 'hamming': rename"):
        COSTS.add_folder(tmp_path)
    assert "hamming" in COSTS
