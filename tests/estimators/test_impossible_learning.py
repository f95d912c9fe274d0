"""What cannot be learned, on every front end: refused by name, and nothing that is not a number."""

import numpy as np
import pytest

from chordal import (
    ChainCRF,
    CliqueTemplate,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    TemplateCRF,
)
from chordal._errors import InfeasibleError, UnsupportedError
from chordal.costs.chunk import ChunkCost
from chordal.objectives.hinge import Hinge
from chordal.solvers.adam import Adam
from chordal.solvers.gradient_descent import GradientDescent
from chordal.solvers.minibatch_lbfgs import MinibatchLBFGS
from chordal.solvers.sgd import SGD
from chordal.solvers.stochastic_meta_descent import StochasticMetaDescent

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(6, 3)) * 5 for _ in range(20)]
Y = [np.where(x[:, 0] > 0, "B-X", "O").tolist() for x in X]
EDGES = np.array([(0, 1), (1, 2), (2, 0), (2, 3)])


def pairs(x):
    return np.c_[np.arange(len(x) - 1), np.arange(1, len(x))]


def templates():
    return [CliqueTemplate("nodes", features=np.asarray), CliqueTemplate("pairs", pairs)]


FRONT_ENDS = {
    "chain": lambda **k: ChainCRF(**k).fit(X, Y),
    "graph": lambda **k: GraphCRF(**k).fit([(x, EDGES) for x in X], Y),
    "grid": lambda **k: GridCRF(**k).fit(
        [x.reshape(2, 3, 3) for x in X], [np.reshape(y, (2, 3)) for y in Y]
    ),
    "templates": lambda **k: TemplateCRF(templates(), **k).fit(X, Y),
    "matching": lambda **k: MatchingModel(**k).fit(
        [x[:5, None] - x[:5] for x in X], [range(5)] * 20
    ),
    "classifier": lambda **k: CRFClassifier(**k).fit(np.concatenate(X), np.concatenate(Y)),
}
FIRST_ORDER = [SGD, Adam, GradientDescent, MinibatchLBFGS]
PAIRS = [(kind, solver) for kind in FRONT_ENDS for solver in FIRST_ORDER]
# The hinge, which is what a matching is learned by, has kinks.
PAIRS = [p for p in PAIRS if p[0] != "matching" or not p[1].needs_smooth]
PAIRS += [(kind, StochasticMetaDescent) for kind in FRONT_ENDS if kind != "matching"]


@pytest.mark.parametrize("rate", [1e3, 1e9, 1e300])
@pytest.mark.parametrize(("kind", "solver"), PAIRS)
def test_a_step_too_large_is_survived_or_named(kind, solver, rate):
    """Schedules that fall bring some back; the others say what to try."""
    try:
        model = FRONT_ENDS[kind](solver=solver(learning_rate=rate), max_iter=20, random_state=0)
    except (ValueError, RuntimeWarning) as error:  # warnings are errors
        said = error
    else:
        weights = model.coef_ if kind == "classifier" else model.weights_
        assert np.isfinite(weights).all()
        assert np.abs(weights).max() < 1e3
        return
    assert not isinstance(said, InfeasibleError)
    assert f"solver '{solver().name}' diverges: " in str(said)
    assert "learning_rate" in str(said)


@pytest.mark.parametrize(
    ("kind", "solver"), [p for p in PAIRS if p[1] in (GradientDescent, StochasticMetaDescent)]
)
def test_steps_that_do_not_fall_are_refused(kind, solver):
    with pytest.raises(ValueError, match=f"solver '{solver().name}' diverges: the objective went"):
        FRONT_ENDS[kind](solver=solver(learning_rate=1e300))


@pytest.mark.parametrize(
    ("front_end", "inputs", "labels"),
    [
        (ChainCRF, [[[f"a{k}" for k in range(500_000)]]] * 2, [["a"], ["b"]]),
        (CRFClassifier, np.ones((4, 333_334)), [0, 1, 2, 0]),
    ],
    ids=["chain", "classifier"],
)
def test_newton_on_a_million_weights(front_end, inputs, labels):
    said = r"'newton' supports at most 5000 weights, but there are 100000\d, .*'newton_cg'"
    with pytest.raises(UnsupportedError, match=said):
        front_end(solver="newton").fit(inputs, labels)


@pytest.mark.parametrize("solver", ["stochastic_meta_descent", "newton_cg", "newton"])
@pytest.mark.parametrize("kind", FRONT_ENDS)
def test_the_hinge_has_no_second_derivatives(kind, solver):
    objective = "crammer_singer" if kind == "classifier" else "hinge"
    said = f"solver '{solver}' needs second derivatives, which objective '{objective}' does not"
    with pytest.raises(UnsupportedError, match=said):
        FRONT_ENDS[kind](objective=objective, solver=solver)


@pytest.mark.parametrize("objective", [Hinge(ChunkCost()), Hinge(scaling="slack")])
def test_exponentiated_gradient_on_what_does_not_decompose(objective):
    with pytest.raises(UnsupportedError, match=r"'hinge'.* does? not decompose") as no:
        ChainCRF(objective, "exponentiated_gradient").fit(X, Y)
    assert "exponentiated_gradient" in str(no.value) or "'chunk'" in str(no.value)


@pytest.mark.parametrize("solver", ["auto", "sgd", "averaged_perceptron", "block_frank_wolfe"])
def test_the_hinge_with_soft_targets(solver):
    """It is the objective that has no use for them, whatever the solver."""
    objective = "perceptron" if solver == "averaged_perceptron" else "hinge"
    soft = [[{"B-X": 0.5, "O": 0.5}] * len(x) for x in X]
    with pytest.raises(UnsupportedError, match=f"objective '{objective}' needs one label .*soft"):
        ChainCRF(objective, solver).fit(X, soft)


@pytest.mark.parametrize("kind", ["graph", "grid", "templates", "matching"])
def test_exponentiated_gradient_on_graphs_is_refused_before_compiling(kind, monkeypatch):
    def compiled(*arguments, **options):
        raise AssertionError("nothing is compiled")

    monkeypatch.setattr("chordal.features.Layout.compile", compiled)
    monkeypatch.setitem(globals(), "pairs", lambda x: np.c_[np.arange(len(x) - 2), 2 : len(x)])
    said = "'exponentiated_gradient' works only on chains; use 'block_frank_wolfe'"
    with pytest.raises(UnsupportedError, match=said):
        FRONT_ENDS[kind](objective="hinge", solver="exponentiated_gradient")
