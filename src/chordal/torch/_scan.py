"""One step after another along the first axis: a loop, or PyTorch's own operator when exporting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Step: TypeAlias = "Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, tuple[Tensor, ...]]]"


def scan(
    step: Step, state: Tensor, along: Sequence[Tensor], reverse: bool = False
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The last state, and the outputs of all steps, stacked in the order of the steps.

    Exported graphs hold one loop, so that they take sequences of any length.
    """
    if torch.compiler.is_exporting():
        from torch._higher_order_ops.scan import scan as operator

        last, outputs = operator(step, state, tuple(along), reverse=reverse)
        return last, tuple(outputs)
    collected = []
    order = range(len(along[0]))
    for t in reversed(order) if reverse else order:
        state, outputs = step(state, tuple(x[t] for x in along))
        collected.append(outputs)
    if reverse:
        collected.reverse()
    if not collected:  # the shapes of outputs come from a step on nothing
        _, outputs = step(state, tuple(x.new_zeros(x.shape[1:]) for x in along))
        return state, tuple(x.new_empty((0, *x.shape)) for x in outputs)
    return state, tuple(torch.stack(column) for column in zip(*collected, strict=True))
