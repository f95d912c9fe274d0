"""NeuralCRF from prepared data sets and iterators of batches, against fits in memory."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from chordal import ChainCRF, Dataset, GraphCRF, GridCRF, Status
from chordal.estimators._training import preparing
from chordal.prepared import DatasetError

torch = pytest.importorskip("torch", reason='networks need "chordal[torch]"')

from chordal.torch import NeuralCRF  # noqa: E402
from chordal.torch._training import flat  # noqa: E402

RNG = np.random.default_rng(0)
N = 18


def small(network="mlp", crf=None, **settings):
    settings = {"hidden": 6, "embedding": 5, "channels": 3, "max_iter": 3, **settings}
    settings = {"learning_rate": 0.02, "batch_size": 4, "random_state": 0, **settings}
    return NeuralCRF(network, crf, **settings)


LABELS = [(np.arange(int(RNG.integers(1, 7))) + RNG.integers(3)) % 3 for _ in range(N)]
NAMES = [[f"L{v}" for v in own] for own in LABELS]
WORDS = [[f"w{v * 3 + RNG.integers(4)}" for v in own] for own in LABELS]
NUMBERS = [[int(v * 3 + RNG.integers(4)) for v in own] for own in LABELS]
ROWS = [np.eye(3)[own] + RNG.normal(size=(len(own), 3)) for own in LABELS]
PICTURES = [np.eye(3)[own][:, None, :, None] + RNG.normal(size=(len(own), 2, 3, 4))
            for own in LABELS]  # fmt: skip
GRID_Y = [np.repeat([np.arange(4) >= RNG.integers(5)], 3, axis=0).astype(int) for _ in range(N)]
GRID_X = [np.stack([own + RNG.normal(size=own.shape)] * 2, -1) for own in GRID_Y]
CHAINS = [np.array([(i, i + 1) for i in range(len(own) - 1)]).reshape(-1, 2) for own in LABELS]
GRAPHS = list(zip(ROWS, CHAINS, strict=True))
ALIKE = [(x, e, RNG.normal(size=(len(e), 2))) for x, e in GRAPHS]
WORD_GRAPHS = list(zip(WORDS, CHAINS, strict=True))
SOME = [[None if i % 3 == 1 else v for i, v in enumerate(own)] for own in NAMES]
VOID = [np.where(np.arange(4) == 2, 9, own) for own in GRID_Y]

CASES = {
    "words": (small("bilstm", dropout=0.3), WORDS, NAMES),
    "numbers": (small("cnn", min_freq=2), NUMBERS, LABELS),
    "rows": (small(augment=lambda X, g: [x + g.normal(size=x.shape) for x in X]), ROWS, NAMES),
    "pictures": (small("cnn", training="two_stage_joint"), PICTURES, NAMES),
    "not observed": (small(), WORDS, SOME),
    "links": (small("mlp", ChainCRF(transitions="seen")), ROWS, LABELS),
    "grid": (small("cnn", GridCRF(contrast="auto", neighbours=8)), GRID_X, GRID_Y),
    "void": (small("mlp", GridCRF("pseudo_likelihood", ignore_label=9)), GRID_X, VOID),
    "graphs": (small("mlp", GraphCRF(), training="two_stage"), GRAPHS, NAMES),
    "edges": (small("mlp", GraphCRF(tables="full")), ALIKE, NAMES),
    "word graphs": (small("mlp", GraphCRF()), WORD_GRAPHS, NAMES),
}


def batches(X, y, size=5):
    for i in range(0, len(X), size):
        yield X[i : i + size], y[i : i + size]


@pytest.fixture
def fine(monkeypatch):
    """Parts of a few examples."""
    monkeypatch.setattr(preparing, "PART", 15)


@pytest.mark.parametrize("case", CASES)
def test_one_part_gives_the_weights_of_memory_bit_for_bit(case, tmp_path):
    model, X, y = CASES[case]
    data = clone(model).prepare(tmp_path / "data", X, y)
    assert data.n_parts == 1
    alone = clone(model).fit(X, y)
    stream = clone(model).fit(batches(X, y))
    for found in (clone(model).fit(data), clone(model).fit(str(tmp_path / "data")), stream):
        assert np.array_equal(flat(found.module_), flat(alone.module_))
        for a, b in zip(found.reports_, alone.reports_, strict=True):
            assert (a.history, a.inference, a.exact) == (b.history, b.inference, b.exact)
            assert (a.prediction, a.objective) == (b.prediction, b.objective)
    assert same(alone.predict(data), alone.predict(X))
    assert same(alone.predict_marginals(data), alone.predict_marginals(X))
    assert alone.score(data) == pytest.approx(alone.score(X, y))


@pytest.mark.parametrize("case", CASES)
def test_several_parts(case, tmp_path, fine):
    model, X, y = CASES[case]
    data = clone(model).prepare(tmp_path / "data", batches(X, y))
    assert data.n_parts > 2
    found, again = (clone(model).fit(data) for _ in range(2))
    alone = clone(model).fit(X, y)
    assert np.array_equal(flat(found.module_), flat(again.module_))
    assert found.inputs_.tokens == alone.inputs_.tokens
    assert found.inputs_.shape == alone.inputs_.shape
    assert found.crf_.labels_.labels == alone.crf_.labels_.labels
    assert len(found.crf_.weights_) == len(alone.crf_.weights_)
    reports = list(zip(found.reports_, alone.reports_, strict=True))
    assert [(a.inference, a.exact) for a, _ in reports] == [
        (b.inference, b.exact) for _, b in reports
    ]
    for a, b in reports:
        assert a.objective == pytest.approx(b.objective, rel=0.5)  # other batches, the same task
    assert same(found.predict(data), found.predict(X))
    assert found.score(data) == pytest.approx(found.score(X, y))


def same(found, others):
    return len(found) == len(others) and all(map(np.array_equal, found, others))


def test_second_stages_agree_with_memory(tmp_path, fine):
    """The links are fitted to all parts: at the network's weights they are those in memory."""
    model = small(training="two_stage", max_iter=1)
    data = clone(model).prepare(tmp_path / "data", batches(WORDS, NAMES))
    found = clone(model).fit(data)
    scores, chain = found._observed(WORDS), found.crf_  # the network's
    alone = clone(chain).set_params(freeze=("node",), warm_start=True)
    vars(alone).update({k: v for k, v in vars(chain).items() if k.endswith("_")})
    alone.fit(scores, NAMES)
    np.testing.assert_allclose(chain.weights_, alone.weights_, rtol=0, atol=1e-3)


def test_every_example_is_seen_once_in_a_pass(tmp_path, fine):
    seen = []

    def record(examples, generator):
        seen.extend(tuple(map(float, own.ravel())) for own in examples)
        return examples

    model = small(augment=record, max_iter=2)
    data = clone(model).prepare(tmp_path / "data", batches(ROWS, NAMES))
    model.fit(data)
    assert len(seen) == 2 * N
    everyone = sorted(tuple(own.ravel()) for own in ROWS)
    assert sorted(seen[:N]) == everyone
    assert sorted(seen[N:]) == everyone
    assert seen[:N] != seen[N:]


def test_memory_holds_a_few_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "PART", 1000)
    rng = np.random.default_rng(0)

    def chunks():
        for _ in range(20):
            y = rng.integers(2, size=1000)
            yield [rng.normal(size=(1000, 100))], [y]

    model = small(max_iter=1, hidden=2)
    data = model.prepare(tmp_path / "data", chunks())
    assert data.n_parts == 20
    whole = 20 * 1000 * 100 * 8
    tracemalloc.start()
    model.fit(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.4 * whole


def test_several_data_sets_and_weights(tmp_path):
    model = small(batch_size=1000)
    paths = [tmp_path / "a", tmp_path / "b"]
    weight = np.arange(1.0, N + 1)
    for path, own in zip(paths, (slice(0, 9), slice(9, None)), strict=True):
        clone(model).prepare(path, ROWS[own], NAMES[own])
    found = clone(model).fit(paths, sample_weight=weight)
    halves = [clone(model).fit([Dataset(paths[0])]), clone(model).fit(str(paths[1]))]
    assert all(len(own.fit_report_.history) == 3 for own in (found, *halves))
    assert found.fit_report_.n_evaluations == 6  # a step of each part
    weighted = small().prepare(tmp_path / "c", ROWS, NAMES, weight)
    alone = small().fit(ROWS, NAMES, sample_weight=weight)
    assert np.array_equal(flat(small().fit(weighted).module_), flat(alone.module_))
    with pytest.raises(ValueError, match="includes weights"):
        small().fit(weighted, sample_weight=weight)
    with pytest.raises(ValueError, match="includes its labels"):
        small().fit(weighted, NAMES)


def test_validation_and_early_stopping(tmp_path, fine):
    model = small(max_iter=40, n_iter_no_change=2)
    data = clone(model).prepare(tmp_path / "data", batches(ROWS, NAMES))
    held = clone(model).fit(data)
    assert held.fit_report_.status is Status.CONVERGED
    assert len(held.fit_report_.validation) == held.n_iter_
    given = clone(model).fit(data, validation_data=(ROWS[:5], NAMES[:5]))
    best = max(score for _, score in given.fit_report_.validation)
    held = clone(model).prepare(tmp_path / "held", batches(ROWS[:5], NAMES[:5]))
    for form in (held, tmp_path / "held", [held]):
        found = clone(model).fit(data, validation_data=form)
        assert found.fit_report_.validation == given.fit_report_.validation
    found = clone(model).fit(ROWS, NAMES, validation_data=held)
    alone = clone(model).fit(ROWS, NAMES, validation_data=(ROWS[:5], NAMES[:5]))
    assert found.fit_report_.validation == alone.fit_report_.validation
    assert given.score(ROWS[:5], NAMES[:5]) == pytest.approx(best)
    with pytest.raises(ValueError, match="validation y has no observed label"):
        clone(model).fit(data, validation_data=(ROWS[:1], [[None] * len(ROWS[0])]))


@pytest.mark.parametrize("crf", [None, GraphCRF()])
def test_training_goes_on_from_a_checkpoint(tmp_path, fine, crf):
    X = ROWS if crf is None else GRAPHS
    model = small("mlp", crf, dropout=0.3, max_iter=4)
    data = clone(model).prepare(tmp_path / "data", batches(X, NAMES))
    whole = clone(model).fit(data)

    class Cut(Exception):
        pass

    def cut(state):
        if state.iteration == 2:
            raise Cut

    path = tmp_path / "checkpoint"
    with pytest.raises(Cut):
        clone(model).fit(data, checkpoint=path, callback=cut)
    resumed = clone(model).fit(data, checkpoint=path)
    assert np.array_equal(flat(resumed.module_), flat(whole.module_))
    other = clone(model).prepare(tmp_path / "other", batches(X[:9], NAMES[:9]))
    with pytest.raises(ValueError, match="differs in the training data"):
        clone(model).fit(other, checkpoint=path)


def test_warm_start(tmp_path, fine):
    model = small()
    data = model.prepare(tmp_path / "data", batches(WORDS, NAMES))
    before = model.fit(data).fit_report_.history
    model.set_params(warm_start=True).fit(data)
    assert model.fit_report_.history[0] < before[-1]


def test_other_data_are_refused(tmp_path):
    attributes = [[["a=1", "b"], ["c"]]]
    ChainCRF().prepare(tmp_path / "attributes", attributes, [["x", "y"]])
    with pytest.raises(DatasetError, match="attributes; a network reads tokens or numbers"):
        small().fit(tmp_path / "attributes")
    GridCRF().prepare(tmp_path / "grid", GRID_X, GRID_Y)
    with pytest.raises(DatasetError):
        small().fit(tmp_path / "grid")
    images = small("cnn").prepare(tmp_path / "images", PICTURES, NAMES)
    model = small().fit(ROWS, NAMES)
    before = flat(model.module_)
    with pytest.raises(ValueError, match="numbers at each position"):
        model.predict(images)
    model.set_params(warm_start=True)
    with pytest.raises(ValueError, match="numbers at each position"):
        model.fit(images)
    assert np.array_equal(flat(model.module_), before)


def test_bad_batches_are_named(tmp_path):
    bad = [(ROWS[:3], NAMES[:3]), ([np.full((2, 3), np.nan)], [["L0", "L1"]])]
    with pytest.raises(ValueError, match=r"NaN or infinity in X\[0\], at position 0"):
        small().fit(iter(bad))
    with pytest.raises(ValueError, match="nothing to prepare"):
        small().fit(iter([]))


@pytest.mark.parametrize("case", ["words", "rows", "pictures", "grid", "graphs", "word graphs"])
def test_the_first_batch_may_have_empty_examples_alone(case, tmp_path):
    model, X, y = CASES[case]
    nothing = {"grid": np.zeros((0, 2, 2)), "graphs": ([], []), "word graphs": ([], [])}
    empty, none = nothing.get(case, []), np.zeros((0, 2)) if case == "grid" else []
    given = [([empty], [none]), *batches(X, y)]
    stored = model.prepare(tmp_path / "data", iter(given))
    alone = clone(model).fit([empty, *X], [none, *y])
    assert (flat(clone(model).fit(stored).module_) == flat(alone.module_)).all()


def test_data_of_a_linear_chain_serve_a_network(tmp_path):
    """Rows of numbers are the same, whoever has read them."""
    data = ChainCRF().prepare(tmp_path / "data", ROWS, NAMES)
    found = small().fit(data)
    assert np.array_equal(flat(found.module_), flat(small().fit(ROWS, NAMES).module_))


def test_a_part_without_an_observed_label(tmp_path):
    """The links are those in memory, at the network's weights."""
    y = NAMES[:12] + [[None] * len(own) for own in NAMES[12:]]
    model = small(training="two_stage", max_iter=1)
    model.prepare(tmp_path / "data", ROWS[:12], y[:12])
    data = model.prepare(tmp_path / "data", ROWS[12:], y[12:], append=True)
    assert [data.part(k)[0]["target"] for k in range(data.n_parts)] == ["hard", "none"]
    found = model.fit(data)
    alone = found.crf_.set_params(freeze=("node",), warm_start=True)
    expected = found.crf_.weights_
    alone.fit(found._observed(ROWS), y)
    np.testing.assert_allclose(expected, alone.weights_, rtol=0, atol=1e-3)
