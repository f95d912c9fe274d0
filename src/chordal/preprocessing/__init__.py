"""Preprocessing: from raw data to features, without knowledge of weights.

`RBFFeatures` is in `chordal.preprocessing.rbf_features` and is imported on first use, because it
needs scikit-learn, which takes a second to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chordal.preprocessing.alignment import AlignmentFeatures
from chordal.preprocessing.default_template import TASKS, default_template
from chordal.preprocessing.frames import frame_column, sequences_from_frame
from chordal.preprocessing.gazetteer import Gazetteer
from chordal.preprocessing.word_clusters import WordClusters

if TYPE_CHECKING:
    from chordal.preprocessing.rbf_features import RBFFeatures

__all__ = [
    "TASKS",
    "AlignmentFeatures",
    "Gazetteer",
    "RBFFeatures",
    "WordClusters",
    "default_template",
    "frame_column",
    "sequences_from_frame",
]


def __getattr__(name: str) -> object:
    if name != "RBFFeatures":
        raise AttributeError(f"module 'chordal.preprocessing' has no attribute {name!r}")
    from chordal.preprocessing.rbf_features import RBFFeatures

    return RBFFeatures
