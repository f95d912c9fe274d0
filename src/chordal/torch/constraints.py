"""Which tags may begin, follow each other and end, by the names of tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from chordal._schemes import SCHEMES, misfit, scheme_of, split_tag
from chordal.torch._checks import check_tensor


class AllowedTransitions(NamedTuple):
    """Boolean tensors: True where a tag may be."""

    start: Tensor  # [L], at the first step
    end: Tensor  # [L], at the last step
    between: Tensor  # [L, L], from a row's tag to a column's


def allowed_transitions(tags: Sequence[str], scheme: str = "auto") -> AllowedTransitions:
    """What a scheme of spans allows: BIO, IOB1, IOBES or BILOU.

    Parameters
    ----------
    tags : sequence of str
        The names of the tags, in the order of their numbers.
    scheme : {"auto", "bio", "iob1", "iobes", "bilou"}
        How tags write spans; "auto" finds out by the names.

    Examples
    --------
    >>> allowed = allowed_transitions(["O", "B-PER", "I-PER"])
    >>> allowed.start.tolist(), allowed.between[0].tolist()
    ([True, True, False], [True, True, False])
    """
    names = [str(tag) for tag in tags]
    if scheme != "auto" and scheme not in SCHEMES:
        known = ", ".join(map(repr, ("auto", *SCHEMES)))
        raise ValueError(f"scheme must be one of {known}; got {scheme!r}")
    if scheme == "auto":
        found = scheme_of(names)
        if found is None:
            known = ", ".join(SCHEMES)
            raise ValueError(f"tags are of no known scheme ({known}); got {names}")
        scheme = found
    reason = misfit(names, scheme)
    if reason is not None:
        raise ValueError(f"tags are not of the scheme {scheme!r}: {reason}")
    allows, split = SCHEMES[scheme].allows, [split_tag(name) for name in names]
    return AllowedTransitions(
        start=torch.tensor([allows(None, tag) for tag in split]),
        # A span may end the sequence only where "O" could follow it.
        end=torch.tensor([allows(tag, ("O", "")) for tag in split]),
        between=torch.tensor([[allows(a, b) for b in split] for a in split]),
    )


def checked(allowed: AllowedTransitions | Tensor, num_tags: int) -> AllowedTransitions:
    """Three boolean tensors of the right shapes; a matrix alone allows every start and end."""
    if isinstance(allowed, Tensor):
        anywhere = torch.ones(num_tags, dtype=torch.bool)
        allowed = AllowedTransitions(anywhere, anywhere.clone(), allowed)
    if not isinstance(allowed, AllowedTransitions):
        raise TypeError(
            "allowed_transitions must be a boolean matrix, or what the function "
            f"chordal.torch.allowed_transitions gives; got {type(allowed).__name__}"
        )
    shapes = ((num_tags,), (num_tags,), (num_tags, num_tags))
    for name, tensor, shape in zip(allowed._fields, allowed, shapes, strict=True):
        check_tensor(f"allowed_transitions: {name}", tensor)
        if tensor.dtype != torch.bool or tuple(tensor.shape) != shape:
            raise ValueError(
                f"allowed_transitions: {name} must be boolean, of shape {shape}; got "
                f"{tensor.dtype} of shape {tuple(tensor.shape)}"
            )
    return allowed
