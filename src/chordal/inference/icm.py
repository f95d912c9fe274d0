"""Iterated conditional modes: each variable, or tree, in turn takes its best labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, final

from chordal import _kernels
from chordal._validate import check_choice, check_number
from chordal.inference._answers import Decoded
from chordal.inference._base import Inference
from chordal.inference._moves import improved, improved_by_trees
from chordal.potentials import Potentials
from chordal.structures import Structure


@final
class ICMInference(Inference):
    """A labelling that no single change improves; for any structure, very fast.

    It starts at the best label of each single variable. Sweeps, in which each variable takes its
    best label given all others, continue until nothing changes. It stops at the first local
    optimum: use it as a baseline, to improve the result of another method, or if nothing else is
    affordable. Constraints (−inf) are respected; if the sweeps find no allowed labelling, they
    restart from one found by search. The bound is rough.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of sweeps; few are needed.
    blocks : {"single", "tree"}, default="single"
        With "tree", variables are split into forests; each forest takes its best labels given the
        rest, until none gains. This is slower and much better.

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
    # Stops at the first local optimum.
    quality: ClassVar[Mapping[str, int]] = {"map": 30}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        max_iter: int = 1000,
        blocks: str = "single",
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("max_iter", max_iter, minimum=1, integer=True)
        check_choice("blocks", blocks, ("single", "tree"))
        self.max_iter, self.blocks = max_iter, blocks

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Never: it ends in a local optimum."""
        return False

    def map(self, potentials: Potentials) -> Decoded:
        """A labelling that no change of one block improves."""
        sweeps = partial(_kernels.icm_labels, incidence=potentials.structure.incidence)
        found = improved(sweeps, potentials, self.max_iter)
        if self.blocks == "single":
            return found
        return improved_by_trees(potentials, found, self.max_iter)
