"""For tests, also of other libraries: model generators, and contracts that check every claim."""

from chordal.testing.contracts import (
    check_cost,
    check_dual_solver,
    check_estimator,
    check_features,
    check_infeasible,
    check_inference,
    check_objective,
    check_online_solver,
    check_shard_features,
    check_solver,
    random_spans,
)
from chordal.testing.generators import INFEASIBLE, MODELS, feasible_labels
from chordal.testing.listed import Listed, ListedExamples

__all__ = [
    "INFEASIBLE",
    "MODELS",
    "Listed",
    "ListedExamples",
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
    "feasible_labels",
    "random_spans",
]
