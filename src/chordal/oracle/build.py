"""What a solver says yes or no to, and which oracle it gets: by what it asks, and the structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.features import Layout
from chordal.inference import Inference
from chordal.objectives import TARGETS, Objective
from chordal.oracle._protocols import Mapper, SecondOrderOracle
from chordal.oracle._summed import SummedOracle
from chordal.oracle.chains import ChainExamples
from chordal.oracle.examples import DualOracle, ExampleOracle, PlaneOracle, StructuredExamples
from chordal.potentials import Floats
from chordal.structures import Chain, Structure


class Problem(NamedTuple):
    """What training is about to minimise, as far as it is known before any work.

    Attributes
    ----------
    objective : Objective
    targets : {"hard", "soft", "partial"}
        What is known of the labels.
    l2 : float or dict by group of weights
    partial : bool
        Some weights stay as they are.
    n_weights : int
    exempt : bool
        Some weights, such as intercepts, have no l2.
    """

    objective: Objective
    targets: str = "hard"
    l2: float | Mapping[str, float] = 1.0
    partial: bool = False
    n_weights: int = 0
    exempt: bool = False

    @property
    def described_targets(self) -> str:
        """The kind of targets, in words."""
        return TARGETS[self.targets]


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
    loss, penalty = (features, shards, objective, inference, mapper), (l2, centre)
    if not asks_examples(asks):
        return SummedOracle(*loss, *penalty, cuts, without_l1)
    if all(isinstance(shard.frame.structure, Chain) for shard in shards):
        return ChainExamples(*loss, *penalty)
    return StructuredExamples(*loss, *penalty)


def check_questions(
    solver: str, asks: type, objective: Objective, inference: Inference, structure: Structure
) -> None:
    """Refuse an objective whose questions inference cannot answer, before any work."""
    objective.require(inference, structure)
    if SecondOrderOracle in asks.__mro__:
        objective.require_curvature(inference, structure, solver)
