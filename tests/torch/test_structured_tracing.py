"""Layers on structures inside torch.compile, torch.export, autocast and DDP."""

import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from chordal.torch import DenseCRF, ImageCRF, LoopyBP, MeanField, StructuredCRF

from .structures import STRUCTURES
from .two_processes import check_two_processes, derivatives

# PyTorch's own, while it traces.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
IMPLICIT = [MeanField(gradient="implicit"), LoopyBP(gradient="implicit")]
# A structure, the layer's inference, and what is asked.
ASKED = {
    "tree": ("tree", "auto", "likelihood"),
    "junction tree": ("grid", "junction_tree", "entropy"),
    "hinge": ("grid", "junction_tree", "hinge"),
    "cliques of several sizes": ("mixed", "auto", "cliques"),
    "pseudo-likelihood": ("triples", "auto", "pseudo"),
    "mean field": ("loop", MeanField(n_iter=3), "likelihood"),
    "mean field, cliques": ("loop", MeanField(n_iter=3), "cliques"),
    "loopy BP": ("grid", LoopyBP(n_iter=3, damping=0.2), "marginals"),
    "implicit mean field": ("grid", IMPLICIT[0], "likelihood"),
    "implicit loopy BP": ("grid", IMPLICIT[1], "marginals"),
}
IMAGES = {
    "image": lambda: ImageCRF(2, MeanField(n_iter=2)),
    "exact image": lambda: ImageCRF(2, "auto", tying="direction"),
    "implicit image": lambda: ImageCRF(2, IMPLICIT[0]),
    "dense": lambda: DenseCRF(2, window=3, n_iter=2),
}
SIZE = (3, 4)  # of images


class OnStructure(nn.Module):
    """A linear map, and a number that depends on all of its scores."""

    def __init__(self, name):
        super().__init__()
        structure, inference, self.question = ASKED[name]
        torch.manual_seed(0)
        self.crf = StructuredCRF(STRUCTURES[structure], inference, "each")
        self.linear = nn.Linear(6, self.crf.num_labels)

    def forward(self, x, labels):
        return self.asked(self.linear(x), labels)

    def asked(self, unary, labels):
        if self.question == "likelihood":
            return -self.crf(unary, labels, reduction="mean")
        if self.question == "pseudo":
            return -self.crf.pseudo_log_likelihood(unary, labels, "mean")
        if self.question == "hinge":
            return self.crf.hinge_loss(unary, labels, "mean")
        if self.question == "entropy":
            return self.crf.entropy(unary).sum()
        if self.question == "cliques":
            return self.crf.clique_marginals(unary).square().sum()
        return self.crf.marginals(unary).square().sum()

    def batch(self, n):
        generator = torch.Generator().manual_seed(1)
        shape = (n, self.crf.n_variables)
        x = torch.randn(*shape, 6, generator=generator)
        return x, torch.randint(self.crf.num_labels, shape, generator=generator)


class OnImages(nn.Module):
    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.crf = IMAGES[name]()
        self.linear = nn.Conv2d(3, 2, 1)
        if isinstance(self.crf, ImageCRF):
            self.crf.prepare(*SIZE)

    def forward(self, x, labels):
        return self.asked(self.linear(x), labels, x)

    def asked(self, scores, labels, x=None):
        if isinstance(self.crf, DenseCRF):
            return nn.functional.nll_loss(self.crf(scores, x), labels)
        return -self.crf(scores, labels, reduction="token_mean")

    def batch(self, n):
        generator = torch.Generator().manual_seed(1)
        x = torch.rand(n, 3, *SIZE, generator=generator)
        return x, torch.randint(2, (n, *SIZE), generator=generator)


@pytest.fixture(params=[*ASKED, *IMAGES])
def model(request):
    return (OnStructure if request.param in ASKED else OnImages)(request.param)


def test_compiled_without_a_break(model):
    """One graph for batches of any size."""
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for n in (3, 5):
        found = zip(
            derivatives(compiled, model.batch(n)), derivatives(model, model.batch(n)), strict=True
        )
        for ours, eager in found:
            assert_close(ours, eager)


def test_exported(model, tmp_path):
    dynamic = torch.export.Dim.DYNAMIC
    shapes = ({0: dynamic}, {0: dynamic})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, model.batch(3), dynamic_shapes=shapes)
        torch.export.save(program, tmp_path / "layer.pt2")
        loaded = torch.export.load(tmp_path / "layer.pt2").module()
    assert_close(loaded(*model.batch(5)), model(*model.batch(5)))


def test_autocast(model):
    """A network's scores are in bfloat16; the layer computes with them in float32."""
    x, labels = model.batch(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model.linear(x)
        assert scores.dtype == torch.bfloat16
        loss = model(x, labels)
    assert loss.dtype == torch.float32
    rest = (x,) if isinstance(getattr(model, "crf", None), DenseCRF) else ()
    assert_close(loss, model.asked(scores.float(), labels, *rest))
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(model, dtype):
    x, labels = model.batch(3)
    scores = model.linear(x).detach().to(dtype)
    half, single = scores.clone().requires_grad_(), scores.float().requires_grad_()
    rest = (x,) if isinstance(model.crf, DenseCRF) else ()
    ours, wide = model.asked(half, labels, *rest), model.asked(single, labels, *rest)
    assert ours.dtype == torch.float32
    assert_close(ours, wide)
    ours.backward()
    wide.backward()
    assert half.grad.dtype == dtype
    assert_close(half.grad, single.grad.to(dtype))


class Several(nn.Module):
    """An exact, an approximate and an image layer, with losses that add up."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [OnStructure("tree"), OnStructure("implicit loopy BP"), OnImages("image")]
        )

    def forward(self, *given):
        return sum(layer(*own) for layer, own in zip(self.layers, given, strict=True))


def halves(rank):
    given = [layer.batch(4) for layer in Several().layers]
    return [tuple(x[2 * rank : 2 * rank + 2] for x in own) for own in given]


def test_two_processes(tmp_path):
    check_two_processes(Several, halves, tmp_path)


def test_an_image_layer_that_was_not_prepared():
    crf = ImageCRF(2)
    compiled = torch.compile(crf, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"call prepare\(3, 4\) first"):
        compiled(torch.zeros(1, 2, 3, 4), torch.zeros(1, 3, 4, dtype=torch.long))
