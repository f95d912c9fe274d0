"""αβ-swap: two labels are shared out anew among the variables that have them, by minimum cuts."""

from __future__ import annotations

from typing import final

from chordal import _kernels
from chordal.inference._moves import CutMoves, Kernel


@final
class AlphaBetaSwapInference(CutMoves):
    """A good labelling of pairwise models with any number of labels, by a cut for each pair.

    Starts at the best label of each variable by itself. For one pair of labels after another, the
    variables that have one of them choose between the two, all at once, by maximum flow; rounds
    over all pairs go on until none raises the score. A round costs a cut for every pair of labels,
    where `alpha_expansion` needs one for every label, but fewer scores are asked for: only
    s(α, α) + s(β, β) ≥ s(α, β) + s(β, α). Where that fails, the pair is truncated for the move,
    and the score still never falls. With two labels and no truncation the result is the best
    labelling (which `max_flow` also proves).

    Constraints (−inf) are respected, but a labelling that satisfies them is not always found;
    its score is then −inf. The bound is a rough one.

    Parameters
    ----------
    max_iter : int
        Rounds over all pairs of labels at most; few are needed.

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
