"""Estimators that wrap a CRF: fits from data sets and batches agree with fits in memory."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from chordal import (
    HMM,
    ChainCRF,
    Checkpoint,
    Dataset,
    InfeasibleError,
    NaiveBayes,
    TwoStageCRF,
    UnsupportedError,
)
from chordal.estimators._training import here, preparing
from chordal.estimators._training.here import LocalCrew

RNG = np.random.default_rng(0)
LENGTHS = np.concatenate([[3], RNG.integers(0, 9, size=59)])
TAGS = [RNG.integers(3, size=n) for n in LENGTHS]
Y = [[f"L{tag}" for tag in tags] for tags in TAGS]
WORDS = [[["ab"[(tag + RNG.integers(2)) % 2], f"w{RNG.zipf(2)}"] for tag in tags] for tags in TAGS]
DENSE = [np.eye(3)[tags] + RNG.normal(size=(len(tags), 3)) for tags in TAGS]
COUNTS = [RNG.poisson(1 + 2 * np.eye(3)[tags]) for tags in TAGS]
SYMBOLS = [[token[1] for token in x] for x in WORDS]
ROWS = [[(token[0], int(token[1][1:])) for token in x] for x in WORDS]
WEIGHT = RNG.random(len(Y)) + 0.5


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 7)


def batches(X, y, weight=None, size=9):
    for a, b in pairwise([*range(0, len(X), size), len(X)]):
        yield (X[a:b], y[a:b]) if weight is None else (X[a:b], y[a:b], weight[a:b])


def sparse(X):
    csr = pytest.importorskip("scipy.sparse").csr_array
    return [csr(x) for x in X]


HMMS = {
    "symbols": (HMM(), SYMBOLS),
    "rows": (HMM(), ROWS),
    "gaussian": (HMM("gaussian"), DENSE),
    "poisson": (HMM("poisson"), COUNTS),
    "multinomial": (HMM("multinomial"), [x + 1 for x in COUNTS]),
}


def same_hmm(found, expected):
    assert found.classes_.tolist() == expected.classes_.tolist()
    for name in ("start_", "transitions_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    np.testing.assert_allclose(found.emission_.natural, expected.emission_.natural, rtol=1e-10)


@pytest.mark.parametrize("case", HMMS)
def test_hmm(tmp_path, case):
    model, X = HMMS[case]
    expected = model.fit(X, Y, sample_weight=WEIGHT)
    data = model.prepare(tmp_path / "data", X, Y, WEIGHT)
    assert data.n_parts > 2
    given = [data, tmp_path / "data", str(tmp_path / "data"), batches(X, Y, WEIGHT)]
    for own in given:
        same_hmm(type(model)(model.emission).fit(own), expected)
    assert expected.predict(data) == expected.predict(X)
    assert expected.score(data) == pytest.approx(expected.score(X, Y))
    for found, own in zip(
        expected.predict_marginals(data), expected.predict_marginals(X), strict=True
    ):
        np.testing.assert_allclose(found, own, rtol=1e-12)


def test_hmm_of_sparse_counts_and_of_several_data_sets(tmp_path):
    X = sparse(COUNTS)
    expected = HMM("poisson").fit(X, Y)
    data = HMM("poisson").prepare(tmp_path / "all", X, Y)
    same_hmm(HMM("poisson").fit(data), expected)
    HMM("poisson").prepare(tmp_path / "first", X[:30], Y[:30])
    HMM("poisson").prepare(tmp_path / "second", X[30:50], Y[30:50])
    HMM("poisson").prepare(tmp_path / "second", X[50:], Y[50:], append=True)
    same_hmm(HMM("poisson").fit([tmp_path / "first", str(tmp_path / "second")]), expected)
    weighted = HMM("poisson").fit(data, sample_weight=WEIGHT)
    same_hmm(weighted, HMM("poisson").fit(X, Y, sample_weight=WEIGHT))


def test_a_chain_reads_the_numbers_of_an_hmm(tmp_path):
    data = HMM("gaussian").prepare(tmp_path / "data", DENSE, Y)
    expected = ChainCRF(max_iter=5).fit(DENSE, Y)
    np.testing.assert_array_equal(ChainCRF(max_iter=5).fit(data).weights_, expected.weights_)
    same_hmm(
        HMM("gaussian").fit(ChainCRF().prepare(tmp_path / "chain", DENSE, Y)),
        HMM("gaussian").fit(DENSE, Y),
    )


def test_what_a_batch_has_wrong_is_named(tmp_path):
    bad = [*COUNTS[:12], COUNTS[12] - 5, *COUNTS[13:]]
    with pytest.raises(ValueError, match=r"batch 1: X\[3\]\[0\] must hold counts"):
        HMM("poisson").fit(batches(bad, Y))
    with pytest.raises(ValueError, match=r"X\[\d\]\[0\] must have \d columns"):
        HMM().prepare(tmp_path / "data", [*ROWS[:9], SYMBOLS[9], *ROWS[10:]], Y)
    assert not (tmp_path / "data").exists()


TABLES = {
    "gaussian": ("gaussian", np.concatenate(DENSE)),
    "counts": ("multinomial", np.concatenate(COUNTS) + 1),
    "symbols": ("categorical", [row for x in ROWS for row in x]),
}


@pytest.mark.parametrize("case", TABLES)
def test_naive_bayes(tmp_path, case):
    emission, X = TABLES[case]
    y, weight = np.concatenate(TAGS), np.repeat(WEIGHT, LENGTHS)
    expected = NaiveBayes(emission).fit(X, y, weight)
    data = NaiveBayes(emission).prepare(tmp_path / "data", X, y, weight)
    assert data.n_parts > 2
    for given in (data, tmp_path / "data", batches(X, y, weight, 50)):
        found = NaiveBayes(emission).fit(given)
        np.testing.assert_allclose(found.class_prior_, expected.class_prior_, rtol=1e-12)
        np.testing.assert_allclose(found.emission_.natural, expected.emission_.natural, rtol=1e-10)
        assert found.classes_.tolist() == expected.classes_.tolist()
    np.testing.assert_array_equal(expected.predict(data), expected.predict(X))
    for question in ("predict_proba", "predict_marginals"):
        np.testing.assert_allclose(
            getattr(expected, question)(data), getattr(expected, question)(X), rtol=1e-12
        )
    assert expected.score(data) == pytest.approx(expected.score(X, y))
    with pytest.raises(UnsupportedError, match="sample_weight needs examples in memory"):
        expected.score(data, sample_weight=weight)


def test_naive_bayes_of_sparse_tables(tmp_path):
    X, y = pytest.importorskip("scipy.sparse").csr_array(TABLES["counts"][1]), np.concatenate(TAGS)
    data = NaiveBayes("poisson").prepare(tmp_path / "data", X, y)
    expected = NaiveBayes("poisson").fit(X, y)
    found = NaiveBayes("poisson").fit(data)
    np.testing.assert_allclose(found.emission_.natural, expected.emission_.natural, rtol=1e-12)


def few(**settings):
    return ChainCRF(**{"max_iter": 300, "tol": 1e-9, **settings})


STAGES = {
    "default": (TwoStageCRF(crf=few(), random_state=0), WORDS),
    "arrays": (TwoStageCRF(crf=few(ends=True), scale=True, random_state=0), DENSE),
    "chain": (TwoStageCRF(ChainCRF(l2=0.3), few(), cv=3, random_state=1), WORDS),
    "same": (TwoStageCRF(crf=few(), cv="same", joint=True), WORDS),
    "classifier": (TwoStageCRF(GaussianNB(), few(), random_state=0), DENSE),
    "sparse": (TwoStageCRF(LogisticRegression(), few(), random_state=0), sparse(COUNTS)),
    "joint": (
        TwoStageCRF(LogisticRegression(), few(), scale=True, joint=True, random_state=0), DENSE
    ),
    "tokens": (
        TwoStageCRF(make_pipeline(DictVectorizer(), LogisticRegression()), few(), random_state=0),
        [[{"shape": token[0], token[1]: 2.0} for token in x] for x in WORDS],
    ),
    "columns": (
        TwoStageCRF(ChainCRF(feature_template="U0:%x[0,0]\nU1:%x[-1,1]\n"), few(), random_state=0),
        WORDS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STAGES)
def test_two_stages(tmp_path, case):
    """Folds are those of the fit in memory, so the models are the same up to rounding."""
    model, X = STAGES[case]
    weight = None if case == "tokens" else WEIGHT  # a pipeline takes no weights
    again = TwoStageCRF(**model.get_params(deep=False))
    expected = model.fit(X, Y, sample_weight=weight)
    data = again.prepare(tmp_path / "data", X, Y, weight)
    assert data.n_parts > 2
    for given in (data, str(tmp_path / "data"), batches(X, Y, weight)):
        found = TwoStageCRF(**model.get_params(deep=False)).fit(given)
        assert found.reports_[-1].objective == pytest.approx(expected.reports_[-1].objective)
        assert found.scale_ == pytest.approx(expected.scale_, rel=1e-4)
        np.testing.assert_allclose(found.crf_.weights_, expected.crf_.weights_, atol=2e-4)
        assert found.predict(X) == expected.predict(X)
    assert expected.predict(data) == expected.predict(X)
    assert expected.score(data) == pytest.approx(expected.score(X, Y))


def test_a_classifier_that_is_fitted(tmp_path):
    unary = GaussianNB().fit(np.concatenate(DENSE), [label for y in Y for label in y])
    model = TwoStageCRF(unary, few(), cv="prefit")
    data = model.prepare(tmp_path / "data", DENSE, Y)
    expected = TwoStageCRF(unary, few(), cv="prefit").fit(DENSE, Y)
    np.testing.assert_allclose(model.fit(data).crf_.weights_, expected.crf_.weights_, atol=2e-4)


def test_a_checkpoint_of_stages_from_disk(tmp_path):
    model = TwoStageCRF(crf=few(), random_state=0)
    data = model.prepare(tmp_path / "data", WORDS, Y)
    whole = TwoStageCRF(crf=few(), random_state=0).fit(data)
    path = tmp_path / "checkpoint"
    with pytest.warns(UserWarning, match="max_iter"):
        TwoStageCRF(crf=few(max_iter=3), random_state=0).fit(data, checkpoint=Checkpoint(path, 1))
    found = model.fit(data, checkpoint=Checkpoint(path, 1))
    np.testing.assert_array_equal(found.crf_.weights_, whole.crf_.weights_)


def test_memory_holds_one_part_at_a_time(tmp_path, monkeypatch):
    """Examples of parts are read again rather than kept, and never all at once."""
    data = HMM().prepare(tmp_path / "data", SYMBOLS, Y)
    alive = [0, 0]
    ours = here.result

    class Part(tuple):
        X, y, weight = (property(lambda self, k=k: self[k]) for k in range(3))

        def __del__(self):
            alive[0] -= 1

    def counted(handle):
        found = ours(handle)
        if type(found).__name__ == "Given":
            alive[0] += 1
            alive[1] = max(alive)
            return Part(found)
        return found

    monkeypatch.setattr(here, "result", counted)
    HMM().fit(data)
    assert data.n_parts > 3
    assert alive == [0, 1]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8])
def test_the_tree_of_a_local_crew_is_that_of_a_cluster(n):
    crew = LocalCrew()
    level = [str(k) for k in range(n)]
    found = crew.take(
        crew.tree(lambda a, b: f"({a}{b})", crew.start([lambda s=s: s for s in level]))
    )
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [f"({own[0]}{own[1]})" if len(own) == 2 else own[0] for own in pairs]
    assert found == level[0]


def test_results_of_all_parts_are_computed_once_and_of_one_part_when_asked():
    crew, asked = LocalCrew(), []
    parts = crew.start([lambda: asked.append("part") or 2, lambda: 3])
    total = crew.join(lambda own: asked.append("join") or sum(own), parts)
    assert not asked
    doubled = crew.map(lambda part, whole, last: (part, whole, last), parts, total, each="ab")
    assert crew.fetch(doubled) == [(2, 5, "a"), (3, 5, "b")]
    assert asked.count("join") == 1
    assert asked.count("part") == 2  # for the sum, and for its own result


def test_data_sets_are_listed_by_their_class(tmp_path):
    data = NaiveBayes().prepare(tmp_path / "data", np.concatenate(DENSE), np.concatenate(TAGS))
    assert Dataset(data.path).facts["class"] == "NaiveBayes"


def test_samples_of_parts_do_not_repeat_and_errors_number_all_examples(tmp_path):
    X, y = [[["a"]]] * 100 + [[["a"], ["b"], ["a"]]], [["A"]] * 50 + [["B"]] * 50 + [["A"] * 3]
    model = TwoStageCRF(crf=ChainCRF(random_state=0, max_iter=2, tol=0), cv="same").fit(X, y)
    data = model.prepare(tmp_path / "data", X, y)
    drawn = model.sample([data, data], 5)
    assert drawn[: len(X)] != drawn[len(X) :]
    assert drawn == model.sample([data, data], 5)
    with pytest.raises(InfeasibleError, match="no labelling of example 100 is allowed"):
        model.predict(data, allowed_transitions=[("A", "B")])
