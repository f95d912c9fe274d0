"""Pictures of models, fits and errors. They need matplotlib: `pip install "chordal[plots]"`.

Displays work as those of scikit-learn: `from_estimator` or `from_predictions` collects the data
and draws them, `plot(ax=…)` draws them again, and `ax_` and `figure_` are what was drawn into.
"""

from typing import TYPE_CHECKING

from chordal._optional import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

with needed("matplotlib", "chordal.plots"):
    import matplotlib as _matplotlib  # noqa: F401

from chordal.plots._confusion import ConfusionDisplay
from chordal.plots._convergence import ConvergenceDisplay
from chordal.plots._decision_surface import DecisionSurfaceDisplay
from chordal.plots._factor_graph import FactorGraphDisplay
from chordal.plots._grid_marginals import GridMarginalsDisplay
from chordal.plots._lattice import LatticeDisplay
from chordal.plots._learning_curve import LearningCurveDisplay
from chordal.plots._pictures import as_png, subplots
from chordal.plots._regularization_path import RegularizationPathDisplay
from chordal.plots._reliability import ReliabilityDisplay
from chordal.plots._segmentation import SegmentationDisplay
from chordal.plots._style import class_colours
from chordal.plots._top_features import TopFeaturesDisplay
from chordal.plots._transitions import TransitionsDisplay

__all__ = [
    "ConfusionDisplay",
    "ConvergenceDisplay",
    "DecisionSurfaceDisplay",
    "FactorGraphDisplay",
    "GridMarginalsDisplay",
    "LatticeDisplay",
    "LearningCurveDisplay",
    "RegularizationPathDisplay",
    "ReliabilityDisplay",
    "SegmentationDisplay",
    "TopFeaturesDisplay",
    "TransitionsDisplay",
    "as_png",
    "class_colours",
    "subplots",
]
