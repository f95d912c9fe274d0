"""The oracle: all that a solver may ask about a problem."""

from chordal.oracle._partial import Flags, PartialOracle
from chordal.oracle._protocols import (
    BatchOracle,
    DataOracle,
    DualOracle,
    ExampleOracle,
    Mapper,
    Oracle,
    PlaneOracle,
    Planes,
    RegularisedOracle,
    SecondOrderBatchOracle,
    SecondOrderOracle,
)
from chordal.oracle._summed import SummedOracle
from chordal.oracle.build import asks_examples, check_questions, missing, oracle_for
from chordal.oracle.chains import ChainExamples
from chordal.oracle.examples import StructuredExamples
from chordal.oracle.problem import Problem
from chordal.potentials import Floats

__all__ = [
    "BatchOracle",
    "ChainExamples",
    "DataOracle",
    "DualOracle",
    "ExampleOracle",
    "Flags",
    "Floats",
    "Mapper",
    "Oracle",
    "PartialOracle",
    "PlaneOracle",
    "Planes",
    "Problem",
    "RegularisedOracle",
    "SecondOrderBatchOracle",
    "SecondOrderOracle",
    "StructuredExamples",
    "SummedOracle",
    "asks_examples",
    "check_questions",
    "missing",
    "oracle_for",
]
