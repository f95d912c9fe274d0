"""What all layers refuse: what is no tensor or whole number, and answers that are no numbers."""

import math

import numpy as np
import pytest
import torch

from chordal import InfeasibleError
from chordal.structures import Grid
from chordal.torch import (
    CRF,
    AllowedTransitions,
    DenseCRF,
    ImageCRF,
    LoopyBP,
    MeanField,
    StructuredCRF,
)

INF = math.inf
CHAIN = torch.zeros(1, 3, 2)
NODES = torch.zeros(1, 4, 2)
IMAGE = torch.zeros(1, 2, 2, 2)
APPROXIMATE = ["mean_field", "loopy_bp", MeanField(gradient="implicit"), LoopyBP(damping=0.5)]


def chain(**settings):
    return CRF(2, batch_first=True, **settings)


def graph(inference="auto", **settings):
    return StructuredCRF(Grid([(2, 2)], 2), inference, **settings)


NO_TENSORS = {
    "CRF, emissions": (lambda x: chain().decode(x), "emissions"),
    "CRF, emissions to sample": (lambda x: chain().sample(x), "emissions"),
    "CRF, emissions for more": (lambda x: chain().k_best(x, 2), "emissions"),
    "CRF, emissions to learn": (lambda x: chain()(x, torch.zeros(1, 3).long()), "emissions"),
    "CRF, tags": (lambda x: chain()(CHAIN, x), "tags"),
    "CRF, mask": (lambda x: chain().marginals(CHAIN, [[True] * 3] if x is None else x), "mask"),
    "CRF, transitions": (lambda x: chain().decode(CHAIN, transitions=x or 3), "transitions"),
    "StructuredCRF, unary": (lambda x: graph().decode(x), "unary"),
    "StructuredCRF, labels": (lambda x: graph()(NODES, x), "labels"),
    "StructuredCRF, tables": (lambda x: graph().decode(NODES, tables=x or 3), "tables"),
    "ImageCRF, scores": (lambda x: ImageCRF(2).decode(x), "scores"),
    "ImageCRF, labels": (lambda x: ImageCRF(2)(IMAGE, x), "labels"),
    "DenseCRF, scores": (lambda x: DenseCRF(2)(x, IMAGE), "scores"),
    "DenseCRF, images": (lambda x: DenseCRF(2)(IMAGE, x), "images"),
}


@pytest.mark.parametrize("name", NO_TENSORS)
@pytest.mark.parametrize("value", [None, [[0]], "x"])
def test_what_is_no_tensor(name, value):
    ask, word = NO_TENSORS[name]
    with pytest.raises(TypeError, match=rf"^{word} must be a torch.Tensor, got .*as_tensor"):
        ask(value)


NO_COUNTS = {
    "num_tags": CRF,
    "ignore_index": lambda x: chain(ignore_index=x),
    "ignore_index of graphs": lambda x: graph(ignore_index=x),
    "k": lambda x: chain().k_best(CHAIN, x),
    "n": lambda x: chain().sample(CHAIN, x),
    "pad": lambda x: chain().viterbi(CHAIN, pad=x),
    "pad of more": lambda x: chain().k_best(CHAIN, 2, pad=x),
    "pad of samples": lambda x: chain().sample(CHAIN, pad=x),
    "k of graphs": lambda x: graph().k_best(NODES, x),
    "n of graphs": lambda x: graph().sample(NODES, x),
    "pad of graphs": lambda x: graph().k_best(NODES, 2, pad=x),
    "num_labels": ImageCRF,
    "height": lambda x: ImageCRF(2).prepare(x, 2),
    "width": lambda x: ImageCRF(2).prepare(2, x),
    "k of images": lambda x: ImageCRF(2, "auto").k_best(IMAGE, x),
    "n of images": lambda x: ImageCRF(2, "auto").sample(IMAGE, x),
    "num_labels of dense": DenseCRF,
    "window": lambda x: DenseCRF(2, x),
    "n_iter": lambda x: DenseCRF(2, n_iter=x),
}


@pytest.mark.parametrize("name", NO_COUNTS)
@pytest.mark.parametrize("value", [None, "2", 1.5, math.nan, INF, True, 2**70])
def test_what_is_no_whole_number(name, value):
    with pytest.raises(ValueError, match=rf"^{name.split()[0]} must be (an integer of )?at"):
        NO_COUNTS[name](value)


@pytest.mark.parametrize("width", [None, "1", 0.0, -1.0, math.nan, INF, 1e-20, 1e200, 1e16])
@pytest.mark.parametrize("name", ["position_width", "colour_width", "smoothness_width"])
def test_widths(name, width):
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        DenseCRF(2, **{name: width})


@pytest.mark.parametrize("cost", [None, "1", -1.0, math.nan, INF])
def test_costs(cost):
    for ask in (
        lambda: chain().hinge_loss(CHAIN, torch.zeros(1, 3).long(), cost=cost),
        lambda: chain().softmax_margin_loss(CHAIN, torch.zeros(1, 3).long(), cost=cost),
        lambda: graph().hinge_loss(NODES, torch.zeros(1, 4).long(), cost=cost),
    ):
        with pytest.raises(ValueError, match=r"^cost must be a number of at least 0"):
            ask()
    table = torch.tensor([[0.0, 1.0], [math.nan, 0.0]])
    with pytest.raises(ValueError, match=r"^cost: gold tag 1, tag 0 is"):
        chain().hinge_loss(CHAIN, torch.zeros(1, 3).long(), cost=table)


@pytest.mark.parametrize("allowed", ["bio", 3, [[True]], np.eye(2, dtype=bool)])
def test_allowed_transitions(allowed):
    with pytest.raises(TypeError, match=r"^allowed_transitions must be a boolean matrix"):
        chain(allowed_transitions=allowed)
    with pytest.raises(TypeError, match=r"^allowed_transitions: start must be a torch.Tensor"):
        chain(allowed_transitions=AllowedTransitions(allowed, allowed, allowed))


@pytest.mark.parametrize("inference", APPROXIMATE)
@pytest.mark.parametrize("ask", ["decode", "marginals", "log_partition", "clique_marginals"])
def test_a_variable_without_labels(inference, ask):
    unary = torch.zeros(3, 4, 2)
    unary[1, 2] = -INF
    with pytest.raises(InfeasibleError, match="no labelling of example 1 is allowed"):
        getattr(graph(inference), ask)(unary)
    sets = torch.ones(3, 4, 2, dtype=torch.bool)
    sets[2, 0] = False
    with pytest.raises(InfeasibleError, match="no labelling of example 2 is allowed"):
        graph(inference)(torch.zeros(3, 4, 2), sets)


def test_a_variable_without_labels_by_its_neighbours():
    unary, tables = torch.zeros(2, 4, 2), torch.full((2, 2), -INF)
    with pytest.raises(InfeasibleError, match="no labelling of example 0 is allowed"):
        graph().pseudo_log_likelihood(unary, torch.zeros(2, 4).long(), tables=tables)


def test_a_pixel_without_labels():
    scores = torch.zeros(2, 2, 3, 3)
    scores[1, :, 1, 1] = -INF
    with pytest.raises(InfeasibleError, match="no labelling of example 1 is allowed"):
        DenseCRF(2)(scores, torch.zeros(2, 3, 3, 3))
    scores[1, 0, 1, 1] = 0.0
    assert DenseCRF(2).marginals(scores, torch.zeros(2, 3, 3, 3))[1, :, 1, 1].tolist() == [1, 0]


@pytest.mark.parametrize("backend", ["kernels", "torch"])
@pytest.mark.parametrize(
    "ask",
    [
        "decode",
        "viterbi",
        "marginals",
        "transition_marginals",
        "log_partition",
        "entropy",
        "sample",
    ],
)
def test_a_step_without_tags(backend, ask):
    emissions = torch.zeros(3, 4, 2)
    emissions[1, 2] = -INF
    with pytest.raises(InfeasibleError, match="no labelling of example 1 is allowed"):
        getattr(chain(backend=backend), ask)(emissions)


@pytest.mark.parametrize("backend", ["kernels", "torch"])
def test_tags_that_are_forbidden_have_no_probability(backend):
    emissions = torch.zeros(2, 3, 2, requires_grad=True)
    held = emissions.masked_fill(torch.tensor([[[True, False]], [[False, False]]]), -INF)
    loss = chain(backend=backend)(held, torch.zeros(2, 3).long(), reduction="none")
    assert loss[0] == -INF
    assert loss[1].isfinite()


def test_learned_numbers_that_went_astray():
    scores, images = torch.zeros(1, 2, 3, 3), torch.rand(1, 3, 3, 3)
    for name, value in (("weights", math.nan), ("log_widths", -500.0), ("compatibility", INF)):
        crf = DenseCRF(2)
        with torch.no_grad():
            getattr(crf, name).fill_(value)
        with pytest.raises(ValueError, match=r"the layer overflows: .*look at log_widths"):
            crf(scores, images)
    with pytest.raises(ValueError, match=r"images must be at most 1e\+15 in size, got 1e\+20"):
        DenseCRF(2)(scores, images.new_full(images.shape, 1e20))


@pytest.mark.filterwarnings("ignore:the iterations")
@pytest.mark.parametrize("inference", ["mean_field", MeanField(gradient="implicit")])
def test_scores_that_overflow(inference):
    unary, tables = torch.zeros(1, 4, 2), torch.full((2, 2), 3e38)
    tables[0, 1] = -3e38
    with pytest.raises(ValueError, match=r"overflows: .*scale the scores"):
        graph(inference).marginals(unary, tables=tables)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_whole_numbers_of_every_size(dtype):
    torch.manual_seed(0)
    nodes, steps = torch.randn(2, 4, 2), torch.randn(2, 3, 2)
    labels, tags = torch.randint(2, (2, 4)), torch.randint(2, (2, 3))
    crf, layer = chain(), graph()
    table = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    for ask in (
        lambda kind: layer(nodes, labels.to(kind)),
        lambda kind: layer.score(nodes, labels.to(kind)),
        lambda kind: layer.hinge_loss(nodes, labels.to(kind)),
        lambda kind: layer.pseudo_log_likelihood(nodes, labels.to(kind)),
        lambda kind: crf(steps, tags.to(kind)),
        lambda kind: crf.hinge_loss(steps, tags.to(kind), cost=table),
        lambda kind: crf.softmax_margin_loss(steps, tags.to(kind), cost=table),
    ):
        torch.testing.assert_close(ask(dtype), ask(torch.int64))


@pytest.mark.parametrize("inference", ["mean_field", "loopy_bp"])
def test_sums_that_overflow(inference):
    unary, labels = torch.zeros(1, 4, 2), torch.zeros(1, 4).long()
    tables = torch.full((2, 2), 1e308, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"overflows: .*scale the scores"):
        graph(inference)(unary, labels, tables=tables)


TAGS = torch.tensor([[0, 1, 0, 1]])
OF_CHAINS = {
    "log_partition": lambda crf, x: crf.log_partition(x),
    "entropy": lambda crf, x: crf.entropy(x),
    "marginals": lambda crf, x: crf.marginals(x),
    "transition_marginals": lambda crf, x: crf.transition_marginals(x),
    "decode": lambda crf, x: crf.decode(x),
    "viterbi": lambda crf, x: crf.viterbi(x),
    "k_best": lambda crf, x: crf.k_best(x, 2),
    "sample": lambda crf, x: crf.sample(x),
    "forward": lambda crf, x: crf(x, TAGS),
    "forward, a tag unknown": lambda crf, x: crf(x, torch.tensor([[0, -100, 0, 1]])),
    "forward, sets": lambda crf, x: crf(x, torch.ones(1, 4, 2).bool()),
    "forward, distributions": lambda crf, x: crf(x, torch.full((1, 4, 2), 0.5)),
    "hinge_loss": lambda crf, x: crf.hinge_loss(x, TAGS),
    "softmax_margin_loss": lambda crf, x: crf.softmax_margin_loss(x, TAGS),
}


@pytest.mark.parametrize("size", [5e307, 1e308, 1.7e308])
@pytest.mark.parametrize("backend", ["kernels", "torch"])
@pytest.mark.parametrize("question", OF_CHAINS)
def test_chains_whose_sum_overflows(question, backend, size):
    steps = torch.full((1, 4, 2), size, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match=r"overflows: .*scale the emissions"):
        OF_CHAINS[question](CRF(2, True, backend=backend), steps)


@pytest.mark.parametrize("backend", ["kernels", "torch"])
@pytest.mark.parametrize("question", OF_CHAINS)
def test_chains_near_overflow_answer_with_numbers_or_say_so(question, backend):
    rng, crf = np.random.default_rng(0), CRF(2, True, backend=backend)
    for _ in range(30):
        steps = torch.tensor(rng.choice([0.0, 5.7, 1e308, -1e308, -1.7e308, -INF], (1, 4, 2)))
        answer, said = None, ""
        try:
            answer = OF_CHAINS[question](crf, steps)
        except ValueError as error:  # also InfeasibleError
            said = str(error)
        assert answer is not None or "overflows" in said or "is allowed" in said
        for own in answer if isinstance(answer, tuple) else [] if answer is None else [answer]:
            assert not torch.as_tensor(own).isnan().any()


def test_the_best_taggings_of_scores_that_overflow_in_float32():
    steps = torch.full((1, 4, 2), 3e38)
    with pytest.raises(ValueError, match="the sum of scores of sequence 0 overflows"):
        CRF(2, True, backend="kernels").viterbi(steps)
    for backend in ("kernels", "torch"):
        with pytest.raises(ValueError, match=r"overflows: .*scale the emissions"):
            CRF(2, True, backend=backend).k_best(steps, 2)


@pytest.mark.parametrize(
    "question", ["marginals", "clique_marginals", "log_partition", "entropy", "decode", "k_best"]
)
@pytest.mark.parametrize("size", [1e308, -1e308])
def test_graphs_whose_sum_overflows(question, size):
    nodes, more = torch.full((1, 4, 2), size, dtype=torch.float64), [2] * (question == "k_best")
    with pytest.raises(ValueError, match=r"at most .* in size or -inf, or their sums"):
        getattr(graph(), question)(nodes, *more)


@pytest.mark.filterwarnings("ignore:the iterations")
def test_beliefs_and_losses_of_scores_that_overflow():
    nodes = torch.full((1, 4, 2), -1e308, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"clique_marginals overflows: .*scale the scores"):
        graph("loopy_bp").clique_marginals(nodes)
    for ask in (graph("mean_field").hinge_loss, graph("mean_field").score):
        with pytest.raises(ValueError, match=r"(hinge_loss|score) overflows: .*scale the scores"):
            ask(-nodes, torch.zeros(1, 4).long())


def test_costs_that_are_large():
    steps, tags = torch.zeros(1, 3, 2, dtype=torch.float64), torch.zeros(1, 3).long()
    assert chain().hinge_loss(steps, tags, cost=2**70).isfinite()
    nodes = torch.zeros(1, 4, 2, dtype=torch.float64)
    assert graph().hinge_loss(nodes, torch.zeros(1, 4).long(), cost=2**70).isfinite()
