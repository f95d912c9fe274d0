"""Errors with a meaning of their own; everything else is a ``ValueError`` or ``TypeError``."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """The constraints (scores of −inf) leave no labelling of some example."""


class UnsupportedError(ValueError):
    """Two parts that cannot work together; the message names both and what is missing."""
