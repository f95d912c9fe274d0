"""Estimators that wrap a CRF on a real cluster: counts, and stages on a classifier of positions."""

import os
import signal
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from chordal import HMM, ChainCRF, Dataset, DatasetError, NaiveBayes, TwoStageCRF
from chordal._errors import UnsupportedError
from chordal.estimators._training import preparing

from .conftest import workers

dask = pytest.importorskip("dask", reason='the tests of chordal.dask need "chordal[dask]"')
pytest.importorskip("distributed", reason='needs "chordal[dask]"')
bag = pytest.importorskip("dask.bag")

import chordal.dask as cluster  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, and of few iterations

RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(0, 8, size=40)
TAGS = [RNG.integers(3, size=n) for n in LENGTHS]
Y = [[f"L{tag}" for tag in tags] for tags in TAGS]
WORDS = [[[f"s{(tag + RNG.integers(2)) % 3}", f"w{RNG.zipf(2)}"] for tag in y] for y in TAGS]
DENSE = [np.eye(3)[tags] + RNG.normal(size=(len(tags), 3)) for tags in TAGS]
WEIGHT = (RNG.random(len(Y)) + 0.5).tolist()

chain = ChainCRF(max_iter=100, tol=1e-8)
#: Models with their data.
STAGES = {
    "default": (TwoStageCRF(crf=chain, cv=2, scale=True, random_state=0), WORDS),
    "chain": (TwoStageCRF(ChainCRF(l2=0.3), chain, cv="same"), WORDS),
    "joint": (TwoStageCRF(LogisticRegression(), chain, cv=3, joint=True, random_state=0), DENSE),
    "counts": (TwoStageCRF(GaussianNB(), chain, cv=2, random_state=0), DENSE),
}


def fresh(model):
    return type(model)(**model.get_params(deep=False))


def parts(X, y=Y, weight=None, n=4):
    """Delayed partitions, of which one is empty."""
    cuts = np.linspace(0, len(X), n + 1).astype(int)
    made = [
        (X[a:b], y[a:b]) if weight is None else (X[a:b], y[a:b], weight[a:b])
        for a, b in pairwise(cuts)
    ]
    return [dask.delayed(own, pure=False) for own in [*made[:1], ([], []), *made[1:]]]


@pytest.fixture(scope="module")
def alone():
    """Weights from a cluster of one worker, by case."""
    with workers(1) as made:
        return {
            case: cluster.fit(fresh(model), parts(X, weight=WEIGHT), client=made).crf_.weights_
            for case, (model, X) in STAGES.items()
        }


@pytest.mark.parametrize("case", STAGES)
def test_stages_agree_with_the_fit_in_memory(client, alone, case):
    model, X = STAGES[case]
    found = cluster.fit(fresh(model), parts(X, weight=WEIGHT), client=client)
    assert np.array_equal(found.crf_.weights_, alone[case])
    expected = fresh(model).fit(X, Y, sample_weight=WEIGHT)
    assert found.reports_[-1].objective == pytest.approx(expected.reports_[-1].objective, rel=1e-6)
    np.testing.assert_allclose(found.crf_.weights_, expected.crf_.weights_, atol=1e-3)
    assert found.scale_ == pytest.approx(expected.scale_, rel=1e-3)
    given = bag.from_sequence(X, npartitions=3)
    assert list(cluster.predict(found, given, client=client)) == found.predict(X)
    scored = cluster.score(found, parts(X), client=client)
    assert scored == pytest.approx(found.score(X, Y))


def test_the_same_for_three_workers(client, local, alone):
    local.scale(3)
    try:
        client.wait_for_workers(3, timeout=60)
        for case in ("default", "joint"):
            model, X = STAGES[case]
            found = cluster.fit(fresh(model), parts(X, weight=WEIGHT), client=client)
            assert np.array_equal(found.crf_.weights_, alone[case])
    finally:
        local.scale(2)


def test_a_worker_that_dies_in_the_first_stage_changes_nothing(client, alone, tmp_path):
    class KillsOnce(GaussianNB):
        """A classifier whose first fit kills its worker."""

        def __init__(self, path=None):
            super().__init__()
            self.path = path

        def fit(self, X, y, sample_weight=None):
            if not os.path.exists(self.path):
                with open(self.path, "w") as file:
                    file.write(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            return super().fit(X, y, sample_weight)

    path = tmp_path / "killed"
    model = TwoStageCRF(KillsOnce(str(path)), chain, cv=2, random_state=0)
    found = cluster.fit(model, parts(DENSE, weight=WEIGHT), client=client)
    assert int(path.read_text()) != os.getpid()
    assert np.array_equal(found.crf_.weights_, alone["counts"])


def test_prepared_data_sets(client, tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 7)
    model, X = STAGES["default"]
    data = model.prepare(tmp_path / "stages", X, Y)
    assert data.n_parts > 2
    expected = fresh(model).fit(X, Y)
    for given in (data, data.path):
        found = cluster.fit(fresh(model), given, client=client)
        np.testing.assert_allclose(found.crf_.weights_, expected.crf_.weights_, atol=1e-3)
        assert list(cluster.predict(found, given, client=client)) == found.predict(X)
        assert cluster.score(found, given, client=client) == pytest.approx(found.score(X, Y))
    symbols = [[token[1] for token in x] for x in X]
    data = HMM().prepare(tmp_path / "hmm", symbols, Y)
    found, expected = cluster.fit(HMM(), data, client=client), HMM().fit(symbols, Y)
    np.testing.assert_allclose(found.transitions_, expected.transitions_, rtol=1e-12)
    assert found.emission_.symbols == expected.emission_.symbols
    table, y = np.concatenate(DENSE), np.concatenate(TAGS)
    data = NaiveBayes().prepare(tmp_path / "bayes", table, y)
    found, expected = cluster.fit(NaiveBayes(), data, client=client), NaiveBayes().fit(table, y)
    np.testing.assert_allclose(found.emission_.means, expected.emission_.means, rtol=1e-12)
    answers = cluster.predict(found, data, client=client).by_partition()
    assert np.concatenate(list(answers)).tolist() == expected.predict(table).tolist()
    assert cluster.score(found, data, client=client) == pytest.approx(expected.score(table, y))
    with pytest.raises(ValueError, match=r"partition 0: .*a HMM: its rows are symbols") as error:
        cluster.fit(HMM("gaussian"), Dataset(tmp_path / "hmm"), client=client)
    assert isinstance(error.value.__cause__, DatasetError)


@pytest.mark.parametrize("model", [HMM("gaussian"), TwoStageCRF(), TwoStageCRF(GaussianNB())])
def test_a_partition_that_does_not_parse_is_named(client, model):
    def broken(k):
        if k == 2:
            raise OSError(f"part-{k}.conll: line 7 has 3 columns")
        return DENSE[k::4], Y[k::4]

    given = [dask.delayed(broken)(k) for k in range(4)]
    with pytest.raises(RuntimeError, match=r"partition 2: .*part-2.conll: line 7"):
        cluster.fit(model, given, client=client)
    wrong = [dask.delayed((DENSE, Y)), dask.delayed((DENSE, Y[:-1]))]
    with pytest.raises(ValueError, match=r"partition 1: X and y must have the same number"):
        cluster.fit(model, wrong, client=client)
    assert not hasattr(model, "crf_")


def test_what_cannot_work_is_said(client):
    ones = [[f"L{min(tag, 1)}" for tag in tags] for tags in TAGS]
    holed = [x.copy() for x in DENSE]
    holed[3][0, 0] = np.nan
    with pytest.raises(ValueError, match="fold 0: Input X contains NaN"):
        cluster.fit(TwoStageCRF(GaussianNB(), cv=2, random_state=0), parts(holed), client=client)
    with pytest.raises(UnsupportedError, match="TwoStageCRF takes no callback"):
        cluster.fit(TwoStageCRF(), parts(WORDS), client=client, callback=print)
    with pytest.raises(ValueError, match="cv=50 needs at least 50 sequences, got 40"):
        cluster.fit(TwoStageCRF(cv=50), parts(WORDS), client=client)
    with pytest.raises(ValueError, match="X is empty"):
        cluster.fit(TwoStageCRF(), [dask.delayed(([], []))] * 2, client=client)
    with pytest.raises(UnsupportedError, match="joint training needs a classifier that is linear"):
        cluster.fit(
            TwoStageCRF(GaussianNB(), cv="same", joint=True), parts(DENSE, ones), client=client
        )
    with pytest.raises(UnsupportedError, match="does not fit GaussianNB"):
        cluster.fit(GaussianNB(), parts(DENSE), client=client)
