"""Modules with one output, for `torch.export` and ONNX."""

from __future__ import annotations

from torch import Tensor, nn

from chordal.torch.crf import CRF


class Decoder(nn.Module):
    """The best tags of a layer, as a tensor in the shape of the steps; -1 where steps are off.

    Examples
    --------
    >>> import torch
    >>> decoder = Decoder(CRF(num_tags=3, batch_first=True))
    >>> decoder(torch.zeros(2, 4, 3), torch.ones(2, 4, dtype=torch.bool)).shape
    torch.Size([2, 4])
    """

    def __init__(self, crf: CRF) -> None:
        super().__init__()
        self.crf = crf

    def forward(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Tags, from emissions and a mask as the layer takes them."""
        return self.crf.viterbi(emissions, mask)[0]


class Marginals(nn.Module):
    """The probability of every tag at every step, from emissions and a mask.

    Examples
    --------
    >>> import torch
    >>> marginals = Marginals(CRF(num_tags=3, batch_first=True))
    >>> marginals(torch.zeros(2, 4, 3)).sum(2).round().tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """

    def __init__(self, crf: CRF) -> None:
        super().__init__()
        self.crf = crf

    def forward(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Probabilities in the shape of emissions."""
        return self.crf.marginals(emissions, mask)
