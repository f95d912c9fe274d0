"""NeuralCRF: what it learns, what it answers, and how training ends."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import chordal
from chordal import ChainCRF, Status, explain
from chordal.estimators import InterruptedFitWarning, whole_fits
from chordal.torch import NeuralCRF

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
WORDS = {"D": ["the", "a"], "N": ["cat", "dog", "bird"], "V": ["sees", "eats"]}


def noisy(n, seed=0):
    """Labels that go round in a circle, and rows that show them through noise."""
    rng = np.random.default_rng(seed)
    y = [((np.arange(rng.integers(1, 9)) + rng.integers(3)) % 3).tolist() for _ in range(n)]
    return [np.eye(3)[s] + 0.6 * rng.normal(size=(len(s), 3)) for s in y], y


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    y = [list("DNVDN")[: rng.integers(1, 6)] for _ in range(n)]
    return [[str(rng.choice(WORDS[tag])) for tag in s] for s in y], y


def small(network="mlp", **settings):
    settings = {"hidden": 8, "learning_rate": 0.02, "max_iter": 8, "random_state": 0, **settings}
    return NeuralCRF(network, **settings)


X, Y = noisy(60)
X_TEST, Y_TEST = noisy(60, seed=1)


@pytest.fixture(scope="module")
def fitted():
    return small(max_iter=30).fit(X, Y)


# -------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("training", ["joint", "two_stage", "two_stage_joint"])
@pytest.mark.parametrize("network", ["mlp", "cnn", "bilstm"])
def test_it_learns(network, training):
    model = small(network, training=training, max_iter=25).fit(X, Y)
    alone = np.concatenate(model.node_scores(X_TEST)).argmax(axis=1)
    assert model.score(X_TEST, Y_TEST) > 0.9
    assert len(model.reports_) == {"joint": 1, "two_stage": 2, "two_stage_joint": 3}[training]
    if network == "mlp":  # one position alone cannot know
        assert (alone == np.concatenate(Y_TEST)).mean() < 0.9


def test_the_first_stage_is_the_network_alone():
    """A network that sees a position only is then softmax regression, whatever the order."""
    linear = small(lambda n_in, n_out: torch.nn.Linear(n_in, n_out), training="two_stage")
    linear.set_params(max_iter=300, learning_rate=0.2, batch_size=60, schedule="cosine")
    model = linear.fit(X, Y)
    from sklearn.linear_model import LogisticRegression

    exact = LogisticRegression(C=np.inf).fit(np.concatenate(X), np.concatenate(Y))
    rows = torch.tensor(np.concatenate(X), dtype=torch.float32)
    found = model.module_.network.module(rows).softmax(1).detach().numpy()
    assert found == pytest.approx(exact.predict_proba(np.concatenate(X)), abs=0.02)


def test_the_second_stage_is_the_likelihood_of_links():
    """Transitions have no better values, with l2: the gradient is zero there."""
    chain = ChainCRF(transitions="all", ends=True, l2=0.5)
    model = small(crf=chain, training="two_stage").fit(X, Y)
    counts, expected = np.zeros((3, 3)), np.zeros((3, 3))
    for y in Y:
        np.add.at(counts, (y[:-1], y[1:]), 1.0)
    for table in model.predict_marginals(X, "transitions"):
        expected += table.sum(axis=0)
    assert counts - expected == pytest.approx(0.5 * model.crf_.transitions_, abs=1e-2)


def test_the_objective_is_the_likelihood():
    """Without dropout, a pass of one batch has the loss of the weights before it."""
    told = []
    model = small(batch_size=60, max_iter=3)
    model.fit(X, Y, callback=lambda state: told.append((state.value, state.model())) and None)
    total = -told[1][1].log_likelihood(X, Y).sum() / sum(map(len, Y))
    assert told[2][0] == pytest.approx(total, rel=1e-4)


def test_images_alone_and_with_channels():
    rng = np.random.default_rng(0)
    y = [rng.integers(2, size=5).tolist() for _ in range(40)]
    images = [np.stack([(np.eye(6) if v else np.eye(6)[::-1]) for v in s]) for s in y]
    images = [x + 0.3 * rng.normal(size=x.shape) for x in images]
    for given in (images, [x[:, None] for x in images]):
        for network in ("cnn", "mlp"):
            model = small(network, channels=4).fit(given, y)
            assert model.score(given, y) > 0.95


def test_tokens_by_words_and_by_numbers():
    words, tags = sentences(60)
    model = small("bilstm", embedding=8).fit(words, tags)
    assert model.predict([["the", "dog", "sees"], []]) == [["D", "N", "V"], []]
    numbers = {word: 7 * k for k, word in enumerate(w for own in WORDS.values() for w in own)}
    ids = [np.array([numbers[word] for word in s]) for s in words]
    same = small("bilstm", embedding=8).fit(ids, tags)
    assert same.predict_marginals(ids)[3] == pytest.approx(model.predict_marginals(words)[3])


def test_unknown_tokens_are_learned_from_rare_ones():
    words, tags = sentences(60)
    words = [[f"{w}{i}" if t == "N" else w for w, t in zip(s, own, strict=True)]
             for i, (s, own) in enumerate(zip(words, tags, strict=True))]  # fmt: skip
    model = small("mlp", embedding=8, max_iter=20).fit(words, tags)
    scores = model.node_scores([["never seen"]])[0][0]
    assert model.classes_[scores.argmax()] == "N"


def test_sets_missing_labels_and_distributions():
    hidden = [[None if t % 3 == 1 else v for t, v in enumerate(s)] for s in Y]
    sets = [[{v, (v + 1) % 3} if t % 3 == 1 else v for t, v in enumerate(s)] for s in Y]
    soft = [[{v: 1.0} for v in s] for s in Y]
    for y in (hidden, sets, soft):
        for training in ("joint", "two_stage"):
            assert small(training=training, max_iter=25).fit(X, y).score(X_TEST, Y_TEST) > 0.85
    hard = small().fit(X, Y)
    assert small().fit(X, soft).objective_ == pytest.approx(hard.objective_, rel=1e-4)


def test_weights_of_sequences():
    flipped = [[2 - v for v in s] for s in Y]
    weight = np.repeat([1.0, 0.0], len(X))
    model = small(max_iter=25).fit(X + X, Y + flipped, sample_weight=weight)
    assert model.score(X_TEST, Y_TEST) > 0.9
    with pytest.raises(ValueError, match="sample_weight must be positive for some"):
        small().fit(X, Y, sample_weight=np.zeros(len(X)))


def test_the_users_module_gets_the_mask_if_it_takes_one():
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)

        def forward(self, x, mask):
            assert mask.dtype == torch.bool
            assert mask.shape == x.shape[:2]
            assert (x[~mask] == 0.0).all()
            return self.inner(x)

    module = Own()
    before = module.inner.weight.clone()
    assert small(module, max_iter=25).fit(X, Y).score(X_TEST, Y_TEST) > 0.85
    assert (module.inner.weight == before).all()  # it is copied
    assert small(torch.nn.Linear(3, 3), max_iter=25).fit(X, Y).score(X_TEST, Y_TEST) > 0.85


def test_augmented_data_are_what_is_learned():
    calls = []

    def shifted(batch, generator):
        calls.append(len(batch))
        return [x + 5.0 for x in batch]

    model = small(augment=shifted, max_iter=25).fit(X, Y)
    assert sum(calls) == 25 * len(X)
    assert model.score([x + 5.0 for x in X_TEST], Y_TEST) > 0.85
    with pytest.raises(ValueError, match="augment must give as many examples of the same sizes"):
        small(augment=lambda batch, generator: batch[1:]).fit(X, Y)


# ---------------------------------------------------------------------------------------- answers


def test_answers_are_those_of_the_layer(fitted):
    """By another road: the layer's own methods on the network's scores."""
    crf = fitted.module_.crf
    for x, path, table, ranked in zip(
        X_TEST[:10],
        fitted.predict(X_TEST[:10]),
        fitted.predict_marginals(X_TEST[:10]),
        fitted.k_best(X_TEST[:10], 2),
        strict=True,
    ):
        with torch.no_grad():
            inputs, mask = torch.tensor(x).float()[None], torch.ones(1, len(x), dtype=torch.bool)
            scores = fitted.module_.network(inputs, mask)
            assert crf.decode(scores) == [path]
            assert crf.marginals(scores)[0].numpy() == pytest.approx(table, abs=1e-5)
            best = crf(scores, torch.tensor([path])).item()
        assert ranked[0] == (path, pytest.approx(best, abs=1e-4))


def test_constraints(fitted):
    x = X_TEST[:1]
    assert fitted.predict(x, allowed_labels=[[2] + [None] * (len(x[0]) - 1)])[0][0] == 2
    only = np.eye(3, dtype=bool)
    for path in fitted.predict(X_TEST, allowed_transitions=only):
        assert len(set(path)) == 1
    probabilities = np.exp(fitted.log_likelihood(X_TEST, Y_TEST))
    assert ((probabilities > 0) & (probabilities <= 1)).all()


@pytest.mark.parametrize("network", ["mlp", "cnn", "bilstm"])
def test_batches_do_not_matter(network):
    model = small(network, max_iter=2, n_layers=2).fit(X, Y)
    together = model.node_scores(X_TEST)
    for k in (0, 3, 7):
        assert model.node_scores([X_TEST[k]])[0] == pytest.approx(together[k], abs=1e-5)
    assert model.predict([]) == []
    assert model.predict([np.zeros((0, 3)), X_TEST[0]])[0] == []


# --------------------------------------------------------------------------- when training ends


def test_early_stopping_keeps_the_best_weights():
    model = small(n_iter_no_change=3, max_iter=200, learning_rate=0.1)
    model.fit(X, Y, validation_data=(X_TEST, Y_TEST))
    report = model.fit_report_
    assert report.status is Status.CONVERGED
    assert report.n_iter < 200
    best = max(score for _, score in report.validation)
    assert model.score(X_TEST, Y_TEST) == pytest.approx(best)
    assert report.n_iter - next(k for k, s in report.validation if s == best) == 3


def test_held_out_sequences_are_not_learned_from():
    calls = set()

    def seen(batch, generator):
        calls.update(x.tobytes() for x in batch)
        return batch

    small(n_iter_no_change=2, validation_fraction=0.25, augment=seen, max_iter=5).fit(X, Y)
    assert len(calls) == 45
    with pytest.raises(ValueError, match="would hold out 1 of 1 examples"):
        small(n_iter_no_change=2).fit(X[:1], Y[:1])


def test_a_callback_stops_and_gets_the_model():
    model = small().fit(X, Y, callback=lambda state: state.iteration == 3)
    assert model.fit_report_.status is Status.STOPPED
    assert model.n_iter_ == 3


def interrupt_at(n):
    def callback(state):
        if state.iteration == n:
            raise KeyboardInterrupt

    return callback


def test_ctrl_c_keeps_the_best_weights(monkeypatch):
    monkeypatch.setattr("chordal.estimators._training.monitor._in_search", lambda: False)
    monkeypatch.setattr("chordal.estimators._training.monitor._last", -1e9)
    seen = {}

    def callback(state):
        seen[state.value] = state.weights
        interrupt_at(4)(state)

    with pytest.warns(InterruptedFitWarning, match="after 4 iterations"):
        model = small(max_iter=100).fit(X, Y, callback=callback)
    assert model.fit_report_.status is Status.INTERRUPTED
    assert model.objective_ == min(seen)
    state = model.module_.state_dict()
    rows = [state[name].numpy().ravel() for name in sorted(state)]
    assert np.concatenate(rows) == pytest.approx(seen[min(seen)])
    with whole_fits(), pytest.raises(KeyboardInterrupt):
        small().fit(X, Y, callback=interrupt_at(2))


def test_a_failed_fit_leaves_the_model_as_it_was(fitted):
    model = pickle.loads(pickle.dumps(fitted)).set_params(warm_start=True)
    before = model.predict_marginals(X_TEST)

    def fail(state):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        model.fit(X, Y, callback=fail)
    assert all((a == b).all() for a, b in zip(before, model.predict_marginals(X_TEST), strict=True))


def test_warm_start_goes_on(fitted):
    model = pickle.loads(pickle.dumps(fitted)).set_params(warm_start=True, max_iter=1)
    assert model.fit(X, Y).objective_ < 1.2 * fitted.objective_
    with pytest.raises(ValueError, match="warm_start keeps the labels, but y has the new label 9"):
        model.fit(X, [[9] * len(s) for s in Y])


def test_checkpoints_are_models(tmp_path):
    path, marginals = tmp_path / "model", []

    def callback(state):
        marginals.append(chordal.load(path).predict_marginals(X_TEST[:1])[0])

    small(max_iter=3).fit(X, Y, callback=callback, checkpoint=path)
    assert len(marginals) == 3
    assert not np.allclose(marginals[0], marginals[2])
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("network", ["mlp", "bilstm"])
def test_a_seed_gives_the_same_model_and_leaves_torch_alone(network):
    torch.manual_seed(5)
    after = torch.rand(1)
    torch.manual_seed(5)
    a = small(network, dropout=0.3).fit(X, Y)
    assert torch.rand(1) == after
    b = small(network, dropout=0.3).fit(X, Y)
    other = small(network, dropout=0.3, random_state=1).fit(X, Y)
    assert all((p == q).all() for p, q in zip(a.node_scores(X), b.node_scores(X), strict=True))
    assert not np.allclose(a.node_scores(X)[0], other.node_scores(X)[0])


@pytest.mark.parametrize("schedule", ["none", "cosine", "step"])
@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_optimizers_and_schedules(optimizer, schedule):
    model = small(optimizer=optimizer, schedule=schedule, weight_decay=1e-3, max_iter=25)
    history = model.fit(X, Y).fit_report_.history
    assert history[-1] < 0.6 * history[0]


def test_progress_has_figures(capsys):
    small(verbose=2, max_iter=2).fit(X, Y, validation_data=(X_TEST, Y_TEST))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("iteration    1  objective ")
    assert "validation 0." in lines[1]


# -------------------------------------------------------------------------------- scikit-learn's


def test_scikit_learns_tools():
    model = small()
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(hidden=4).hidden == 4
    assert repr(NeuralCRF(hidden=3)) == "NeuralCRF(hidden=3)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cross_val_score(small(max_iter=25), X, Y, cv=3).mean() > 0.85


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "transformer"}, "network must be one of 'mlp', 'cnn', 'bilstm'; got 'trans"),
        ({"training": "both"}, "training must be one of 'joint', "),
        ({"optimizer": "sgd"}, "optimizer must be one of 'adam', 'adamw'"),
        ({"schedule": None}, "schedule must be one of"),
        ({"hidden": 0}, "hidden must be an integer of at least 1, got 0"),
        ({"hidden": 10**8}, "hidden must be at most 1000000"),
        ({"window": 4}, "window must be odd, got 4"),
        ({"dropout": 1.0}, "dropout must be below 1"),
        ({"learning_rate": 0}, "learning_rate must be a number above 0"),
        ({"clip_norm": 0.0}, "clip_norm must be a number above 0"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be an integer of at least 1"),
        ({"device": "no such"}, "device must be one that PyTorch knows"),
        ({"device": "meta"}, "device 'meta' cannot be used here: .*; use 'cpu'"),
        ({"random_state": "x"}, "random_state must be"),
        ({"learning_rate": 1e30}, "decrease learning_rate, or scale the inputs"),
        (
            {"network": torch.nn.Linear(3, 5)},
            r"a score for each label.*\(30, 8, 3\); got \(30, 8, 5\)",
        ),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        small(**{"clip_norm": None, **settings}).fit(X, Y)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.full((2, 3), np.nan), r"NaN or infinity in X\[0\], at position 0"),
        (np.zeros((2, 1, 1, 1, 1)), r"X\[0\] must be numbers \[length, columns\], images"),
        ([["a"], ["b"]], r"X\[0\] must be numbers"),
        ([0.5, "b"], r"X\[0\] must be numbers|must be a string or a whole number"),
        (["a", 0.5], r"X\[0\]\[1\] must be a string or a whole number.*got 0.5"),
    ],
)
def test_bad_sequences(x, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small().fit([x], [["A", "B"]])


def test_other_inputs_than_in_training(fitted):
    with pytest.raises(ValueError, match=r"X\[1\] must have \[3\] numbers at each position.*\[4\]"):
        fitted.predict([X[0], np.zeros((2, 4))])
    with pytest.raises(ValueError, match="every sequence is empty"):
        small().fit([[]], [[]])
    with pytest.raises(ValueError, match="must have the same length"):
        small().fit(X, Y[::-1])
    with pytest.raises(TypeError, match="network must be one of"):
        small(3).fit(X, Y)


def test_explanations_name_the_scores_of_the_network():
    X = [["the", "cat", "sleeps"], ["cats", "sleep"]]
    y = [["D", "N", "V"], ["N", "V"]]
    model = small("bilstm").fit(X, y)
    found = explain(model, X[0], 1, odds="conditional")
    own = {c.name: c.amount for c in found.contributions if c.kind == "attribute"}
    assert set(own) == {"score of 'D'", "score of 'N'", "score of 'V'"}
    scores = model.node_scores(X[:1])[0][1]
    at = model.classes_.tolist().index(found.label)
    np.testing.assert_allclose(own[f"score of {found.label!r}"], scores[at], atol=1e-6)
    total = sum(c.amount for c in found.contributions)
    np.testing.assert_allclose(total, found.log_odds, rtol=0, atol=1e-9)
