"""PyTorch layers with arguments that bytes choose; an answer that is NaN is a finding."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal import UnsupportedError
from chordal.structures import Chain, FactorGraph, Graph, Grid, Structure
from fuzz.calls import Choices
from fuzz.mutation import of_bytes
from fuzz.target import Target

ODD: list[Any] = [None, "x", 0, -1, 1.5, float("nan"), float("inf"), True, 2**70, [[0]], 1e-200]
ON_STEPS = [
    "forward",
    "decode",
    "viterbi",
    "marginals",
    "transition_marginals",
    "log_partition",
    "entropy",
]
ON_NODES = [
    "forward",
    "decode",
    "marginals",
    "clique_marginals",
    "log_partition",
    "entropy",
    "score",
]
LOSSES = ["forward", "score", "hinge_loss", "pseudo_log_likelihood"]


def layers() -> Target:
    """Random calls of layers, where PyTorch is installed."""
    import torch

    torch.set_num_threads(1)

    def run(data: bytes) -> None:
        choose = Choices(data)
        torch.manual_seed(0)
        _refuse_nan(choose.one_of([_chain, _graph, _image, _dense])(choose))

    rng = np.random.default_rng(0)
    seeds = [rng.bytes(n) for n in (8, 30, 80, 200) for _ in range(5)]
    return Target(seeds, run, of_bytes((), seeds), (ValueError, TypeError, UnsupportedError))


def _refuse_nan(answer: Any) -> None:
    for own in answer if isinstance(answer, tuple) else (answer,):
        if hasattr(own, "isnan") and bool(own.isnan().any()):
            raise AssertionError(f"an answer is NaN: {own}")


def _scores(choose: Choices, *shape: int) -> Any:
    """Usually a tensor of this shape."""
    import torch

    made = torch.tensor(choose.floats(int(np.prod(shape))).reshape(shape))
    kind = choose.below(20)
    if kind < 5:
        kinds = torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.complex64
        return made.to(kinds[kind])
    if kind == 5:
        return made.numpy()
    if kind == 6:
        return choose.one_of(ODD)
    if kind == 7:
        return made[..., 1:]
    return made.requires_grad_() if kind == 8 else made


def _labels(choose: Choices, n_labels: int, *shape: int) -> Any:
    import torch

    made = torch.tensor([choose.below(n_labels) for _ in range(int(np.prod(shape)))]).reshape(shape)
    kind = choose.below(20)
    if kind < 4:
        return made.to((torch.uint8, torch.int32, torch.float32, torch.bool)[kind])
    if kind == 4:
        return choose.one_of(ODD)
    if kind == 5:
        return made - 1
    return torch.rand((*shape, n_labels)) < 0.5 if kind == 6 else made


def _number(choose: Choices) -> Any:
    return choose.one_of(ODD) if choose.below(6) == 0 else 1 + choose.below(4)


def _chain(choose: Choices) -> Any:
    from chordal.torch import CRF

    n, steps, kind = 1 + choose.below(3), choose.below(5), choose.below(3)
    crf = CRF(n, True, any_mask=bool(choose.below(2)), backend=("auto", "torch", "kernels")[kind])
    emissions, options = _scores(choose, 2, steps, n), dict[str, Any]()
    if choose.below(3) == 0:
        options["transitions"] = _scores(choose, n, n)
    if choose.below(3) == 0:
        options["mask"] = _labels(choose, 2, 2, steps)
    margins = ["hinge_loss", "softmax_margin_loss"]
    question = choose.one_of([*ON_STEPS, *margins, "k_best", "sample", "span_probability"])
    if question in ("forward", *margins):
        cost = {"cost": _number(choose)} if question in margins else {}
        return getattr(crf, question)(emissions, _labels(choose, n, 2, steps), **options, **cost)
    if question == "span_probability":
        wanted = [choose.below(n + 1) for _ in range(choose.below(3))]
        return crf.span_probability(
            emissions, [(choose.below(3), choose.below(5), wanted)], **options
        )
    numbers = [_number(choose)] if question in ("k_best", "sample") else []
    return getattr(crf, question)(emissions, *numbers, **options)


def _graph(choose: Choices) -> Any:
    from chordal.torch import LoopyBP, MeanField, StructuredCRF

    n = 1 + choose.below(3)
    structures: list[Structure] = [
        Chain([1 + choose.below(4)], n),
        Grid([(2, 2)], n),
        Graph([4], [[(0, 1), (1, 2), (2, 3), (3, 0)]], n),
        FactorGraph([3], [[(0, 1, 2)]], n),
    ]
    structure = choose.one_of(structures)
    methods = ["auto", "mean_field", "loopy_bp", MeanField(3, "implicit"), LoopyBP(3, "implicit")]
    crf = StructuredCRF(structure, choose.one_of(methods), choose.one_of(["all", "each"]))
    assert crf.tables is not None
    unary, options = _scores(choose, 2, structure.n_variables, n), dict[str, Any]()
    if choose.below(3) == 0:
        options["tables"] = _scores(choose, *crf.tables.shape)
    question = choose.one_of([*ON_NODES, *LOSSES, "k_best", "sample"])
    if question in LOSSES:
        given = _labels(choose, n, 2, structure.n_variables)
        return getattr(crf, question)(unary, given, **options)
    numbers = [_number(choose)] if question in ("k_best", "sample") else []
    return getattr(crf, question)(unary, *numbers, **options)


def _image(choose: Choices) -> Any:
    from chordal.torch import ImageCRF

    n, height, width = 1 + choose.below(3), choose.below(4), 1 + choose.below(3)
    crf = ImageCRF(n, choose.one_of(["auto", "mean_field", "loopy_bp"]), 4 + 4 * choose.below(2))
    scores = _scores(choose, 2, n, height, width)
    question = choose.one_of(["forward", "pseudo_log_likelihood", "decode", "marginals", "k_best"])
    if question in LOSSES:
        return getattr(crf, question)(scores, _labels(choose, n, 2, height, width))
    return getattr(crf, question)(scores, *([_number(choose)] if question == "k_best" else []))


def _dense(choose: Choices) -> Any:
    from chordal.torch import DenseCRF

    names = ("n_iter", "position_width", "colour_width", "smoothness_width")
    given = {name: _number(choose) for name in names if choose.below(4) == 0}
    crf = DenseCRF(2, choose.one_of([3, 3, 5, *ODD]), **given)
    height, width = 1 + choose.below(3), 1 + choose.below(3)
    images = _scores(choose, 2, choose.below(3), height, width)
    return choose.one_of([crf, crf.marginals, crf.decode])(
        _scores(choose, 2, 2, height, width), images
    )
