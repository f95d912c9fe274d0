"""What a structure can be asked, exactly, by the compiled methods of `chordal.inference`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from chordal.torch import _graph_operators
from chordal.torch._topology import GraphScores, Topology


class Exact(nn.Module):
    """Answers of one exact method, named as in `chordal.inference`."""

    def __init__(self, topology: Topology, method: str) -> None:
        super().__init__()
        self.topology, self.method = topology, method

    def log_partition(self, scores: GraphScores) -> Tensor:
        """[B]."""
        value: Tensor = _graph_operators.graph_log_partition(*self._given(scores))
        return value

    def marginals(self, scores: GraphScores) -> Tensor:
        """[B, N, L]."""
        return self.expectations(scores)[0]

    def clique_marginals(self, scores: GraphScores) -> Tensor:
        """[B, cells], with a separate table for each clique."""
        return self.expectations(scores)[1]

    def expectations(self, scores: GraphScores) -> tuple[Tensor, Tensor]:
        """Marginals [B, N, L], and those of tables [B, cells], summed over their cliques."""
        unary, tables = _graph_operators.graph_marginals(*self._given(scores))
        return unary, tables

    def decode(self, scores: GraphScores) -> Tensor:
        """The best labels, [B, N]."""
        labels: Tensor = _graph_operators.graph_map(*self._given(scores.detach()))[0]
        return labels

    def k_best(self, scores: GraphScores, k: int, pad: int) -> tuple[Tensor, Tensor]:
        """The k best labels [B, k, N] and their scores [B, k]."""
        labels, score = _graph_operators.graph_k_best(*self._given(scores.detach()), k, pad)
        return labels, score

    def sample(self, scores: GraphScores, n: int, generator: torch.Generator | None) -> Tensor:
        """[n, B, N]."""
        device = None if generator is None else generator.device
        seed = torch.randint(2**62, (1,), generator=generator, device=device)
        drawn: Tensor = _graph_operators.graph_sample(*self._given(scores.detach()), n, seed)
        return drawn

    def entropy(self, scores: GraphScores) -> Tensor:
        """[B], in nats: log Z less the mean score."""
        unary, tables = self.expectations(scores)
        mean = (unary * scores.unary.masked_fill(unary == 0.0, 0.0)).sum((1, 2))
        own = scores.tables.expand_as(tables).masked_fill(tables == 0.0, 0.0)  # 0 × −inf
        return self.log_partition(scores) - mean - (tables * own).sum(1)

    def _given(self, scores: GraphScores) -> _graph_operators.Asked:
        tables = scores.tables.expand(scores.unary.shape[0], -1)
        indices = (self.topology.scopes, self.topology.orders)
        tying = (scores.table_of_clique, scores.table_offsets)
        return _graph_operators.Asked(scores.unary, tables, *indices, *tying, self.method)
