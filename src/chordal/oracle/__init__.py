"""The oracle: all that a solver may ask about a problem."""

from chordal.oracle._examples import StructuredExamples
from chordal.oracle._partial import Flags, PartialOracle
from chordal.oracle._protocols import (
    BatchOracle,
    DualLearner,
    DualOracle,
    ExampleOracle,
    GradientRule,
    Learner,
    Mapper,
    Oracle,
    PlaneOracle,
    Planes,
    RegularisedOracle,
    SecondOrderOracle,
    ShardFeatures,
    UpdateRule,
)
from chordal.oracle._summed import SummedOracle
from chordal.potentials import Floats

__all__ = [
    "BatchOracle",
    "DualLearner",
    "DualOracle",
    "ExampleOracle",
    "Flags",
    "Floats",
    "GradientRule",
    "Learner",
    "Mapper",
    "Oracle",
    "PartialOracle",
    "PlaneOracle",
    "Planes",
    "RegularisedOracle",
    "SecondOrderOracle",
    "ShardFeatures",
    "StructuredExamples",
    "SummedOracle",
    "UpdateRule",
]
