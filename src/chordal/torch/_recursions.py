"""The recursions of a chain in plain PyTorch: for every device, for export, to any derivative.

With u_t = emissions, M_t = transitions into step t, all in log space, over the steps that are on:

    a_1 = start + u_1           a_t(j) = u_t(j) + log Σ_i exp(a_{t-1}(i) + M_t(i, j))
    b_T = end                   b_{t-1}(i) = log Σ_j exp(M_t(i, j) + u_t(j) + b_t(j))
    log Z = log Σ_j exp(a_T(j) + end(j))        P(y_t = j) = exp(a_t(j) + b_t(j) − log Z)

A step that is off leaves the state as it is. Everything is batched over sequences and tags.
"""

from __future__ import annotations

import torch
from torch import Tensor

from chordal.torch._checks import check_possible
from chordal.torch._scan import scan
from chordal.torch._scores import FORBIDDEN, Scores, agreeing, first_steps


def log_sum(x: Tensor, dim: int) -> Tensor:
    """log Σ exp, whose derivative is zero, not NaN, where everything is −inf."""
    top = x.detach().amax(dim, keepdim=True)
    top = top.masked_fill(top == FORBIDDEN, 0.0)
    total = (x - top).exp().sum(dim)
    empty = total == 0.0
    return total.masked_fill(empty, 1.0).log().masked_fill(empty, FORBIDDEN) + top.squeeze(dim)


class Steps:
    """The tensors of a batch step by step, and the tables into each step."""

    def __init__(self, scores: Scores) -> None:
        if torch.onnx.is_in_onnx_export():  # has no place for derivatives
            scores = scores.detach()
        on = scores.on
        # What is off may be NaN; its derivative is zero.
        emissions = torch.where(on.unsqueeze(2), scores.emissions, scores.emissions.new_zeros(()))
        self.start, self.end = scores.start, scores.end
        self.on = on
        self.along = [
            emissions.transpose(0, 1),
            on.transpose(0, 1).unsqueeze(2),
            first_steps(on).transpose(0, 1).unsqueeze(2),
        ]
        tables = scores.transitions
        self.one_table = tables[:, 0] if tables.shape[1] == 1 else None
        if self.one_table is not None and len(tables) == 1:
            self.one_table = tables[0, 0]
        if self.one_table is None:
            self.along.append(tables.expand(len(on), *tables.shape[1:]).transpose(0, 1))

    def table(self, step: tuple[Tensor, ...]) -> Tensor:
        """[L, L] or [B, L, L]: the transitions into a step."""
        return step[3] if self.one_table is None else self.one_table

    def nothing(self) -> Tensor:
        """[B, L] of zeros."""
        return self.along[0].new_zeros(self.along[0].shape[1:])


def forward(steps: Steps) -> tuple[Tensor, Tensor, Tensor]:
    """The last a [B, L], all of them [T, B, L], and those of the step on before [T, B, L]."""

    def step(state: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        emissions, on, first = now[:3]
        moved = log_sum(state.unsqueeze(2) + steps.table(now), 1)
        after = torch.where(on, emissions + torch.where(first, steps.start, moved), state)
        return after, (after.clone(), state.clone())

    last, (after, before) = scan(step, steps.nothing(), steps.along)
    return last, after, before


def log_total(steps: Steps, last: Tensor) -> Tensor:
    """[B]: log Z, from the last a."""
    total = log_sum(last + steps.end, 1)
    return torch.where(steps.on.any(1), total, torch.zeros_like(total))


def backward(steps: Steps) -> Tensor:
    """All b [T, B, L]."""

    def step(state: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        emissions, on = now[:2]
        moved = log_sum(steps.table(now) + (emissions + state).unsqueeze(1), 2)
        return torch.where(on, moved, state), (state.clone(),)

    _, (right,) = scan(step, steps.nothing() + steps.end, steps.along, reverse=True)
    return right


def log_partition(scores: Scores) -> Tensor:
    """[B]: log Z."""
    return check_possible(_log_partition(scores))


def _log_partition(scores: Scores) -> Tensor:
    """[B]: log Z; −inf where nothing is allowed."""
    steps = Steps(scores)
    return log_total(steps, forward(steps)[0])


def log_likelihood(scores: Scores, tags: Tensor, ignore_index: int) -> Tensor:
    """[B]: the log probability that the tags [B, T] are as given, where they are given."""
    allowed = agreeing(tags, scores.emissions.shape[2], ignore_index)
    return _log_partition(scores.held(allowed)) - log_partition(scores)


def expectations(scores: Scores) -> tuple[Tensor, Tensor]:
    """Marginals [B, T, L], and those of transitions in the shape of the transitions."""
    steps = Steps(scores)
    last, after, before = forward(steps)
    right = backward(steps)
    log_z = check_possible(log_total(steps, last)).unsqueeze(1)
    emissions, on, first = steps.along[:3]
    zero = emissions.new_zeros(())
    marginals = torch.where(on, (after + right - log_z).exp(), zero).transpose(0, 1)
    into = (emissions + right - log_z).unsqueeze(2)
    tables = scores.transitions.transpose(0, 1)
    pairs = torch.where(
        (on & ~first).unsqueeze(3), (before.unsqueeze(3) + tables + into).exp(), zero
    )
    pairs = pairs.transpose(0, 1)
    for dim in (0, 1):
        if scores.transitions.shape[dim] == 1:
            pairs = pairs.sum(dim, keepdim=True)
    return marginals, pairs


def viterbi(scores: Scores, pad: int) -> tuple[Tensor, Tensor]:
    """The best tags [B, T] and their scores [B]."""
    scores = scores.detach()
    steps = Steps(scores)
    itself = torch.arange(scores.emissions.shape[2], device=scores.emissions.device)

    def step(state: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        emissions, on, first = now[:3]
        best, before = (state.unsqueeze(2) + steps.table(now)).max(1)
        after = torch.where(on, emissions + torch.where(first, steps.start, best), state)
        return after, (torch.where(on & ~first, before, itself),)

    def back(tag: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        return now[0].gather(1, tag.unsqueeze(1)).squeeze(1), (tag.clone(),)

    last, (pointers,) = scan(step, steps.nothing(), steps.along)
    score, tag = (last + steps.end).max(1)
    _, (tags,) = scan(back, tag, [pointers], reverse=True)
    score = torch.where(steps.on.any(1), score, torch.zeros_like(score))
    return torch.where(steps.on, tags.transpose(0, 1), pad), check_possible(score)


def best_tags(scores: Scores) -> Tensor:
    """[B, T], and -1 where steps are off."""
    return viterbi(scores, -1)[0]


def k_best(scores: Scores, k: int, pad: int) -> tuple[Tensor, Tensor]:
    """The k best tags [B, k, T] and their scores [B, k]."""
    scores = scores.detach()
    steps = Steps(scores)
    batch, _, labels = scores.emissions.shape
    device = scores.emissions.device
    only = torch.full((k,), FORBIDDEN, device=device, dtype=scores.emissions.dtype)
    only[0] = 0.0  # one way to begin
    itself = torch.arange(k * labels, device=device).view(k, labels).expand(batch, k, labels)

    def step(state: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        emissions, on, first = (x.unsqueeze(1) for x in now[:3])
        ways = state.unsqueeze(3) + steps.table(now).unsqueeze(-3)
        best, before = ways.reshape(batch, k * labels, labels).topk(k, 1)
        begun = steps.start + only.unsqueeze(1)
        after = torch.where(on, emissions + torch.where(first, begun, best), state)
        return after, (torch.where(on & ~first, before, itself),)

    def back(place: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        return now[0].reshape(batch, -1).gather(1, place), (place % labels,)

    begin = steps.nothing().unsqueeze(1) + only.unsqueeze(1)
    last, (pointers,) = scan(step, begin, steps.along)
    score, place = (last + steps.end).reshape(batch, -1).topk(k, 1)
    _, (tags,) = scan(back, place, [pointers], reverse=True)
    score = torch.where(steps.on.any(1, keepdim=True), score, only)
    check_possible(score[:, 0])
    there = steps.on.unsqueeze(1) & (score > FORBIDDEN).unsqueeze(2)
    return torch.where(there, tags.permute(1, 2, 0), pad), score


def sample(scores: Scores, uniform: Tensor, pad: int) -> Tensor:
    """Tags [N, B, T], drawn by the uniform numbers [N, B, T]."""
    scores = scores.detach()
    steps = Steps(scores)
    last, after, _ = forward(steps)
    check_possible(log_total(steps, last))
    draws, batch, _ = uniform.shape
    labels = scores.emissions.shape[2]

    def back(right: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        chance, left, on = now[-1], now[-2], now[1]
        odds = (left + right).double().softmax(2)
        tag = (odds.cumsum(2) <= chance.unsqueeze(2)).sum(2)
        possible = torch.arange(labels, device=odds.device) * (odds > 0)
        tag = torch.minimum(tag, possible.amax(2))  # sums may end below 1
        table = steps.table(now).transpose(-1, -2).expand(batch, labels, labels)
        column = table[torch.arange(batch, device=tag.device), tag]
        return torch.where(on, column, right), (tag,)

    begin = (steps.nothing() + steps.end).expand(draws, batch, labels)
    along = [*steps.along, after, uniform.permute(2, 0, 1)]
    _, (tags,) = scan(back, begin, along, reverse=True)
    return torch.where(steps.on, tags.permute(1, 2, 0), pad)
