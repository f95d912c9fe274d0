"""chordal: structured prediction with conditional random fields, the scikit-learn way."""

from importlib.metadata import version as _version

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal.estimators import ChainCRF, FitReport

__version__ = _version("chordal")

__all__ = ["ChainCRF", "FitReport", "InfeasibleError", "Status", "UnsupportedError", "__version__"]
