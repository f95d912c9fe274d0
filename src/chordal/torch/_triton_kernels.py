"""The recursions of a chain in Triton's language: one program for each sequence.

States are vectors of BLOCK tags in registers, in log space, as in `_recursions`; tags from `labels`
on do not exist, and score −inf. With tags, the sum over labellings that agree with them goes
beside the sum over all. A step's code is 0 where it is off, 2 at the first one that is on, else 1.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _log_sum(x, axis: tl.constexpr):
    top = tl.max(x, axis)
    top = tl.where(top == float("-inf"), 0.0, top)
    return tl.log(tl.sum(tl.exp(x - tl.expand_dims(top, axis)), axis)) + top


@triton.jit
def _table(tables, t, step, row, column, labels, BLOCK: tl.constexpr):
    """[BLOCK, BLOCK]: the transitions into step t."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    there = (i < labels) & (j < labels)
    return tl.load(tables + t * step + i * row + j * column, there, float("-inf"))


@triton.jit
def _agreeing(emitted, tag, j, ignore_index):
    """Emissions with all but the tag forbidden, if it was observed."""
    return tl.where((tag == ignore_index) | (tag == j), emitted, float("-inf"))


@triton.jit
def _moved(state, emitted, table, start, code):
    new = emitted + tl.where(code == 2, start, _log_sum(state[:, None] + table, 0))
    return tl.where(code > 0, new, state)


@triton.jit
def forward(
    emissions, e_batch, e_step, e_tag,
    start, end,
    tables, m_batch, m_step, m_row, m_column,
    codes, tags, ignore_index,
    totals, lefts,
    batch, steps, labels, size,
    WITH_TAGS: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """totals [1 or 2, batch]: log Z, and that of labellings that agree with the tags.

    lefts [1 or 2, batch, steps, labels] are the states after each step, if KEEP; the second ones
    begin at `size`.
    """
    b = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    there = j < labels
    first = tl.load(start + j, there, float("-inf"))
    last = tl.load(end + j, there, float("-inf"))
    all_state = tl.zeros_like(first)
    own_state = tl.zeros_like(first)
    begun = 0
    for t in range(steps):
        code = tl.load(codes + b * steps + t)
        begun = tl.maximum(begun, code)
        place = emissions + b * e_batch + t * e_step
        emitted = tl.where(code > 0, tl.load(place + j * e_tag, there, 0.0), 0.0)  # may be NaN
        table = _table(tables + b * m_batch, t, m_step, m_row, m_column, labels, BLOCK)
        all_state = _moved(all_state, emitted, table, first, code)
        left = lefts + (b * steps + t) * labels + j
        if KEEP:
            tl.store(left, all_state, there)
        if WITH_TAGS:
            tag = tl.load(tags + b * steps + t)
            held = _agreeing(emitted, tag, j, ignore_index)
            own_state = _moved(own_state, held, table, first, code)
            if KEEP:
                tl.store(left + size, own_state, there)
    total = tl.where(begun > 0, _log_sum(all_state + last, 0), 0.0)
    tl.store(totals + b, total)
    if WITH_TAGS:
        total = tl.where(begun > 0, _log_sum(own_state + last, 0), 0.0)
        tl.store(totals + batch + b, total)


@triton.jit
def _chance(score, total):
    """exp(score − total), 0 where nothing is allowed."""
    return tl.exp(score - tl.where(total == float("-inf"), 0.0, total))


@triton.jit
def backward(
    emissions, e_batch, e_step, e_tag,
    end,
    tables, m_batch, m_step, m_row, m_column,
    codes, tags, ignore_index,
    totals, lefts, weights,
    marginals, pairs,
    batch, steps, labels, size,
    WITH_TAGS: tl.constexpr, EACH_STEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """weight × (marginals among labellings that agree, less those among all); pairs likewise.

    marginals [batch, steps, labels]; pairs [batch, steps, labels, labels] if EACH_STEP, else
    summed over steps, [batch, labels, labels].
    """
    b = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    there = j < labels
    both = there[:, None] & there[None, :]
    cells = j[:, None] * labels + j[None, :]
    weight = tl.load(weights + b)
    all_right = tl.load(end + j, there, float("-inf"))
    own_right = all_right
    all_total = tl.load(totals + b)
    own_total = all_total
    if WITH_TAGS:
        own_total = tl.load(totals + batch + b)
    sums = tl.zeros([BLOCK, BLOCK], all_right.dtype)
    for k in range(steps):
        t = steps - 1 - k
        code = tl.load(codes + b * steps + t)
        place = emissions + b * e_batch + t * e_step
        emitted = tl.where(code > 0, tl.load(place + j * e_tag, there, 0.0), 0.0)  # may be NaN
        table = _table(tables + b * m_batch, t, m_step, m_row, m_column, labels, BLOCK)
        left = lefts + (b * steps + t) * labels + j
        before = lefts + (b * steps + tl.maximum(t - 1, 0)) * labels + j

        into = table + (emitted + all_right)[None, :]
        chance = -_chance(tl.load(left, there, float("-inf")) + all_right, all_total)
        state = tl.load(before, there, float("-inf"))
        pair = -_chance(state[:, None] + into, all_total)
        all_right = tl.where(code > 0, _log_sum(into, 1), all_right)
        if WITH_TAGS:
            tag = tl.load(tags + b * steps + t)
            held = _agreeing(emitted, tag, j, ignore_index)
            into = table + (held + own_right)[None, :]
            chance += _chance(tl.load(left + size, there, float("-inf")) + own_right, own_total)
            state = tl.load(before + size, there, float("-inf"))
            pair += _chance(state[:, None] + into, own_total)
            own_right = tl.where(code > 0, _log_sum(into, 1), own_right)

        chance = tl.where(code > 0, weight * chance, 0.0)
        tl.store(marginals + (b * steps + t) * labels + j, chance, there)
        pair = tl.where(code == 1, weight * pair, 0.0)
        if EACH_STEP:
            tl.store(pairs + (b * steps + t) * labels * labels + cells, pair, both)
        else:
            sums += pair
    if not EACH_STEP:
        tl.store(pairs + b * labels * labels + cells, sums, both)


@triton.jit
def viterbi(
    emissions, e_batch, e_step, e_tag,
    start, end,
    tables, m_batch, m_step, m_row, m_column,
    codes, pointers, best, scores, pad,
    steps, labels,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The best tags [batch, steps] and their scores [batch]; pointers [batch, steps, labels]."""
    b = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    there = j < labels
    first = tl.load(start + j, there, float("-inf"))
    state = tl.zeros_like(first)
    begun = 0
    for t in range(steps):
        code = tl.load(codes + b * steps + t)
        begun = tl.maximum(begun, code)
        place = emissions + b * e_batch + t * e_step
        emitted = tl.where(code > 0, tl.load(place + j * e_tag, there, 0.0), 0.0)  # may be NaN
        table = _table(tables + b * m_batch, t, m_step, m_row, m_column, labels, BLOCK)
        top, before = tl.max(state[:, None] + table, 0, return_indices=True)
        new = emitted + tl.where(code == 2, first, top)
        state = tl.where(code > 0, new, state)
        pointer = tl.where(code == 1, before, j)
        tl.store(pointers + (b * steps + t) * labels + j, pointer.to(tl.int16), there)
    state += tl.load(end + j, there, float("-inf"))
    score, tag = tl.max(state, 0, return_indices=True)
    tl.store(scores + b, tl.where(begun > 0, score, 0.0))
    tl.debug_barrier()  # pointers were written by other threads
    for k in range(steps):
        t = steps - 1 - k
        code = tl.load(codes + b * steps + t)
        tl.store(best + b * steps + t, tl.where(code > 0, tag.to(tl.int64), pad))
        tag = tl.load(pointers + (b * steps + t) * labels + tag).to(tl.int32)
