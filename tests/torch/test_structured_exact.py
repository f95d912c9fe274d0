"""StructuredCRF by exact methods, against all labellings one by one, and its derivatives."""

import copy
import pickle

import pytest
import torch

from chordal.torch import CRF, StructuredCRF

from .structures import FORESTS, STRUCTURES, clique_tables, draw, labellings, layer, scores_of

BATCH = 3


@pytest.fixture(params=sorted(STRUCTURES))
def name(request):
    return request.param


@pytest.fixture(params=["tree", "junction_tree"])
def method(request, name):
    if request.param == "tree" and not STRUCTURES[name].is_forest:
        pytest.skip("a graph with loops")
    return request.param


def unary_for(name, seed=0):
    structure = STRUCTURES[name]
    return draw(seed, BATCH, structure.n_variables, int(structure.label_counts[0]))


def brute(crf, name, unary):
    structure = STRUCTURES[name]
    tables = clique_tables(crf, structure)
    return torch.stack([scores_of(structure, one, tables) for one in unary])


def test_answers_are_those_of_all_labellings(name, method):
    crf, unary, structure = layer(name, inference=method), unary_for(name), STRUCTURES[name]
    scores, every = brute(crf, name, unary), torch.tensor(labellings(structure))
    chances = scores.softmax(1)
    close = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(crf.log_partition(unary), scores.logsumexp(1), **close)
    hot = torch.nn.functional.one_hot(every, crf.num_labels).double()
    torch.testing.assert_close(
        crf.marginals(unary), torch.einsum("by,yvl->bvl", chances, hot), **close
    )
    torch.testing.assert_close(crf.entropy(unary), -(chances * chances.log()).sum(1), **close)
    best, order = scores.sort(dim=1, descending=True)
    assert torch.equal(crf.decode(unary), every[order[:, 0]])
    labels, found = crf.k_best(unary, 4)
    torch.testing.assert_close(found, best[:, :4], **close)
    assert torch.equal(labels, every[order[:, :4]])
    gold = torch.tensor([1, 5, 2])
    picked = scores[torch.arange(BATCH), gold]
    torch.testing.assert_close(crf.score(unary, every[gold]), picked, **close)
    torch.testing.assert_close(
        crf(unary, every[gold], "none"), picked - scores.logsumexp(1), **close
    )


def test_marginals_of_cliques(name, method):
    crf, unary, structure = layer(name, inference=method), unary_for(name), STRUCTURES[name]
    chances = brute(crf, name, unary).softmax(1)
    flat = crf.clique_marginals(unary).reshape(BATCH, -1)
    first = 0
    for k in range(structure.n_cliques):
        scope = structure.scope(k)
        table = torch.zeros(BATCH, *[crf.num_labels] * len(scope), dtype=torch.float64)
        for i, y in enumerate(labellings(structure)):
            table[(slice(None), *[y[v] for v in scope])] += chances[:, i]
        cells = table[0].numel()
        torch.testing.assert_close(flat[:, first : first + cells], table.reshape(BATCH, -1))
        first += cells
    assert first == flat.shape[1]


def test_samples_follow_the_model():
    crf, unary = layer("loop"), unary_for("loop")
    drawn = crf.sample(unary, 20_000, generator=torch.Generator().manual_seed(5))
    assert drawn.shape == (20_000, BATCH, 5)
    share = torch.nn.functional.one_hot(drawn, 2).double().mean(0)
    torch.testing.assert_close(share, crf.marginals(unary), rtol=0.0, atol=0.015)
    again = crf.sample(unary, 20_000, generator=torch.Generator().manual_seed(5))
    assert torch.equal(drawn, again)


@pytest.mark.parametrize("question", ["log_partition", "marginals", "clique_marginals", "entropy"])
def test_derivatives(name, question):
    crf, unary = layer(name, learned=False), unary_for(name).requires_grad_()
    tables = draw(3, *crf._shape(len(crf.table_offsets) - 1)).requires_grad_()

    def ask(u, t):
        return getattr(crf, question)(u, tables=t)

    assert torch.autograd.gradcheck(ask, (unary, tables))
    if question == "log_partition":
        assert torch.autograd.gradgradcheck(ask, (unary, tables))


@pytest.mark.parametrize("tying", ["all", "each", "direction", [0, 1, 1, 2, 0, 2, 1]])
def test_tables_of_each_example(tying):
    crf, unary = layer("grid", tying=tying), unary_for("grid")
    own = draw(4, BATCH, *crf.tables.shape)
    found = crf.log_partition(unary, tables=own)
    for b in range(BATCH):
        tables = clique_tables(crf, STRUCTURES["grid"], own[b])
        expected = scores_of(STRUCTURES["grid"], unary[b], tables).logsumexp(0)
        torch.testing.assert_close(found[b], expected)


def test_tables_in_place_of_the_parameter():
    crf, unary, structure = layer("grid"), unary_for("grid"), STRUCTURES["grid"]
    one, each = draw(5, 2, 2), draw(6, structure.n_cliques, 2, 2)
    for given, tables in ((one, [one] * 7), (each, list(each))):
        expected = torch.stack([scores_of(structure, u, tables).logsumexp(0) for u in unary])
        torch.testing.assert_close(crf.log_partition(unary, tables=given), expected)
    both = each.expand(BATCH, -1, -1, -1)
    torch.testing.assert_close(
        crf.log_partition(unary, tables=both), crf.log_partition(unary, tables=each)
    )


@pytest.mark.parametrize("tying", ["all", "direction", "each"])
def test_the_parameter_has_the_derivative_of_the_likelihood(tying):
    crf, unary = layer("grid", tying=tying), unary_for("grid")
    labels = torch.randint(2, (BATCH, 6), generator=torch.Generator().manual_seed(0))
    loss = -crf(unary, labels, "mean")
    (found,) = torch.autograd.grad(loss, crf.tables)
    by_hand = -brute(crf, "grid", unary).log_softmax(1)
    index = torch.tensor([labellings(STRUCTURES["grid"]).index(tuple(y)) for y in labels.tolist()])
    (expected,) = torch.autograd.grad(by_hand[torch.arange(BATCH), index].mean(), crf.tables)
    torch.testing.assert_close(found, expected)


def test_labels_that_were_not_observed_and_sets(name):
    crf, unary, structure = layer(name), unary_for(name), STRUCTURES[name]
    scores, every = brute(crf, name, unary), torch.tensor(labellings(structure))
    labels = every[[1, 2, 3]].clone()
    labels[:, 0] = -100
    sets = torch.nn.functional.one_hot(every[[1, 2, 3]], crf.num_labels).bool()
    sets[:, 0] = True
    agree = (every[None, :, 1:] == labels[:, None, 1:]).all(2)
    expected = scores.masked_fill(~agree, -torch.inf).logsumexp(1) - scores.logsumexp(1)
    torch.testing.assert_close(crf(unary, labels, "none"), expected)
    torch.testing.assert_close(crf(unary, sets, "none"), expected)


def test_reductions():
    crf, unary = layer("tree"), unary_for("tree")
    labels = torch.zeros(BATCH, 4, dtype=torch.long)
    each = crf(unary, labels, "none")
    torch.testing.assert_close(crf(unary, labels), each.sum())
    torch.testing.assert_close(crf(unary, labels, "mean"), each.mean())
    torch.testing.assert_close(crf(unary, labels, "token_mean"), each.sum() / (4 * BATCH))


def test_hinge_loss(name):
    crf, unary, structure = layer(name), unary_for(name), STRUCTURES[name]
    scores, every = brute(crf, name, unary), torch.tensor(labellings(structure))
    gold = torch.tensor([1, 5, 2])
    wrong = (every[None] != every[gold][:, None]).sum(2)
    expected = (scores + 0.7 * wrong).max(1).values - scores[torch.arange(BATCH), gold]
    torch.testing.assert_close(crf.hinge_loss(unary, every[gold], "none", cost=0.7), expected)


def test_forbidden_labels_have_no_derivative():
    crf, unary = layer("loop", learned=False), unary_for("loop")
    unary[0, 1, 0] = -torch.inf
    tables = draw(5, 1, 2, 2)
    tables[0, 1, 0] = -torch.inf
    unary.requires_grad_(), tables.requires_grad_()
    value = crf.log_partition(unary, tables=tables).sum() + crf.entropy(unary, tables=tables).sum()
    for gradient in torch.autograd.grad(value, (unary, tables)):
        assert gradient.isfinite().all()
    assert crf.marginals(unary, tables=tables)[0, 1, 0] == 0.0


def test_fewer_labellings_than_asked_for():
    crf = layer("no_edge")
    labels, score = crf.k_best(unary_for("no_edge"), 11, pad=-7)
    assert (score[:, 9:] == -torch.inf).all()
    assert (score[:, :9] > -torch.inf).all()
    assert (labels[:, 9:] == -7).all()
    assert (labels[:, :9] >= 0).all()


def test_float32_and_bfloat16_and_an_empty_batch(name):
    crf, unary = layer(name), unary_for(name)
    wide = crf.log_partition(unary)
    narrow = crf.float().log_partition(unary.float())
    assert narrow.dtype == torch.float32
    torch.testing.assert_close(narrow.double(), wide, rtol=1e-5, atol=1e-5)
    assert crf.log_partition(unary.bfloat16()).dtype == torch.float32
    assert crf.log_partition(unary[:0]).shape == (0,)
    assert crf.decode(unary[:0]).shape == (0, crf.n_variables)


def test_copies_and_pickles():
    crf, unary = layer("grid"), unary_for("grid")
    for other in (copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert torch.equal(other.log_partition(unary), crf.log_partition(unary))
    assert list(crf.state_dict()) == ["tables"]


def test_chains_agree_with_the_chain_layer():
    crf, chain = layer("chain"), CRF(3, batch_first=True).double()
    with torch.no_grad():
        chain.start_transitions.zero_()
        chain.end_transitions.zero_()
        chain.transitions.copy_(crf.tables[0])
    unary, labels = unary_for("chain"), torch.tensor([[0, 1, 2], [2, 2, -100], [1, 0, 0]])
    torch.testing.assert_close(crf(unary, labels, "none"), chain(unary, labels, reduction="none"))
    torch.testing.assert_close(crf.marginals(unary), chain.marginals(unary))
    torch.testing.assert_close(crf.entropy(unary), chain.entropy(unary))
    assert crf.decode(unary).tolist() == chain.decode(unary)


def test_auto_takes_the_method_that_fits():
    for name, structure in STRUCTURES.items():
        exact = StructuredCRF(structure, tying="each").answers.method
        assert exact == ("tree" if name in FORESTS else "junction_tree")
