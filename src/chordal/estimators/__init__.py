"""Estimators: the scikit-learn face of chordal."""

from chordal.estimators._training import FitReport
from chordal.estimators.chain_crf import ChainCRF
from chordal.estimators.hmm import HMM
from chordal.estimators.naive_bayes import NaiveBayes
from chordal.estimators.two_stage import TwoStageCRF

__all__ = ["HMM", "ChainCRF", "FitReport", "NaiveBayes", "TwoStageCRF"]
