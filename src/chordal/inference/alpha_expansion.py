"""α-expansion: labels spread over many variables at once, by minimum cuts."""

from __future__ import annotations

from typing import final

from chordal import _kernels
from chordal.inference._moves import CutMoves, Kernel


@final
class AlphaExpansionInference(CutMoves):
    """A good labelling of pairwise models with any number of labels, by a cut for each label.

    Starts at the best label of each variable by itself. For one label α after another, the best
    set of variables to take α is found by maximum flow; rounds over all labels go on until none
    raises the score. The method of choice for Potts models and other rewards for like labels
    (stereo, segmentation), where it usually ends within a percent of the best.

    For the cut, the scores of a pair of variables must satisfy
    s(α, α) + s(a, b) ≥ s(a, α) + s(α, b), which holds if −s is a metric. Where it does not, the
    pair is truncated for the move; the score still never falls, but moves are weaker:
    `alpha_beta_swap` or `trw_s` may find better ones. Constraints (−inf) are respected, but a
    labelling that satisfies them is not always found; its score is then −inf. The bound is a rough
    one.

    Parameters
    ----------
    max_iter : int
        Rounds over all labels at most; few are needed.

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
