"""From pytorch-crf and torch-struct to chordal.torch.CRF, side by side.

Run it by `python examples/moving_layers.py`; it needs PyTorch. It asks chordal and, where they are
installed, the others (`pip install pytorch-crf torch-struct`), and prints how much answers differ.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

from chordal.torch import CRF

Answers = dict[str, Tensor]


def data(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Emissions [batch, steps, tags], tags [batch, steps] and mask."""
    generator = torch.Generator().manual_seed(seed)
    emissions = torch.randn(3, 6, 4, generator=generator, dtype=torch.float64)
    tags = torch.randint(4, (3, 6), generator=generator)
    return emissions, tags, torch.arange(6) < torch.tensor([[6], [3], [1]])


def layer(seed: int = 0) -> CRF:
    """A layer of four tags with some weights."""
    torch.manual_seed(seed)
    return CRF(4, batch_first=True).double()


def by_pytorch_crf(crf: CRF) -> Answers:
    """pytorch-crf's calls; the weights have the same names."""
    from torchcrf import CRF as Theirs

    theirs = Theirs(4, batch_first=True).double()
    theirs.load_state_dict(crf.state_dict())
    emissions, tags, mask = data()
    return {
        "log-likelihood": theirs(emissions, tags, mask, reduction="none"),
        "mean of tokens": theirs(emissions, tags, mask, reduction="token_mean"),
        "best tags": joined(theirs.decode(emissions, mask)),
    }


def as_pytorch_crf(crf: CRF) -> Answers:
    """The same calls of chordal."""
    emissions, tags, mask = data()
    return {
        "log-likelihood": crf(emissions, tags, mask, reduction="none"),
        "mean of tokens": crf(emissions, tags, mask, reduction="token_mean"),
        "best tags": joined(crf.decode(emissions, mask)),
    }


def by_torch_struct(crf: CRF) -> Answers:
    """torch-struct's distribution; what positions and ends score is added to log-potentials."""
    from torch_struct import LinearChainCRF

    emissions, _, mask = data()
    lengths = mask.sum(1)
    unary = emissions.clone()
    unary[:, 0] += crf.start_transitions
    unary[torch.arange(len(unary)), lengths - 1] += crf.end_transitions
    tables = crf.transitions.T + unary[:, 1:].unsqueeze(3)  # [batch, step, into, from]
    tables[:, 0] = tables[:, 0] + unary[:, 0].unsqueeze(1)
    # A sequence of one position has no table: torch-struct cannot say its score.
    long = lengths > 1
    chain = LinearChainCRF(tables[long], lengths[long])
    return {"log Z": chain.partition, "entropy": chain.entropy, "pairs": chain.marginals}


def as_torch_struct(crf: CRF) -> Answers:
    """The same questions to chordal: emissions and lengths by themselves."""
    emissions, _, mask = data()
    long = mask.sum(1) > 1
    given = emissions[long], mask[long]
    pairs = crf.transition_marginals(*given)  # an entry leads into its step, from row to column
    return {
        "log Z": crf.log_partition(*given),
        "entropy": crf.entropy(*given),
        "pairs": pairs[:, 1:].transpose(2, 3),
    }


def joined(paths: list[list[int]]) -> Tensor:
    """Paths one after another."""
    return torch.tensor([tag for path in paths for tag in path])


PAIRS = {
    "torchcrf": ("pytorch-crf", by_pytorch_crf, as_pytorch_crf),
    "torch_struct": ("torch-struct", by_torch_struct, as_torch_struct),
}


def main() -> dict[str, float]:
    """The largest differences, by library and question; NaN where it is not installed."""
    crf, found = layer(), dict[str, float]()
    with torch.no_grad():
        for package, (name, other, same) in PAIRS.items():
            ours = same(crf)
            theirs = other(crf) if find_spec(package) else {}
            for question, answer in ours.items():
                apart = float("nan")
                if question in theirs:
                    apart = float((theirs[question].double() - answer.double()).abs().max())
                found[f"{name}: {question}"] = apart
                said = "not installed" if apart != apart else f"differs by {apart:.1e}"
                print(f"{name:14} {question:16} {said}")
    return found


if __name__ == "__main__":
    main()
