"""Which oracle a solver gets: by what it asks for, and by the structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.features import Layout
from chordal.inference import Inference
from chordal.objectives import Objective
from chordal.oracle._protocols import (
    DualOracle,
    ExampleOracle,
    Mapper,
    PlaneOracle,
    SecondOrderOracle,
)
from chordal.oracle._summed import SummedOracle
from chordal.oracle.chains import ChainExamples
from chordal.oracle.examples import StructuredExamples
from chordal.potentials import Floats
from chordal.structures import Chain, Structure


def missing(oracle: object, asked: type) -> list[str]:
    """Fields and methods of a protocol that an oracle does not have, sorted."""
    bases = [base for base in asked.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in bases for name in {**base.__annotations__, **vars(base)}}
    return sorted(n for n in names if not n.startswith("_") and not hasattr(oracle, n))


def asks_examples(asked: type) -> bool:
    """Whether a protocol is about single examples rather than their sum."""
    return asked in (ExampleOracle, DualOracle, PlaneOracle)


def oracle_for(
    asks: type,
    features: Layout,
    shards: Sequence[Any],
    objective: Objective,
    inference: Inference,
    mapper: Mapper,
    l2: float | Floats = 0.0,
    centre: Floats | None = None,
    cuts: Sequence[int] | None = None,
    without_l1: NDArray[np.int64] | None = None,
) -> SummedOracle | StructuredExamples:
    """The oracle for a solver that asks for this protocol.

    Where it asks for single examples, shards must hold one each, those of chains any number.
    """
    if not asks_examples(asks):
        return SummedOracle(
            features, shards, objective, inference, mapper, l2, centre, cuts, without_l1
        )
    if all(isinstance(shard.frame.structure, Chain) for shard in shards):
        return ChainExamples(features, shards, objective, inference, mapper, l2, centre)
    return StructuredExamples(features, shards, objective, inference, mapper, l2, centre)


def check_questions(
    solver: str, asks: type, objective: Objective, inference: Inference, structure: Structure
) -> None:
    """Refuse an objective whose questions inference cannot answer, before any work."""
    objective.require(inference, structure)
    if SecondOrderOracle in asks.__mro__:
        objective.require_curvature(inference, structure, solver)
