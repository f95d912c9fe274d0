"""Emissions: exponential families of observations, given a label. One file is one family."""

from chordal._registry import Registry
from chordal.emissions._base import Emission, Statistics

EMISSIONS = Registry("chordal.emissions", Emission, "emission")

__all__ = ["EMISSIONS", "Emission", "Statistics"]
