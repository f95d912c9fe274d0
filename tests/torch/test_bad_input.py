"""Bad input: the message names the argument and the place."""

import pytest
import torch

from chordal import InfeasibleError
from chordal.torch import CRF, AllowedTransitions, allowed_transitions


@pytest.fixture
def crf(backend):
    return CRF(3, batch_first=True, backend=backend)


def emissions(sequences=2, steps=4, tags=3):
    return torch.zeros(sequences, steps, tags)


def tags(sequences=2, steps=4):
    return torch.zeros(sequences, steps, dtype=torch.long)


def all_on(sequences=2, steps=4):
    return torch.ones(sequences, steps, dtype=torch.bool)


@pytest.mark.parametrize(("value", "word"), [(float("nan"), "nan"), (float("inf"), r"\+inf")])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("method", ["decode", "marginals", "log_partition", "entropy"])
def test_numbers_that_are_no_scores(backend, batch_first, value, word, method):
    crf = CRF(3, batch_first, backend=backend)
    bad = emissions()
    bad[1, 2, 0] = value
    place = f"emissions: sequence 1, step 2, tag 0 is {word}"
    given = bad if batch_first else bad.transpose(0, 1)
    with pytest.raises(ValueError, match=place):
        getattr(crf, method)(given)
    with pytest.raises(ValueError, match=place):
        crf(given, tags() if batch_first else tags().transpose(0, 1))


def test_nan_in_padding_does_not_count(crf):
    given, mask = emissions(), all_on()
    mask[1, 2:] = False
    wanted = crf(given, tags(), mask)
    given[1, 2:] = float("nan")
    wild = tags()
    wild[1, 2:] = 77
    given.requires_grad_()
    value = crf(given, wild, mask)
    value.backward()
    assert torch.equal(value, wanted)
    assert given.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in crf.parameters())


@pytest.mark.parametrize("method", ["decode", "marginals", "log_partition"])
@pytest.mark.parametrize(("value", "word"), [(float("nan"), "nan"), (float("inf"), r"\+inf")])
def test_parameters_that_are_no_scores(crf, method, value, word):
    for parameter, place in (
        ("start_transitions", (2,)),
        ("end_transitions", (1,)),
        ("transitions", (0, 2)),
    ):
        own = getattr(crf, parameter)
        before = own.detach().clone()
        with torch.no_grad():
            own[place] = value
        where = f"tag {place[0]}" if len(place) == 1 else "from tag 0, to tag 2"
        with pytest.raises(ValueError, match=f"^{parameter}: {where} is {word}; scores must"):
            getattr(crf, method)(emissions())
        with torch.no_grad():
            own.copy_(before)


@pytest.mark.parametrize("method", ["decode", "marginals"])
def test_transitions_that_are_no_scores(crf, method):
    ask = getattr(crf, method)
    tables = torch.zeros(2, 3, 3)
    tables[1, 0, 2] = float("nan")
    with pytest.raises(ValueError, match="transitions: sequence 1, from tag 0, to tag 2 is nan"):
        ask(emissions(), transitions=tables)
    tables = torch.zeros(2, 4, 3, 3)
    tables[:, 0] = tables[1, 3] = float("nan")  # what is not used
    mask = all_on()
    mask[1, 3] = False
    ask(emissions(), mask, transitions=tables)
    with pytest.raises(ValueError, match="sequence 1, step 3, from tag 0, to tag 0 is nan"):
        ask(emissions(), transitions=tables)


@pytest.mark.parametrize("wrong", [3, -1, -2, 1000])
def test_tags_out_of_range(crf, wrong):
    bad = tags()
    bad[1, 3] = wrong
    with pytest.raises(ValueError, match=f"tags: sequence 1, step 3 is {wrong}, which is no"):
        crf(emissions(), bad)


def test_masks(crf):
    mask = all_on()
    mask[1, 0] = False
    with pytest.raises(
        ValueError, match="first timestep must all be on; that of sequence 1 is off"
    ):
        crf(emissions(), tags(), mask)
    with pytest.raises(ValueError, match="any_mask=True allows it"):
        crf.marginals(emissions(), mask)
    with pytest.raises(ValueError, match="emissions and mask must match"):
        crf.decode(emissions(), mask[:, :2])


def test_dtypes(crf):
    with pytest.raises(TypeError, match=r"emissions must be floating point, got torch\.int64"):
        crf(tags(2, 4).unsqueeze(2).expand(2, 4, 3), tags())
    with pytest.raises(TypeError, match=r"tags must be integers, got torch\.float32"):
        crf(emissions(), tags().float())
    with pytest.raises(TypeError, match=r"tags with three dimensions must be boolean"):
        crf(emissions(), torch.zeros(2, 4, 3, dtype=torch.long))
    assert crf(emissions(), tags().int()) == crf(emissions(), tags())
    with pytest.raises(TypeError, match=r"mask must be boolean or integers, got torch\.float32"):
        crf(emissions(), tags(), all_on().float())
    assert crf.decode(emissions(), all_on().long()) == crf.decode(emissions())
    with pytest.raises(TypeError, match=r"transitions must be floating point, got torch\.int64"):
        crf.decode(emissions(), transitions=torch.zeros(3, 3, dtype=torch.long))


def test_devices(crf):
    elsewhere = torch.zeros(2, 4, 3, device="meta")
    with pytest.raises(ValueError, match=r"emissions must be on the device of the layer's"):
        crf(elsewhere, tags())
    with pytest.raises(ValueError, match=r"tags must be on the device of emissions \(cpu\)"):
        crf(emissions(), tags().to("meta"))
    with pytest.raises(ValueError, match=r"mask must be on the device of emissions \(cpu\)"):
        crf(emissions(), tags(), all_on().to("meta"))
    with pytest.raises(ValueError, match=r"transitions must be on the device of emissions"):
        crf(emissions(), tags(), transitions=torch.zeros(3, 3, device="meta"))
    with pytest.raises(ValueError, match=r"is for tensors on the CPU, or on CUDA .*; got meta"):
        CRF(3, True, backend="kernels").to("meta").log_partition(elsewhere)


def test_shapes_without_numbers():
    """A layer on "meta" looks at no numbers, and answers with shapes."""
    crf = CRF(3, True).to("meta")
    given, mask = emissions().to("meta"), all_on().to("meta")
    assert crf(given, tags().to("meta"), mask).shape == ()
    assert crf.marginals(given, mask).shape == (2, 4, 3)
    assert crf.viterbi(given, mask)[0].shape == (2, 4)


def test_nothing(backend):
    crf = CRF(3, True, backend=backend)
    assert crf(emissions(0), tags(0)) == 0
    assert crf(emissions(0), tags(0), reduction="none").shape == (0,)
    assert crf.decode(emissions(0)) == []
    assert crf.marginals(emissions(0)).shape == (0, 4, 3)
    with pytest.raises(ValueError, match="emissions must have at least one step, got 0"):
        crf(emissions(2, 0), tags(2, 0))
    free = CRF(3, True, any_mask=True, backend=backend)
    assert free(emissions(2, 0), tags(2, 0), reduction="none").tolist() == [0, 0]
    assert free.decode(emissions(2, 0)) == [[], []]
    assert free.decode(emissions(), ~all_on()) == [[], []]
    assert free.marginals(emissions(2, 0)).shape == (2, 0, 3)
    empty = emissions().requires_grad_()
    free(empty, tags(), ~all_on()).backward()
    assert (empty.grad == 0).all()


def test_shapes_of_other_arguments(crf):
    with pytest.raises(ValueError, match=r"transitions must have shape \(3, 3\), \(2, 3, 3\) or"):
        crf(emissions(), tags(), transitions=torch.zeros(4, 3, 3))
    with pytest.raises(ValueError, match=r"sets or distributions must have the shape of emissions"):
        crf(emissions(), torch.ones(2, 4, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"cost must be a number or a matrix \(3, 3\)"):
        crf.hinge_loss(emissions(), tags(), cost=torch.ones(2, 2))
    with pytest.raises(ValueError, match="tags must be numbers for this loss"):
        crf.hinge_loss(emissions(), all_on().unsqueeze(2).expand(2, 4, 3))
    with pytest.raises(ValueError, match=r"spans\[1\] must be steps that are on"):
        crf.span_probability(emissions(), [(0, 0, [1]), (0, 3, [1, 2])])
    with pytest.raises(ValueError, match=r"spans\[0\] has the invalid tag 3"):
        crf.span_probability(emissions(), [(0, 0, [1, 3])])
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        crf.k_best(emissions(), 0)
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        crf.sample(emissions(), 0)
    soft = torch.full((2, 4, 3), 1 / 3)
    soft[1, 2] = 0.5
    with pytest.raises(ValueError, match="tags: sequence 1, step 2 is not a distribution"):
        crf(emissions(), soft)


def test_settings():
    with pytest.raises(ValueError, match="ignore_index must not be one of 3 tags, got 2"):
        CRF(3, ignore_index=2)
    with pytest.raises(ValueError, match="backend must be one of 'auto', 'kernels', 'torch'"):
        CRF(3, backend="cuda")
    with pytest.raises(ValueError, match="between must be boolean, of shape"):
        CRF(3, allowed_transitions=torch.ones(2, 2, dtype=torch.bool))
    ones = torch.ones(3, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match="start must be boolean, of shape"):
        CRF(3, allowed_transitions=AllowedTransitions(torch.ones(3), ones[0], ones))


def test_no_labelling_is_allowed():
    crf = CRF(2, True, allowed_transitions=torch.tensor([[False, True], [False, False]]))
    for ask in (crf.decode, crf.log_partition, crf.marginals, crf.sample):
        with pytest.raises(InfeasibleError, match="no labelling of example 0 is allowed"):
            ask(torch.zeros(2, 3, 2))


def test_tags_of_no_scheme():
    with pytest.raises(ValueError, match=r"scheme must be one of 'auto', 'bio'"):
        allowed_transitions(["O", "B-X"], "bioes")
    with pytest.raises(ValueError, match="tags are of no known scheme"):
        allowed_transitions(["NN", "VB"])
    with pytest.raises(ValueError, match="tags are not of the scheme 'iobes'"):
        allowed_transitions(["O", "B-X", "I-X"], "iobes")
