"""Every estimator learns and answers in the same way: beside lists of all labellings."""

import copy
import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from chordal import (
    HMM,
    ChainCRF,
    CliqueTemplate,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    InfeasibleError,
    MatchingModel,
    NaiveBayes,
    TemplateCRF,
    TwoStageCRF,
)
from chordal.inference import INFERENCE, choose

RNG = np.random.default_rng(7)


def drawn(n, n_labels):
    return RNG.integers(n_labels, size=n)


def seen(labels, n_columns=3):
    return np.eye(n_columns)[labels] + RNG.normal(size=(len(labels), n_columns))


def triples(x):
    return np.arange(max(0, len(x) - 2))[:, None] + np.arange(3)


CODES = [drawn(n, 3) for n in (4, 1, 3, 2, 4, 3)]
ROWS = [seen(codes) for codes in CODES]
NAMES = [[["a", "b", "c"][k] for k in codes] for codes in CODES]
CYCLE = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
RINGS = [drawn(4, 3) for _ in range(6)]
PIXELS = [drawn(4, 2).reshape(2, 2) for _ in range(6)]
PAIRS = [np.array([0, -1]), np.array([1, 0]), np.array([1, 2]), np.array([-1, 0])]
TEMPLATES = [
    CliqueTemplate("nodes", features=np.asarray),
    CliqueTemplate("steps", "steps", tables="symmetric"),
    CliqueTemplate("triples", triples, order=3, tables="potts"),
]
COLUMN = np.tile([0, 1, 2], 5)

PROBLEMS = {
    "chain": (ChainCRF(fit_intercept=True, ends=True, transitions="all"), ROWS, NAMES),
    "graph": (GraphCRF(), [(seen(codes), CYCLE) for codes in RINGS], RINGS),
    "grid": (
        GridCRF(prediction="map"),
        [seen(y.ravel(), 2).reshape(2, 2, 2) for y in PIXELS],
        PIXELS,
    ),
    "template": (TemplateCRF(TEMPLATES), ROWS, NAMES),
    "classifier": (CRFClassifier(), seen(COLUMN), COLUMN),
    "matching": (
        MatchingModel("likelihood", "lbfgs", "auto", l2=0.5),
        [RNG.normal(size=(2, 3, 2)) + (y[:, None] == np.arange(3))[..., None] for y in PAIRS],
        PAIRS,
    ),
}
LINKED = ["chain", "graph", "grid", "template"]


@pytest.fixture(params=PROBLEMS)
def problem(request):
    model, X, y = PROBLEMS[request.param]
    return clone(model).fit(X, y), X, y


def flat(labels):
    return tuple(np.asarray(labels, dtype=object).ravel().tolist())


def everything(model, X, **constraints):
    """Of each example all labellings and their probabilities, by plain listing."""
    plain = copy.deepcopy(model).set_params(inference="exhaustive")
    return [
        [(flat(labels), np.exp(chance)) for labels, chance in own]
        for own in plain.k_best(X, 10_000, **constraints)
    ]


def columns(model, rows):
    """The label of each column of a table of marginals."""
    if isinstance(model, MatchingModel):
        return [*range(rows.shape[-1] - 1), -1]
    return model.classes_.tolist()


def by_listing(listing, labels):
    """P(y_v) of each variable."""
    n = len(listing[0][0])
    table = np.zeros((n, len(labels)))
    for labelling, chance in listing:
        for v, label in enumerate(labelling):
            table[v, labels.index(label)] += chance
    return table


def rows_of(model, marginals):
    """Marginals of each example with one row per variable."""
    return [np.reshape(own, (-1, np.shape(own)[-1])) for own in marginals]


def test_probabilities_sum_to_one(problem):
    model, X, _ = problem
    for listing in everything(model, X):
        assert sum(chance for _, chance in listing) == pytest.approx(1.0, abs=1e-10)


def test_predictions(problem):
    model, X, y = problem
    best = [max(own, key=lambda pair: pair[1])[0] for own in everything(model, X)]
    predicted = model.predict(X)
    assert [flat(labels) for labels in predicted] == best
    codes = model.predict_codes(X)
    assert codes.dtype == np.int32
    if not isinstance(model, MatchingModel):
        assert model.classes_[codes].tolist() == [label for own in best for label in own]
    pairs = [zip(own, flat(gold), strict=True) for own, gold in zip(best, y, strict=True)]
    right = [a == b for own in pairs for a, b in own]
    assert model.score(X, y) == pytest.approx(np.mean(right))


def test_marginals(problem):
    model, X, _ = problem
    found = rows_of(model, model.predict_marginals(X))
    decoded = model.predict(X, method="mpm")
    for own, rows, labels in zip(everything(model, X), found, decoded, strict=True):
        expected = by_listing(own, columns(model, rows))
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-10)
        assert flat(labels) == tuple(columns(model, rows)[k] for k in expected.argmax(axis=1))


CLIQUES = {
    "chain": ("transitions", lambda x: list(itertools.pairwise(range(len(x))))),
    "graph": ("edges", lambda x: CYCLE.tolist()),
    "grid": ("edges", None),
    "template": ("triples", lambda x: triples(x).tolist()),
}


@pytest.mark.parametrize("kind", CLIQUES)
def test_marginals_of_cliques(kind):
    model, X, y = PROBLEMS[kind]
    model = clone(model).fit(X, y)
    name, cliques = CLIQUES[kind]
    found = model.predict_marginals(X, name)
    labels = model.classes_.tolist()
    assert len(found) == len(X)
    for x, own, listing in zip(X, found, everything(model, X), strict=True):
        np.testing.assert_allclose(own.sum(axis=tuple(range(1, own.ndim))), 1.0, atol=1e-10)
        if cliques is None:
            assert own.shape == (4, 2, 2)
            continue
        expected = np.zeros(own.shape)
        for k, scope in enumerate(cliques(x)):
            for labelling, chance in listing:
                expected[(k, *(labels.index(labelling[v]) for v in scope))] += chance
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-10)


def test_k_best_and_likelihood_and_entropy(problem):
    model, X, y = problem
    ranked, likelihood, entropy = model.k_best(X, 3), model.log_likelihood(X, y), model.entropy(X)
    for i, listing in enumerate(everything(model, X)):
        expected = sorted((chance for _, chance in listing), reverse=True)[:3]
        chances = [chance for _, chance in ranked[i]]
        np.testing.assert_allclose(np.exp(chances), expected, rtol=1e-9)
        of = dict(listing)
        for labels, chance in ranked[i]:
            assert of[flat(labels)] == pytest.approx(np.exp(chance), rel=1e-9)
        assert likelihood[i] == pytest.approx(np.log(of[flat(y[i])]), rel=1e-9)
        every = np.array([chance for _, chance in listing if chance > 0.0])
        assert entropy[i] == pytest.approx(-(every * np.log(every)).sum(), abs=1e-9)


def test_samples(problem):
    model, X, _ = problem
    model.set_params(random_state=0)
    samples, listings = model.sample(X, 2000), everything(model, X)
    assert [len(own) for own in samples] == [2000] * len(listings)
    for own, listing in zip(samples[:2], listings, strict=False):
        count = dict.fromkeys((labels for labels, _ in listing), 0)
        for labels in own:
            count[flat(labels)] += 1
        for labels, chance in listing:
            assert abs(count[labels] / 2000 - chance) < 0.06


def as_flags(entry, names):
    return np.array([entry is None or name in entry for name in names])


def as_known(entry, names):
    return entry[0] if entry is not None and len(entry) == 1 else entry


FORMS = {
    "lists": lambda entry, names: entry,
    "sets": lambda entry, names: entry if entry is None else set(entry),
    "flags": as_flags,
    "lists of flags": lambda entry, names: as_flags(entry, names).tolist(),
    "known labels": as_known,
}


def shaped(kind, entries, gold, form):
    """What is allowed at variables, in the shape that the labels of an example have."""
    if kind == "classifier":
        return entries[0]
    if kind == "grid":
        width = gold.shape[1]
        rows = [entries[k : k + width] for k in range(0, len(entries), width)]
        return np.array(rows) if form == "flags" else rows
    return entries


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_allowed_labels(kind, form):
    model, X, y = PROBLEMS[kind]
    model = clone(model).fit(X, y)
    names = [0, 1, 2, -1] if kind == "matching" else model.classes_.tolist()
    some = [names[1:], None, names[:1]]
    entries = [[some[(v + i) % 3] for v in range(len(flat(own)))] for i, own in enumerate(y)]
    entries[0] = [None] * len(entries[0])
    listings = []
    for wanted, own in zip(entries, everything(model, X), strict=True):
        pairs = [zip(wanted, labels, strict=True) for labels, _ in own]
        legal = [all(a is None or label in a for a, label in both) for both in pairs]
        total = sum(chance for (_, chance), fine in zip(own, legal, strict=True) if fine)
        kept = [(y, p / total) for (y, p), fine in zip(own, legal, strict=True) if fine]
        listings.append(kept)
    allowed = [
        shaped(kind, [FORMS[form](entry, names) for entry in wanted], gold, form)
        for wanted, gold in zip(entries, y, strict=True)
    ]
    allowed[0] = None
    predicted = model.predict(X, allowed_labels=allowed)
    marginals = rows_of(model, model.predict_marginals(X, allowed_labels=allowed))
    ranked = model.k_best(X, 2, allowed_labels=allowed)
    samples = model.sample(X, 5, allowed_labels=allowed)
    for i, listing in enumerate(listings):
        of = dict(listing)
        assert flat(predicted[i]) == max(listing, key=lambda pair: pair[1])[0]
        np.testing.assert_allclose(marginals[i], by_listing(listing, names), rtol=0, atol=1e-9)
        assert len(ranked[i]) == min(2, len(listing))
        for labels, chance in ranked[i]:
            assert of[flat(labels)] == pytest.approx(np.exp(chance), rel=1e-9)
        assert all(flat(labels) in of for labels in samples[i])


def test_a_known_target_is_taken_once():
    model, X, y = PROBLEMS["matching"]
    model = clone(model).fit(X, y)
    found = model.predict(X, allowed_labels=[[1, None]] * len(X))
    assert all(own[0] == 1 and own[1] != 1 for own in found)
    with pytest.raises(InfeasibleError):
        model.predict(X, allowed_labels=[[1, 1]] * len(X))


def test_allowed_labels_of_naive_bayes():
    X = seen(COLUMN)
    model = NaiveBayes().fit(X, COLUMN)
    allowed = [[0, 2] if k % 2 else 1 for k in range(len(X))]
    chances = model.predict_proba(X)
    chances[::2, [0, 2]] = 0.0
    chances[1::2, 1] = 0.0
    chances /= chances.sum(axis=1, keepdims=True)
    found = model.predict_marginals(X, allowed_labels=allowed)
    np.testing.assert_allclose(found, chances, atol=1e-10)
    assert model.predict(X, allowed_labels=allowed).tolist() == chances.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("kind", "entry", "message"),
    [
        ("grid", [[None, None]], r"allowed_labels\[0\] must have the shape.* 2 entries, got 1"),
        ("grid", [[0, 1], [0]], r"allowed_labels\[0\]\[1\] must have the shape of its image"),
        ("grid", [[0, 1], [0, 7]], r"allowed_labels\[0\]\[3\] must be None.*unknown label 7"),
        ("classifier", [9], r"allowed_labels\[0\]\[0\].*unknown label 9"),
        ("matching", [[3], None], r"allowed_labels\[0\]\[0\].*0 to 2 or -1.* 4 flags; got \[3\]"),
        ("matching", [None, "a"], r"allowed_labels\[0\]\[1\].*got 'a'"),
        ("matching", [None], r"allowed_labels\[0\] must have one entry per position \(2\), got 1"),
        ("graph", [0, 1, 2, "x"], r"allowed_labels\[0\]\[3\].*unknown label 'x'"),
    ],
)
def test_allowed_labels_that_do_not_fit(kind, entry, message):
    model, X, y = PROBLEMS[kind]
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(X, allowed_labels=[entry] + [None] * (len(X) - 1))


@pytest.mark.parametrize("kind", [*LINKED, "classifier"])
def test_node_scores_are_all_there_is_without_links(kind):
    model, X, y = PROBLEMS[kind]
    model = clone(model).fit(X, y)
    scores = rows_of(model, model.node_scores(X))
    model.weights_ = model.weights_.copy()
    for own in model.layout_.templates:
        if own.order > 1:
            model.weights_[model.layout_.slices[own.name]] = 0.0
    for own, marginals in zip(scores, rows_of(model, model.predict_marginals(X)), strict=True):
        chances = np.exp(own) / np.exp(own).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(marginals, chances, rtol=0, atol=1e-10)


QUESTIONS = ["predict", "predict_codes", "predict_marginals", "k_best", "sample", "entropy",
             "node_scores"]  # fmt: skip


def test_nothing_is_asked_of_nothing(problem):
    model, X, y = problem
    for question in QUESTIONS:
        assert len(getattr(model, question)([])) == 0
    assert len(model.log_likelihood([], [])) == 0
    for own in model.layout_.templates:
        if own.order > 1:
            assert len(model.predict_marginals([], own.name)) == 0
    with pytest.raises(ValueError, match="nothing to score"):
        model.score([], [])
    with pytest.raises(ValueError, match=r"empty|0 sample"):
        clone(model).fit(X[:0], y[:0])


# ---------------------------------------------------------------------------------------- learning


def groups(model):
    return [name for name, own in model.layout_.slices.items() if own.stop > own.start]


def test_groups_of_l2(problem):
    model, X, y = problem
    first = groups(model)[0]
    heavy = clone(model).set_params(l2={first: 1e6}).fit(X, y)
    assert np.abs(heavy.weights_[heavy.layout_.slices[first]]).max() < 1e-2
    assert np.abs(model.weights_[model.layout_.slices[first]]).max() > 1e-2
    with pytest.raises(ValueError, match="l2 names an unknown group of weights, 'none such'"):
        clone(model).set_params(l2={"none such": 1.0}).fit(X, y)


def test_frozen_groups_and_warm_starts(problem):
    model, X, y = problem
    first, before = groups(model)[0], model.weights_.copy()
    weight = 1.0 + np.arange(len(y))
    model.set_params(warm_start=True, freeze=(first,)).fit(X, y, sample_weight=weight)
    own = model.layout_.slices[first]
    assert (model.weights_[own] == before[own]).all()
    rest = np.ones(len(before), dtype=bool)
    rest[own] = False
    assert (model.weights_[rest] != before[rest]).any() == rest.any()
    again = clone(model).set_params(freeze=(first,), warm_start=False).fit(X, y)
    assert (again.weights_[own] == 0.0).all()


def test_a_warm_start_begins_where_the_fit_before_ended(problem):
    model, X, y = problem
    model = clone(model).set_params(tol=1e-9, warm_start=True).fit(X, y)
    objective, n_iter = model.objective_, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < max(n_iter, 2)
    assert model.objective_ == pytest.approx(objective, rel=1e-6)


def test_partial_fit_pulls_towards_what_was_learned(problem):
    model, X, y = problem
    before = model.weights_.copy()
    model.set_params(l2=1e7).partial_fit(X, y)
    np.testing.assert_allclose(model.weights_, before, rtol=0, atol=1e-4)
    fresh = clone(model).set_params(l2=1.0).partial_fit(X, y)
    np.testing.assert_allclose(fresh.weights_, clone(fresh).fit(X, y).weights_, atol=1e-12)


def test_threads_change_nothing(problem):
    model, X, y = problem
    two = clone(model).set_params(n_jobs=2).fit(X, y)
    assert (two.weights_ == model.weights_).all()
    assert str(two.predict(X)) == str(model.predict(X))


def test_callbacks_and_validation(problem):
    model, X, y = problem
    values = []
    watched = clone(model).set_params(validation_interval=1, n_iter_no_change=2)
    watched.fit(X, y, validation_data=(X, y), callback=lambda step: values.append(step.value))
    report = watched.fit_report_
    assert len(values) == watched.n_iter_ == len(report.validation)
    assert watched.score(X, y) == pytest.approx(max(score for _, score in report.validation))
    stopped = clone(model).fit(X, y, callback=lambda step: True)
    assert stopped.n_iter_ == 1


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_stops_at_max_iter_warns(problem):
    model, X, y = problem
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations; increase max_"):
        clone(model).set_params(max_iter=1, tol=1e-12).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(X, y)


def test_sample_weight_is_repetition(problem):
    model, X, y = problem
    n = len(y)
    weight = np.where(np.arange(n) < 2, 3.0, 1.0)
    times = [i for i in range(n) for _ in range(int(weight[i]))]
    more_X = X[times] if isinstance(X, np.ndarray) else [X[i] for i in times]
    more_y = y[times] if isinstance(y, np.ndarray) else [y[i] for i in times]
    weighted = clone(model).set_params(tol=1e-12).fit(X, y, sample_weight=weight)
    repeated = clone(model).set_params(tol=1e-12).fit(more_X, more_y)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)


@pytest.mark.parametrize("kind", LINKED)
def test_class_weight_is_what_an_error_costs(kind):
    model, X, y = PROBLEMS[kind]
    label = sorted({label for own in y for label in flat(own)})[0]
    settings = {"objective": "hinge", "solver": "one_slack", "l2": 0.1}
    plain = clone(model).set_params(**settings).fit(X, y)
    even = clone(model).set_params(class_weight={label: 1.0}, **settings).fit(X, y)
    dear = clone(model).set_params(class_weight={label: 5.0}, **settings).fit(X, y)
    assert even.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert dear.objective_ > plain.objective_
    for name in ("likelihood", "perceptron"):
        with pytest.raises(ValueError, match="class_weight"):
            clone(model).set_params(class_weight={label: 5.0}, objective=name).fit(X, y)


# ------------------------------------------------------------------------- models that hold a chain


@pytest.mark.parametrize("kind", ["hmm", "two stages"])
def test_models_of_sequences_answer_as_the_chain_they_are(kind):
    if kind == "hmm":
        model = HMM("gaussian").fit(ROWS, NAMES)
        chain, inner = model.to_crf(), model.statistics(ROWS)
    else:
        model = TwoStageCRF(ChainCRF(transitions="none"), ChainCRF(), cv=2, random_state=0)
        model.fit(ROWS, NAMES)
        chain, inner = model.crf_, model._observed(ROWS)
    allowed = [[["a", "b"]] * len(x) for x in ROWS]
    assert model.predict(ROWS) == chain.predict(inner)
    assert (model.predict_codes(ROWS) == chain.predict_codes(inner)).all()
    assert model.predict(ROWS, allowed_labels=allowed) == chain.predict(
        inner, allowed_labels=allowed
    )
    for name in (None, "transitions"):
        found = model.predict_marginals(ROWS, name)
        for a, b in zip(found, chain.predict_marginals(inner, name), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert str(model.k_best(ROWS, 2)) == str(chain.k_best(inner, 2))
    np.testing.assert_allclose(model.entropy(ROWS), chain.entropy(inner), atol=1e-12)
    for a, b in zip(model.node_scores(ROWS), chain.node_scores(inner), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert model.score(ROWS, NAMES) == chain.score(inner, NAMES)
    for question in ("predict", "predict_codes", "predict_marginals", "k_best", "entropy"):
        assert len(getattr(model, question)([])) == 0


def test_naive_bayes_answers_as_the_chain_of_single_positions_it_is():
    X = seen(COLUMN)
    model = NaiveBayes().fit(X, COLUMN)
    assert len(model.predict_codes(X)) == len(X)
    assert model.classes_[model.predict_codes(X)].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(model.predict_marginals(X), model.predict_proba(X), atol=1e-12)
    scores = np.asarray(model.node_scores(X)).reshape(len(X), -1)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, model.predict_proba(X), atol=1e-10)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(model.entropy(X), -(proba * np.log(proba)).sum(axis=1), atol=1e-9)
    best = [own[0][1] for own in model.k_best(X, 2)]
    np.testing.assert_allclose(np.exp(best), proba.max(axis=1), rtol=1e-9)


def test_potentials(problem):
    """Scores of a whole batch, label by label in the order of the classes: beside `k_best`."""
    model, X, _ = problem
    potentials = model.potentials(X)
    codes = model.predict_codes(X)
    np.testing.assert_array_equal(choose(potentials, "map").map(potentials).labels, codes)
    listed = INFERENCE.resolve("exhaustive").k_best(potentials, 3)[1]
    chances = listed - INFERENCE.resolve("exhaustive").log_partition(potentials)[:, None]
    for own, expected in zip(chances, model.k_best(X, 3), strict=True):
        np.testing.assert_allclose(own[: len(expected)], [p for _, p in expected], atol=1e-9)
    if not isinstance(model, MatchingModel):
        rows = np.concatenate(rows_of(model, model.node_scores(X)))
        np.testing.assert_allclose(potentials.unary, rows.ravel())
        order = len(model.classes_) - 1
        other = potentials.score(order - codes)  # other labels than the best
        assert (other <= potentials.score(codes)).all()


def test_potentials_of_nothing(problem):
    model, X, _ = problem
    assert model.potentials(X[:0]).structure.n_examples == 0


def test_potentials_of_constraints():
    model, X, y = PROBLEMS["chain"]
    model = clone(model).fit(X, y)
    allowed = [[["a"]] * len(x) for x in X]
    scores = model.potentials(X, allowed_labels=allowed).unary.reshape(-1, 3)
    assert np.isfinite(scores[:, 0]).all()
    assert (scores[:, 1:] == -np.inf).all()


@pytest.mark.parametrize("model", [HMM(), NaiveBayes(), TwoStageCRF()])
def test_potentials_of_wrapped_chains(model):
    X, y = [[["x" + name] for name in labels] for labels in NAMES], NAMES
    if isinstance(model, NaiveBayes):
        X, y = seen(COLUMN), COLUMN
    potentials = model.fit(X, y).potentials(X)
    labels = choose(potentials, "map").map(potentials).labels
    np.testing.assert_array_equal(labels, model.predict_codes(X))
