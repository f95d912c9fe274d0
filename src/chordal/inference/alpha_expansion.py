"""α-expansion: a label expands to many variables at once, by minimum cuts."""

from __future__ import annotations

from typing import final

from chordal import _kernels
from chordal.inference._moves import CutMoves, Kernel


@final
class AlphaExpansionInference(CutMoves):
    """A good labelling of pairwise models with any number of labels, by a cut for each label.

    It starts at the best label of each single variable. For one label α after another, maximum flow
    finds the best set of variables to switch to α. Rounds over all labels continue until the score
    stops rising. It is the method of choice for Potts models and others that reward equal labels
    (stereo, segmentation), where it usually ends within a percent of the best.

    The cut needs s(α, α) + s(a, b) ≥ s(a, α) + s(α, b) for every edge, which holds if −s is a
    metric. Otherwise the edge is truncated for the move; the score still never falls, but moves are
    weaker, and `alpha_beta_swap` or `trw_s` may be better. Constraints (−inf) are respected, but an
    allowed labelling is not always found; then the score is −inf. The bound is rough.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds over all labels; few are needed.

    References
    ----------
    Boykov, Veksler and Zabih (2001), Fast approximate energy minimization via graph cuts;
    Rother, Kumar, Kolmogorov and Blake (2005), Digital tapestry (the truncation).

    Examples
    --------
    >>> import numpy as np
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Grid
    >>> rng = np.random.default_rng(0)
    >>> stripes = np.repeat([[0, 1, 2]], 4, axis=0).repeat(4, axis=1)
    >>> scores = 2.0 * np.eye(3)[stripes] + rng.normal(size=(4, 12, 3))
    >>> p = Potentials(Grid([(4, 12)], n_labels=3), scores, tables=1.5 * np.eye(3))
    >>> found = AlphaExpansionInference().map(p)
    >>> found.labels.reshape(4, 12)
    array([[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
           [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
           [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
           [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]], dtype=int32)
    >>> found.convergence.status.succeeded
    True
    """

    @property
    def _kernel(self) -> Kernel:
        return _kernels.alpha_expansion_labels
