"""The layer inside torch.compile, torch.export, autocast, DDP, half precision."""

import os

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from chordal.torch import CRF, Decoder, Marginals

from .two_processes import check_two_processes, derivatives

# PyTorch's own, while it traces.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]


class Tagger(nn.Module):
    def __init__(self, backend="auto"):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 4)
        self.crf = CRF(4, batch_first=True, backend=backend)

    def forward(self, x, tags, mask):
        return -self.crf(self.linear(x), tags, mask, reduction="mean")


def batch(sequences=3, steps=5):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(sequences, steps, 6, generator=generator)
    tags = torch.randint(4, (sequences, steps), generator=generator)
    mask = torch.arange(steps) < torch.tensor([steps, 2, 3])[:sequences].unsqueeze(1)
    return x, tags, mask


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_without_a_break(backend, dynamic):
    model = Tagger(backend)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for ours, eager in zip(
        derivatives(compiled, batch()), derivatives(model, batch()), strict=True
    ):
        assert_close(ours, eager)


@pytest.mark.parametrize("answer", ["viterbi", "marginals", "entropy", "log_partition"])
def test_answers_compiled(backend, answer):
    x, _, mask = batch()
    model = Tagger(backend)

    def ask(x, mask):
        return getattr(model.crf, answer)(model.linear(x), mask)

    compiled = torch.compile(ask, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x, mask), ask(x, mask))


def test_exported(backend):
    model = Tagger(backend)
    program = torch.export.export(model, batch())
    assert_close(program.module()(*batch()), model(*batch()))
    names = {str(node.target) for node in program.graph.nodes}
    assert ("chordal.chain_value.default" in names) == (backend == "kernels")


@pytest.mark.parametrize("what", [Decoder, Marginals])
def test_exported_for_any_length(backend, what):
    model = what(CRF(4, batch_first=True, backend=backend))
    dynamic = torch.export.Dim.DYNAMIC
    shapes = {name: {0: dynamic, 1: dynamic} for name in ("emissions", "mask")}
    first = (torch.randn(3, 5, 4), torch.ones(3, 5, dtype=torch.bool))
    program = torch.export.export(model, first, dynamic_shapes=shapes)
    for sequences, steps in ((2, 9), (7, 2)):
        emissions = torch.randn(sequences, steps, 4)
        mask = torch.arange(steps) < torch.randint(1, steps + 1, (sequences, 1))
        assert_close(program.module()(emissions, mask), model(emissions, mask))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(backend, dtype):
    _, tags, mask = batch()
    crf = CRF(4, batch_first=True, backend=backend)
    emissions = torch.randn(3, 5, 4).to(dtype)
    half = emissions.clone().requires_grad_()
    single = emissions.float().requires_grad_()
    ours, wide = crf(half, tags, mask), crf(single, tags, mask)
    assert ours.dtype == torch.float32
    assert_close(ours, wide)
    ours.backward()
    wide.backward()
    assert half.grad.dtype == dtype
    assert_close(half.grad, single.grad.to(dtype))
    assert crf.half().log_partition(half.half(), mask).dtype == torch.float32


def test_autocast(backend):
    """Sums stay in float32 where a network's layers are in bfloat16."""
    model = Tagger(backend)
    x, tags, mask = batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        emissions = model.linear(x)
        assert emissions.dtype == torch.bfloat16
        loss = model(x, tags, mask)
        marginals = model.crf.marginals(emissions, mask)
    assert loss.dtype == marginals.dtype == torch.float32
    assert_close(loss, -model.crf(emissions.float(), tags, mask, reduction="mean"))
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def halves(rank):
    x, tags, mask = batch()
    return [(x[:2], tags[:2], mask[:2]), (x[2:], tags[2:], mask[2:])][rank]


def test_two_processes(tmp_path):
    check_two_processes(Tagger, halves, tmp_path)


def test_a_layer_is_copied_and_kept(tmp_path):
    import copy

    crf = CRF(4, batch_first=True, allowed_transitions=torch.rand(4, 4) < 0.8)
    emissions = torch.randn(2, 3, 4)
    torch.save(crf.state_dict(), tmp_path / "crf.pt")
    other = copy.deepcopy(crf)
    other.reset_parameters()
    other.load_state_dict(torch.load(tmp_path / "crf.pt"))
    assert_close(other.log_partition(emissions), crf.log_partition(emissions))


def test_a_forked_process_has_threads_of_its_own():
    """The kernels' waiting threads stay behind in the process that forked."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    crf = CRF(30, batch_first=True)
    emissions = torch.randn(8, 40, 30)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with torch.no_grad():
            wanted = crf.log_partition(emissions)  # threads are waiting from now on
            child = torch.multiprocessing.get_context("fork").Process(
                target=lambda: os._exit(
                    0 if torch.equal(crf.log_partition(emissions), wanted) else 1
                )
            )
            child.start()
            child.join(60)
    finally:
        torch.set_num_threads(before)
    child.kill()
    assert child.exitcode == 0
