"""Estimators: the scikit-learn face of chordal."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from chordal._errors import CollapsedLabellingWarning
from chordal._estimator import Estimator
from chordal._registry import Registry
from chordal.estimators._crf import BaseCRF
from chordal.estimators._state import MAX_WEIGHT, pair_features
from chordal.estimators._training.checkpoint import (
    Checkpoint,
    Checkpointer,
    CheckpointFile,
    CheckpointWarning,
)
from chordal.estimators._training.fingerprint import check_same_fit, described, digest
from chordal.estimators._training.monitor import (
    FitReport,
    InterruptedFitWarning,
    keep_or_raise,
    whole_fits,
)
from chordal.estimators.chain_crf import ChainCRF, chain_batch, chain_layout, fitted_chain

if TYPE_CHECKING:
    from chordal.estimators._training.crews import Crew, Handle, Tasks
    from chordal.estimators._training.examples import examples_of
    from chordal.estimators._training.here import LocalCrew, result
    from chordal.estimators._training.in_parts import fit_parts
    from chordal.estimators._training.keeping import (
        fit_kept,
        fit_wrapped,
        is_kept,
        kept_validation,
    )
    from chordal.estimators._training.of_part import score_part
    from chordal.estimators._training.on_part import Given, PreparedPart
    from chordal.estimators._training.preparing import Keeping, datasets_of, is_stored, is_stream
    from chordal.estimators._training.row_forms import RowForm
    from chordal.estimators._training.subsets import labels_in, subsets
    from chordal.estimators._wrapped import Train, Wrapped
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
    "Crew": "_training.crews",
    "Given": "_training.on_part",
    "Handle": "_training.crews",
    "Keeping": "_training.preparing",
    "LocalCrew": "_training.here",
    "PreparedPart": "_training.on_part",
    "RowForm": "_training.row_forms",
    "Tasks": "_training.crews",
    "Train": "_wrapped",
    "Wrapped": "_wrapped",
    "datasets_of": "_training.preparing",
    "examples_of": "_training.examples",
    "fit_kept": "_training.keeping",
    "fit_parts": "_training.in_parts",
    "fit_wrapped": "_training.keeping",
    "is_kept": "_training.keeping",
    "is_stored": "_training.preparing",
    "is_stream": "_training.preparing",
    "kept_validation": "_training.keeping",
    "labels_in": "_training.subsets",
    "result": "_training.here",
    "score_part": "_training.of_part",
    "subsets": "_training.subsets",
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
    "CheckpointFile",
    "CheckpointWarning",
    "Checkpointer",
    "CollapsedLabellingWarning",
    "Crew",
    "Estimator",
    "FitReport",
    "Given",
    "GraphCRF",
    "GridCRF",
    "Handle",
    "InterruptedFitWarning",
    "Keeping",
    "LocalCrew",
    "MatchingModel",
    "MultiLabelCRF",
    "NaiveBayes",
    "PreparedPart",
    "RowForm",
    "Tasks",
    "TemplateCRF",
    "Train",
    "TwoStageCRF",
    "TypedGraphCRF",
    "Wrapped",
    "chain_batch",
    "chain_layout",
    "check_same_fit",
    "datasets_of",
    "described",
    "digest",
    "examples_of",
    "fit_kept",
    "fit_parts",
    "fit_wrapped",
    "fitted_chain",
    "is_kept",
    "is_stored",
    "is_stream",
    "keep_or_raise",
    "kept_validation",
    "labels_in",
    "pair_features",
    "result",
    "score_part",
    "subsets",
    "whole_fits",
]
