"""Every answer of the layer against all labellings, for both ways of computing."""

import pytest
import torch
from torch.testing import assert_close


def test_log_partition_and_marginals(backend, case):
    crf = case.layer(backend)
    ours = crf.log_partition(case.emissions, case.mask, transitions=case.transitions)
    marginals = crf.marginals(case.emissions, case.mask, transitions=case.transitions)
    pairs = crf.transition_marginals(case.emissions, case.mask, transitions=case.transitions)
    entropy = crf.entropy(case.emissions, case.mask, transitions=case.transitions)
    expected_pairs = torch.zeros_like(pairs)
    for b, brute in enumerate(case.brute(crf)):
        assert_close(ours[b], brute.log_z)
        assert_close(entropy[b], -(brute.chances * brute.chances.log()).sum())
        for t in range(case.shape[1]):
            for j in range(case.shape[2]):
                wanted = brute.probability(lambda y, t=t, j=j: y.get(t) == j)
                assert_close(marginals[b, t, j], wanted)
        for s, t in zip(brute.steps, brute.steps[1:], strict=False):
            for i in range(case.shape[2]):
                for j in range(case.shape[2]):
                    expected_pairs[b, t, i, j] = brute.probability(
                        lambda y, s=s, t=t, i=i, j=j: (y[s], y[t]) == (i, j)
                    )
    assert_close(pairs, expected_pairs)


def test_best_taggings(backend, case):
    crf = case.layer(backend)
    given = {"transitions": case.transitions}
    lists = crf.decode(case.emissions, case.mask, **given)
    tags, score = crf.viterbi(case.emissions, case.mask, pad=-7, **given)
    k = 12
    ranked, scores = crf.k_best(case.emissions, k, case.mask, **given)
    for b, brute in enumerate(case.brute(crf)):
        order = brute.scores.argsort(descending=True)
        assert lists[b] == list(brute.labellings[order[0]])
        assert tags[b][case.mask[b]].tolist() == lists[b]
        assert (tags[b][~case.mask[b]] == -7).all()
        assert_close(score[b], brute.scores[order[0]])
        for r in range(k):
            if r < len(order):
                assert ranked[b, r][case.mask[b]].tolist() == list(brute.labellings[order[r]])
                assert_close(scores[b, r], brute.scores[order[r]])
            else:
                assert scores[b, r] == float("-inf")
                assert (ranked[b, r] == -1).all()


def agrees(y, tags, mask, ignored=-100):
    return all(tags[t] in (ignored, y[t]) for t in range(len(tags)) if mask[t])


def test_likelihood_of_tags_that_were_not_all_observed(backend, case):
    crf = case.layer(backend)
    tags = case.tags.clone()
    tags[0, 1] = tags[2, 3] = tags[2, 2] = -100
    ours = crf(case.emissions, tags, case.mask, "none", transitions=case.transitions)
    for b, brute in enumerate(case.brute(crf)):
        wanted = brute.probability(
            lambda y, b=b: agrees(y, tags[b].tolist(), case.mask[b].tolist())
        )
        assert_close(ours[b], wanted.log())


def test_sets_and_distributions(backend, case):
    crf = case.layer(backend)
    generator = torch.Generator().manual_seed(1)
    sets = torch.rand(case.shape, generator=generator) < 0.6
    sets[..., 0] = True
    soft = torch.rand(case.shape, generator=generator, dtype=torch.float64).softmax(2)
    of_sets = crf(case.emissions, sets, case.mask, "none", transitions=case.transitions)
    of_soft = crf(case.emissions, soft, case.mask, "none", transitions=case.transitions)
    for b, brute in enumerate(case.brute(crf)):
        wanted = brute.probability(lambda y, b=b: all(sets[b, t, j] for t, j in y.items()))
        assert_close(of_sets[b], wanted.log())
        expected = torch.zeros(())
        for y, score in zip(brute.labellings, brute.scores, strict=True):
            chance = torch.ones((), dtype=torch.float64)
            for t, j in zip(brute.steps, y, strict=True):
                chance = chance * soft[b, t, j]
            expected = expected + chance * score
        assert_close(of_soft[b], expected - brute.log_z)


@pytest.mark.parametrize("cost", ["number", "matrix"])
def test_losses_with_costs(backend, case, cost):
    crf = case.layer(backend)
    tags_count = case.shape[2]
    price = 0.7 * (1 - torch.eye(tags_count, dtype=torch.float64))
    if cost == "matrix":
        price = torch.rand(tags_count, tags_count, dtype=torch.float64).fill_diagonal_(0.0)
    given = {"cost": 0.7 if cost == "number" else price, "transitions": case.transitions}
    hinge = crf.hinge_loss(case.emissions, case.tags, case.mask, "none", **given)
    softmax = crf.softmax_margin_loss(case.emissions, case.tags, case.mask, "none", **given)
    for b, brute in enumerate(case.brute(crf)):
        gold = tuple(case.tags[b, t].item() for t in brute.steps)
        extra = [sum(price[g, j] for g, j in zip(gold, y, strict=True)) for y in brute.labellings]
        raised = brute.scores + torch.tensor(extra, dtype=torch.float64)
        score = brute.scores[brute.labellings.index(gold)]
        assert_close(hinge[b], raised.max() - score)
        assert_close(softmax[b], raised.logsumexp(0) - score)


def test_hinge_with_a_tag_that_was_not_observed(backend, case):
    """The best tagging that agrees is the gold one, and the open step costs nothing."""
    crf = case.layer(backend)
    tags = case.tags.clone()
    tags[0, 2] = -100
    loss = crf.hinge_loss(case.emissions, tags, case.mask, "none", transitions=case.transitions)
    brute = next(case.brute(crf))
    known = [0, 1, 3]
    wrong = [sum(y[t] != tags[0, t] for t in known) for y in brute.labellings]
    agree = torch.tensor([count == 0 for count in wrong])
    raised = brute.scores + torch.tensor(wrong, dtype=torch.float64)
    assert_close(loss[0], raised.max() - brute.scores[agree].max())


def test_span_probability(backend, case):
    crf = case.layer(backend)
    spans = [(0, 1, [2, 0]), (0, 0, [1]), (2, 2, [0, 1]), (0, 0, [0, 1, 2, 0])]
    ours = crf.span_probability(case.emissions, spans, case.mask, transitions=case.transitions)
    brutes = list(case.brute(crf))
    for k, (b, first, tags) in enumerate(spans):
        wanted = brutes[b].probability(
            lambda y, first=first, tags=tags: [y[first + n] for n in range(len(tags))] == tags
        )
        assert_close(ours[k], wanted)


def test_samples_follow_the_model(backend, case):
    crf = case.layer(backend)
    n = 4000
    generator = torch.Generator().manual_seed(3)
    drawn = crf.sample(
        case.emissions, n, case.mask, transitions=case.transitions, generator=generator
    )
    assert drawn.shape == (n, *case.shape[:2])
    assert (drawn[:, ~case.mask] == -1).all()
    for b, brute in enumerate(case.brute(crf)):
        counts = torch.zeros(len(brute.labellings), dtype=torch.float64)
        place = {y: k for k, y in enumerate(brute.labellings)}
        for y in drawn[:, b][:, case.mask[b]].tolist():
            counts[place[tuple(y)]] += 1
        assert (counts / n - brute.chances).abs().max() < 0.035  # four deviations


def test_both_ways_draw_the_same(case):
    def draw(backend):
        generator = torch.Generator().manual_seed(3)
        crf = case.layer(backend)
        return crf.sample(case.emissions, 50, case.mask, generator=generator)

    assert torch.equal(draw("kernels"), draw("torch"))
