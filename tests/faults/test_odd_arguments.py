"""Odd arguments of the second rank: each error says what was wrong, in the library's words."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from chordal import (
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MultiLabelCRF,
    NaiveBayes,
    RBFFeatures,
    TwoStageCRF,
    explain,
    show,
)
from chordal.compat.pycrfsuite import Tagger, Trainer
from chordal.inference import INFERENCE
from chordal.inference.gibbs import GibbsInference
from chordal.metrics import alignment_scores, bootstrap, chunks, sequence_counts, token_accuracy
from chordal.metrics._accuracy import SequenceCounts
from chordal.potentials import Potentials
from chordal.preprocessing import AlignmentFeatures
from chordal.solvers import SOLVERS
from chordal.structures import Chain, Graph
from chordal.text import Columns, FeatureTemplate

ROWS, LABELS = [np.eye(2), np.eye(2)[:1]], [["a", "b"], ["a"]]


@pytest.fixture(scope="module")
def crf():
    return ChainCRF().fit(ROWS, LABELS)


@pytest.mark.parametrize("scale", [1e10, 1e16, 1e100, 1e303])
@pytest.mark.parametrize("seed", range(4))
def test_programs_with_huge_scores(scale, seed):
    """HiGHS gives up on costs beyond about 1e15."""
    rng = np.random.default_rng(seed)
    graph = Graph([4], [[(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]], 3)
    unary, tables = rng.normal(size=12) * scale, rng.normal(size=45) * scale
    p = Potentials(graph, unary, tables)
    best = INFERENCE.resolve("exhaustive").map(p).score[0]
    found = INFERENCE.resolve("milp").map(p)
    assert abs(found.score[0] - best) <= 1e-6 * scale
    assert found.bound[0] >= best * (1 - 1e-12)
    assert INFERENCE.resolve("linear_program").relaxed_map(p).value[0] >= best - 1e-6 * scale


def test_settings_of_small_integer_types_do_not_wrap_around():
    p = Potentials(Chain([3], 2), np.zeros(6), np.zeros(8))
    small = GibbsInference(n_chains=np.int8(100), n_draws=np.int8(100), burn_in=np.int8(1))
    assert small.memory(p.structure, "marginals") > 0.0
    np.testing.assert_allclose(small.marginals(p).parts.unary, 0.5, rtol=0, atol=0.05)
    vast = GibbsInference(n_chains=np.uint64(2**63 + 5))
    with pytest.raises(ValueError, match="would need about"):
        vast.marginals(p)


@pytest.mark.parametrize(
    "name", ["class_weight", "solver", "objective", "inference", "transitions", "random_state"]
)
@pytest.mark.parametrize("value", [np.ones(2), np.zeros(0), sp.csr_array(np.eye(2))], ids=str)
def test_arrays_in_the_place_of_settings(name, value):
    with pytest.raises(TypeError, match=f"{name} must not be an array, got"):
        ChainCRF(**{name: value}).fit(ROWS, LABELS)


@pytest.mark.parametrize("value", [np.ones(2), np.array("x"), 3, [1]], ids=str)
def test_names_that_are_none(value):
    with pytest.raises(ValueError, match="dialect must be one of"):
        FeatureTemplate("U:%x[0,0]", value)
    with pytest.raises(ValueError, match="domain must be one of"):
        INFERENCE.get("chain")(domain=value)


@pytest.mark.parametrize("seed", [1.5, -1, True, "a", np.ones(2)], ids=str)
@pytest.mark.parametrize("solver", ["sgd", "block_frank_wolfe", "passive_aggressive"])
def test_seeds_of_solvers(solver, seed):
    with pytest.raises(ValueError, match="random_state must be an integer of at least 0"):
        SOLVERS.get(solver)(random_state=seed)


def test_weights_whose_sums_overflow(crf):
    X, y = np.array([[0.0], [1.0], [2.0]]), ["a", "b", "b"]
    flat, bayes = CRFClassifier().fit(X, y), NaiveBayes().fit(X, y)
    for model, given in ((crf, (ROWS, LABELS)), (flat, (X, y)), (bayes, (X, y))):
        with pytest.raises(ValueError, match="sums with it could overflow"):
            model.score(*given, sample_weight=np.full(len(given[0]), 1e308))
    with pytest.raises(ValueError, match="nothing to score"):
        bayes.score(X, y, sample_weight=np.zeros(3))


def test_labels_and_places_that_are_arrays(crf):
    for wrong in (np.array(["a", "b"]), sp.eye(2)):
        with pytest.raises(ValueError, match="label must be one of"):
            explain(crf, ROWS[0], 0, label=wrong)
    for wrong in (3, "ab", sp.eye(2)):
        with pytest.raises(TypeError, match="tokens must be a list of words"):
            show(crf, ROWS[0], wrong)
    with pytest.raises(TypeError, match="text must be a str in which the tokens stand, got list"):
        show(crf, ROWS[0], ["x", "y"], text=["x y"])


def test_constraints_of_other_shapes(crf):
    with pytest.raises(TypeError, match=re.escape("allowed_labels[0] must be a list")):
        crf.predict(ROWS, allowed_labels=[3, None])
    with pytest.raises(ValueError, match="allowed_transitions must be a boolean matrix"):
        crf.predict(ROWS, allowed_transitions=[["a", "b"], ["a"]])


@pytest.mark.parametrize("wrong", [3, None, "a", {"a": "b"}, sp.eye(2), object], ids=str)
def test_columns_of_other_things(wrong):
    with pytest.raises(TypeError, match=re.escape("X[0] must be a list of rows, got")):
        Columns.from_sequences([wrong])
    with pytest.raises(TypeError, match=re.escape("X[0][0] must be a list of strings, got")):
        Columns.from_sequences([[wrong]])


def test_metrics_of_other_things():
    for wrong in ([3], [[0]], [[(1, 2, 3)]], ["ab c"]):
        with pytest.raises((TypeError, ValueError), match=re.escape("sure[0] must be a set of")):
            alignment_scores(wrong, [[0]])
    for wrong in ([[[0], [0, 1]]], [[0.5]], [["a"]]):
        with pytest.raises(ValueError, match=re.escape("predicted[0] must be a set of pairs, or")):
            alignment_scores([[(0, 0)]], wrong)
    with pytest.raises(TypeError, match=re.escape("predicted[0] must be a set of pairs (source")):
        alignment_scores([[(0, 0)]], [{1}])
    for wrong in (3, np.array(1.0), None):
        with pytest.raises(TypeError, match="labels must be a list of strings"):
            chunks(wrong)
    with pytest.raises(TypeError, match=re.escape("y_true[0] must be a list of labels")):
        token_accuracy([sp.eye(2)], [["a", "b"]])
    counts = sequence_counts("token_accuracy", [["a"]] * 2, [["a"]] * 2)
    with pytest.raises(ValueError, match=re.escape("counts must be at most 1e+100")):
        bootstrap(SequenceCounts(counts.numerator * 1e308, counts.denominator))


def test_pairs_of_sentences():
    for wrong in ("ab", ("a b", "c d"), (["a"],), (["a"], [1]), 3):
        with pytest.raises(TypeError, match=re.escape("pairs[0] must be a pair of lists of words")):
            AlignmentFeatures().fit([wrong])


def test_positions_of_a_tagger(tmp_path):
    trainer = Trainer(verbose=False)
    trainer.append([["a"], ["b"]], ["x", "y"])
    trainer.train(str(tmp_path / "model"))
    tagger = Tagger()
    tagger.open(str(tmp_path / "model"))
    tagger.set([["a"], ["b"]])
    with pytest.raises(TypeError, match="the position must be an integer, got 'a'"):
        tagger.marginal("x", "a")


@pytest.mark.parametrize("rate", [1, np.int8(1)])
def test_rates_that_are_integers(rate):
    crf = ChainCRF(solver=SOLVERS.get("stochastic_meta_descent")(learning_rate=rate, max_iter=3))
    with pytest.warns(UserWarning, match="did not converge"):
        crf.fit(ROWS, LABELS)
    assert np.isfinite(crf.weights_).all()


@pytest.mark.parametrize("width", [1e-200, 1e-160, 1e300])
def test_widths_whose_squares_are_no_numbers(width):
    with pytest.raises(ValueError, match="width must be from 1e-150 to 1e150"):
        RBFFeatures(width=width).fit(np.eye(3))


FLAT = (np.eye(4), ["a", "b", "a", "b"])
FLAGS = {
    ChainCRF: (ROWS, LABELS),
    GridCRF: ([np.eye(2)[..., None]], [np.eye(2, dtype=int)]),
    GraphCRF: ([(np.eye(2), [(0, 1)])], [[0, 1]]),
    MultiLabelCRF: (np.eye(4), np.eye(4, dtype=int)),
    CRFClassifier: FLAT,
    TwoStageCRF: (ROWS, LABELS),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in FLAGS for name, d in kind._defaults().items() if isinstance(d, bool)],
)
@pytest.mark.parametrize("value", [None, "no", 1, [], np.ones(2), np.zeros(0), sp.eye(2)], ids=str)
def test_parameters_that_are_true_or_false(kind, name, value):
    with pytest.raises(TypeError, match=f"^{name} must be True or False, got "):
        kind(**{name: value}).fit(*FLAGS[kind])
