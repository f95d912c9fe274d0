"""Published experiments, run again: one file is one experiment, found by its name."""

from chordal._optional import needed
from chordal._registry import Registry
from chordal.experiments._base import (
    Experiment,
    Finished,
    Outcome,
    Picture,
    Row,
    Samples,
    Setup,
    Table,
    Token,
)
from chordal.experiments._report import reproduce, results

with needed("sklearn", "chordal.experiments", extra="experiments"):
    import sklearn as _sklearn  # noqa: F401  # most experiments compare with its classifiers

EXPERIMENTS = Registry("chordal.experiments", Experiment, "experiment")

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Finished",
    "Outcome",
    "Picture",
    "Row",
    "Samples",
    "Setup",
    "Table",
    "Token",
    "reproduce",
    "results",
]
