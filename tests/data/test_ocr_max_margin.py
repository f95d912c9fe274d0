"""Taskar's handwritten words: solvers with a duality gap agree, and what they learn.

Pixels, a bias, and start and end biases: 4,082 weights. λ = 1/n with the mean of the losses, as in
Lacoste-Julien et al. (2013), is l2 = 1 with their sum.
"""

import numpy as np
import pytest

from chordal import ChainCRF
from chordal.costs.hamming import Hamming
from chordal.objectives.hinge import Hinge
from chordal.solvers import SOLVERS
from chordal.solvers.sgd import SGD

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture(scope="module")
def words(require):
    """X, y and the fold of every word."""
    with np.load(require("ocr/taskar_ocr_letters.npz"), allow_pickle=False) as data:
        pixels = np.unpackbits(data["pixels_packed"], axis=1).astype(np.float64)
        cuts, fold = data["offsets"][1:-1], data["fold"]
        X, y = np.split(pixels, cuts), np.split(data["labels"], cuts)
        if len(fold) != len(X):
            fold = fold[data["offsets"][:-1]]
    return X, [labels.tolist() for labels in y], fold


def chosen(words, index):
    X, y, _ = words
    return [X[i] for i in index], [y[i] for i in index]


def crf(solver, l2=1.0, objective=None, **settings):
    if objective is None:
        objective = Hinge(Hamming(normalize=True))
    return ChainCRF(
        objective,
        solver,
        l2=l2,
        fit_intercept=True,
        ends=True,
        transitions="all",
        random_state=0,
        **settings,
    )


@pytest.fixture(scope="module")
def sample(words):
    return chosen(words, np.flatnonzero(words[2] == 1)[:10])


@pytest.fixture(scope="module")
def exact(sample):
    """By cutting planes, to a gap of 0.1%."""
    return crf("cutting_plane", l2=0.1, tol=1e-3).fit(*sample)


@pytest.mark.parametrize(
    ("solver", "tol"),
    [("one_slack", 0.05), ("block_frank_wolfe", 0.05), ("frank_wolfe", 1.0)],
)
def test_solvers_agree_to_their_gaps(sample, exact, solver, tol):
    model = crf(solver, l2=0.1, tol=tol, max_iter=3000).fit(*sample)
    assert model.fit_report_.status.succeeded
    gaps = model.fit_report_.gap + exact.fit_report_.gap
    assert abs(model.objective_ - exact.objective_) <= gaps
    for report in (model.fit_report_, exact.fit_report_):
        assert max(report.details["dual"]) <= min(model.objective_, exact.objective_) * (1 + 1e-9)


def test_the_subgradient_method_comes_near_the_same_optimum(sample):
    exact = crf("cutting_plane", l2=5.0, tol=1e-3).fit(*sample)
    steps = SGD(max_iter=3000, tol=0.0, period=3000, random_state=0)
    model = crf(steps, l2=5.0).fit(*sample)
    assert max(exact.fit_report_.details["dual"]) <= model.objective_ < 1.04 * exact.objective_


def test_methods_agree_to_their_gaps_on_a_whole_fold(words):
    """626 words, λ = 1/n: each method brackets the optimum that the others find."""
    fold = chosen(words, np.flatnonzero(words[2] == 0))
    exact = crf("cutting_plane", tol=0.01).fit(*fold)
    assert exact.fit_report_.status.succeeded
    lower = max(exact.fit_report_.details["dual"])
    assert exact.objective_ - lower <= 0.01 * exact.objective_
    steps = SGD(max_iter=1500, tol=0.0, period=1500, random_state=0)
    assert lower <= crf(steps).fit(*fold).objective_ < 1.4 * exact.objective_
    blocks = crf("block_frank_wolfe", tol=0.1).fit(*fold)
    assert blocks.fit_report_.gap <= 0.1 * blocks.objective_
    for other in (blocks, crf(SOLVERS.get("one_slack")(max_iter=250)).fit(*fold)):
        report = other.fit_report_
        assert abs(other.objective_ - exact.objective_) <= report.gap + exact.fit_report_.gap
        assert lower <= other.objective_
        assert max(report.details["dual"]) <= exact.objective_


def test_exponentiated_gradient_finds_the_same_optima(sample, exact):
    soft = crf("exponentiated_gradient", objective="likelihood", tol=1e-6).fit(*sample)
    reference = crf("lbfgs", objective="likelihood", tol=1e-10).fit(*sample)
    assert soft.fit_report_.status.succeeded
    assert soft.objective_ == pytest.approx(reference.objective_, rel=2e-6)
    hard = crf("exponentiated_gradient", l2=0.1, tol=0.1, max_iter=1000).fit(*sample)
    assert abs(hard.objective_ - exact.objective_) <= hard.fit_report_.gap + exact.fit_report_.gap


def test_block_frank_wolfe_reaches_a_gap_of_a_thousandth(words):
    fold = words[2]
    train, test = chosen(words, np.flatnonzero(fold != 0)), chosen(words, np.flatnonzero(fold == 0))
    model = crf("block_frank_wolfe", max_iter=2000).fit(*train)
    report = model.fit_report_
    assert report.n_weights == 4082
    assert report.status.succeeded
    assert report.gap <= 1e-3 * model.objective_
    assert model.objective_ == pytest.approx(1755.0, abs=2.0)
    likelihood = crf("lbfgs", objective="likelihood", tol=1e-7).fit(*train)
    assert likelihood.objective_ == pytest.approx(15251.908, abs=0.2)
    assert model.score(*test) > likelihood.score(*test) - 0.005
    # No other method gets below the dual value.
    for name in ("one_slack", "frank_wolfe"):
        other = crf(SOLVERS.get(name)(max_iter=30)).fit(*train)
        assert other.objective_ >= model.objective_ - report.gap
        assert max(other.fit_report_.details["dual"]) <= model.objective_


def test_pystructs_example_is_passed(words):
    """C = 0.1 on the sum of losses and ‖w‖²/2 is l2 = 10; its page shows 78.8%."""
    fold = words[2]
    train, test = chosen(words, np.flatnonzero(fold == 1)), chosen(words, np.flatnonzero(fold != 1))
    model = crf("block_frank_wolfe", l2=10.0, objective=Hinge(), max_iter=300).fit(*train)
    assert model.score(*test) > 0.788
