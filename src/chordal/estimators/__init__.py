"""Estimators: the scikit-learn face of chordal."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from chordal._errors import CollapsedLabellingWarning
from chordal._estimator import Estimator
from chordal._registry import Registry
from chordal.estimators._crf import BaseCRF
from chordal.estimators._state import MAX_WEIGHT, pair_features
from chordal.estimators._training.checkpoint import Checkpoint, Checkpointer, CheckpointWarning
from chordal.estimators._training.fingerprint import described, digest
from chordal.estimators._training.monitor import (
    FitReport,
    InterruptedFitWarning,
    keep_or_raise,
    whole_fits,
)
from chordal.estimators.chain_crf import ChainCRF, chain_batch, chain_layout, fitted_chain

if TYPE_CHECKING:
    from chordal.estimators._generative import Generative, fit_counts
    from chordal.estimators._training.in_parts import Crew, fit_parts
    from chordal.estimators._training.of_part import score_part
    from chordal.estimators._training.on_part import Given, PreparedPart
    from chordal.estimators._wrapped import Wrapped
    from chordal.estimators.crf_classifier import CRFClassifier
    from chordal.estimators.graph_crf import GraphCRF
    from chordal.estimators.grid_crf import GridCRF
    from chordal.estimators.hmm import HMM
    from chordal.estimators.matching_model import MatchingModel
    from chordal.estimators.multi_label_crf import MultiLabelCRF
    from chordal.estimators.naive_bayes import NaiveBayes
    from chordal.estimators.template_crf import TemplateCRF
    from chordal.estimators.two_stage_crf import TwoStageCRF
    from chordal.estimators.typed_graph_crf import TypedGraphCRF

#: Modules that only some callers need.
_LATER = {
    "Crew": "_training.in_parts",
    "Generative": "_generative",
    "Given": "_training.on_part",
    "PreparedPart": "_training.on_part",
    "Wrapped": "_wrapped",
    "fit_counts": "_generative",
    "fit_parts": "_training.in_parts",
    "score_part": "_training.of_part",
}
ESTIMATORS = Registry("chordal.estimators", Estimator, "estimator")


def __getattr__(name: str) -> object:
    # Imported when they are asked for: the command line needs none of them, and some import
    # scikit-learn, which takes a second.
    module = _LATER.get(name) or ESTIMATORS.module_of(name)
    found = vars(import_module(f"{__name__}.{module}")) if module else {}
    if name not in found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found[name]


__all__ = [
    "ESTIMATORS",
    "HMM",
    "MAX_WEIGHT",
    "BaseCRF",
    "CRFClassifier",
    "ChainCRF",
    "Checkpoint",
    "CheckpointWarning",
    "Checkpointer",
    "CollapsedLabellingWarning",
    "Crew",
    "Estimator",
    "FitReport",
    "Generative",
    "Given",
    "GraphCRF",
    "GridCRF",
    "InterruptedFitWarning",
    "MatchingModel",
    "MultiLabelCRF",
    "NaiveBayes",
    "PreparedPart",
    "TemplateCRF",
    "TwoStageCRF",
    "TypedGraphCRF",
    "Wrapped",
    "chain_batch",
    "chain_layout",
    "described",
    "digest",
    "fit_counts",
    "fit_parts",
    "fitted_chain",
    "keep_or_raise",
    "pair_features",
    "score_part",
    "whole_fits",
]
