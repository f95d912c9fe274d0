"""Iterated conditional modes: one variable after another takes its best label."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, final

from chordal import _kernels
from chordal._validate import check_number
from chordal.inference._base import Decoded, Inference
from chordal.inference._moves import improved
from chordal.potentials import Potentials
from chordal.structures import Structure


@final
class ICMInference(Inference):
    """A labelling that no change of a single label improves; any structure, very fast.

    Starts at the best label of each variable by itself; sweeps over the variables, each taking its
    best label given all others, go on until nothing changes. It stops at the first local optimum:
    use it as a baseline, to polish what another method has found, or where nothing else is
    affordable. Constraints (−inf) are respected; if the sweeps find no allowed labelling, they
    start again from one that a search has found. The bound is a rough one.

    Parameters
    ----------
    max_iter : int
        Sweeps at most; few are needed.

    References
    ----------
    Besag (1986), On the statistical analysis of dirty pictures.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> unary = [[1, 0], [0, 0.5], [1, 0], [0, 3], [0, 3]]
    >>> p = Potentials(Chain([5], n_labels=2), unary, tables=[1, 0, 0, 1])
    >>> found = ICMInference().map(p)
    >>> found.labels, found.score
    (array([0, 0, 0, 1, 1], dtype=int32), array([11.]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})

    def __init__(self, max_iter: int = 1000) -> None:
        check_number("max_iter", max_iter, minimum=1, integer=True)
        self.max_iter = max_iter

    def supports(self, structure: Structure) -> bool:
        return True

    def exact_on(self, structure: Structure) -> bool:
        return False

    def map(self, potentials: Potentials) -> Decoded:
        cliques = potentials.structure.cliques_of_variable
        return improved(partial(_kernels.icm_labels, *cliques), potentials, self.max_iter)

    def __repr__(self) -> str:
        return f"ICMInference(max_iter={self.max_iter})"
