"""What the tests of chordal.torch share; all are skipped without PyTorch."""

import itertools

import pytest

try:
    import torch
except ImportError:
    torch = None
else:
    from chordal.torch import CRF  # what is wrong with it is no reason to skip


class WithoutTorch(pytest.Module):
    def collect(self):
        pytest.skip("PyTorch is not installed", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if torch is None:
        return WithoutTorch.from_parent(parent, path=module_path)


class Brute:
    """All labellings of one sequence, one by one."""

    def __init__(self, crf, emissions, on, tables):
        self.steps = [t for t in range(len(on)) if on[t]]
        self.labellings = list(itertools.product(range(crf.num_tags), repeat=len(self.steps)))
        self.scores = torch.stack([self.score(crf, emissions, tables, y) for y in self.labellings])

    def score(self, crf, emissions, tables, y):
        total = emissions.new_zeros(())
        if not self.steps:
            return total
        total = total + crf.start_transitions[y[0]] + crf.end_transitions[y[-1]]
        for k, t in enumerate(self.steps):
            total = total + emissions[t, y[k]]
            if k > 0:
                total = total + tables[t][y[k - 1], y[k]]
        return total

    @property
    def log_z(self):
        return self.scores.logsumexp(0)

    @property
    def chances(self):
        return self.scores.softmax(0)

    def probability(self, event):
        """That of all labellings y, as a dict from step to tag, for which event(y) holds."""
        kept = [event(dict(zip(self.steps, y, strict=True))) for y in self.labellings]
        return self.chances[torch.tensor(kept)].sum()


class Case:
    """A random batch, its mask and its transitions, in float64 with the batch first."""

    def __init__(self, seed, tying, batch=5, steps=4, tags=3):
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return 2 * torch.randn(shape, generator=generator, dtype=torch.float64)

        self.shape = (batch, steps, tags)
        self.emissions = draw(batch, steps, tags)
        self.mask = torch.ones(batch, steps, dtype=torch.bool)
        self.mask[1, 2:] = False  # padded on the right, on the left, in between; empty
        self.mask[2, :2] = False
        self.mask[3, 1:3] = False
        self.mask[4] = False
        self.tags = torch.randint(tags, (batch, steps), generator=generator)
        own = {"all": None, "sequence": draw(batch, tags, tags), "step": draw(*self.shape, tags)}
        self.transitions = own[tying]

    def layer(self, backend, **settings):
        torch.manual_seed(0)
        settings = {"batch_first": True, "any_mask": True, **settings}
        crf = CRF(self.shape[2], backend=backend, **settings).double()
        for parameter in crf.parameters():
            torch.nn.init.normal_(parameter)
        return crf

    def brute(self, crf):
        batch, steps, _ = self.shape
        tables = self.transitions
        for b in range(batch):
            if tables is None:
                own = [crf.transitions] * steps
            else:
                own = tables[b] if tables.dim() == 4 else [tables[b]] * steps
            yield Brute(crf, self.emissions[b], self.mask[b], own)


@pytest.fixture(params=["kernels", "torch"])
def backend(request):
    return request.param


@pytest.fixture(params=["all", "sequence", "step"])
def case(request):
    return Case(7, request.param)
