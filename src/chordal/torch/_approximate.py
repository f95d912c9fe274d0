"""What approximate layers have in common: pairs of variables, and steps towards a fixed point."""

from __future__ import annotations

from abc import abstractmethod
from typing import NoReturn

import torch
from torch import Tensor, nn

from chordal._errors import UnsupportedError
from chordal._validate import check_number
from chordal.torch import _fixed_point
from chordal.torch._graph_checks import check_answer, check_possible
from chordal.torch._scores import full_precision
from chordal.torch._topology import GraphScores, Topology


class Iterations:
    """How many steps are taken, and where derivatives come from; checked.

    gradient : {"unrolled", "implicit"}
    """

    def __init__(self, n_iter: int | None, gradient: str, tol: float, damping: float) -> None:
        if gradient not in ("unrolled", "implicit"):
            raise ValueError(f"gradient must be 'unrolled' or 'implicit', got {gradient!r}")
        self.n_iter = n_iter if n_iter is not None else 1000 if gradient == "implicit" else 10
        if isinstance(self.n_iter, bool) or not isinstance(self.n_iter, int) or self.n_iter < 1:
            raise ValueError(f"n_iter must be a whole number of at least 1, got {n_iter!r}")
        check_number("tol", tol, strict=True)
        check_number("damping", damping)
        if damping >= 1:
            raise ValueError(f"damping must be at least 0 and below 1, got {damping!r}")
        self.gradient, self.tol, self.damping = gradient, tol, damping

    def run(
        self, name: str, start: Tensor, unary: Tensor, tables: Tensor, indices: list[Tensor]
    ) -> Tensor:
        """From the start to the end of the iteration, with derivatives."""
        check_possible(unary, 2)
        iteration = _fixed_point.Iteration(
            start, unary, tables, indices, name, self.damping, self.n_iter, self.tol
        )
        implicit = self.gradient == "implicit"
        found = _fixed_point.implicit(iteration) if implicit else _fixed_point.unrolled(iteration)
        return check_answer(found, f"the layer's inference {name!r}", "scale the scores")


class Approximate(nn.Module):
    """Answers of an approximate method on graphs: log Z and marginals.

    The labels that `decode` gives are the most probable one of each variable.
    """

    name = ""

    def __init__(self, topology: Topology, iterations: Iterations) -> None:
        if any(size != 2 for size in topology.sizes):
            raise UnsupportedError(
                f"the layer's inference {self.name!r} works on edges, but structure has cliques of "
                f"{max(topology.sizes, key=lambda size: abs(size - 2))} variables; use an exact "
                "method, such as 'junction_tree'"
            )
        super().__init__()
        self.iterations = iterations

    @abstractmethod
    def log_partition(self, scores: GraphScores) -> Tensor:
        """[B]."""

    @abstractmethod
    def marginals(self, scores: GraphScores) -> Tensor:
        """[B, N, L]."""

    @abstractmethod
    def clique_marginals(self, scores: GraphScores) -> Tensor:
        """[B, cells], with a separate table for each clique."""

    def decode(self, scores: GraphScores) -> Tensor:
        """The most probable label of each variable, [B, N]."""
        with torch.no_grad():
            return self.marginals(scores.detach()).argmax(2)

    def k_best(self, scores: GraphScores, k: int, pad: int) -> NoReturn:
        """Refused."""
        self._refuse("k_best")

    def sample(self, scores: GraphScores, n: int, generator: torch.Generator | None) -> NoReturn:
        """Refused."""
        self._refuse("sample")

    def entropy(self, scores: GraphScores) -> NoReturn:
        """Refused."""
        self._refuse("entropy")

    def _refuse(self, question: str) -> NoReturn:
        raise UnsupportedError(
            f"the layer's inference {self.name!r} does not compute {question!r}; exact methods do: "
            "'tree' and 'junction_tree'"
        )


def through(values: Tensor, tables: Tensor) -> Tensor:
    """Σ over the first label of values [B, E, L] × tables [1 or B, 1 or E, L, L]: [B, E, L]."""
    if tables.shape[:2] == (1, 1):
        with full_precision(values):
            return values @ tables[0, 0]
    return (values.unsqueeze(3) * tables).sum(2)
