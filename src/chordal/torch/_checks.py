"""Checks of what the layer is given. Those that look at numbers are left out of compiled graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from chordal._errors import InfeasibleError
from chordal._validate import check_number
from chordal.torch._scores import FORBIDDEN, Scores, first_steps

LARGEST = 2**62
REDUCTIONS = ("none", "sum", "mean", "token_mean")


def looks_at_numbers(tensor: Tensor) -> bool:
    """Whether numbers can be looked at: not while PyTorch traces a graph, nor on "meta"."""
    return not torch.compiler.is_compiling() and not tensor.is_meta


def check_tensor(name: str, value: object) -> None:
    """Refuse arrays, lists and other things that are not tensors."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, got {type(value).__name__}; torch.as_tensor makes one"
        )


def check_count(name: str, value: object, minimum: int = 1) -> None:
    """Refuse what is not a whole number that PyTorch can hold; traced graphs have no others."""
    if torch.compiler.is_compiling() or isinstance(value, torch.SymInt):
        return
    check_number(name, value, minimum=minimum, integer=True)
    assert isinstance(value, int)
    if value > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST}, got {value}")


def check_cost(cost: object) -> None:
    """Refuse costs of wrong labels that are not numbers."""
    if not torch.compiler.is_compiling():
        check_number("cost", cost)


def check_possible(log_z: Tensor) -> Tensor:
    """log Z or best scores [B], unless one is −inf, as nothing is allowed, or overflows."""
    if looks_at_numbers(log_z) and not torch.onnx.is_in_onnx_export():
        large = ~(log_z < torch.inf)
        if bool(large.any()):
            raise ValueError(
                f"the sum of scores of sequence {int(large.nonzero()[0, 0])} overflows: they are "
                "too large; scale the emissions"
            )
        nothing = log_z == FORBIDDEN
        if bool(nothing.any()):
            raise InfeasibleError(int(nothing.nonzero()[0, 0]))
    return log_z


def check_emissions(emissions: Tensor, num_tags: int, like: Tensor) -> None:
    """Refuse emissions of another shape, dtype or device than the layer's."""
    check_tensor("emissions", emissions)
    if emissions.dim() != 3:
        raise ValueError(f"emissions must have dimension of 3, got {emissions.dim()}")
    if emissions.size(2) != num_tags:
        raise ValueError(
            f"expected last dimension of emissions is {num_tags}, got {emissions.size(2)}"
        )
    if not emissions.is_floating_point():
        raise TypeError(f"emissions must be floating point, got {emissions.dtype}")
    same_device("emissions", emissions, "the layer's parameters", like)


def same_device(name: str, tensor: Tensor, other: str, like: Tensor) -> None:
    """Refuse tensors on two devices, and what is not a tensor."""
    check_tensor(name, tensor)
    if tensor.device != like.device:
        raise ValueError(
            f"{name} must be on the device of {other} ({like.device}), got {tensor.device}"
        )


def check_tags(tags: Tensor, emissions: Tensor) -> None:
    """Refuse tags that are neither numbers, sets nor distributions in the emissions' shape."""
    check_tensor("tags", tags)
    two = tuple(emissions.shape[:2])
    if tags.dim() == 3:
        if tags.shape != emissions.shape:
            raise ValueError(
                f"tags as sets or distributions must have the shape of emissions, "
                f"{tuple(emissions.shape)}; got {tuple(tags.shape)}"
            )
        if not (tags.dtype == torch.bool or tags.is_floating_point()):
            raise TypeError(
                "tags with three dimensions must be boolean (sets) or floating point "
                f"(distributions), got {tags.dtype}"
            )
    else:
        if two != tuple(tags.shape):
            raise ValueError(
                "the first two dimensions of emissions and tags must match, "
                f"got {two} and {tuple(tags.shape)}"
            )
        if tags.dtype == torch.bool or tags.is_floating_point():
            raise TypeError(f"tags must be integers, got {tags.dtype}")
    same_device("tags", tags, "emissions", emissions)


def check_mask(mask: Tensor, emissions: Tensor, first: Tensor, any_mask: bool) -> None:
    """Refuse masks of another shape, and such as are off at the first step."""
    if emissions.shape[:2] != mask.shape:
        raise ValueError(
            "the first two dimensions of emissions and mask must match, "
            f"got {tuple(emissions.shape[:2])} and {tuple(mask.shape)}"
        )
    if mask.is_floating_point() or mask.is_complex():
        raise TypeError(f"mask must be boolean or integers, got {mask.dtype}; use mask.bool()")
    same_device("mask", mask, "emissions", emissions)
    if any_mask or not looks_at_numbers(mask) or bool(first.all()):
        return
    # The first words are pytorch-crf's.
    sequence = int((first == 0).nonzero()[0, 0])
    raise ValueError(
        f"mask of the first timestep must all be on; that of sequence {sequence} is off. "
        "any_mask=True allows it"
    )


def check_numbers(scores: Scores) -> None:
    """Refuse NaN and +inf at steps that are on. The compiled kernels look themselves."""
    if not looks_at_numbers(scores.emissions):
        return
    emissions, start, end, transitions, mask = scores
    bad = ~(emissions < torch.inf)
    if mask is not None:
        bad = bad & mask.unsqueeze(2)
    _refuse_bad("emissions", emissions, bad, ("sequence", "step", "tag"))
    _refuse_bad("start_transitions", start, ~(start < torch.inf), ("tag",))
    _refuse_bad("end_transitions", end, ~(end < torch.inf), ("tag",))
    bad = ~(transitions < torch.inf)
    if transitions.shape[1] > 1:  # entries lead into steps; those of others are not used
        bad = bad & (scores.on & ~first_steps(scores.on))[..., None, None]
    _refuse_bad("transitions", transitions, bad, ("sequence", "step", "from tag", "to tag"))


def _refuse_bad(name: str, scores: Tensor, bad: Tensor, axes: tuple[str, ...]) -> None:
    if not bool(bad.any()):
        return
    place = bad.nonzero()[0].tolist()
    what = "nan" if bool(scores[tuple(place)].isnan()) else "+inf"
    sizes = zip(axes, place, scores.shape, strict=True)
    # What all sequences or steps share has none of its own.
    where = ", ".join(f"{a} {i}" for a, i, n in sizes if n > 1 or a not in ("sequence", "step"))
    raise ValueError(f"{name}: {where} is {what}; scores must be numbers below +inf")


def check_range(tags: Tensor, mask: Tensor | None, num_tags: int, ignore_index: int) -> None:
    """Refuse numbers that are not tags, at steps that are on; [B, T]."""
    if not looks_at_numbers(tags):
        return
    bad = ((tags < 0) | (tags >= num_tags)) & (tags != ignore_index)
    if mask is not None:
        bad = bad & mask
    if bool(bad.any()):
        b, t = bad.nonzero()[0].tolist()
        raise ValueError(
            f"tags: sequence {b}, step {t} is {int(tags[b, t])}, which is not a tag; tags are 0 to "
            f"{num_tags - 1}, or {ignore_index} where they were not observed"
        )


def check_distributions(tags: Tensor, mask: Tensor | None) -> None:
    """Refuse rows that are not distributions, at steps that are on; [B, T, L]."""
    if not looks_at_numbers(tags):
        return
    total = tags.sum(2)
    bad = (tags < 0).any(2) | ~((total - 1).abs() < 1e-3)
    if mask is not None:
        bad = bad & mask
    if bool(bad.any()):
        b, t = bad.nonzero()[0].tolist()
        raise ValueError(
            f"tags: sequence {b}, step {t} is not a distribution: probabilities must be at least 0 "
            f"and sum to 1; got {[round(x, 4) for x in tags[b, t].tolist()]}"
        )


def check_reduction(reduction: str) -> None:
    """Refuse unknown reductions, in pytorch-crf's words."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"invalid reduction: {reduction}")
