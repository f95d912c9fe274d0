"""Pictures of models, fits and errors. They need matplotlib: `pip install chordal[plots]`.

Every function draws into the axes given as `ax`, or into new ones, and returns them.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("chordal.plots needs matplotlib; pip install 'chordal[plots]'") from error

from chordal.plots._convergence import convergence
from chordal.plots._surface import decision_surface
from chordal.plots._tables import confusion, transitions

__all__ = ["confusion", "convergence", "decision_surface", "transitions"]
