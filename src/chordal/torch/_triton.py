"""The chain operators by Triton's kernels, for CUDA. With TRITON_INTERPRET=1 they run on the CPU.

Imported when first needed: Triton comes with PyTorch for CUDA, and not everywhere else.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton
from torch import Tensor

from chordal.torch import _triton_kernels as kernels
from chordal.torch._scores import Scores, first_steps, last_steps

Two: TypeAlias = "tuple[Tensor, Tensor]"
Four: TypeAlias = "tuple[Tensor, Tensor, Tensor, Tensor]"


class _Given:
    """What kernels take: scores with their strides, a code for each step, the size of a block."""

    def __init__(self, scores: Scores) -> None:
        self.emissions, start, end, tables = (x.detach() for x in scores[:4])
        self.start, self.end = start.contiguous(), end.contiguous()
        self.first, self.last = first_steps(scores.on), last_steps(scores.on)
        self.codes = scores.on.to(torch.int8) + self.first.to(torch.int8)
        strides = [0 if tables.shape[k] == 1 else tables.stride(k) for k in (0, 1)]
        self.scored = (self.emissions, *self.emissions.stride())
        self.tables = (tables, *strides, *tables.stride()[2:])
        self.shape = self.emissions.shape
        self.block = triton.next_power_of_2(max(2, self.shape[2]))

    @property
    def warps(self) -> int:
        """As many as keep a table of transitions in registers."""
        return min(16, max(1, self.block**2 // 1024))


def _totals(given: _Given, tags: Tensor | None, ignore_index: int, keep: bool) -> Two:
    """[1 or 2, B]: see `kernels.forward`; and the states after each step."""
    batch, steps, labels = given.shape
    sums = 1 if tags is None else 2
    totals = given.emissions.new_empty(sums, batch)
    lefts = given.emissions.new_empty((sums, *given.shape) if keep else (1,))
    if batch:
        kernels.forward[(batch,)](
            *given.scored, given.start, given.end, *given.tables,
            given.codes, given.codes if tags is None else tags, ignore_index,
            totals, lefts, batch, steps, labels, batch * steps * labels,
            WITH_TAGS=tags is not None, KEEP=keep, BLOCK=given.block, num_warps=given.warps,
        )  # fmt: skip
    return totals, lefts


def value(scores: Scores, tags: Tensor | None, ignore_index: int) -> Tensor:
    """[B]: log of the sum over labellings that agree with the tags, less log Z."""
    tags = None if tags is None else tags.contiguous()
    totals, _ = _totals(_Given(scores), tags, ignore_index, keep=False)
    return -totals[0] if tags is None else totals[1] - totals[0]


def gradient(scores: Scores, tags: Tensor | None, ignore_index: int, weight: Tensor) -> Four:
    """The derivative of the value in the scores, weighted, and summed over what they share."""
    given = _Given(scores)
    batch, steps, labels = given.shape
    tags = None if tags is None else tags.contiguous()
    totals, lefts = _totals(given, tags, ignore_index, keep=True)
    marginals = given.emissions.new_empty(given.shape)
    each_step = scores.transitions.shape[1] > 1
    shape = (batch, steps if each_step else 1, labels, labels)
    pairs = given.emissions.new_empty(shape)
    if batch:
        kernels.backward[(batch,)](
            *given.scored, given.end, *given.tables,
            given.codes, given.codes if tags is None else tags, ignore_index,
            totals, lefts, weight.detach().contiguous(), marginals, pairs,
            batch, steps, labels, batch * steps * labels,
            WITH_TAGS=tags is not None, EACH_STEP=each_step, BLOCK=given.block,
            num_warps=given.warps,
        )  # fmt: skip
    start = (marginals * given.first.unsqueeze(2)).sum((0, 1))
    end = (marginals * given.last.unsqueeze(2)).sum((0, 1))
    return marginals, start, end, pairs.sum_to_size(scores.transitions.shape)


def viterbi(scores: Scores, pad: int) -> Two:
    """The best tags [B, T], `pad` where steps are off, and their scores [B]."""
    given = _Given(scores)
    batch, steps, labels = given.shape
    pointers = given.codes.new_empty(given.shape, dtype=torch.int16)
    best = given.codes.new_empty((batch, steps), dtype=torch.long)
    score = given.emissions.new_empty(batch)
    if batch:
        kernels.viterbi[(batch,)](
            *given.scored, given.start, given.end, *given.tables,
            given.codes, pointers, best, score, pad, steps, labels,
            BLOCK=given.block, num_warps=given.warps,
        )  # fmt: skip
    return best, score
