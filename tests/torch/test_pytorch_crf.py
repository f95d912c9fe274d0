"""pytorch-crf's behaviour: values, derivatives, reductions, shapes, state and errors."""

import warnings

import pytest
import torch
from torch.testing import assert_close

from chordal.torch import CRF

torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed")


def both(tags, batch_first, backend="auto", dtype=torch.float64):
    theirs = torchcrf.CRF(tags, batch_first=batch_first).to(dtype)
    ours = CRF(tags, batch_first=batch_first, backend=backend).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def batch(batch_first, seed=0, sequences=6, steps=9, tags=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    emissions = torch.randn(steps, sequences, tags, generator=generator, dtype=dtype)
    gold = torch.randint(tags, (steps, sequences), generator=generator)
    lengths = torch.randint(1, steps + 1, (sequences,), generator=generator)
    lengths[0] = steps
    mask = torch.arange(steps).unsqueeze(1) < lengths
    if batch_first:
        return (x.transpose(0, 1) for x in (emissions, gold, mask))
    return emissions, gold, mask


def quietly(crf, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of uint8 conditions
        return crf(*given)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["bool", "uint8", "none"])
def test_likelihood_and_derivatives(backend, batch_first, reduction, kind):
    emissions, gold, mask = batch(batch_first)
    mask = {"bool": mask, "uint8": mask.to(torch.uint8), "none": None}[kind]
    found = []
    for crf in both(5, batch_first, backend):
        x = emissions.clone().requires_grad_()
        value = quietly(crf, x, gold, mask, reduction)
        (value * torch.linspace(1, 2, value.numel(), dtype=value.dtype)).sum().backward()
        found.append([value, x.grad, *(p.grad for p in crf.parameters())])
    for theirs, ours in zip(*found, strict=True):
        assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(2, 60, 3), (3, 20, 60), (64, 3, 2), (1, 1, 1)])
def test_other_sizes(backend, shape):
    sequences, steps, tags = shape
    emissions, gold, mask = batch(True, 1, sequences, steps, tags)
    theirs, ours = both(tags, True, backend)
    values = [crf(emissions, gold, mask, "none") for crf in (theirs, ours)]
    assert_close(values[1], values[0], rtol=1e-10, atol=1e-10)
    assert ours.decode(emissions, mask) == theirs.decode(emissions, mask)


@pytest.mark.parametrize("batch_first", [False, True])
def test_decoding(backend, batch_first):
    for seed in range(5):
        emissions, _, mask = batch(batch_first, seed)
        theirs, ours = both(5, batch_first, backend)
        found = ours.decode(emissions, mask)
        assert found == theirs.decode(emissions, mask)
        assert all(type(tag) is int for path in found for tag in path)


def test_float32(backend):
    emissions, gold, mask = batch(True, dtype=torch.float32)
    theirs, ours = both(5, True, backend, torch.float32)
    values = [crf(emissions, gold, mask, "none") for crf in (theirs, ours)]
    assert values[1].dtype == torch.float32
    assert_close(values[1], values[0], rtol=1e-5, atol=1e-5)


def test_the_state_is_theirs():
    theirs, ours = both(4, True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    fresh = CRF(50)
    for parameter in fresh.parameters():
        assert -0.1 <= parameter.min() < -0.05 < 0.05 < parameter.max() <= 0.1


def wrong(batch_first):
    emissions, gold, mask = batch(batch_first)
    off = mask.clone()
    off[0, 0] = False
    yield "emissions", lambda crf: crf(emissions[0], gold, mask)
    yield "tags", lambda crf: crf(emissions[..., :4], gold, mask)
    yield "tags", lambda crf: crf(emissions, gold[:-1], mask)
    yield "mask", lambda crf: crf(emissions, gold, mask[:-1])
    yield "mask", lambda crf: crf(emissions, gold, off)
    yield "reduction", lambda crf: crf(emissions, gold, mask, reduction="foo")
    yield "decode", lambda crf: crf.decode(emissions[0], mask)
    yield "decode", lambda crf: crf.decode(emissions[..., :4], mask)
    yield "decode", lambda crf: crf.decode(emissions, mask[:-1])
    yield "decode", lambda crf: crf.decode(emissions, off)


@pytest.mark.parametrize("batch_first", [False, True])
def test_errors_begin_with_their_words(batch_first):
    for _, call in wrong(batch_first):
        said = []
        for crf in both(5, batch_first):
            with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
                call(crf)
            said.append(str(error.value))
        assert said[1].startswith(said[0])
    for layer in (torchcrf.CRF, CRF):
        with pytest.raises(ValueError, match=r"^invalid number of tags: 0$"):
            layer(0)
