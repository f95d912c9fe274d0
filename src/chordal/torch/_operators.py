"""The chain's kernels as PyTorch operators: compiled ones on the CPU, Triton's on CUDA.

`chordal::chain_value` is the log-likelihood, or −log Z without tags. Its derivative is
`chordal::chain_gradient`, whose own is `chordal::chain_curvature`. They are registered with their
derivatives and shapes, so that `torch.compile` and `torch.export` take them as they are. Where a
derivative will be asked for on the CPU, `chordal::chain_value_gradient` finds both in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, cast

import numpy as np
import torch
from torch import Tensor

from chordal import _kernels
from chordal._errors import InfeasibleError
from chordal._optional import installed
from chordal.torch import _recursions
from chordal.torch._custom_operators import Family
from chordal.torch._scores import Scores
from chordal.torch._tangents import curvature

if TYPE_CHECKING:
    from chordal.torch._custom_operators import Context

Two: TypeAlias = "tuple[Tensor, Tensor]"
Four: TypeAlias = "tuple[Tensor, Tensor, Tensor, Tensor]"
Five: TypeAlias = "tuple[Tensor, Tensor, Tensor, Tensor, Tensor]"
Derivatives: TypeAlias = "tuple[Tensor | None, ...]"

#: Tags that Triton's kernels take: a table of transitions stays in a processor's registers.
MOST_TAGS = 128

_SCORES = "Tensor emissions, Tensor start, Tensor end, Tensor transitions, Tensor? mask"
_TAGS = ("Tensor? tags", "int ignore_index")
_FIELDS = ("emissions", "start", "end", "transitions")
_KNOWN = [f"Tensor? k_{name}=None" for name in _FIELDS]
_DIRECTION = [f"Tensor d_{name}" for name in _FIELDS]


def kernels_serve(device: str, num_tags: int) -> bool:
    """Whether there are kernels for a type of device and so many tags."""
    if device == "cuda":
        return num_tags <= MOST_TAGS and installed("triton")
    return device == "cpu"


class _Classes(NamedTuple):
    scores: type[_kernels.PaddedScores64]
    parts: type[_kernels.PaddedParts64]
    chains: type[_kernels.PaddedChains64]


# The classes for float32 have the methods of those for float64, and arrays of their own type.
_NARROW = (_kernels.PaddedScores32, _kernels.PaddedParts32, _kernels.PaddedChains32)
_CLASSES = {
    torch.float32: _Classes(*cast("tuple[Any, Any, Any]", _NARROW)),
    torch.float64: _Classes(
        _kernels.PaddedScores64, _kernels.PaddedParts64, _kernels.PaddedChains64
    ),
}


class _Arrays(TypedDict):
    emissions: np.ndarray
    start: np.ndarray
    end: np.ndarray
    transitions: np.ndarray


def _arrays(emissions: Tensor, start: Tensor, end: Tensor, transitions: Tensor) -> _Arrays:
    return {
        "emissions": emissions.detach().numpy(),
        "start": start.detach().contiguous().numpy(),
        "end": end.detach().contiguous().numpy(),
        "transitions": transitions.detach().numpy(),
    }


def _chains(
    scores: Scores, tags: Tensor | None = None, ignore_index: int = -1
) -> _kernels.PaddedChains64:
    classes = _CLASSES[scores.emissions.dtype]
    return classes.chains(
        classes.scores(**_arrays(*scores[:4])),
        mask=None if scores.mask is None else scores.mask.numpy(),
        tags=None if tags is None else tags.numpy(),
        ignore_index=ignore_index,
        threads=torch.get_num_threads(),
    )


def _refuse(infeasible: int) -> None:
    if infeasible >= 0:
        raise InfeasibleError(infeasible)


def _parts(scores: Scores) -> Four:
    return (
        torch.empty_like(scores.emissions),
        torch.empty_like(scores.start, memory_format=torch.contiguous_format),
        torch.empty_like(scores.end, memory_format=torch.contiguous_format),
        scores.transitions.new_zeros(scores.transitions.shape),
    )


def _value(scores: Scores, tags: Tensor | None, ignore_index: int) -> Tensor:
    out = _like_value(scores)
    _refuse(_chains(scores, tags, ignore_index).value(out.numpy()))
    return out


def _value_gradient(scores: Scores, tags: Tensor | None, ignore_index: int) -> Five:
    parts = _parts(scores)
    value, weight = _like_value(scores), torch.ones_like(_like_value(scores))
    bound = _CLASSES[value.dtype].parts(**_arrays(*parts))
    chains = _chains(scores, tags, ignore_index)
    _refuse(chains.gradient(bound, weight=weight.numpy(), value=value.numpy()))
    return (value, *parts)


def _gradient(
    scores: Scores, tags: Tensor | None, ignore_index: int, weight: Tensor, *known: Tensor | None
) -> Four:
    if known and known[0] is not None and len(weight) > 0 and bool((weight == weight[0]).all()):
        emissions, start, end, transitions = (part * weight[0] for part in known)
        return emissions, start, end, transitions
    parts = _parts(scores)
    bound = _CLASSES[weight.dtype].parts(**_arrays(*parts))
    chains = _chains(scores, tags, ignore_index)
    _refuse(chains.gradient(bound, weight=weight.detach().contiguous().numpy()))
    return parts


def _curvature(
    scores: Scores, tags: Tensor | None, ignore_index: int, weight: Tensor, *direction: Tensor
) -> Five:
    emissions, start, end, transitions = direction
    parts, classes = _parts(scores), _CLASSES[weight.dtype]
    slope = torch.empty_like(weight, memory_format=torch.contiguous_format)
    infeasible = _chains(scores, tags, ignore_index).curvature(
        classes.parts(**_arrays(*parts)),
        direction=classes.scores(**_arrays(emissions, start, end, transitions)),
        weight=weight.detach().contiguous().numpy(),
        slope=slope.numpy(),
    )
    _refuse(infeasible)
    return (*parts, slope)


def viterbi_at_once(scores: Scores, pad: int) -> Two:
    """What `chain_viterbi` gives on the CPU, without the time that PyTorch takes for operators."""
    tags = torch.full(scores.emissions.shape[:2], pad, dtype=torch.long)
    score = _like_value(scores)
    _refuse(_chains(scores).viterbi(score=score.numpy(), tags=tags.numpy()))
    return tags, score


def _k_best(scores: Scores, k: int, pad: int) -> Two:
    batch, steps = scores.emissions.shape[:2]
    tags = torch.full((batch, k, steps), pad, dtype=torch.long)
    score = scores.emissions.new_empty(batch, k)
    _refuse(_chains(scores).k_best(score=score.numpy(), tags=tags.numpy()))
    return tags, score


def _sample(scores: Scores, uniform: Tensor, pad: int) -> Tensor:
    tags = torch.full(uniform.shape, pad, dtype=torch.long)
    _refuse(_chains(scores).sample(uniform=uniform.numpy(), tags=tags.numpy()))
    return tags


def _like_value(scores: Scores, *rest: object) -> Tensor:
    return scores.emissions.new_empty(scores.emissions.shape[0])


def _like_gradient(scores: Scores, *rest: object) -> Four:
    return _parts(scores)


def _like_value_gradient(scores: Scores, *rest: object) -> Five:
    return (_like_value(scores), *_parts(scores))


def _like_curvature(scores: Scores, *rest: object) -> Five:
    return (*_parts(scores), _like_value(scores))


def _like_viterbi(scores: Scores, pad: int) -> Two:
    tags = scores.emissions.new_empty(scores.emissions.shape[:2], dtype=torch.long)
    return tags, _like_value(scores)


def _like_k_best(scores: Scores, k: int, pad: int) -> Two:
    batch, steps = scores.emissions.shape[:2]
    tags = scores.emissions.new_empty((batch, k, steps), dtype=torch.long)
    return tags, scores.emissions.new_empty((batch, k))


def _like_sample(scores: Scores, uniform: Tensor, pad: int) -> Tensor:
    return uniform.new_empty(uniform.shape, dtype=torch.long)


_family = Family(Scores, _SCORES, "cpu")
_operator = _family.operator
# [B]: log of the sum over labellings that agree with the tags, less log Z.
chain_value = _operator("chain_value", _value, _like_value, *_TAGS)
# The same, and what `chain_gradient` gives for weights of one.
chain_value_gradient = _operator(
    "chain_value_gradient", _value_gradient, _like_value_gradient, *_TAGS, gives=5
)
# Its derivative, weighted and summed over the batch; `known` may be that for weights of one.
chain_gradient = _operator(
    "chain_gradient", _gradient, _like_gradient, *_TAGS, "Tensor weight", *_KNOWN, gives=4
)
# The derivative of `chain_gradient` in a direction, and the slope of each value along it, [B].
chain_curvature = _operator(
    "chain_curvature", _curvature, _like_curvature, *_TAGS, "Tensor weight", *_DIRECTION, gives=5
)
# The best tags [B, T], `pad` where steps are off, and their scores [B].
chain_viterbi = _operator("chain_viterbi", viterbi_at_once, _like_viterbi, "int pad", gives=2)
# The k best tags [B, k, T] and their scores [B, k], −inf where there are fewer.
chain_k_best = _operator("chain_k_best", _k_best, _like_k_best, "SymInt k", "int pad", gives=2)
# Tags [N, B, T] drawn by uniform numbers [N, B, T], float64.
chain_sample = _operator("chain_sample", _sample, _like_sample, "Tensor uniform", "int pad")


def register_triton(device: str) -> None:
    """Take Triton's kernels for a type of device; of tests, also for the CPU."""

    def value(scores: Scores, tags: Tensor | None, ignore_index: int) -> Tensor:
        from chordal.torch import _triton

        return _triton.value(scores, tags, ignore_index)

    def gradient(
        scores: Scores, tags: Tensor | None, ignore_index: int, weight: Tensor, *known: object
    ) -> Four:
        from chordal.torch import _triton

        return _triton.gradient(scores, tags, ignore_index, weight)

    def viterbi(scores: Scores, pad: int) -> Two:
        from chordal.torch import _triton

        return _triton.viterbi(scores, pad)

    flat = _family.flat
    chain_value.register_kernel(device, flat(value))
    chain_gradient.register_kernel(device, flat(gradient))
    chain_curvature.register_kernel(device, flat(curvature))
    chain_viterbi.register_kernel(device, flat(viterbi))
    chain_k_best.register_kernel(device, flat(_recursions.k_best))
    chain_sample.register_kernel(device, flat(_recursions.sample))


register_triton("cuda")


def _keep(ctx: Context, inputs: Sequence[object], output: object) -> None:
    emissions, start, end, transitions, mask, tags, ctx.ignore_index, *weight = inputs
    ctx.save_for_backward(emissions, start, end, transitions, mask, tags, *weight[:1])


def _keep_parts(ctx: Context, inputs: Sequence[object], output: Five) -> None:
    *scored, ctx.ignore_index = inputs
    ctx.save_for_backward(*scored, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _value_backward(ctx: Context, weight: Tensor) -> Derivatives:
    parts = chain_gradient(*ctx.saved_tensors, ctx.ignore_index, weight)
    return (*parts, None, None, None)


def _value_gradient_backward(ctx: Context, weight: Tensor, *others: Tensor | None) -> Derivatives:
    scored, known = ctx.saved_tensors[:6], ctx.saved_tensors[6:]
    parts = chain_gradient(*scored, ctx.ignore_index, weight, *known)
    return (*parts, None, None, None)


def _gradient_backward(ctx: Context, *direction: Tensor) -> Derivatives:
    *saved, weight = ctx.saved_tensors
    *parts, slope = chain_curvature(*saved, ctx.ignore_index, weight, *direction)
    return (*parts, None, None, None, slope, None, None, None, None)


chain_value.register_autograd(_value_backward, setup_context=_keep)
chain_value_gradient.register_autograd(_value_gradient_backward, setup_context=_keep_parts)
chain_gradient.register_autograd(_gradient_backward, setup_context=_keep)
