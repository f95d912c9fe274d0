"""Pictures of models, fits and errors. They need matplotlib: `pip install "chordal[plots]"`.

Every function draws into the axes given as `ax`, or into new ones, and returns them.
"""

from typing import TYPE_CHECKING

from chordal._optional import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

with needed("matplotlib", "chordal.plots"):
    import matplotlib as _matplotlib  # noqa: F401

from chordal.plots._convergence import convergence
from chordal.plots._pictures import as_png, subplots
from chordal.plots._style import class_colours
from chordal.plots._surface import decision_surface
from chordal.plots._tables import confusion, label_pairs, transitions

__all__ = [
    "as_png",
    "class_colours",
    "confusion",
    "convergence",
    "decision_surface",
    "label_pairs",
    "subplots",
    "transitions",
]
