"""The scores of a padded batch of chains, as both ways of computing take them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

FORBIDDEN = float("-inf")


class Scores(NamedTuple):
    """Scores with the batch first, of one dtype (float32 or float64) and on one device.

    Steps that the mask turns off are left out, wherever they are, as if the sequence did not
    have them.
    """

    emissions: Tensor  # [B, T, L]
    start: Tensor  # [L], for the first step that is on
    end: Tensor  # [L], for the last one
    transitions: Tensor  # [1 or B, 1 or T, L, L]; entry t leads into step t
    mask: Tensor | None  # [B, T], bool; None: all steps are on

    @property
    def on(self) -> Tensor:
        """The mask, also where none was given."""
        if self.mask is not None:
            return self.mask
        return self.emissions.new_ones(self.emissions.shape[:2], dtype=torch.bool)

    def detach(self) -> Scores:
        """The same without derivatives."""
        emissions, start, end, transitions = (x.detach() for x in self[:4])
        return Scores(emissions, start, end, transitions, self.mask)

    def held(self, allowed: Tensor) -> Scores:
        """The same with tags forbidden: `allowed` is [B, T, L]."""
        return self._replace(emissions=self.emissions.masked_fill(~allowed, FORBIDDEN))

    def with_ends_in_emissions(self) -> Scores:
        """The same scores of labellings, with start and end scores added to the emissions."""
        first, last = first_steps(self.on), last_steps(self.on)
        emissions = self.emissions + first.unsqueeze(2) * self._finite(self.start)
        emissions = emissions + last.unsqueeze(2) * self._finite(self.end)
        for where, score in ((first, self.start), (last, self.end)):
            emissions = emissions.masked_fill(where.unsqueeze(2) & (score == FORBIDDEN), FORBIDDEN)
        nothing = torch.zeros_like(self.start)
        return self._replace(emissions=emissions, start=nothing, end=nothing)

    @staticmethod
    def _finite(score: Tensor) -> Tensor:
        return score.masked_fill(score == FORBIDDEN, 0.0)  # 0 × −inf would be NaN


def common_dtype(*tensors: Tensor) -> torch.dtype:
    """The dtype to compute in: the widest there is, and float32 at least."""
    widest = torch.float32
    for tensor in tensors:
        widest = torch.promote_types(widest, tensor.dtype)
    return widest


def full_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """Products are taken in the tensors' own dtype, also where autocast would halve it."""
    device = tensor.device.type
    if not torch.amp.is_autocast_available(device):
        return nullcontext()
    made: AbstractContextManager[object] = torch.autocast(device, enabled=False)
    return made


def agreeing(tags: Tensor, n_tags: int, ignore_index: int) -> Tensor:
    """[…, n_tags]: what agrees with tags of any shape; everything, where they were not observed."""
    labels = torch.arange(n_tags, device=tags.device)
    return (tags.unsqueeze(-1) == labels) | (tags == ignore_index).unsqueeze(-1)


def first_steps(on: Tensor) -> Tensor:
    """[B, T]: True at the first step that is on."""
    return on & (on.cumsum(1) == 1)


def last_steps(on: Tensor) -> Tensor:
    """[B, T]: True at the last step that is on."""
    return on & (on.flip(1).cumsum(1).flip(1) == 1)


def steps_before(on: Tensor) -> Tensor:
    """[B, T]: the step that is on before each; 0 if there is none."""
    if on.shape[1] == 0:
        return on.long()
    step = torch.arange(on.shape[1], device=on.device)
    latest = torch.where(on, step, 0).cummax(1).values
    return torch.cat([torch.zeros_like(latest[:, :1]), latest[:, :-1]], 1)


def path_score(scores: Scores, tags: Tensor) -> Tensor:
    """[B]: the score of one labelling; `tags` is [B, T], and does not count where steps are off."""
    on = scores.on
    tags = tags.masked_fill(~on, 0)
    emitted = scores.emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
    first = first_steps(on)
    step = torch.arange(on.shape[1], device=on.device)
    previous = tags.gather(1, steps_before(on))
    tables = scores.transitions
    sequence = torch.arange(on.shape[0], device=on.device).unsqueeze(1) if len(tables) > 1 else 0
    moved = tables[sequence, step if tables.shape[1] > 1 else 0, previous, tags]
    ended = last_steps(on)
    zero = scores.emissions.new_zeros(())
    total = torch.where(on, emitted, zero) + torch.where(on & ~first, moved, zero)
    total = total + torch.where(first, scores.start[tags], zero)
    return (total + torch.where(ended, scores.end[tags], zero)).sum(1)


def expected_score(scores: Scores, chances: Tensor) -> Tensor:
    """[B]: the mean score of independent tags with these distributions [B, T, L]."""
    scores = scores.with_ends_in_emissions()
    on = scores.on
    chances = torch.where(on.unsqueeze(2), chances, chances.new_zeros(()))
    previous = chances.gather(1, steps_before(on).unsqueeze(2).expand_as(chances))
    follows = on & (on.cumsum(1) > 1)
    pairs = (previous * follows.unsqueeze(2)).unsqueeze(3) * chances.unsqueeze(2)
    tables = scores.transitions.expand_as(pairs)
    zero = chances.new_zeros(())
    unary = torch.where(chances > 0, scores.emissions, zero) * chances  # 0 × −inf counts nothing
    return unary.sum((1, 2)) + (torch.where(pairs > 0, tables, zero) * pairs).sum((1, 2, 3))
