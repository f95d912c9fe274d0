"""What a chain can be asked, by kernels; `_recursions` has the same functions."""

from __future__ import annotations

import torch
from torch import Tensor

from chordal.torch import _operators
from chordal.torch._scores import Scores


def log_likelihood(scores: Scores, tags: Tensor, ignore_index: int) -> Tensor:
    """[B]: the log probability that the tags [B, T] are as given, where they are given."""
    return _value(scores, tags, ignore_index)


def log_partition(scores: Scores) -> Tensor:
    """[B]: log Z."""
    return -_value(scores, None, 0)


def _value(scores: Scores, tags: Tensor | None, ignore_index: int) -> Tensor:
    """In one go with the gradient, where that will be asked for.

    Not on CUDA: the gradient's weights would have to be looked at, which waits for the device.
    """
    trained = torch.is_grad_enabled() and not torch.compiler.is_exporting()
    on_cpu = scores.emissions.device.type == "cpu"
    if trained and on_cpu and any(own.requires_grad for own in scores[:4]):
        return _operators.chain_value_gradient(*scores, tags, ignore_index)[0]
    return _operators.chain_value(*scores, tags, ignore_index)


def expectations(scores: Scores) -> tuple[Tensor, Tensor]:
    """Marginals [B, T, L], and those of transitions in the shape of the transitions."""
    weight = scores.emissions.new_full((scores.emissions.shape[0],), -1.0)
    marginals, _, _, pairs = _operators.chain_gradient(*scores, None, 0, weight)
    return marginals, pairs


def viterbi(scores: Scores, pad: int) -> tuple[Tensor, Tensor]:
    """The best tags [B, T] and their scores [B]."""
    tags, score = _operators.chain_viterbi(*scores.detach(), pad)
    return tags, score


def best_tags(scores: Scores) -> Tensor:
    """[B, T], and -1 where steps are off; at once, where no graph is traced."""
    if scores.emissions.device.type == "cpu" and not torch.compiler.is_compiling():
        return _operators.viterbi_at_once(scores, -1)[0]
    return viterbi(scores, -1)[0]


def k_best(scores: Scores, k: int, pad: int) -> tuple[Tensor, Tensor]:
    """The k best tags [B, k, T] and their scores [B, k]."""
    tags, score = _operators.chain_k_best(*scores.detach(), k, pad)
    return tags, score


def sample(scores: Scores, uniform: Tensor, pad: int) -> Tensor:
    """Tags [N, B, T], drawn by the uniform numbers [N, B, T]."""
    return _operators.chain_sample(*scores.detach(), uniform, pad)
