"""The compiled kernels as PyTorch operators, for tensors on the CPU.

`chordal::chain_value` is the log-likelihood, or −log Z without tags. Its derivative is
`chordal::chain_gradient`, whose own is `chordal::chain_curvature`. They are registered with their
derivatives and shapes, so that `torch.compile` and `torch.export` take them as they are. Where a
derivative will be asked for, `chordal::chain_value_gradient` finds value and gradient in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor

from chordal import _kernels
from chordal._errors import InfeasibleError

if TYPE_CHECKING:
    Context: TypeAlias = Any  # what PyTorch hands from an operator to its derivative

Four: TypeAlias = "tuple[Tensor, Tensor, Tensor, Tensor]"
Five: TypeAlias = "tuple[Tensor, Tensor, Tensor, Tensor, Tensor]"

_SCORES = "Tensor emissions, Tensor start, Tensor end, Tensor transitions, Tensor? mask"
_TAGS = f"{_SCORES}, Tensor? tags, int ignore_index"
_KNOWN = ", ".join(
    f"Tensor? k_{name}=None" for name in ("emissions", "start", "end", "transitions")
)
_DIRECTION = "Tensor d_emissions, Tensor d_start, Tensor d_end, Tensor d_transitions"


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


def _arrays(emissions: Tensor, start: Tensor, end: Tensor, transitions: Tensor) -> dict[str, Any]:
    return {
        "emissions": emissions.detach().numpy(),
        "start": start.detach().contiguous().numpy(),
        "end": end.detach().contiguous().numpy(),
        "transitions": transitions.detach().numpy(),
    }


def _chains(
    emissions: Tensor,
    start: Tensor,
    end: Tensor,
    transitions: Tensor,
    mask: Tensor | None,
    tags: Tensor | None = None,
    ignore_index: int = -1,
) -> _kernels.PaddedChains64:
    classes = _CLASSES[emissions.dtype]
    return classes.chains(
        classes.scores(**_arrays(emissions, start, end, transitions)),
        mask=None if mask is None else mask.numpy(),
        tags=None if tags is None else tags.numpy(),
        ignore_index=ignore_index,
        threads=torch.get_num_threads(),
    )


def _refuse(infeasible: int) -> None:
    if infeasible >= 0:
        raise InfeasibleError(infeasible)


def _parts(emissions: Tensor, start: Tensor, end: Tensor, transitions: Tensor) -> Four:
    return (
        torch.empty_like(emissions),
        torch.empty_like(start, memory_format=torch.contiguous_format),
        torch.empty_like(end, memory_format=torch.contiguous_format),
        transitions.new_zeros(transitions.shape),
    )


def _value(*given: Any) -> Tensor:
    emissions = given[0]
    out = emissions.new_empty(emissions.shape[0])
    _refuse(_chains(*given).value(out.numpy()))
    return out


def _value_gradient(*given: Any) -> Five:
    emissions, parts = given[0], _parts(*given[:4])
    value, weight = (emissions.new_ones(emissions.shape[0]) for _ in range(2))
    bound = _CLASSES[emissions.dtype].parts(**_arrays(*parts))
    _refuse(_chains(*given).gradient(bound, weight=weight.numpy(), value=value.numpy()))
    return (value, *parts)


def _gradient(*given: Any) -> Four:
    scored, weight, known = given[:7], given[7], given[8:]
    if known and known[0] is not None and len(weight) > 0 and bool((weight == weight[0]).all()):
        emissions, start, end, transitions = (part * weight[0] for part in known)
        return emissions, start, end, transitions
    parts = _parts(*scored[:4])
    bound = _CLASSES[weight.dtype].parts(**_arrays(*parts))
    _refuse(_chains(*scored).gradient(bound, weight=weight.detach().contiguous().numpy()))
    return parts


def _curvature(*given: Any) -> Five:
    scored, weight, direction = given[:7], given[7], given[8:]
    parts, classes = _parts(*scored[:4]), _CLASSES[weight.dtype]
    slope = torch.empty_like(weight, memory_format=torch.contiguous_format)
    infeasible = _chains(*scored).curvature(
        classes.parts(**_arrays(*parts)),
        direction=classes.scores(**_arrays(*direction)),
        weight=weight.detach().contiguous().numpy(),
        slope=slope.numpy(),
    )
    _refuse(infeasible)
    return (*parts, slope)


def _viterbi(*given: Any) -> tuple[Tensor, Tensor]:
    *scores, pad = given
    tags = torch.full(scores[0].shape[:2], pad, dtype=torch.long)
    score = scores[0].new_empty(len(tags))
    _refuse(_chains(*scores).viterbi(score=score.numpy(), tags=tags.numpy()))
    return tags, score


def _k_best(*given: Any) -> tuple[Tensor, Tensor]:
    *scores, k, pad = given
    batch, steps = scores[0].shape[:2]
    tags = torch.full((batch, k, steps), pad, dtype=torch.long)
    score = scores[0].new_empty(batch, k)
    _refuse(_chains(*scores).k_best(score=score.numpy(), tags=tags.numpy()))
    return tags, score


def _sample(*given: Any) -> Tensor:
    *scores, uniform, pad = given
    tags = torch.full(uniform.shape, pad, dtype=torch.long)
    _refuse(_chains(*scores).sample(uniform=uniform.numpy(), tags=tags.numpy()))
    return tags


def _operator(name: str, function: object, schema: str) -> Any:
    return torch.library.custom_op(f"chordal::{name}", function, mutates_args=(), schema=schema)


# [B]: log of the sum over labellings that agree with the tags, less log Z.
chain_value = _operator("chain_value", _value, f"({_TAGS}) -> Tensor")
# The same, and what `chain_gradient` gives for weights of one.
chain_value_gradient = _operator(
    "chain_value_gradient",
    _value_gradient,
    f"({_TAGS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
# Its derivative, weighted and summed over the batch; `known` may be that for weights of one.
chain_gradient = _operator(
    "chain_gradient",
    _gradient,
    f"({_TAGS}, Tensor weight, {_KNOWN}) -> (Tensor, Tensor, Tensor, Tensor)",
)
# The derivative of `chain_gradient` in a direction, and the slope of each value along it, [B].
chain_curvature = _operator(
    "chain_curvature",
    _curvature,
    f"({_TAGS}, Tensor weight, {_DIRECTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
# The best tags [B, T], `pad` where steps are off, and their scores [B].
chain_viterbi = _operator("chain_viterbi", _viterbi, f"({_SCORES}, int pad) -> (Tensor, Tensor)")
# The k best tags [B, k, T] and their scores [B, k], −inf where there are fewer.
chain_k_best = _operator(
    "chain_k_best", _k_best, f"({_SCORES}, SymInt k, int pad) -> (Tensor, Tensor)"
)
# Tags [N, B, T] drawn by uniform numbers [N, B, T], float64.
chain_sample = _operator("chain_sample", _sample, f"({_SCORES}, Tensor uniform, int pad) -> Tensor")


def _like_value(*given: Any) -> Tensor:
    return given[0].new_empty(given[0].shape[0])


def _like_gradient(*given: Any) -> Four:
    return _parts(*given[:4])


def _like_curvature(*given: Any) -> Five:
    return (*_parts(*given[:4]), given[0].new_empty(given[0].shape[0]))


def _like_viterbi(*given: Any) -> tuple[Tensor, Tensor]:
    tags = given[0].new_empty(given[0].shape[:2], dtype=torch.long)
    return tags, given[0].new_empty(given[0].shape[0])


def _like_k_best(*given: Any) -> tuple[Tensor, Tensor]:
    (batch, steps), k = given[0].shape[:2], given[5]
    tags = given[0].new_empty((batch, k, steps), dtype=torch.long)
    return tags, given[0].new_empty((batch, k))


def _like_sample(*given: Any) -> Tensor:
    return given[5].new_empty(given[5].shape, dtype=torch.long)


def _like_value_gradient(*given: Any) -> Five:
    return (_like_value(*given), *_parts(*given[:4]))


chain_value.register_fake(_like_value)
chain_value_gradient.register_fake(_like_value_gradient)
chain_gradient.register_fake(_like_gradient)
chain_curvature.register_fake(_like_curvature)
chain_viterbi.register_fake(_like_viterbi)
chain_k_best.register_fake(_like_k_best)
chain_sample.register_fake(_like_sample)


def _keep(ctx: Context, inputs: Sequence[Any], output: object) -> None:
    emissions, start, end, transitions, mask, tags, ctx.ignore_index, *weight = inputs
    ctx.save_for_backward(emissions, start, end, transitions, mask, tags, *weight[:1])


def _keep_parts(ctx: Context, inputs: Sequence[Any], output: Five) -> None:
    *scored, ctx.ignore_index = inputs
    ctx.save_for_backward(*scored, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _value_backward(ctx: Context, weight: Tensor) -> tuple[Tensor | None, ...]:
    parts = chain_gradient(*ctx.saved_tensors, ctx.ignore_index, weight)
    return (*parts, None, None, None)


def _value_gradient_backward(
    ctx: Context, weight: Tensor, *others: Tensor | None
) -> tuple[Tensor | None, ...]:
    scored, known = ctx.saved_tensors[:6], ctx.saved_tensors[6:]
    parts = chain_gradient(*scored, ctx.ignore_index, weight, *known)
    return (*parts, None, None, None)


def _gradient_backward(ctx: Context, *direction: Tensor) -> tuple[Tensor | None, ...]:
    *saved, weight = ctx.saved_tensors
    *parts, slope = chain_curvature(*saved, ctx.ignore_index, weight, *direction)
    return (*parts, None, None, None, slope, None, None, None, None)


chain_value.register_autograd(_value_backward, setup_context=_keep)
chain_value_gradient.register_autograd(_value_gradient_backward, setup_context=_keep_parts)
chain_gradient.register_autograd(_gradient_backward, setup_context=_keep)
