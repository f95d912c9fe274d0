"""Functions on one compiled partition: for solvers, validation and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from chordal._estimator import Estimator
from chordal.estimators._asking import weights_right
from chordal.estimators._by_parts import counts_right
from chordal.estimators._crf import BaseCRF
from chordal.estimators._training.choosing import Candidates, candidates, supporting
from chordal.estimators._training.judging import (
    Validator,
    WayCounts,
    converged,
    largest_share,
    way_counts,
)
from chordal.estimators._training.on_part import Compiled, Given, PreparedPart
from chordal.features import Layout, Reader, length_of
from chordal.inference import Inference
from chordal.labels import SequenceLabels
from chordal.objectives import Objective
from chordal.oracle import PartOracle, check_questions
from chordal.potentials import Floats
from chordal.solvers import Solver


class Verdict(NamedTuple):
    """The facts of one part for the report of a fit."""

    exact: bool
    forest: bool
    converged: bool | None
    label_share: float


def candidates_of(part: Compiled, objective: Objective) -> Candidates:
    """What may answer the questions about a part."""
    return candidates(objective, part.shards)


def supporting_of(part: Compiled, methods: Mapping[str, Inference]) -> set[str]:
    """Which of these methods work on a part."""
    return supporting(methods, part.shards)


def ready_part(
    part: Compiled, objective: Objective, inference: Inference, solver: Solver
) -> PartOracle:
    """What answers a solver's questions about a part."""
    for shard in part.shards:
        structure = shard.frame.structure
        check_questions(solver.name, solver.asks, objective, inference, structure)
    method = inference.in_training()
    return PartOracle(part.layout, part.shards, objective, method, part.cuts, part.touched)


def batch_sizes(part: PartOracle) -> list[int]:
    """How many examples each mini-batch has."""
    return part.batch_sizes


def validator_part(
    given: Given, estimator: BaseCRF, reader: Reader, labels: SequenceLabels, layout: Layout
) -> Validator | None:
    """Validation data of a part; None where there are none."""
    if isinstance(given.X, PreparedPart):
        return Validator.of(copy(estimator), given.X.opened(), None, reader, labels, layout)
    if length_of(given.X) == 0:
        return None
    return Validator.of(copy(estimator), given.X, given.y, reader, labels, layout)


def validated(part: Validator | None, vectors: Sequence[Floats]) -> tuple[int, int]:
    """How many labels of a part are right at these weights, and how many there are."""
    return (0, 0) if part is None else part.counts(vectors[0])


def checksum_of(part: Validator | None, vectors: Sequence[Floats]) -> list[str]:
    """A fingerprint of validation data of a part."""
    return ["" if part is None else part.checksum]


def two_counts(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Both together."""
    return first[0] + second[0], first[1] + second[1]


def answer_part(part: PartOracle, vectors: Sequence[Floats], *question: Any) -> Any:
    """What a part says to a solver's question."""
    name, batch, dtype = question
    return part.answer(name, vectors, batch, dtype)


def judge_part(
    part: PartOracle,
    vectors: Sequence[Floats],
    objective: Objective,
    inference: Inference,
) -> list[Verdict]:
    """What the report says of a part."""
    structures = [shard.frame.structure for shard in part.shards]
    model = (part.features, part.shards, vectors[0])
    exact = not objective.needs or all(map(inference.exact_on, structures))
    settled = None if exact else converged(inference, objective, *model)
    forest = all(own.is_forest for own in structures)
    return [Verdict(exact, forest, settled, largest_share(part.shards))]


def compare_part(
    part: PartOracle, vectors: Sequence[Floats], estimator: BaseCRF
) -> list[WayCounts | None]:
    """How both ways of prediction do on a part."""
    return [way_counts(estimator, part.features, part.shards, vectors[0])]


def two_lists(first: list[Any], second: list[Any]) -> list[Any]:
    """One after the other."""
    return first + second


def score_part(given: Given, estimator: Estimator) -> tuple[float, float]:
    """The weight of the labels of a part that a model gets right, and of all that are observed."""
    if isinstance(given.X, PreparedPart):
        right, n = _stored_right(given.X, estimator)
        return float(right), float(n)
    if length_of(given.X) == 0:
        return 0.0, 0.0
    from chordal.estimators._wrapped import Wrapped  # which knows how data sets are kept

    if isinstance(estimator, BaseCRF):
        return weights_right(estimator, *given)
    if isinstance(estimator, Wrapped) and not estimator.classifies:
        return weights_right(estimator.crf_, estimator._observed(given.X), given.y, given.weight)
    options = {} if given.weight is None else {"sample_weight": given.weight}
    weight = np.ones(len(given.y)) if given.weight is None else np.asarray(given.weight)
    sizes = [1 if estimator.classifies else len(own) for own in given.y]
    total = float(np.dot(weight, sizes))
    if total == 0.0:  # elsewhere there may be more
        return 0.0, 0.0
    return total * float(estimator.score(given.X, given.y, **options)), total  # type: ignore[attr-defined]


def _stored_right(part: PreparedPart, estimator: Any) -> tuple[int, int]:
    """How many labels of a part of a data set a model gets right, and how many there are."""
    if isinstance(estimator, BaseCRF):
        return counts_right(estimator, part.opened())
    from chordal.estimators._training.keeping import kept_right  # of estimators that wrap a CRF

    return kept_right(estimator, part.opened())
