"""CRF layers for PyTorch: chains, images and graphs, on any device and fast on the CPU.

>>> import torch
>>> from chordal.torch import CRF
>>> crf = CRF(num_tags=3, batch_first=True)
>>> emissions = torch.randn(2, 5, 3)  # from any network
>>> tags = torch.zeros(2, 5, dtype=torch.long)
>>> loss = -crf(emissions, tags, reduction="mean")
>>> loss.backward()
>>> [len(path) for path in crf.decode(emissions)]
[5, 5]
"""

from __future__ import annotations

from chordal._optional import needed

with needed("torch", "chordal.torch"):
    import torch  # noqa: F401

from chordal.torch.constraints import AllowedTransitions, allowed_transitions
from chordal.torch.crf import CRF
from chordal.torch.dense_crf import DenseCRF
from chordal.torch.export import Decoder, Marginals
from chordal.torch.image_crf import ImageCRF
from chordal.torch.loopy_bp import LoopyBP
from chordal.torch.mean_field import MeanField
from chordal.torch.neural_crf import NeuralCRF
from chordal.torch.structured_crf import StructuredCRF

__all__ = [
    "CRF",
    "AllowedTransitions",
    "Decoder",
    "DenseCRF",
    "ImageCRF",
    "LoopyBP",
    "Marginals",
    "MeanField",
    "NeuralCRF",
    "StructuredCRF",
    "allowed_transitions",
]
