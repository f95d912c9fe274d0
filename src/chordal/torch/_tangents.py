"""How the marginals of a chain change along a direction, in plain PyTorch and without autograd.

With the states a and b of `_recursions`, and a′ the change of a along the direction:

    a′_1 = start′ + u′_1         a′_t(j) = u′_t(j) + Σ_i P(i | j) (a′_{t-1}(i) + M′_t(i, j))
    (log Z)′ = Σ_j P(y_T = j) (a′_T(j) + end′(j))

where P(i | j) is the probability of the previous tag, given this one. b is
similar, from the last step to the first.
A probability p = exp(s − log Z) changes by p · (s′ − (log Z)′).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from chordal.torch._recursions import Steps, backward, forward, log_total
from chordal.torch._scores import FORBIDDEN, Scores, agreeing, first_steps, last_steps


class _Changes(NamedTuple):
    """Of one sum over labellings, not yet weighted."""

    marginals: Tensor  # [B, T, L]
    pairs: Tensor  # [B, T, L, L]
    log_z: Tensor  # [B]


def curvature(
    scores: Scores, tags: Tensor | None, ignore_index: int, weight: Tensor, *direction: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The derivative of the weighted gradient in the direction, and the slope of values [B]."""
    emissions, start, end, transitions = direction
    along = Scores(emissions, start, end, transitions, scores.mask)
    marginals, pairs, slope = _changes(scores, along)
    marginals, pairs, slope = -marginals, -pairs, -slope
    if tags is not None:
        held = scores.held(agreeing(tags, scores.emissions.shape[2], ignore_index))
        own = _changes(held, along)
        marginals, pairs = marginals + own.marginals, pairs + own.pairs
        slope = slope + own.log_z
    marginals = weight[:, None, None] * marginals
    pairs = (weight[:, None, None, None] * pairs).sum_to_size(scores.transitions.shape)
    first, last = first_steps(scores.on).unsqueeze(2), last_steps(scores.on).unsqueeze(2)
    start, end = (marginals * first).sum((0, 1)), (marginals * last).sum((0, 1))
    return marginals, start, end, pairs, slope


def _chances(x: Tensor, dim: int) -> Tensor:
    """softmax; zeros, not NaN, where everything is −inf."""
    return x.softmax(dim).nan_to_num()


def _changes(scores: Scores, along: Scores) -> _Changes:
    steps = Steps(scores)
    last, after, before = forward(steps)
    right = backward(steps)
    log_z = log_total(steps, last)
    emissions, on, first = steps.along[:3]
    zero = emissions.new_zeros(())
    d_emissions = torch.where(on, along.emissions.transpose(0, 1), zero)
    shape = (*scores.emissions.shape, scores.emissions.shape[2])
    tables = scores.transitions.expand(shape).transpose(0, 1)
    d_tables = along.transitions.expand(shape).transpose(0, 1)
    count = len(emissions)

    state = torch.zeros_like(last)
    d_after, d_before = [], []
    for t in range(count):
        chances = _chances(before[t].unsqueeze(2) + tables[t], 1)
        moved = (chances * (state.unsqueeze(2) + d_tables[t])).sum(1)
        d_before.append(state)
        new = d_emissions[t] + torch.where(first[t], along.start, moved)
        state = torch.where(on[t], new, state)
        d_after.append(state)
    change = (_chances(last + steps.end, 1) * (state + along.end)).sum(1)
    change = torch.where(steps.on.any(1), change, zero)

    state, d_right = torch.zeros_like(last) + along.end, []
    for t in reversed(range(count)):
        d_right.append(state)
        chances = _chances(tables[t] + (emissions[t] + right[t]).unsqueeze(1), 2)
        moved = (chances * (d_tables[t] + (d_emissions[t] + state).unsqueeze(1))).sum(2)
        state = torch.where(on[t], moved, state)
    d_right.reverse()

    less = torch.where(log_z == FORBIDDEN, zero, log_z).unsqueeze(1)
    right_changes = _stacked(d_right, emissions)
    chance = torch.where(on, (after + right - less).exp(), zero)
    marginals = chance * (_stacked(d_after, emissions) + right_changes - change.unsqueeze(1))
    into, d_into = emissions + right - less, d_emissions + right_changes
    chance = (before.unsqueeze(3) + tables + into.unsqueeze(2)).exp()
    chance = torch.where((on & ~first).unsqueeze(3), chance, zero)
    d_score = _stacked(d_before, emissions).unsqueeze(3) + d_tables + d_into.unsqueeze(2)
    pairs = chance * (d_score - change[:, None, None])
    return _Changes(marginals.transpose(0, 1), pairs.transpose(0, 1), change)


def _stacked(states: list[Tensor], like: Tensor) -> Tensor:
    return torch.stack(states) if states else torch.zeros_like(like)
