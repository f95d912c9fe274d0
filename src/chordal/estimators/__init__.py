"""Estimators: the scikit-learn face of chordal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chordal.estimators._crf import BaseCRF
from chordal.estimators._report import FitReport
from chordal.estimators.chain_crf import ChainCRF

if TYPE_CHECKING:
    from chordal.estimators.crf_classifier import CRFClassifier
    from chordal.estimators.graph_crf import GraphCRF
    from chordal.estimators.grid_crf import GridCRF
    from chordal.estimators.hmm import HMM
    from chordal.estimators.matching_model import MatchingModel
    from chordal.estimators.naive_bayes import NaiveBayes
    from chordal.estimators.rbf_features import RBFFeatures
    from chordal.estimators.template_crf import TemplateCRF
    from chordal.estimators.two_stage import TwoStageCRF

# Imported when they are asked for: the command line needs none of them, and some import
# scikit-learn, which takes a second.
_LATER = {
    "HMM": "hmm",
    "CRFClassifier": "crf_classifier",
    "GraphCRF": "graph_crf",
    "GridCRF": "grid_crf",
    "MatchingModel": "matching_model",
    "NaiveBayes": "naive_bayes",
    "RBFFeatures": "rbf_features",
    "TemplateCRF": "template_crf",
    "TwoStageCRF": "two_stage",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "HMM",
    "BaseCRF",
    "CRFClassifier",
    "ChainCRF",
    "FitReport",
    "GraphCRF",
    "GridCRF",
    "MatchingModel",
    "NaiveBayes",
    "RBFFeatures",
    "TemplateCRF",
    "TwoStageCRF",
]
