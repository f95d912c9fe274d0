"""The oracle: all that a solver may ask about a problem."""

from chordal.oracle._partial import Flags, PartialOracle
from chordal.oracle._protocols import (
    BatchOracle,
    DataOracle,
    Mapper,
    Oracle,
    RegularisedOracle,
    SecondOrderBatchOracle,
    SecondOrderOracle,
)
from chordal.oracle.parted import Ask, PartedOracle, PartOracle, Term
from chordal.oracle.training import (
    Problem,
    SummedOracle,
    asks_examples,
    check_questions,
    missing,
    oracle_for,
    single_examples,
)
from chordal.potentials import Floats

__all__ = [
    "Ask",
    "BatchOracle",
    "DataOracle",
    "Flags",
    "Floats",
    "Mapper",
    "Oracle",
    "PartOracle",
    "PartedOracle",
    "PartialOracle",
    "Problem",
    "RegularisedOracle",
    "SecondOrderBatchOracle",
    "SecondOrderOracle",
    "SummedOracle",
    "Term",
    "asks_examples",
    "check_questions",
    "missing",
    "oracle_for",
    "single_examples",
]
