"""What a fitted model says about sequences, against brute force over all labellings."""

import numpy as np
import pytest

from chordal import ChainCRF


@pytest.fixture(params=["dense", "attributes", "many shards"])
def fitted(request, monkeypatch, dense_problem, attribute_problem):
    X, y = attribute_problem if request.param == "attributes" else dense_problem
    if request.param == "many shards":
        monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", 1)
    return ChainCRF(l2=0.2, fit_intercept=True, ends=True, random_state=0).fit(X, y), X, y


def test_predict_is_the_best_labelling(fitted, listing):
    crf, X, _ = fitted
    assert crf.predict(X) == [listing(crf, x).best for x in X]
    assert crf.predict(X) == crf.predict(X, method="map")


def test_mpm_takes_the_best_label_of_each_position(fitted, listing):
    crf, X, _ = fitted
    names = crf.classes_.tolist()
    expected = [[names[k] for k in listing(crf, x).marginals.argmax(axis=1)] for x in X]
    assert crf.predict(X, method="mpm") == expected


def test_mpm_and_map_may_differ():
    """Three of four labellings start with a, but the best one starts with b."""
    X, y = [[["u"], ["v"]]] * 10, [["b", "c"]] * 4 + [["a", "a"], ["a", "b"], ["a", "c"]] * 2
    crf = ChainCRF(l2=1e-3, transitions="all", pairs="all").fit(X, y)
    assert crf.predict(X[:1]) == [["b", "c"]]
    assert crf.predict(X[:1], method="mpm")[0][0] == "a"


def test_marginals(fitted, listing):
    crf, X, _ = fitted
    marginals = crf.predict_marginals(X)
    for x, found in zip(X, marginals, strict=True):
        assert found.shape == (len(x), len(crf.classes_))
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found, listing(crf, x).marginals, rtol=0, atol=1e-10)


def test_node_scores_and_transitions_are_all_there_is_to_a_labelling(fitted):
    crf, X, y = fitted
    nodes, names = crf.node_scores(X), crf.classes_.tolist()

    def total(own, tags):
        codes = [names.index(tag) for tag in tags]
        return (
            own[np.arange(len(codes)), codes].sum() + crf.transitions_[codes[:-1], codes[1:]].sum()
        )

    best = crf.predict(X)
    ahead = [total(x, a) - total(x, b) for x, a, b in zip(nodes, best, y, strict=True)]
    expected = crf.log_likelihood(X, best) - crf.log_likelihood(X, y)
    np.testing.assert_allclose(ahead, expected, rtol=0, atol=1e-10)


def test_columns_of_marginals_follow_classes():
    """Labels are numbered by frequency inside; "z" is the more frequent one here."""
    X, y = [[["u"], ["v"], ["v"]]] * 5, [["a", "z", "z"]] * 5
    crf = ChainCRF(l2=0.01).fit(X, y)
    assert crf.classes_.tolist() == ["a", "z"]
    marginals = crf.predict_marginals(X[:1])[0]
    assert marginals[0, 0] > 0.9
    assert (marginals[1:, 1] > 0.9).all()
    pairs = crf.predict_marginals(X[:1], "transitions")[0]
    assert pairs[0, 0, 1] > 0.9
    assert pairs[1, 1, 1] > 0.9


def test_transition_marginals(fitted, listing):
    crf, X, _ = fitted
    n = len(crf.classes_)
    nodes = crf.predict_marginals(X)
    for x, found, node in zip(X, crf.predict_marginals(X, "transitions"), nodes, strict=True):
        assert found.shape == (len(x) - 1, n, n)
        np.testing.assert_allclose(found.sum(axis=2), node[:-1], rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.sum(axis=1), node[1:], rtol=0, atol=1e-10)
        np.testing.assert_allclose(found, listing(crf, x).transition_marginals, rtol=0, atol=1e-10)


def test_k_best(fitted, listing):
    crf, X, _ = fitted
    predicted = crf.predict(X)
    for x, ranked, best in zip(X, crf.k_best(X, 6), predicted, strict=True):
        expected = listing(crf, x).ranked[:6]
        assert len(ranked) == min(6, len(crf.classes_) ** len(x))
        assert [labels for labels, _ in ranked] == [labels for labels, _ in expected]
        chances = [p for _, p in ranked]
        np.testing.assert_allclose(np.exp(chances), [p for _, p in expected], rtol=1e-9)
        assert chances == sorted(chances, reverse=True)
        assert ranked[0][0] == best


def test_k_best_of_everything_sums_to_one(fitted):
    crf, X, _ = fitted
    x = next(x for x in X if len(x) == 3)
    (ranked,) = crf.k_best([x], 1000)
    assert len(ranked) == len(crf.classes_) ** 3
    assert sum(np.exp(p) for _, p in ranked) == pytest.approx(1.0, abs=1e-12)


def test_log_likelihood(fitted, listing):
    crf, X, y = fitted
    expected = [listing(crf, x).log_probability(t) for x, t in zip(X, y, strict=True)]
    found = crf.log_likelihood(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    penalty = 0.5 * crf.l2 * crf.weights_ @ crf.weights_
    assert penalty - found.sum() == pytest.approx(crf.objective_, rel=1e-10)


def test_entropy(fitted, listing):
    crf, X, _ = fitted
    np.testing.assert_allclose(crf.entropy(X), [listing(crf, x).entropy for x in X], rtol=1e-9)


def test_sample_has_the_frequencies_of_the_model(fitted, listing):
    crf, X, _ = fitted
    n, x = 5000, next(x for x in X if len(x) == 3)
    (drawn,) = crf.sample([x], n)
    assert len(drawn) == n
    counts = {}
    for labels in drawn:
        counts[tuple(labels)] = counts.get(tuple(labels), 0) + 1
    for labels, p in listing(crf, x).ranked[:8]:
        error = np.sqrt(p * (1 - p) / n)
        assert counts.get(tuple(labels), 0) / n == pytest.approx(p, abs=5 * error)


def test_sample_is_seeded(dense_problem):
    X, y = dense_problem
    crf = ChainCRF(random_state=3).fit(X, y)
    first = crf.sample(X, 20)
    assert first == crf.sample(X, 20)
    assert first != crf.set_params(random_state=4).sample(X, 20)
    generator = crf.set_params(random_state=np.random.RandomState(3))
    assert generator.sample(X, 20) == first
    assert generator.sample(X, 20) != first  # it goes on where it stopped
    assert [len(samples) for samples in first] == [20] * len(X)
    assert [len(samples[0]) for samples in first] == [len(x) for x in X]


def test_samples_of_one_batch_are_independent(dense_problem):
    X, y = dense_problem
    crf = ChainCRF(random_state=0, l2=100.0).fit(X, y)
    samples = crf.sample([X[2]] * 2, 50)
    assert samples[0] != samples[1]
    assert len({tuple(labels) for labels in samples[0]}) > 10


def test_score_is_the_share_of_right_positions(fitted):
    crf, X, y = fitted
    right = [a == b for p, t in zip(crf.predict(X), y, strict=True) for a, b in zip(p, t)]  # noqa: B905
    assert crf.score(X, y) == pytest.approx(np.mean(right), abs=1e-12)
    weight = np.arange(len(X)) + 0.5
    wide = np.repeat(weight, [len(t) for t in y])
    assert crf.score(X, y, sample_weight=weight) == pytest.approx(
        np.average(right, weights=wide), abs=1e-12
    )


def test_scores_of_ten_thousand_are_exact():
    """Weights that put scores near ±1e4: probabilities are 0 and 1, and nothing is NaN."""
    X = [[{"u": 1e4}, {"v": 1e4}, {"u": 1e4}]]
    crf = ChainCRF(l2=1e-6).fit(X, [["a", "b", "a"]])
    marginals = crf.predict_marginals(X)[0]
    assert np.isfinite(marginals).all()
    np.testing.assert_allclose(marginals, [[1, 0], [0, 1], [1, 0]], rtol=0, atol=1e-6)
    assert crf.entropy(X)[0] == pytest.approx(0.0, abs=1e-4)


def test_a_long_sequence(dense_problem):
    X, y = dense_problem
    crf = ChainCRF(n_jobs=2).fit(X, y)
    x = np.tile(np.concatenate(X), (3000, 1))
    (labels,), (marginals,) = crf.predict([x]), crf.predict_marginals([x])
    assert len(labels) == len(x) > 90_000
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    period = len(np.concatenate(X))
    middle = marginals[1000 * period : 1001 * period]
    np.testing.assert_allclose(middle, marginals[2000 * period : 2001 * period], rtol=1e-9)


# --------------------------------------------------------------------------- spans: exact entities


def bio_entities(tags):
    """(start, end, type): B-x and all I-x that follow it."""
    found = set()
    for t, tag in enumerate(tags):
        if tag.startswith("B-"):
            end = t + 1
            while end < len(tags) and tags[end] == "I" + tag[1:]:
                end += 1
            found.add((t, end, tag[2:]))
    return found


def iobes_entities(tags):
    """(start, end, type): S-x, or B-x, I-x …, E-x."""
    found = set()
    for t, tag in enumerate(tags):
        kind = tag[2:]
        if tag.startswith("S-"):
            found.add((t, t + 1, kind))
        elif tag.startswith("B-"):
            end = t + 1
            while end < len(tags) and tags[end] == f"I-{kind}":
                end += 1
            if end < len(tags) and tags[end] == f"E-{kind}":
                found.add((t, end + 1, kind))
    return found


def runs(labels):
    """(start, end, label) of the longest runs of one label."""
    found, start = set(), 0
    for t in range(1, len(labels) + 1):
        if t == len(labels) or labels[t] != labels[start]:
            found.add((start, t, labels[start]))
            start = t
    return found


SCHEMES = {
    "bio": (["O", "B-x", "I-x", "B-y", "I-y"], bio_entities, ["x", "y"]),
    "iobes": (["O", "B-x", "I-x", "E-x", "S-x"], iobes_entities, ["x"]),
    "bilou": (
        ["O", "B-x", "I-x", "L-x", "U-x"],
        lambda tags: iobes_entities([tag.replace("L-", "E-").replace("U-", "S-") for tag in tags]),
        ["x"],
    ),
    "plain": (["a", "b", "c"], runs, ["a", "b", "c"]),
}


@pytest.mark.parametrize("shard_cells", [180_000, 1])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_span_probabilities(monkeypatch, listing, scheme, shard_cells):
    monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", shard_cells)
    labels, entities, kinds = SCHEMES[scheme]
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(n, 4)) for n in (5, 1, 4, 5, 3)]
    y = [rng.choice(labels, size=len(x)).tolist() for x in X]
    y[0][:] = labels[: len(y[0])] + ["O"] * (5 - len(labels)) if scheme != "plain" else y[0]
    crf = ChainCRF(l2=0.5, ends=True).fit(X, y)
    assert set(crf.classes_) == set(labels)
    spans = [
        [(a, b, kind) for a in range(len(x)) for b in range(a + 1, len(x) + 1) for kind in kinds]
        for x in X
    ]
    spans[3] = []
    for x, asked, found in zip(X, spans, crf.span_probabilities(X, spans), strict=True):
        all_of = listing(crf, x)
        expected = [
            all_of.probability(lambda tags, span=span: span in entities(tags)) for span in asked
        ]
        assert found.shape == (len(asked),)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


def test_expected_number_of_entities_is_the_sum_of_span_probabilities(listing):
    """Σ over all spans of P(span) = E[number of entities]."""
    rng = np.random.default_rng(2)
    labels, entities, kinds = SCHEMES["bio"]
    X, y = [rng.normal(size=(5, 3))], [labels]
    crf = ChainCRF().fit(X, y)
    spans = [[(a, b, k) for a in range(5) for b in range(a + 1, 6) for k in kinds]]
    all_of = listing(crf, X[0])
    counts = [len(entities(tags)) for tags in all_of.labellings]
    expected = float(np.dot(all_of.probabilities, counts))
    assert crf.span_probabilities(X, spans)[0].sum() == pytest.approx(expected, rel=1e-9)


def test_a_type_never_continued_in_training_has_spans_of_length_one(listing):
    X, y = [np.eye(3)], [["B-x", "I-x", "B-y"]]
    crf = ChainCRF().fit(X, y)
    (found,) = crf.span_probabilities(X, [[(2, 3, "y"), (0, 1, "y")]])
    marginal = crf.predict_marginals(X)[0][[2, 0], crf.classes_.tolist().index("B-y")]
    np.testing.assert_allclose(found, marginal, rtol=1e-9)
