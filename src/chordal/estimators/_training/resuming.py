"""What a fit and its checkpoint must have in common, so that it can resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from chordal._errors import UnsupportedError
from chordal.estimators._training.checkpoint import Checkpointer
from chordal.estimators._training.choosing import Data
from chordal.estimators._training.crews import Handle, Tasks
from chordal.estimators._training.fingerprint import digest, fingerprint
from chordal.estimators._training.work import Plan
from chordal.features import Batch
from chordal.inference import Inference
from chordal.labels import SequenceLabels
from chordal.objectives import Objective
from chordal.potentials import Floats
from chordal.targets import Target

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF


def checked_by(
    keeper: Checkpointer, estimator: BaseCRF, plan: Plan, data: Mapping[str, str | None]
) -> Plan:
    """The plan with the checkpoint's seed, if none was given; checks that the fit is the same.

    `data` are digests of what is learned from.
    """
    asked = estimator.solver
    unseeded = estimator.random_state is None and asked != "auto"
    if unseeded and (isinstance(asked, str) or asked.random_state is None):
        plan = plan._replace(solver=keeper.seeded(plan.solver))
    moving = digest([plan.free, repr(plan.moved), plan.centre])
    others = {**data, "the weights that move": moving}
    keeper.check(fingerprint(estimator, plan.solver, plan.objective, others))
    return plan


def digests_of(data: Data, validation: str | None) -> dict[str, str | None]:
    """Digests of data in this process; `validation` is that of validation data."""
    parts = [(digest(batch), digest(gold)) for batch, gold in data.parts]  # one at a time
    batches, golds = [batch for batch, _ in parts], [gold for _, gold in parts]
    return _named(batches, golds, digest(data.weight), data.labels, data.start, validation)


def digests_of_parts(
    crew: Tasks,
    parts: Sequence[Handle],
    labels: SequenceLabels,
    start: Floats,
    validation: str | None,
    dtype: str,
) -> dict[str, str | None]:
    """The same of data in parts elsewhere; sums depend on the parts and on their precision."""
    found = crew.fetch(crew.map(digests_of_part, parts))
    batches, golds, weights = zip(*found, strict=True)
    return {**_named(batches, golds, digest(weights), labels, start, validation), "dtype": dtype}


def digests_of_part(part: tuple[Batch, Target, Floats | None]) -> tuple[str, str, str]:
    """Digests of a part's examples, labels and weights."""
    batch, gold, weight = part
    return digest(batch), digest(gold), digest(weight)


def _named(
    batches: Sequence[str],
    golds: Sequence[str],
    weight: str,
    labels: SequenceLabels,
    start: Floats,
    validation: str | None,
) -> dict[str, str | None]:
    return {
        "the training data": digest(batches),
        "their labels": digest([labels.to_facts(), golds]),
        "sample_weight": weight,
        "the weights at the start": digest(start),
        "validation_data": validation,
    }


def refuse_state_elsewhere(inference: Inference, objective: Objective) -> None:
    """Raise an error for methods whose state between evaluations stays where the parts are."""
    for name, method in (("inference", inference), ("objective", objective)):
        if method.kept_for(()) is not None:
            raise UnsupportedError(
                f"{name} {method.name!r} keeps a state between evaluations on the workers, which "
                f"no checkpoint has: use another {name}, or fit without a checkpoint"
            )
