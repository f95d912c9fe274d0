"""The best tags by the compiled kernel: sizes around its blocks, labels left out, ties."""

import pytest
import torch
from torch.testing import assert_close

from chordal.torch import _operators, _recursions
from chordal.torch._scores import Scores

# One pack of floats has 8 labels, one block 48.
SIZES = [1, 2, 7, 8, 9, 25, 48, 49, 100, 130]


def scores(labels, spread, tying, seed=0, batch=4, steps=21, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    shape = {"all": (1, 1), "sequence": (batch, 1), "step": (batch, steps)}[tying]
    lengths = torch.randint(0, steps + 1, (batch, 1), generator=generator)
    lengths[0] = steps
    mask = torch.arange(steps) < lengths
    mask[1, ::3] = False
    start, end = draw(2, labels)
    tables = spread * draw(*shape, labels, labels)
    return Scores(draw(steps, batch, labels).transpose(0, 1), start, end, tables, mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("labels", SIZES)
def test_as_plain_pytorch(labels, spread, dtype):
    for tying in ("all", "sequence", "step"):
        given = scores(labels, spread, tying, dtype=dtype, steps=8 if tying == "step" else 21)
        tags, score = _operators.chain_viterbi(*given, -1)
        wanted, highest = _recursions.viterbi(
            Scores(*(x.double() for x in given[:4]), given.mask), -1
        )
        assert torch.equal(tags, wanted)
        assert_close(score, highest.to(dtype))


@pytest.mark.parametrize("labels", [3, 25, 100])
def test_forbidden_transitions(labels):
    """Rows with −inf bound nothing from below; some labels are never allowed."""
    given = scores(labels, 1.0, "all")
    generator = torch.Generator().manual_seed(1)
    tables = given.transitions.clone()
    tables[torch.rand(tables.shape, generator=generator) < 0.5] = -torch.inf
    tables[0, 0].fill_diagonal_(0.0)
    tables[..., 1] = -torch.inf
    given = given._replace(transitions=tables)
    tags, score = _operators.chain_viterbi(*given, -1)
    wanted, highest = _recursions.viterbi(given, -1)
    assert torch.equal(tags, wanted)
    assert_close(score, highest)


@pytest.mark.parametrize("labels", [2, 25, 100])
def test_ties_go_to_the_smallest_tag(labels):
    given = scores(labels, 0.0, "all")
    given = given._replace(emissions=torch.zeros_like(given.emissions))
    given = given._replace(start=torch.zeros(labels), end=torch.zeros(labels))
    tags, score = _operators.chain_viterbi(*given, -1)
    assert torch.equal(tags, torch.where(given.mask, 0, -1))
    assert not score.any()


def test_long_chains_keep_their_digits():
    """Scores grow to 10,000 in float32, and differences of 0.01 still count."""
    generator = torch.Generator().manual_seed(0)
    emissions = 5 + 0.01 * torch.randn(1, 2000, 9, generator=generator)
    tables = 0.01 * torch.randn(1, 1, 9, 9, generator=generator)
    given = Scores(emissions, torch.zeros(9), torch.zeros(9), tables, None)
    tags, score = _operators.chain_viterbi(*given, -1)
    wide = Scores(*(x.double() for x in given[:4]), None)
    wanted, highest = _recursions.viterbi(wide, -1)
    assert torch.equal(tags, wanted)
    assert_close(score, highest.float())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    given = scores(100, 1.0, "all", batch=11, steps=50)
    wanted = _operators.chain_viterbi(*given, -1)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = _operators.chain_viterbi(*given, -1)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
