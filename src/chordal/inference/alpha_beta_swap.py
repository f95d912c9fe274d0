"""αβ-swap: exchange two labels among the variables that have them, by minimum cuts."""

from __future__ import annotations

from typing import final

from chordal import _kernels
from chordal.inference._moves import CutMoves, Kernel


@final
class AlphaBetaSwapInference(CutMoves):
    """A good labelling of pairwise models with any number of labels, by a cut for each pair.

    It starts at the best label of each single variable. For one pair of labels after another, all
    variables with one of the two choose again between them, jointly, by maximum flow. Rounds over
    all pairs continue until the score stops rising. A round needs a cut per pair of labels;
    `alpha_expansion` needs one per label. The condition on the scores is weaker: only s(α, α) +
    s(β, β) ≥ s(α, β) + s(β, α). If it fails, the edge is truncated for the move, and the score
    still never falls. With two labels and no truncation the result is the best labelling, which
    `max_flow` also proves.

    Constraints (−inf) are respected, but an allowed labelling is not always found; then the score
    is −inf. The bound is rough.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds over all pairs of labels; few are needed.

    References
    ----------
    Boykov, Veksler and Zabih (2001), Fast approximate energy minimization via graph cuts;
    Rother, Kumar, Kolmogorov and Blake (2005), Digital tapestry (the truncation).

    Examples
    --------
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> truncated = [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]  # differences of labels
    >>> unary = [[3, 0, 0], [0, 0, 3], [0, 0, 0], [0, 0, 4]]
    >>> p = Potentials(Chain([4], n_labels=3), unary, truncated)
    >>> found = AlphaBetaSwapInference().map(p)
    >>> found.labels, found.score
    (array([0, 2, 2, 2], dtype=int32), array([8.]))
    """

    @property
    def _kernel(self) -> Kernel:
        return _kernels.alpha_beta_swap_labels
