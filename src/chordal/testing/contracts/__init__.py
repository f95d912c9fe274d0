"""Contracts: what every inference method, objective, solver, estimator and feature map keeps to.

Each check takes the thing itself and raises `AssertionError` where a claim does not hold, so that
an engine from outside can be tested as the library's own are.
"""

from chordal.testing.contracts.costs import check_cost
from chordal.testing.contracts.dual import check_dual_solver
from chordal.testing.contracts.estimators import check_estimator
from chordal.testing.contracts.features import check_features, check_shard_features
from chordal.testing.contracts.inference import check_infeasible, check_inference, random_spans
from chordal.testing.contracts.objectives import check_objective
from chordal.testing.contracts.online import check_online_solver
from chordal.testing.contracts.solvers import check_solver

__all__ = [
    "check_cost",
    "check_dual_solver",
    "check_estimator",
    "check_features",
    "check_infeasible",
    "check_inference",
    "check_objective",
    "check_online_solver",
    "check_shard_features",
    "check_solver",
    "random_spans",
]
