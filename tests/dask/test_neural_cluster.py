"""NeuralCRF on a real cluster of worker processes."""

import os
import signal
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from chordal import ChainCRF, GraphCRF, GridCRF, Status, UnsupportedError
from chordal.estimators import Given, InterruptedFitWarning
from chordal.estimators._training import preparing
from chordal.model_file import load, save

from .conftest import workers

dask = pytest.importorskip("dask", reason='the tests of chordal.dask need "chordal[dask]"')
pytest.importorskip("distributed", reason='needs "chordal[dask]"')
torch = pytest.importorskip("torch", reason='networks need "chordal[torch]"')
bag = pytest.importorskip("dask.bag")

import chordal.dask as cluster  # noqa: E402
from chordal.torch import NeuralCRF, _on_part  # noqa: E402
from chordal.torch._lender import Lender, weights_of  # noqa: E402
from chordal.torch._training import flat  # noqa: E402

dask.config.set({"distributed.comm.timeouts.connect": "5s"})  # to workers that are dead

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about workers that are lost


def sentences(n=40, seed=0):
    """Words of which most tell their label, and labels that follow each other in turn."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        labels = (np.arange(int(rng.integers(2, 8))) + rng.integers(3)) % 3
        X.append([f"w{v * 3 + rng.integers(4)}" for v in labels])
        y.append([f"L{v}" for v in labels])
    return X, y


def rows(n=20, seed=0):
    rng = np.random.default_rng(seed)
    y = [rng.integers(2, size=int(rng.integers(1, 6))) for _ in range(n)]
    return [np.eye(2)[own] + rng.normal(size=(len(own), 2)) for own in y], y


def images(n=9, seed=0):
    rng = np.random.default_rng(seed)
    y = [np.repeat([np.arange(4) >= rng.integers(5)], 3, axis=0).astype(int) for _ in range(n)]
    return [np.stack([v + 0.6 * rng.normal(size=v.shape)] * 2, -1) for v in y], y


def rings(n=10, seed=0):
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        k = int(rng.integers(3, 7))
        labels = np.arange(k) // 2 % 2
        edges = np.array([(i, (i + 1) % k) for i in range(k)])
        X.append((np.eye(2)[labels] + rng.normal(size=(k, 2)), edges))
        y.append(["ab"[v] for v in labels])
    return X, y


X, Y = sentences()


def small(network="mlp", crf=None, **settings):
    settings = {"hidden": 6, "embedding": 5, "max_iter": 3, "random_state": 0, **settings}
    return NeuralCRF(network, crf, **{"learning_rate": 0.02, "batch_size": 10, **settings})


def parted(X, y, npartitions=5):
    return bag.from_sequence(list(zip(X, y, strict=True)), npartitions=npartitions)


def halved(module):
    """A network with everything that depends on chance or on earlier batches."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 1), torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.5),
        torch.nn.Conv2d(4, module, 1),
    )  # fmt: skip


def noisy(examples, generator):
    return [own + generator.normal(scale=0.1, size=own.shape) for own in examples]


CASES = {
    "tokens": (small("bilstm", dropout=0.3), *sentences()),
    "batch norm": (small(halved(2), GridCRF(), augment=noisy), *images()),
    "graphs": (small("mlp", GraphCRF(), training="two_stage_joint", batch_size=3), *rings()),
    "early": (small("mlp", n_iter_no_change=2, validation_fraction=0.3), *rows()),
}


@pytest.fixture(scope="module")
def here():
    """A cluster of one worker with three threads, in this process."""
    with workers(1, threads=3) as made:
        yield made


@pytest.fixture(scope="module")
def expected(here):
    """The weights of every case, from threads of one process."""
    return {
        name: flat(cluster.fit(clone(model), parted(X, y), client=here).module_)
        for name, (model, X, y) in CASES.items()
    }


def test_same_weights_for_one_two_and_three_workers(client, local, expected):
    def check():
        for name, (model, X, y) in CASES.items():
            found = cluster.fit(clone(model), parted(X, y), client=client)
            assert np.array_equal(flat(found.module_), expected[name]), name

    check()
    local.scale(3)
    try:
        client.wait_for_workers(3, timeout=60)
        check()
    finally:
        local.scale(2)


def test_same_weights_for_more_groups_than_the_client_adds_up(expected):
    with workers(1, threads=6) as made:
        model, X, y = CASES["tokens"]
        found = cluster.fit(clone(model), parted(X, y), client=made)
    assert np.array_equal(flat(found.module_), expected["tokens"])


class Killer:
    """A callback that kills a worker after a pass, and says so."""

    def __init__(self, client):
        self.client, self.killed = client, []

    def __call__(self, state):
        if state.iteration == 1:
            pid = self.client.run(os.getpid, workers=[min(self.client.nthreads())])
            os.kill(next(iter(pid.values())), signal.SIGKILL)
            self.killed.append(state.iteration)


@pytest.mark.parametrize("case", ["tokens", "batch norm"])
def test_a_killed_worker_changes_nothing(client, expected, case):
    model, X, y = CASES[case]
    killer = Killer(client)
    found = cluster.fit(clone(model), parted(X, y), client=client, callback=killer)
    assert killer.killed == [1]
    assert np.array_equal(flat(found.module_), expected[case])


@pytest.mark.parametrize("training", ["joint", "two_stage", "two_stage_joint"])
@pytest.mark.parametrize("kind", ["rows", "images", "rings", "linked chain"])
def test_steps_of_all_examples_are_those_in_memory(here, kind, training):
    """The same network and the same gradients: they differ only in how sums are rounded."""
    X, y = {"rows": rows, "images": images, "rings": rings, "linked chain": rows}[kind]()
    crf = {"images": GridCRF(contrast="auto"), "rings": GraphCRF(),
           "linked chain": ChainCRF(transitions="seen", fit_intercept=True)}.get(kind)  # fmt: skip
    model = small("mlp", crf, training=training, batch_size=1000, weight_decay=0.01)
    found = cluster.fit(clone(model), parted(X, y, 4), client=here)
    alone = clone(model).fit(X, y)
    for a, b in zip(found.reports_, alone.reports_, strict=True):
        assert a.history == pytest.approx(b.history, rel=1e-5)
        assert (a.inference, a.exact, a.n_weights) == (b.inference, b.exact, b.n_weights)
        assert a.prediction == b.prediction
    np.testing.assert_allclose(flat(found.module_), flat(alone.module_), rtol=0, atol=2e-3)
    for a, b in zip(found.predict_marginals(X), alone.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-3)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", ["tokens", "images"])
def test_the_gradient_of_a_step_is_that_of_its_examples(kind, joint):
    """Parts without a cluster: what they say of a step, against PyTorch on the same examples."""
    X, y = sentences(12) if kind == "tokens" else images()
    model = small("mlp", None if kind == "tokens" else GridCRF(), min_freq=2).fit(X, y)
    form, learner = model._form, learner_of(model, X, y)
    weight, half = np.ones(len(X)), len(X) // 2
    told, seen = [], []
    for k, own in enumerate((slice(0, half), slice(half, None))):
        taken = _on_part.take_part(Given(X[own], y[own], None), form.crf)
        read = _on_part.read_part(taken, form, learner.head.labels)
        linked = None
        if kind == "images":
            examples = learner.linked.examples
            linked = examples._replace(shards=examples.shards[own], sizes=examples.sizes[own])
        lesson = _on_part.placed(read, (7, k))._replace(linked=linked)
        step = _on_part.Step(joint, 2, 1, 3, "float64")
        lender = Lender(learner.head, model)
        told.append(_on_part.step_part(lesson, weights_of(learner.head.model), lender, step))
        seen.append(step.chosen(lesson, np.arange(len(X[own]))) + k * half)
    total, chosen = told[0].plus(told[1]), np.concatenate(seen)
    loss, size = (learner.joint if joint else learner.alone)(chosen)
    loss.backward()
    parameters = list(learner.head.model.parameters())
    zeros = [np.zeros(p.numel()) if p.grad is None else p.grad.numpy().ravel() for p in parameters]
    assert total.term.value == pytest.approx(loss.item(), rel=1e-6)
    assert (total.size, total.n) == (size.item(), len(chosen))
    assert total.reached.tolist() == [p.grad is not None for p in parameters]
    gradient = np.concatenate(zeros)
    np.testing.assert_allclose(total.term.full(), gradient, rtol=0, atol=1e-6 * abs(gradient).max())
    assert abs(gradient).max() > 0.0
    assert weight[chosen].sum() == len(set(chosen.tolist()))


def learner_of(model, X, y):
    """What training in memory works with, at the weights of a fitted model."""
    from chordal.execution import execution_for
    from chordal.torch._neural_fit import Given as InMemory
    from chordal.torch._neural_fit import _prepared

    given = InMemory(X, y, np.ones(len(X)), None)
    settings = (np.random.default_rng(0), execution_for(1).__enter__())
    return _prepared(clone_warm(model), model._given_crf(), given, *settings)[1]


def clone_warm(model):
    return model.set_params(warm_start=True)


def test_every_example_is_seen_once_in_a_pass():
    parts = [(k, np.arange(n)) for k, n in enumerate((7, 1, 0, 4))]
    for per_pass in (1, 3, 7):
        for k, used in parts:
            lesson = _on_part.Lesson(None, [], None, (3, k))
            steps = [_on_part.Step(True, 0, s, per_pass, "float64") for s in range(per_pass)]
            pieces = [step.chosen(lesson, used) for step in steps]
            assert sorted(np.concatenate(pieces)) == used.tolist()
            if len(used) >= per_pass:
                assert min(map(len, pieces)) > 0
        other = _on_part.Step(True, 1, 0, 1, "float64").chosen(lesson, np.arange(50))
        assert (
            other != _on_part.Step(True, 0, 0, 1, "float64").chosen(lesson, np.arange(50))
        ).any()


def test_running_means_are_averaged_over_partitions(here):
    """A step of all examples: each partition has its own means, weighted by its images."""
    images_x, images_y = images()
    norm = torch.nn.BatchNorm2d(2, momentum=1.0)
    module = torch.nn.Sequential(norm, torch.nn.Conv2d(2, 2, 1))
    model = small(module, GridCRF(), batch_size=1000, max_iter=1)
    cuts = [(0, 2), (2, 9)]
    parts = [dask.delayed((images_x[a:b], images_y[a:b])) for a, b in cuts]
    found = cluster.fit(model, parts, client=here).module_.network.module[0]
    own = [np.concatenate([x.reshape(-1, 2) for x in images_x[a:b]]) for a, b in cuts]
    wanted = sum((b - a) * v.mean(0) for (a, b), v in zip(cuts, own, strict=True)) / 9
    np.testing.assert_allclose(found.running_mean.numpy(), wanted, rtol=1e-5)
    spread = sum((b - a) * v.var(0, ddof=1) for (a, b), v in zip(cuts, own, strict=True)) / 9
    np.testing.assert_allclose(found.running_var.numpy(), spread, rtol=1e-5)
    assert found.num_batches_tracked == 1
    assert norm.num_batches_tracked == 0  # the user's module stays as it is


def test_infinite_buffers_stay():
    before = np.array([-np.inf, 1.0, np.inf], dtype=np.float32)
    after = np.array([-np.inf, 3.0, np.inf], dtype=np.float32)
    assert _on_part._change(before, after).tolist() == [0.0, 2.0, 0.0]


def test_it_learns_and_answers_on_the_cluster(client, tmp_path):
    model = cluster.fit(small(max_iter=25), parted(X, Y), client=client)
    assert model.score(X, Y) > 0.9
    assert model.fit_report_.history[-1] < 0.5 * model.fit_report_.history[0]
    examples = bag.from_sequence(X, npartitions=3)
    assert list(cluster.predict(model, examples, client=client)) == model.predict(X)
    found = list(cluster.predict_marginals(model, examples, client=client))
    for a, b in zip(found, model.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    assert cluster.score(model, parted(X, Y), client=client) == model.score(X, Y)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").predict(X) == model.predict(X)


def test_scores_count_variables_and_leave_out_what_is_not_observed(client):
    images_x, images_y = images()
    void = [np.where(np.arange(4) == 1, 9, own) for own in images_y]
    model = small("mlp", GridCRF(ignore_label=9), max_iter=2).fit(images_x, void)
    weight = np.arange(1.0, len(images_x) + 1)
    own = [dask.delayed(images_x), dask.delayed(void), dask.delayed(weight)]
    found = cluster.score(model, *([v] for v in own), client=client)
    assert found == pytest.approx(model.score(images_x, void, sample_weight=weight))


def test_labels_and_words_are_those_in_memory(here):
    """A label and words of one partition alone, labels not observed, weights and empty parts."""
    Xs, Ys = sentences(12)
    Ys = [[None if v == "L1" and i < 4 else v for v in own] for i, own in enumerate(Ys)]
    cuts = [(0, 4), (4, 4), (4, 12)]
    weight = np.arange(12.0)
    own = [[dask.delayed(v[a:b]) for a, b in cuts] for v in (Xs, Ys, weight)]
    model = small(min_freq=2, batch_size=1000)
    found = cluster.fit(clone(model), *own, client=here)
    alone = clone(model).fit(Xs, Ys, sample_weight=weight)
    assert found.inputs_.tokens == alone.inputs_.tokens
    assert found.crf_.labels_.labels == alone.crf_.labels_.labels
    # Rare words are hidden by chance: there are none that occur once and are kept.
    assert found.fit_report_.history == pytest.approx(alone.fit_report_.history, rel=1e-5)


def test_validation_data_here_and_on_the_cluster(here, tmp_path):
    Xv, Yv = sentences(9, seed=1)
    model = small(max_iter=4)
    first = cluster.fit(clone(model), parted(X, Y), client=here, validation_data=(Xv, Yv))
    there = parted(Xv, Yv, 2)
    second = cluster.fit(clone(model), parted(X, Y), client=here, validation_data=there)
    assert first.fit_report_.validation == second.fit_report_.validation
    model.prepare(tmp_path / "held", Xv, Yv)
    held = {"validation_data": tmp_path / "held"}
    third = cluster.fit(clone(model), parted(X, Y), client=here, **held)
    assert first.fit_report_.validation == third.fit_report_.validation
    assert first.fit_report_.validation[-1][1] == first.score(Xv, Yv)
    early = model.set_params(max_iter=60, n_iter_no_change=3)
    found = cluster.fit(early, parted(X, Y), client=here, validation_data=there)
    assert found.fit_report_.status is Status.CONVERGED
    best = max(score for _, score in found.fit_report_.validation)
    assert found.score(Xv, Yv) == pytest.approx(best)


def test_warm_start_goes_on(here):
    whole = parted(X, Y)
    model = cluster.fit(small(max_iter=3), whole, client=here)
    before = model.fit_report_.history
    cluster.fit(model.set_params(warm_start=True), whole, client=here)
    assert model.fit_report_.history[0] < before[-1]
    with pytest.raises(ValueError, match=r"partition 0: .*new label 'new'"):
        cluster.fit(model, parted([["w1"]], [["new"]], 1), client=here)
    images_x, images_y = images()
    grid = cluster.fit(small("cnn", GridCRF()), parted(images_x, images_y, 3), client=here)
    before = grid.fit_report_.history
    cluster.fit(grid.set_params(warm_start=True), parted(images_x, images_y, 3), client=here)
    assert grid.fit_report_.history[0] < before[-1]


@pytest.mark.parametrize("crf", [None, GraphCRF()])
def test_a_partition_of_empty_examples(here, crf):
    X = [["a", "b"], ["c"], ["a"], ["b", "c"]]
    empty, examples = [], X
    if crf is not None:
        none = np.zeros((0, 2), dtype=int)
        empty, examples = ([], none), [(x, none) for x in X]
    parts = [dask.delayed((examples[:2], X[:2])), dask.delayed((examples[2:], X[2:]))]
    nothing = dask.delayed(([empty, empty], [[], []]))
    expected = cluster.fit(small("mlp", crf), parts, client=here)
    found = cluster.fit(small("mlp", crf), [*parts, nothing], client=here)
    assert np.array_equal(flat(found.module_), flat(expected.module_))
    wrong = dask.delayed(([empty], [["a"]]))
    with pytest.raises(
        ValueError, match=r"partition 2: X\[0\] and y\[0\] must have the same length"
    ):
        cluster.fit(small("mlp", crf), [*parts, wrong], client=here)


def test_what_goes_wrong_is_named_and_changes_nothing(here):
    model = small().fit(X, Y)
    weights = flat(model.module_)
    bad = [dask.delayed((X, Y)), dask.delayed(([["a", 1.5]], [["L0", "L1"]]))]
    with pytest.raises(TypeError, match=r"partition 1: X\[0\]\[1\] must be a string"):
        cluster.fit(model, bad, client=here)
    bad = [dask.delayed((X, Y)), dask.delayed(([["a", "b"]], [["L0"]]))]
    with pytest.raises(ValueError, match="partition 1: "):
        cluster.fit(model, bad, client=here)
    bad = [dask.delayed((X, Y)), dask.delayed(rows())]
    with pytest.raises(ValueError, match=r"partitions 1 and 0 differ: .*numbers \[2\].*a token"):
        cluster.fit(model, bad, client=here)
    with pytest.raises(ValueError, match="X is empty"):
        cluster.fit(model, [dask.delayed(([], []))], client=here)
    with pytest.raises(ValueError, match="hold out none of 2 examples in 2 partitions"):
        cluster.fit(small(n_iter_no_change=1), parted(X[:2], Y[:2], 2), client=here)
    soft = [[{v: 1.0} for v in own] for own in Y]
    bad = [dask.delayed((X, soft)), dask.delayed((X, [[None, *own[1:]] for own in Y]))]
    with pytest.raises(ValueError, match="sets or None with distributions"):
        cluster.fit(model, bad, client=here)
    assert np.array_equal(flat(model.module_), weights)


def test_what_cannot_work_is_refused_before_any_work(client):
    def never():
        raise AssertionError("this was computed")

    parts = [dask.delayed(never)()]
    crf = ChainCRF(transitions="all", ends=True, solver="block_frank_wolfe")
    with pytest.raises((UnsupportedError, ValueError)):
        cluster.fit(small("mlp", crf, training="two_stage"), parts, client=client)
    with pytest.raises(ValueError, match="hidden"):
        cluster.fit(small(hidden=0), parts, client=client)
    with pytest.raises(UnsupportedError, match="feature_template"):
        cluster.fit(small("mlp", ChainCRF(feature_template="U00:%x[0,0]")), parts, client=client)


def test_a_callback_stops_and_sees_the_model(here):
    seen = []

    def callback(state):
        seen.append(state.model().predict(X[:2]))
        return state.iteration == 2

    model = cluster.fit(small(max_iter=9), parted(X, Y), client=here, callback=callback)
    assert model.fit_report_.status is Status.STOPPED
    assert len(seen) == 2
    assert seen[-1] == model.predict(X[:2])


def test_ctrl_c_keeps_the_work(here):
    def interrupt(state):
        if state.iteration == 2:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning):
        model = cluster.fit(small(max_iter=9), parted(X, Y), client=here, callback=interrupt)
    assert model.fit_report_.status is Status.INTERRUPTED
    assert model.n_iter_ == 2


def test_gradients_of_half_the_size(here):
    model = small(max_iter=5)
    double = cluster.fit(clone(model), parted(X, Y), client=here)
    single = cluster.fit(clone(model), parted(X, Y), client=here, dtype="float32")
    np.testing.assert_allclose(flat(single.module_), flat(double.module_), rtol=0, atol=1e-3)


def test_threads_of_pytorch_are_as_before(here):
    before, state = torch.get_num_threads(), torch.get_rng_state()
    cluster.fit(small(dropout=0.2, max_iter=1), parted(X, Y), client=here)
    assert torch.get_num_threads() == before
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["words", "images"])
def test_a_prepared_data_set(here, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(preparing, "PART", 30)
    xs, ys = (X, Y) if kind == "words" else images()
    model = small("mlp", None if kind == "words" else GridCRF())
    pairs = ((xs[i : i + 3], ys[i : i + 3]) for i in range(0, len(xs), 3))
    data = model.prepare(tmp_path / "data", pairs)
    cuts = np.cumsum([0, *(part.examples for part in data.parts)])
    parts = [dask.delayed((xs[a:b], ys[a:b])) for a, b in pairwise(cuts)]
    assert len(parts) > 2
    found = cluster.fit(clone(model), data, client=here)
    same = cluster.fit(clone(model), parts, client=here)
    assert np.array_equal(flat(found.module_), flat(same.module_))
    assert cluster.score(found, data, client=here) == pytest.approx(found.score(xs, ys))
    answers = cluster.predict(found, str(tmp_path / "data"), client=here)
    assert all(map(np.array_equal, answers, found.predict(xs)))


def test_workers_without_pytorch_say_so(client, local):
    """Modules that are None cannot be imported, as if PyTorch were not installed."""

    def forget():
        for name in [*sys.modules]:
            if name.split(".")[0] == "torch" or name.startswith("chordal.torch"):
                del sys.modules[name]
        sys.modules["torch"] = None

    client.run(forget)
    try:
        with pytest.raises(
            ImportError,
            match=r"NeuralCRF on worker tcp.* needs PyTorch.*chordal\[torch\]",
        ):
            cluster.fit(small(max_iter=1), parted(X, Y), client=client)
        fitted = small(max_iter=1).fit(X, Y)
        with pytest.raises(ImportError, match="needs PyTorch"):
            cluster.predict(fitted, parted(X, Y).pluck(0), client=client)
        with pytest.raises(ImportError, match="needs PyTorch"):
            cluster.score(fitted, parted(X, Y), client=client)
    finally:
        client.restart()


def test_two_fits_at_once(here, expected):
    model, found = CASES["tokens"][0], {}

    def run(k):
        found[k] = flat(cluster.fit(clone(model), parted(X, Y), client=here).module_)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    for own in threads:
        own.start()
    for own in threads:
        own.join(120)
    assert np.array_equal(found[0], expected["tokens"])
    assert np.array_equal(found[1], expected["tokens"])
