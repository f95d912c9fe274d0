"""NeuralCRF on grids and graphs: what it learns and answers, by independent roads."""

import pickle
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from chordal import ChainCRF, GraphCRF, GridCRF, Status, UnsupportedError
from chordal.estimators import InterruptedFitWarning
from chordal.execution import execution_for
from chordal.torch import ImageCRF, NeuralCRF
from chordal.torch._neural_fit import Given, _prepared

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)


def images(n, sizes=((4, 5),), seed=0, noise=0.6):
    """Two halves, seen through noise, with a column that says nothing."""
    rng, X, y = np.random.default_rng(seed), [], []
    for i in range(n):
        h, w = sizes[i % len(sizes)]
        label = np.repeat([(np.arange(w) >= rng.integers(w + 1)).astype(int)], h, axis=0)
        y.append(label)
        X.append(np.stack([label + noise * rng.normal(size=(h, w)), rng.normal(size=(h, w))], -1))
    return X, y


def rings(n, seed=0, features=False):
    """Rings whose labels come in pairs; features of edges tell whether both ends are alike."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        k = int(rng.integers(3, 8))
        labels = np.arange(k) // 2 % 2
        edges = np.array([(i, (i + 1) % k) for i in range(k)])
        nodes = np.eye(2)[labels] + rng.normal(size=(k, 2))
        alike = (labels[edges[:, 0]] == labels[edges[:, 1]]).astype(float)[:, None]
        X.append((nodes, edges, alike) if features else (nodes, edges))
        y.append(["ab"[v] for v in labels])
    return X, y


def small(network, crf, **settings):
    settings = {"hidden": 8, "learning_rate": 0.02, "max_iter": 15, "random_state": 0, **settings}
    return NeuralCRF(network, crf, **settings)


def pixel_linear(n_in, n_out):
    return torch.nn.Conv2d(n_in, n_out, 1)


def unbiased(n_in, n_out):
    return torch.nn.Linear(n_in, n_out, bias=False)  # the chain has an intercept


GRID_X, GRID_Y = images(16)
GRAPH_X, GRAPH_Y = rings(16)
CHAIN_X = [RNG.normal(size=(n, 2)) for n in (3, 1, 5, 4)]
CHAIN_Y = [RNG.integers(2, size=len(x)).tolist() for x in CHAIN_X]
CASES = {
    "grid": (GRID_X, GRID_Y, GridCRF(), pixel_linear),
    "contrast": (GRID_X, GRID_Y, GridCRF(contrast=0.5, contrast_columns=[0]), pixel_linear),
    "directions": (GRID_X, GRID_Y, GridCRF(directions=True, tables="full"), pixel_linear),
    "graph": (GRAPH_X, GRAPH_Y, GraphCRF(), torch.nn.Linear),
    "edges": (*rings(16, features=True), GraphCRF(tables="full"), torch.nn.Linear),
    "chain": (CHAIN_X, CHAIN_Y, ChainCRF(transitions="seen", fit_intercept=True), unbiased),
}


# ---------------------------------------------------------------------------------- by other roads


def learner_of(model, X, y):
    """What training works with, in double precision."""
    crf, given = model._given_crf(), Given(X, y, np.ones(len(X)), None)
    torch.manual_seed(0)
    _, learner = _prepared(
        model, crf, given, np.random.default_rng(0), execution_for(1).__enter__()
    )
    learner.head.model.double()
    with torch.no_grad():
        for parameter in learner.head.model.parameters():
            parameter.normal_()
    drawn = learner.drawn
    learner.drawn = lambda chosen: [e._replace(values=e.values.double()) for e in drawn(chosen)]
    return learner


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "softmax_margin"])
@pytest.mark.parametrize("case", ["grid", "contrast", "directions", "graph", "edges", "chain"])
def test_gradients_are_finite_differences(case, objective):
    X, y, crf, _ = CASES[case]
    crf = clone(crf).set_params(objective=objective)
    learner = learner_of(small("mlp", crf, hidden=2), X[:3], y[:3])
    chosen = np.array([2, 0])
    loss, _ = learner.joint(chosen)
    loss.backward()
    for parameter in learner.head.model.parameters():
        flat, slope = parameter.data.view(-1), parameter.grad.view(-1)
        for k in range(0, len(flat), max(1, len(flat) // 4)):
            before, found = float(flat[k]), []
            for step in (1e-5, -1e-5):
                flat[k] = before + step
                with torch.no_grad():
                    found.append(float(learner.joint(chosen)[0]))
            flat[k] = before
            assert slope[k] == pytest.approx((found[0] - found[1]) / 2e-5, rel=1e-5, abs=1e-6)


def penalised(model, X, y, l2, weights):
    return -model.log_likelihood(X, y).sum() + 0.5 * l2 * (weights**2).sum()


@pytest.mark.parametrize("case", CASES)
def test_a_linear_network_finds_what_the_linear_model_finds(case):
    """Both minimise the same function of the same weights, by different means."""
    X, y, crf, linear = CASES[case]
    X, y = X[:6], y[:6]
    l2, n = 0.5, sum(np.size(labels) for labels in y)
    exact = clone(crf).set_params(l2=l2, tol=1e-12, max_iter=3000).fit(X, y)
    model = small(linear, crf, batch_size=len(X), weight_decay=l2 / n, schedule="cosine")
    model.set_params(max_iter=1000, learning_rate=0.1, clip_norm=None).fit(X, y)
    weights = np.concatenate([p.detach().numpy().ravel() for p in model.module_.parameters()])
    ours = penalised(model, X, y, l2, weights)
    theirs = penalised(exact, X, y, l2, exact.weights_)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert exact.objective_ == pytest.approx(theirs, rel=1e-6)
    for a, b in zip(model.predict_marginals(X), exact.predict_marginals(X), strict=True):
        assert a == pytest.approx(b, abs=5e-3)


def test_marginals_are_those_of_brute_force():
    """All 512 labellings of a 3 × 3 grid, scored by hand."""
    X, y = images(4, [(3, 3)])
    model = small("cnn", GridCRF(tables="full", directions=True), max_iter=3).fit(X, y)
    x = X[0]
    with torch.no_grad():
        image = torch.tensor(x.transpose(2, 0, 1), dtype=torch.float32)
        unary = model.module_.network(image[None])[0].double().numpy()
    right, down = (model.crf_.template_weights(f"edges {s}")["intercept"] for s in ((0, 1), (1, 0)))
    total, marginals, best = 0.0, np.zeros((3, 3, 2)), (-np.inf, None)
    for flat in product(range(2), repeat=9):
        own = np.array(flat).reshape(3, 3)
        score = unary[own, np.arange(3)[:, None], np.arange(3)].sum()
        score += right[own[:, :-1], own[:, 1:]].sum() + down[own[:-1], own[1:]].sum()
        total += np.exp(score)
        marginals[np.arange(3)[:, None], np.arange(3), own] += np.exp(score)
        best = max(best, (score, flat))
    assert model.predict_marginals([x])[0] == pytest.approx(marginals / total, abs=1e-6)
    assert model.predict([x], method="map")[0].ravel().tolist() == list(best[1])
    labels, chance = model.k_best([x], 1)[0][0]
    assert chance == pytest.approx(best[0] - np.log(total), abs=1e-6)
    assert labels.ravel().tolist() == list(best[1])


def test_the_loss_is_that_of_the_image_layer():
    """`ImageCRF` computes it in PyTorch, by another code."""
    X, y = GRID_X[:4], GRID_Y[:4]
    model = small("mlp", GridCRF(tables="full", directions=True), max_iter=2).fit(X, y)
    layer = ImageCRF(2, "auto", tying="direction").double()
    tables = [model.crf_.template_weights(f"edges {s}")["intercept"] for s in ((0, 1), (1, 0))]
    with torch.no_grad():
        layer.tables.copy_(torch.tensor(np.array(tables)))
        batch = torch.tensor(np.array(X).transpose(0, 3, 1, 2), dtype=torch.float32)
        scores = model.module_.network(batch).double()
        found = layer(scores, torch.tensor(np.array(y)), reduction="none")
    assert model.log_likelihood(X, y) == pytest.approx(found.numpy(), abs=1e-6)


# -------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("training", ["joint", "two_stage", "two_stage_joint"])
@pytest.mark.parametrize("network", ["mlp", "cnn"])
def test_it_learns_images(network, training):
    X, y = images(40)
    model = small(network, GridCRF(), training=training, max_iter=25, batch_size=8).fit(X, y)
    X_test, y_test = images(40, seed=1)
    assert model.score(X_test, y_test) > 0.85
    assert len(model.reports_) == {"joint": 1, "two_stage": 2, "two_stage_joint": 3}[training]
    report = model.fit_report_
    assert (report.inference, report.exact) == ("junction_tree", True)
    assert report.prediction in ("map", "mpm")


@pytest.mark.parametrize("training", ["joint", "two_stage", "two_stage_joint"])
def test_it_learns_graphs(training):
    X, y = rings(60)
    X_test, y_test = rings(60, seed=1)
    settings = {"training": training, "max_iter": 25, "batch_size": 8}
    linked = small("mlp", GraphCRF(tables="full"), **settings).fit(X, y)
    alone = np.concatenate(linked.node_scores(X_test)).argmax(axis=1)
    gold = np.concatenate([[label == "b" for label in labels] for labels in y_test])
    assert linked.score(X_test, y_test) > (alone == gold).mean()


@pytest.mark.parametrize(
    ("crf", "inference", "exact"),
    [
        (GridCRF(inference="mean_field"), "mean_field", False),
        (GridCRF(inference="loopy_bp"), "loopy_bp", False),
        (GridCRF(inference="tree_reweighted"), "tree_reweighted", False),
        (GridCRF("pseudo_likelihood"), None, True),
        (GridCRF("piecewise"), None, True),
        (GridCRF("hinge"), None, True),
    ],
)
def test_objectives_and_approximations(crf, inference, exact):
    model = small("mlp", crf).fit(GRID_X, GRID_Y)
    assert model.score(GRID_X, GRID_Y) > 0.8
    assert model.fit_report_.exact is exact
    assert inference is None or model.fit_report_.inference == inference
    assert model.fit_report_.history[-1] < model.fit_report_.history[0]


def test_images_too_wide_for_exact_inference():
    X, y = images(2, [(24, 24)])
    model = small("mlp", GridCRF(), max_iter=3).fit(X, y)
    assert not model.fit_report_.exact
    assert "is approximate" in str(model.fit_report_)
    assert model.predict_marginals(X)[0].shape == (24, 24, 2)


def test_images_of_several_sizes():
    X, y = images(18, [(4, 5), (2, 7), (1, 3)])
    model = small("cnn", GridCRF(), batch_size=4).fit(X, y)
    assert [found.shape for found in model.predict(X)] == [labels.shape for labels in y]
    together = model.node_scores(X)
    for k in (0, 1, 2):
        assert model.node_scores([X[k]])[0] == pytest.approx(together[k], abs=1e-5)


def test_volumes():
    rng = np.random.default_rng(0)
    y = [np.repeat(np.repeat([[[0, 1]]], 2, axis=0), 3, axis=1) for _ in range(6)]
    X = [v[..., None] + 0.3 * rng.normal(size=(*v.shape, 1)) for v in y]
    model = small("cnn", GridCRF(neighbours=6)).fit(X, y)
    assert model.predict(X)[0].shape == (2, 3, 2)
    assert model.score(X, y) > 0.9


def test_nodes_of_tokens_and_images():
    words = [["cat", "sat"], ["dog", "ran", "cat"]] * 5
    tags = [["N", "V"], ["N", "V", "N"]] * 5
    X = [(own, [(0, 1)]) for own in words]
    model = small("mlp", GraphCRF(), embedding=4, max_iter=40).fit(X, tags)
    assert model.predict(X[:2]) == tags[:2]
    assert len(model.predict([(["new", "cat"], [(0, 1)])])[0]) == 2
    pictures = [(np.stack([np.eye(5) * (t == "N") for t in own]), [(0, 1)]) for own in tags]
    shown = small("cnn", GraphCRF(), channels=2, max_iter=40).fit(pictures, tags)
    assert shown.score(pictures, tags) == 1.0


class Neighbours(torch.nn.Module):
    """One round of messages along the edges, which are those of the whole batch."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.own, self.near = torch.nn.Linear(n_in, n_out), torch.nn.Linear(n_in, n_out)

    def forward(self, x, edges):
        assert edges.shape[0] == 2
        assert int(edges.max()) < len(x)
        sums = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        return self.own(x) + self.near(sums)


def test_a_network_of_messages():
    model = small(Neighbours, GraphCRF(), max_iter=5, batch_size=4).fit(GRAPH_X, GRAPH_Y)
    together = model.node_scores(GRAPH_X)
    for k in (0, 5):
        assert model.node_scores([GRAPH_X[k]])[0] == pytest.approx(together[k], abs=1e-5)


def test_sets_and_labels_that_are_not_observed():
    y = [labels.astype(object) for labels in GRID_Y]
    for labels in y:
        labels[0, 0], labels[1, 1] = None, {0, 1}
    for training in ("joint", "two_stage_joint"):
        assert small("mlp", GridCRF(), training=training).fit(GRID_X, y).score(GRID_X, GRID_Y) > 0.8
    void = [np.where(RNG.random(labels.shape) < 0.3, 9, labels) for labels in GRID_Y]
    for objective in ("likelihood", "pseudo_likelihood"):
        model = small("mlp", GridCRF(objective, ignore_label=9)).fit(GRID_X, void)
        assert model.classes_.tolist() == [0, 1]
        assert model.score(GRID_X, GRID_Y) > 0.8


def test_unobserved_pixels_have_no_pseudo_likelihood():
    """By another road: of a 1 × 3 image whose middle is unknown, two separate pixels are left."""
    X = [RNG.normal(size=(1, 3, 2)), RNG.normal(size=(1, 3, 2))]
    y = [np.array([[0, 9, 1]]), np.array([[1, 0, 1]])]
    learner = learner_of(small("mlp", GridCRF("pseudo_likelihood", ignore_label=9)), X, y)
    loss = learner.joint(np.array([0]))[0].detach()
    scores = torch.tensor(learner.head.scores(learner.drawn(np.array([0])))[0])
    assert float(loss) == pytest.approx(
        -float(scores.log_softmax(1)[0, 0] + scores.log_softmax(1)[2, 1])
    )


def test_weights_of_examples():
    flipped = [1 - labels for labels in GRID_Y]
    weight = np.repeat([1.0, 0.0], len(GRID_X))
    model = small("mlp", GridCRF(), max_iter=25)
    model.fit(GRID_X + GRID_X, GRID_Y + flipped, sample_weight=weight)
    assert model.score(GRID_X, GRID_Y) > 0.8


# --------------------------------------------------------------------------------------- answers


def test_answers_are_in_the_shape_of_labels():
    model = small("cnn", GridCRF()).fit(GRID_X, GRID_Y)
    x = GRID_X[:2]
    assert model.sample(x, 3)[0][2].shape == (4, 5)
    assert [len(own) for own in model.k_best(x, 2)] == [2, 2]
    assert model.predict_marginals(x, "edges")[0].shape == (31, 2, 2)
    assert (np.exp(model.log_likelihood(x, GRID_Y[:2])) <= 1.0).all()
    assert (model.entropy(x) >= 0.0).all()
    fixed = [None, np.full((4, 5), None, dtype=object)]
    fixed[1][0, :] = 1
    assert (model.predict(x, allowed_labels=fixed)[1][0] == 1).all()
    assert model.predict_marginals(x, allowed_labels=fixed)[1][0, :, 1] == pytest.approx(1.0)
    with pytest.raises(UnsupportedError, match="span_probabilities needs a ChainCRF, but this"):
        model.span_probabilities(x, [[], []])
    assert model.predict([]) == []
    assert model.predict([np.zeros((0, 5, 2)), x[0]])[0].shape == (0, 5)


def test_graphs_answer_by_names_of_labels():
    model = small("mlp", GraphCRF()).fit(GRAPH_X, GRAPH_Y)
    assert set(model.predict(GRAPH_X)[0]) <= {"a", "b"}
    n = len(GRAPH_Y[0])
    forced = model.predict(GRAPH_X[:1], allowed_labels=[["b"] + [None] * (n - 1)])
    assert forced[0][0] == "b"
    empty = (np.zeros((0, 2)), np.zeros((0, 2), dtype=int))
    assert model.predict([empty, GRAPH_X[0]])[0] == []


# ------------------------------------------------------------------------------- scikit-learn's


def test_scikit_learns_tools():
    model = small("cnn", GridCRF(neighbours=8))
    assert clone(model).crf.neighbours == 8
    assert model.set_params(crf__l2=3.0).crf.l2 == 3.0
    assert "crf__objective" in model.get_params()
    assert "crf=GridCRF(neighbours=8)" in repr(small("cnn", GridCRF(neighbours=8)))
    assert cross_val_score(small("mlp", GraphCRF()), GRAPH_X, GRAPH_Y, cv=2).mean() > 0.4


def test_the_given_crf_stays_as_it_was():
    crf = GridCRF()
    before = crf.get_params()
    small("mlp", crf, n_jobs=1).fit(GRID_X, GRID_Y)
    assert crf.get_params() == before
    assert not hasattr(crf, "weights_")


@pytest.mark.parametrize("case", ["grid", "graph", "chain"])
def test_a_seed_gives_the_same_weights(case):
    X, y, crf, _ = CASES[case]
    a, b, other = (
        small("mlp", crf, dropout=0.3, batch_size=4, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    )
    weights = [np.concatenate([p.detach().numpy().ravel() for p in m.module_.parameters()])
               for m in (a, b, other)]  # fmt: skip
    assert (weights[0] == weights[1]).all()
    assert not np.allclose(weights[0], weights[2])


def test_early_stopping_warm_start_and_callbacks():
    X_test, y_test = images(10, seed=3)
    model = small("mlp", GridCRF(), n_iter_no_change=2, max_iter=60, learning_rate=0.1)
    model.fit(GRID_X, GRID_Y, validation_data=(X_test, y_test))
    assert model.fit_report_.n_iter < 60
    assert len(model.fit_report_.validation) == model.n_iter_
    held = small("mlp", GraphCRF(), n_iter_no_change=2).fit(GRAPH_X, GRAPH_Y)
    assert len(held.fit_report_.validation) == held.n_iter_
    told = []
    before = model.score(X_test, y_test)
    model.set_params(warm_start=True, max_iter=2, n_iter_no_change=None, learning_rate=1e-5)
    model.fit(GRID_X, GRID_Y, callback=lambda own: told.append(own.model().score(X_test, y_test)))
    assert told == pytest.approx([before, before], abs=0.03)
    other = pickle.loads(pickle.dumps(model)).set_params(crf=GraphCRF())
    with pytest.raises(ValueError, match="warm_start continues from a GridCRF, and crf is a Graph"):
        other.fit(GRAPH_X, GRAPH_Y)
    with pytest.raises(ValueError, match="warm_start keeps the labels, but y has the new label"):
        model.fit(GRID_X, [labels + 5 for labels in GRID_Y])


def test_progress_has_figures(capsys):
    small("mlp", GridCRF(), verbose=2, max_iter=2).fit(
        GRID_X, GRID_Y, validation_data=(GRID_X[:2], GRID_Y[:2])
    )
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["iteration", "1", "objective"], ["iteration", "2", "objective"]
    ]  # fmt: skip
    assert "validation" in lines[1]


def test_threads_copies_and_pickles():
    one, two = (small("mlp", GridCRF(), n_jobs=n).fit(GRID_X, GRID_Y) for n in (1, 2))
    again = pickle.loads(pickle.dumps(one))
    for a, b, c in zip(*(m.predict_marginals(GRID_X) for m in (one, two, again)), strict=True):
        assert a == pytest.approx(b, abs=1e-3)
        assert (a == c).all()
    assert again.set_params(warm_start=True, max_iter=1).fit(GRID_X, GRID_Y).n_iter_ == 1


def test_ctrl_c_keeps_the_best_weights(monkeypatch):
    monkeypatch.setattr("chordal.estimators._training.monitor._in_search", lambda: False)
    monkeypatch.setattr("chordal.estimators._training.monitor._last", -1e9)
    losses = []

    def callback(state):
        losses.append(state.value)
        if state.iteration == 4:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="after 4 iterations"):
        model = small("mlp", GraphCRF(), max_iter=100).fit(GRAPH_X, GRAPH_Y, callback=callback)
    assert model.fit_report_.status is Status.INTERRUPTED
    assert model.objective_ == min(losses)
    assert len(model.predict(GRAPH_X)) == len(GRAPH_X)
