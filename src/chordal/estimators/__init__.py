"""Estimators: the scikit-learn face of chordal."""

from chordal.estimators._training import FitReport
from chordal.estimators.chain_crf import ChainCRF

__all__ = ["ChainCRF", "FitReport"]
