"""chordal: structured prediction with conditional random fields, the scikit-learn way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chordal._container import CheckpointError
    from chordal._errors import InfeasibleError, UnsupportedError
    from chordal._status import Status
    from chordal.estimators import (
        HMM,
        ChainCRF,
        Checkpoint,
        CRFClassifier,
        FitReport,
        GraphCRF,
        GridCRF,
        MatchingModel,
        MultiLabelCRF,
        NaiveBayes,
        TemplateCRF,
        TwoStageCRF,
        TypedGraphCRF,
    )
    from chordal.explanation import Explanation, explain, show
    from chordal.features import CliqueTemplate
    from chordal.model_file import ModelFileError, load, save
    from chordal.model_selection import ChainCRFCV, CRFClassifierCV, regularization_path
    from chordal.prepared import Dataset, DatasetError
    from chordal.preprocessing import RBFFeatures
    from chordal.text import Columns, FeatureTemplate

    __version__: str

# Where public names live; any other class is an estimator, found by its file's name. Each is
# imported when it is first asked for: the command line starts without what it does not use.
_HOMES = {
    "CRFClassifierCV": "chordal.model_selection",
    "Checkpoint": "chordal.estimators",
    "CheckpointError": "chordal._container",
    "ChainCRFCV": "chordal.model_selection",
    "CliqueTemplate": "chordal.features",
    "Columns": "chordal.text",
    "Dataset": "chordal.prepared",
    "DatasetError": "chordal.prepared",
    "Explanation": "chordal.explanation",
    "FitReport": "chordal.estimators",
    "InfeasibleError": "chordal._errors",
    "ModelFileError": "chordal.model_file",
    "RBFFeatures": "chordal.preprocessing",
    "Status": "chordal._status",
    "FeatureTemplate": "chordal.text",
    "UnsupportedError": "chordal._errors",
    "explain": "chordal.explanation",
    "load": "chordal.model_file",
    "regularization_path": "chordal.model_selection",
    "save": "chordal.model_file",
    "show": "chordal.explanation",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("chordal")
    from importlib import import_module

    home = _HOMES.get(name, "chordal.estimators" if name[:1].isupper() else None)
    value = getattr(import_module(home), name, None) if home else None
    if value is None:
        raise AttributeError(f"module 'chordal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


__all__ = [
    "HMM",
    "CRFClassifier",
    "CRFClassifierCV",
    "ChainCRF",
    "ChainCRFCV",
    "Checkpoint",
    "CheckpointError",
    "CliqueTemplate",
    "Columns",
    "Dataset",
    "DatasetError",
    "Explanation",
    "FeatureTemplate",
    "FitReport",
    "GraphCRF",
    "GridCRF",
    "InfeasibleError",
    "MatchingModel",
    "ModelFileError",
    "MultiLabelCRF",
    "NaiveBayes",
    "RBFFeatures",
    "Status",
    "TemplateCRF",
    "TwoStageCRF",
    "TypedGraphCRF",
    "UnsupportedError",
    "__version__",
    "explain",
    "load",
    "regularization_path",
    "save",
    "show",
]
