"""Run by test_triton.py in a process of its own: Triton's interpreter in place of the CPU kernels.

Prints a line for each check that held.
"""

import warnings

import torch
from torch.testing import assert_close

from chordal.torch import CRF, _operators, _recursions
from chordal.torch._scores import Scores

warnings.simplefilter("ignore")  # NumPy's, of the interpreter: log 0
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
SIZES = [(1, 1, 1), (3, 7, 5), (2, 6, 17)]


def cases():
    """Ragged batches with steps first in memory, NaN where steps are off; empty sequences too."""
    torch.manual_seed(0)
    for batch, steps, labels in SIZES:
        for tying in ((1, 1), (batch, 1), (batch, steps)):
            emissions = 2 * torch.randn(steps, batch, labels).transpose(0, 1)
            mask = torch.rand(batch, steps) < 0.7
            if batch > 2:
                mask[0] = False
            emissions[~mask] = float("nan")
            start, end = torch.randn(2, labels)
            tables = torch.randn(*tying, labels, labels).transpose(2, 3)
            if labels > 2:
                start[1] = tables[..., 0, 2] = -torch.inf
            tags = torch.randint(labels, (batch, steps))
            tags[(torch.rand(batch, steps) < 0.4) | (tags == 1)] = -100
            tags[:, 1:][(tags[:, 1:] == 2) & (tags[:, :-1] == 0)] = -100
            yield Scores(emissions, start, end, tables, mask), tags


def leaves(scores):
    return [x.detach().clone().requires_grad_() for x in scores[:4]]


def value(scores, tags):
    if tags is None:
        return -_recursions.log_partition(scores)
    return _recursions.log_likelihood(scores, tags, -100)


def test_value_and_gradient():
    for scores, tags in cases():
        weight = torch.randn(len(tags))
        for given in (None, tags):
            ours, plain = leaves(scores), leaves(scores)
            found = _operators.chain_value(*ours, scores.mask, given, -100)
            wanted = value(Scores(*plain, scores.mask), given)
            assert_close(found, wanted, **CLOSE)
            derivatives = zip(
                torch.autograd.grad(found, ours, weight),
                torch.autograd.grad(wanted, plain, weight),
                strict=True,
            )
            for ours_d, plain_d in derivatives:
                assert_close(ours_d, plain_d, **CLOSE)


def test_second_derivative():
    for scores, tags in cases():
        direction = [torch.randn_like(x) for x in scores[:4]]
        found = []
        for engine in (_operators.chain_value, None):
            own = leaves(scores)
            if engine is not None:
                values = engine(*own, scores.mask, tags, -100)
            else:
                values = value(Scores(*own, scores.mask), tags)
            parts = torch.autograd.grad(values.sum(), own, create_graph=True)
            slope = sum((part * d).sum() for part, d in zip(parts, direction, strict=True))
            found.append(torch.autograd.grad(slope, own, allow_unused=True))
        for ours, plain in zip(*found, strict=True):
            plain = torch.zeros_like(ours) if plain is None else plain
            assert_close(ours, plain, rtol=1e-4, atol=1e-4)


def test_viterbi():
    for scores, _ in cases():
        ours = _operators.chain_viterbi(*scores, -1)
        tags, score = _recursions.viterbi(scores, -1)
        assert torch.equal(ours[0], tags)
        assert_close(ours[1], score, **CLOSE)


def test_float64():
    scores, tags = next(c for c in cases() if c[1].shape[0] == 3)
    wide = Scores(*(x.double() for x in scores[:4]), scores.mask)
    found = _operators.chain_value(*wide, tags, -100)
    assert_close(found, value(wide, tags), rtol=1e-12, atol=1e-12)


def test_no_sequence():
    scores = Scores(
        torch.zeros(0, 3, 2), torch.zeros(2), torch.zeros(2), torch.zeros(1, 1, 2, 2), None
    )
    assert _operators.chain_value(*scores, None, -100).shape == (0,)
    assert _operators.chain_viterbi(*scores, -1)[0].shape == (0, 3)


def test_the_layer():
    emissions = torch.randn(3, 6, 4)
    mask = torch.arange(6) < torch.tensor([[6], [2], [4]])
    ours, plain = (CRF(4, batch_first=True, backend=name) for name in ("kernels", "torch"))
    plain.load_state_dict(ours.state_dict())
    for method in ("decode", "marginals", "log_partition", "entropy", "transition_marginals"):
        with torch.no_grad():
            found, wanted = (getattr(crf, method)(emissions, mask) for crf in (ours, plain))
        assert_close(found, wanted, **CLOSE)
    assert_close(ours.k_best(emissions, 3, mask), plain.k_best(emissions, 3, mask))


if __name__ == "__main__":
    _operators.register_triton("cpu")
    _operators.chain_value_gradient = None  # of the CPU alone
    called = dict.fromkeys(("value", "gradient", "viterbi"), 0)
    from chordal.torch import _triton

    def counted(name):
        own = getattr(_triton, name)

        def call(*given):
            called[name] += 1
            return own(*given)

        return call

    for name in called:
        setattr(_triton, name, counted(name))
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
    assert all(called.values()), called
