"""First and second derivatives by differences; scores of any size; what operators declare."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from chordal.torch import CRF, _operators


def likelihood(crf, case, tags):
    """As a function of all scores."""
    names = ("start_transitions", "end_transitions", "transitions")

    def f(emissions, *scores):
        own = dict(zip(names, scores, strict=False))
        given = {"transitions": scores[3]} if len(scores) > 3 else {}
        inputs = (emissions, tags, case.mask, "none")
        return torch.func.functional_call(crf, own, inputs, given)

    inputs = [case.emissions, *(p.detach() for p in crf.parameters())]
    if case.transitions is not None:
        inputs.append(case.transitions)
    return f, [x.clone().requires_grad_() for x in inputs]


def test_likelihood(backend, case):
    crf = case.layer(backend)
    tags = case.tags.clone()
    tags[0, 1] = tags[3, 0] = -100
    f, inputs = likelihood(crf, case, tags)
    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs)


@pytest.mark.parametrize(
    "answer", ["log_partition", "marginals", "transition_marginals", "entropy"]
)
def test_answers(backend, case, answer):
    crf = case.layer(backend)
    inputs = [case.emissions.clone().requires_grad_()]
    if case.transitions is not None:
        inputs.append(case.transitions.clone().requires_grad_())

    def f(emissions, transitions=None):
        return getattr(crf, answer)(emissions, case.mask, transitions=transitions)

    assert gradcheck(f, inputs)
    if answer == "log_partition":
        assert gradgradcheck(f, inputs)


@pytest.mark.parametrize("loss", ["hinge_loss", "softmax_margin_loss"])
def test_losses(backend, case, loss):
    crf = case.layer(backend)
    emissions = case.emissions.clone().requires_grad_()
    assert gradcheck(lambda x: getattr(crf, loss)(x, case.tags, case.mask), [emissions])


def test_both_ways_agree_in_second_derivatives_of_larger_batches():
    torch.manual_seed(0)
    emissions = torch.randn(20, 15, 50, dtype=torch.float64)
    mask = torch.rand(20, 15) < 0.8
    tags = torch.randint(50, (20, 15))
    found = []
    for backend in ("kernels", "torch"):
        torch.manual_seed(1)
        crf = CRF(50, True, any_mask=True, backend=backend).double()
        x = emissions.clone().requires_grad_()
        value = crf(x, tags, mask)
        (first,) = torch.autograd.grad(value, x, create_graph=True)
        (first**2).sum().backward()
        found.append([value, first, x.grad, *(p.grad for p in crf.parameters())])
    for ours, plain in zip(*found, strict=True):
        assert_close(ours, plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e30])
def test_scores_of_any_size(backend, size):
    crf = CRF(4, True, backend=backend).double()
    emissions = (size * torch.randn(3, 6, 4, dtype=torch.float64)).requires_grad_()
    best, score = crf.viterbi(emissions)
    value = crf(emissions, best, reduction="none")
    value.sum().backward()
    assert value.isfinite().all()
    assert (value <= 1e-6 * size).all()
    assert emissions.grad.isfinite().all()
    assert_close(crf.log_partition(emissions), score, rtol=1e-9, atol=1e-2)
    if size < 1e12:  # beyond, numbers next to each other are further than 1 apart
        marginals = crf.marginals(emissions)
        assert_close(marginals.sum(2), torch.ones(3, 6, dtype=torch.float64))


def test_a_forbidden_tag_has_no_derivative(backend):
    crf = CRF(3, True, backend=backend).double()
    emissions = torch.randn(2, 4, 3, dtype=torch.float64)
    emissions[:, :, 1] = float("-inf")
    emissions.requires_grad_()
    crf(emissions, torch.zeros(2, 4, dtype=torch.long)).backward()
    assert (emissions.grad[:, :, 1] == 0).all()
    assert emissions.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in crf.parameters())


def test_operators_keep_what_they_declare(case):
    """Shapes, strides, derivatives and absence of side effects, by PyTorch's own checks."""
    crf = case.layer("kernels")
    scores = crf._scores(case.emissions, case.mask, case.transitions).detach()
    own = [x.clone().requires_grad_() for x in scores[:4]]
    weight = torch.linspace(1, 2, len(case.emissions), dtype=torch.float64)
    direction = [torch.randn_like(x) for x in scores[:4]]
    uniform = torch.rand(3, *case.shape[:2], dtype=torch.float64)
    for operator, given in [
        (_operators.chain_value, (*own, case.mask, case.tags, -100)),
        (_operators.chain_value_gradient, (*own, case.mask, case.tags, -100)),
        (_operators.chain_gradient, (*own, case.mask, case.tags, -100, weight)),
        (_operators.chain_curvature, (*scores, case.tags, -100, weight, *direction)),
        (_operators.chain_viterbi, (*scores, -1)),
        (_operators.chain_k_best, (*scores, 3, -1)),
        (_operators.chain_sample, (*scores, uniform, -1)),
    ]:
        torch.library.opcheck(operator, given)


def test_threads_change_no_digit():
    torch.manual_seed(0)
    crf = CRF(30, True)
    emissions = torch.randn(40, 30, 30)
    tags = torch.randint(30, (40, 30))
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            crf.zero_grad()
            x = emissions.clone().requires_grad_()
            crf(x, tags).backward()
            found.append([x.grad, *(p.grad for p in crf.parameters())])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
