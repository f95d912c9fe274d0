"""Mean field as a layer: marginals of independent variables, and a lower bound of log Z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor

from chordal.torch import _fixed_point
from chordal.torch._approximate import Approximate, Iterations, through
from chordal.torch._topology import GraphScores, Topology


@final
class MeanField(Iterations):
    """Settings of mean field, for `StructuredCRF(inference=…)`.

    One iteration updates every variable once, one colour after another. Neighbours have different
    colours, so the lower bound of log Z never falls. The start is the softmax of the unary scores,
    and the answer is a local optimum.

    Parameters
    ----------
    n_iter : int, optional
        Number of iterations of "unrolled" (default 10), or maximum number for "implicit" (default
        1000).
    gradient : {"unrolled", "implicit"}
        "unrolled" differentiates through every iteration, so it is also correct for few iterations.
        "implicit" iterates until nothing changes and differentiates the fixed-point equation:
        memory does not grow with the iterations.
    tol : float
        "implicit" stops when no marginal changes by more than this.

    Examples
    --------
    >>> import torch
    >>> from chordal.structures import Grid
    >>> from chordal.torch import StructuredCRF
    >>> crf = StructuredCRF(Grid([(3, 3)], n_labels=2), inference=MeanField(gradient="implicit"))
    >>> crf.marginals(torch.randn(4, 9, 2)).shape
    torch.Size([4, 9, 2])
    """

    def __init__(
        self, n_iter: int | None = None, gradient: str = "unrolled", tol: float = 1e-6
    ) -> None:
        super().__init__(n_iter, gradient, tol, damping=0.0)

    def on(self, topology: Topology) -> MeanFieldAnswers:
        """Answers on a structure."""
        return MeanFieldAnswers(topology, self)


class MeanFieldAnswers(Approximate):
    """Answers of mean field on one structure."""

    name = "mean_field"
    first: Tensor  # [E], the first end of each edge
    second: Tensor

    def __init__(self, topology: Topology, iterations: Iterations) -> None:
        super().__init__(topology, iterations)
        ends = topology.scopes.reshape(-1, 2)
        self.register_buffer("first", ends[:, 0].contiguous(), persistent=False)
        self.register_buffer("second", ends[:, 1].contiguous(), persistent=False)
        self._names = ["first", "second"]
        colour = _colours(ends.numpy(), topology.n_variables)
        for c in range(int(colour.max(initial=-1)) + 1):
            members = np.flatnonzero(colour == c)
            place = np.zeros(topology.n_variables, dtype=np.int64)
            place[members] = np.arange(len(members))
            self._hold(f"members_{c}", members)
            for end, name in enumerate(("backward", "forward")):
                edges = np.flatnonzero(colour[ends[:, end].numpy()] == c)
                self._hold(f"{name}_{c}", edges)
                self._hold(f"{name}_to_{c}", place[ends[edges, end].numpy()])

    def _hold(self, name: str, index: np.ndarray) -> None:
        self._names.append(name)
        self.register_buffer(name, torch.tensor(index), persistent=False)

    def log_partition(self, scores: GraphScores) -> Tensor:
        """[B]: the lower bound, Σ q · score + the entropy of q."""
        q, tables = self.marginals(scores), scores.edge_tables()
        unary = scores.unary.masked_fill(scores.unary == -torch.inf, 0.0)
        pairs = (through(q[:, self.first], tables) * q[:, self.second]).sum((1, 2))
        entropy = -(q * torch.where(q > 0, q, 1.0).log()).sum((1, 2))
        return (q * unary).sum((1, 2)) + pairs + entropy

    def marginals(self, scores: GraphScores) -> Tensor:
        """[B, N, L]."""
        start = scores.unary.softmax(2)
        indices = [self.get_buffer(name) for name in self._names]
        return self.iterations.run(self.name, start, scores.unary, scores.edge_tables(), indices)

    def clique_marginals(self, scores: GraphScores) -> Tensor:
        """[B, cells]: products."""
        q = self.marginals(scores)
        return (q[:, self.first].unsqueeze(3) * q[:, self.second].unsqueeze(2)).flatten(1)


def _step(
    q: Tensor, unary: Tensor, tables: Tensor, indices: Sequence[Tensor], damping: float
) -> Tensor:
    """Every colour in turn; indices are both ends of all edges, and five tensors a colour."""
    first, second, *colours = indices
    own = tables.shape[1] > 1  # a table for each edge
    for c in range(0, len(colours), 5):
        members, *incoming = colours[c : c + 5]
        field = unary[:, members]
        for edges, to, source, turned in (
            (*incoming[2:], first, tables),
            (*incoming[:2], second, tables.transpose(2, 3)),
        ):
            message = through(q[:, source[edges]], turned[:, edges] if own else turned)
            field = field.index_add(1, to, message)
        q = q.index_copy(1, members, field.softmax(2))
    return q


_fixed_point.register(MeanFieldAnswers.name, _step)


def _colours(ends: np.ndarray, n_variables: int) -> np.ndarray:
    """A colour for each variable, greedily: other than those of its neighbours before it."""
    neighbours: list[list[int]] = [[] for _ in range(n_variables)]
    for a, b in ends.tolist():
        neighbours[max(a, b)].append(min(a, b))
    colour = np.zeros(n_variables, dtype=np.int64)
    for v, before in enumerate(neighbours):
        taken = {int(colour[u]) for u in before}
        colour[v] = next(c for c in range(len(taken) + 1) if c not in taken)
    return colour
