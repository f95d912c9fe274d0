"""Fits and predictions on a real cluster of worker processes."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from chordal import (
    HMM,
    ChainCRF,
    ChainCRFCV,
    CRFClassifier,
    Dataset,
    DatasetError,
    GraphCRF,
    MultiLabelCRF,
    NaiveBayes,
    TwoStageCRF,
)
from chordal._errors import UnsupportedError
from chordal.model_file import load, save

from .conftest import workers

dask = pytest.importorskip("dask", reason='the tests of chordal.dask need "chordal[dask]"')
distributed = pytest.importorskip("distributed", reason='needs "chordal[dask]"')
bag = pytest.importorskip("dask.bag")

import chordal.dask as cluster  # noqa: E402

dask.config.set({"distributed.comm.timeouts.connect": "5s"})  # to workers that are dead

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about workers that are lost


def sentences(seed=0, n=60, labels=4):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        own = rng.integers(labels, size=int(rng.integers(1, 9)))
        X.append([[f"w={rng.zipf(1.5)}", f"s={(v + rng.integers(2)) % labels}"] for v in own])
        y.append([f"L{v}" for v in own])
    return X, y


X, Y = sentences()


def crf(**settings):
    """A fit of few iterations: what is asked of a cluster does not depend on how many."""
    return ChainCRF(**{"max_iter": 4, **settings})


def pairs(npartitions=5):
    return bag.from_sequence(list(zip(X, Y, strict=True)), npartitions=npartitions)


@pytest.fixture(scope="module")
def expected():
    """The weights that every fit of `pairs()` has, from a cluster of one."""
    with workers(1) as made:
        return cluster.fit(crf(), pairs(), client=made).weights_


def test_same_weights_for_one_two_and_three_workers(client, local, expected):
    two = cluster.fit(crf(), pairs(), client=client)
    assert np.array_equal(two.weights_, expected)
    local.scale(3)
    try:
        client.wait_for_workers(3, timeout=60)
        three = cluster.fit(crf(), pairs(), client=client)
    finally:
        local.scale(2)
    assert np.array_equal(three.weights_, expected)
    alone = crf().fit(X, Y)
    assert two.objective_ == pytest.approx(alone.objective_, rel=1e-10)
    np.testing.assert_allclose(two.weights_, alone.weights_, rtol=0, atol=1e-5)


def test_same_weights_for_more_groups_than_the_client_adds_up(expected):
    with workers(3, threads=3) as made:
        found = cluster.fit(crf(), pairs(), client=made)
        assert np.array_equal(found.weights_, expected)
        fine = cluster.fit(crf(), pairs(30), client=made)  # a tree of several levels
    np.testing.assert_allclose(fine.weights_, expected, rtol=0, atol=1e-5)


def test_a_fitted_model_is_an_ordinary_one(client, tmp_path, expected):
    model = cluster.fit(crf(), pairs(), client=client)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").predict(X) == model.predict(X)
    assert model.fit_report_.solver == "lbfgs"


@pytest.mark.parametrize("form", ["two bags", "delayed pairs", "delayed lists", "futures"])
def test_every_form_of_partitions_gives_the_same_model(client, form, expected):
    cuts = [(k, k + 12) for k in range(0, 60, 12)]
    if form == "two bags":
        given = bag.from_sequence(X, npartitions=5), bag.from_sequence(Y, npartitions=5)
    elif form == "delayed pairs":
        given = ([dask.delayed(lambda a, b: (X[a:b], Y[a:b]))(a, b) for a, b in cuts],)
    elif form == "delayed lists":
        given = tuple([dask.delayed(own[a:b]) for a, b in cuts] for own in (X, Y))
    else:
        given = ([client.submit(lambda a, b: (X[a:b], Y[a:b]), a, b) for a, b in cuts],)
    assert np.array_equal(cluster.fit(crf(), *given, client=client).weights_, expected)


def test_more_workers_than_partitions_and_partitions_without_examples(client):
    alone = crf().fit(X, Y)
    for given in (pairs(1), pairs(4).filter(lambda own: own[0] is not X[0])):
        found = cluster.fit(crf(), given, client=client)
        np.testing.assert_allclose(found.weights_, alone.weights_, rtol=0, atol=1e-5)
    empty = [dask.delayed(own) for own in (([], []), ([[], []], [[], []]), ([], []))]
    found = cluster.fit(crf(), [*empty, dask.delayed((X, Y)), *empty], client=client)
    np.testing.assert_allclose(found.weights_, alone.weights_, rtol=0, atol=1e-5)
    with pytest.raises(
        ValueError, match=r"partition 1: X\[0\] and y\[0\] must have the same length"
    ):
        cluster.fit(crf(), [dask.delayed((X, Y)), dask.delayed(([[]], [["A"]]))], client=client)


def test_a_client_without_the_data(client, tmp_path):
    """Paths that only workers open: here, a file that the client never reads."""
    from dask import delayed

    for k in range(3):
        lines = [
            f"{label}\t{' '.join(token)}\n"
            for x, y in zip(X[k::3], Y[k::3], strict=True)
            for token, label in [*zip(x, y, strict=True), (None, None)]
            if token is not None
        ]
        (tmp_path / f"{k}.tsv").write_text("".join(lines))

    def read(path):
        distributed.get_worker()  # an error where this is not a worker
        rows = [line.split("\t") for line in Path(path).read_text().splitlines()]
        return [[row[1].split()] for row in rows], [[row[0]] for row in rows]

    parts = [delayed(read)(str(tmp_path / f"{k}.tsv")) for k in range(3)]
    model = cluster.fit(crf(), parts, client=client)
    assert model.classes_.tolist() == ["L0", "L1", "L2", "L3"]


def test_two_fits_at_once(client, expected):
    found = {}

    def run(l2):
        found[l2] = cluster.fit(crf(l2=l2), pairs(), client=client).weights_

    threads = [threading.Thread(target=run, args=(l2,)) for l2 in (1.0, 0.1)]
    for own in threads:
        own.start()
    for own in threads:
        own.join(120)
    assert np.array_equal(found[1.0], expected)
    other = crf(l2=0.1).fit(X, Y).weights_
    np.testing.assert_allclose(found[0.1], other, rtol=0, atol=1e-4)


class Killer:
    """A callback that kills a worker at an iteration, and says so."""

    def __init__(self, client, iteration):
        self.client, self.iteration, self.killed = client, iteration, []

    def __call__(self, state):
        if state.iteration == self.iteration:
            pid = self.client.run(os.getpid, workers=[min(self.client.nthreads())])
            os.kill(next(iter(pid.values())), signal.SIGKILL)
            self.killed.append(state.iteration)


def test_a_killed_worker_changes_nothing(client, expected):
    killer = Killer(client, iteration=3)
    model = cluster.fit(crf(), pairs(), client=client, callback=killer)
    assert killer.killed == [3]
    assert np.array_equal(model.weights_, expected)


def test_the_only_worker_killed_is_started_again(expected):
    with workers(1, processes=True) as client:
        killer = Killer(client, iteration=2)
        model = cluster.fit(crf(), pairs(), client=client, callback=killer)
        assert killer.killed == [2]
    assert np.array_equal(model.weights_, expected)


def test_an_adaptive_cluster(expected):
    with workers(0, processes=True) as client:
        client.cluster.adapt(minimum=0, maximum=2, interval="100ms", wait_count=1)
        model = cluster.fit(crf(), pairs(), client=client)
    assert np.array_equal(model.weights_, expected)


def test_early_stopping_with_validation_data_on_the_cluster(client, tmp_path):
    held, gold = sentences(seed=4, n=12)
    settings = {"l2": 0.01, "validation_interval": 1, "n_iter_no_change": 1, "max_iter": 9}
    alone = crf(**settings).fit(X, Y, validation_data=(held, gold))
    both = bag.from_sequence(list(zip(held, gold, strict=True)), npartitions=2)
    stored = crf().prepare(tmp_path / "held", held, gold)
    first = (held[:6], gold[:6]), (held[6:], gold[6:])
    delayed = [dask.delayed(own) for own in first]
    lists = tuple([dask.delayed(own[k]) for own in first] for k in (0, 1))
    forms = (held, gold), both, (both.pluck(0), both.pluck(1)), stored, stored.path, delayed, lists
    futures = [client.submit(lambda *own: own, *own) for own in first]
    apart = [[client.submit(list, own[k]) for own in first] for k in (0, 1)]
    for given in (*forms, futures, apart):
        found = cluster.fit(crf(**settings), pairs(), client=client, validation_data=given)
        assert found.fit_report_.validation == alone.fit_report_.validation


def test_predictions_are_in_order_and_stream(client):
    model = crf().fit(X, Y)
    asked = cluster.predict(model, bag.from_sequence(X, npartitions=7), client=client)
    assert list(asked) == list(model.predict(X))
    assert asked.to_bag().compute() == list(model.predict(X))
    assert [len(own) for own in asked.by_partition()] == [9, 9, 9, 9, 9, 9, 6]
    marginals = cluster.predict_marginals(model, bag.from_sequence(X, npartitions=2), client=client)
    for found, own in zip(marginals, model.predict_marginals(X), strict=True):
        assert np.array_equal(found, own)
    assert cluster.score(model, pairs(), client=client) == pytest.approx(model.score(X, Y))


def test_a_partition_that_does_not_parse_is_named(client):
    def broken(k):
        if k == 2:
            raise OSError(f"part-{k}.conll: line 7 has 3 columns")
        return X[k::4], Y[k::4]

    parts = [dask.delayed(broken)(k) for k in range(4)]
    with pytest.raises(RuntimeError, match=r"partition 2: .*part-2.conll: line 7"):
        cluster.fit(crf(), parts, client=client)
    wrong = [dask.delayed((X, Y)), dask.delayed((X, Y[:-1]))]
    with pytest.raises(ValueError, match=r"partition 1: X and y must have the same number"):
        cluster.fit(crf(), wrong, client=client)


def test_files_that_are_missing_or_damaged_are_named(client, tmp_path):
    missing = [dask.delayed((X, Y)), dask.delayed(open)(f"{tmp_path}/part-1.conll")]
    with pytest.raises(RuntimeError, match=r"partition 1: FileNotFoundError: .*part-1.conll"):
        cluster.fit(crf(), missing, client=client)
    with pytest.raises(FileNotFoundError, match=r"there is no prepared data set '.*/none'"):
        cluster.fit(crf(), f"{tmp_path}/none", client=client)
    data = crf().prepare(tmp_path / "data", X, Y)
    part = tmp_path / "data" / data.parts[0].file
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(DatasetError, match=rf"partition 0: .*{part.name}"):
        cluster.fit(crf(), data, client=client)
    with pytest.raises(DatasetError, match=r"partition 0: .* prepared for another model"):
        cluster.fit(GraphCRF(), data, client=client)


def test_a_schema_that_changes_is_named(client):
    rng = np.random.default_rng(0)
    parts = [dask.delayed(([rng.normal(size=(2, n))], [[0, 1]])) for n in (3, 3, 4)]
    with pytest.raises(ValueError, match=r"partitions 2 and 0 differ: .*4 columns"):
        cluster.fit(crf(), parts, client=client)


def always_one(model, X, y):
    return 1.0


def test_a_score_is_the_share_of_right_labels_also_of_a_search_by_another_metric(client):
    y = [[None if t == 0 else v for t, v in enumerate(own)] for own in Y]
    found = ChainCRFCV(ChainCRF(max_iter=4), l2s=[0.1, 1.0], cv=2, scoring=always_one).fit(X, Y)
    given = bag.from_sequence(list(zip(X, y, strict=True)), npartitions=3)
    score = cluster.score(found, given, client=client)
    assert score == pytest.approx(found.estimator_.score(X, y))


def test_what_cannot_work_is_refused_before_any_work(client):
    with pytest.raises(UnsupportedError, match="visits single examples"):
        cluster.fit(ChainCRF(solver="sgd"), pairs(), client=client)
    with pytest.raises(UnsupportedError, match=r"does not fit ChainCRFCV: .* run by joblib"):
        cluster.fit(ChainCRFCV(), pairs(), client=client)
    with pytest.raises(TypeError, match=r"X must be a Dask bag.* got Delayed"):
        cluster.fit(crf(), dask.delayed((X, Y)), client=client)
    with pytest.raises(TypeError, match="X must be a Dask bag"):
        cluster.fit(crf(), X, Y, client=client)
    with pytest.raises(ValueError, match="same partitions, got 5 and 2"):
        cluster.fit(crf(), pairs(), bag.from_sequence(Y, npartitions=2), client=client)
    with pytest.raises(ValueError, match="dtype must be one of"):
        cluster.fit(crf(), pairs(), client=client, dtype="float16")
    for ask in (cluster.fit, cluster.predict, cluster.score):
        with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got str"):
            ask(crf().fit(X, Y), pairs(), client="tcp://127.0.0.1:8786")


def test_a_cluster_that_goes_away_is_an_error(expected):
    made = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    client = distributed.Client(made)

    def close(state):
        if state.iteration == 2:
            made.close()

    model = crf()
    try:
        with pytest.raises(cluster.ClusterError, match="the cluster is gone"):
            cluster.fit(model, pairs(), client=client, callback=close)
    finally:
        client.close()
        made.close()
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize("model", [ChainCRF(max_iter=2), HMM(), TwoStageCRF()], ids=type)
def test_a_cluster_that_is_gone_before_it_is_asked(model):
    words = [[token[0] for token in x] for x in X] if isinstance(model, HMM) else X
    both = bag.from_sequence(list(zip(words, Y, strict=True)), npartitions=3)
    fitted = clone(model).fit(words, Y)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as made:
        client = distributed.Client(made)
        answers = cluster.predict(fitted, both.pluck(0), client=client)
        client.close()
    for ask in (
        lambda: cluster.fit(model, both, client=client),
        lambda: list(cluster.predict(fitted, both.pluck(0), client=client)),
        lambda: list(cluster.predict_marginals(fitted, both.pluck(0), client=client)),
        lambda: list(answers),
        lambda: cluster.score(fitted, both, client=client),
    ):
        with pytest.raises(cluster.ClusterError, match="the cluster is gone"):
            ask()
    assert not hasattr(model, model.learned)


def test_a_cluster_without_workers_is_not_waited_for_without_end():
    with workers(0, processes=True) as client:
        started = time.monotonic()
        with pytest.raises(cluster.ClusterError, match="no worker for 1 s"):
            cluster.fit(crf(), pairs(), client=client, timeout=1.0)
        assert time.monotonic() - started < 60


def test_workers_that_all_go_are_not_waited_for_again_and_again(expected):
    with workers(1, processes=True) as client:
        gone = []

        def stop(state):
            if state.iteration == 2:
                client.cluster.scale(0)
                while client.nthreads():
                    time.sleep(0.05)
                gone.append(time.monotonic())

        with pytest.raises(cluster.ClusterError, match="no worker for 2 s"):
            cluster.fit(crf(), pairs(), client=client, callback=stop, timeout=2.0)
        assert time.monotonic() - gone[0] < 20


def test_tables_and_graphs(client):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    table = rng.normal(size=(60, 3)) + y[:, None]
    array = pytest.importorskip("dask.array")
    chunked = array.from_array(table, chunks=(20, -1)), array.from_array(y, chunks=20)
    found = cluster.fit(CRFClassifier(max_iter=4), *chunked, client=client)
    np.testing.assert_allclose(
        found.coef_, CRFClassifier(max_iter=4).fit(table, y).coef_, atol=1e-4
    )
    assert (
        np.concatenate(
            list(cluster.predict(found, chunked[0], client=client).by_partition())
        ).tolist()
        == found.predict(table).tolist()
    )
    with pytest.raises(ValueError, match="all columns in one chunk"):
        cluster.fit(
            CRFClassifier(max_iter=4), chunked[0].rechunk((20, 1)), chunked[1], client=client
        )
    graphs = [(rng.normal(size=(3, 2)), [(0, 1), (1, 2), (0, 2)]) for _ in range(12)]
    labels = [rng.integers(2, size=3) for _ in graphs]
    both = bag.from_sequence(graphs, npartitions=3), bag.from_sequence(labels, npartitions=3)
    found = cluster.fit(GraphCRF(max_iter=4), *both, client=client)
    np.testing.assert_allclose(
        found.weights_, GraphCRF(max_iter=4).fit(graphs, labels).weights_, atol=1e-4
    )


def test_models_that_count(client):
    """HMM and naive Bayes: sums of counts, which are whole numbers."""
    words = [[token[0] for token in x] for x in X]
    both = bag.from_sequence(list(zip(words, Y, strict=True)), npartitions=4)
    found, alone = cluster.fit(HMM(), both, client=client), HMM().fit(words, Y)
    np.testing.assert_allclose(found.transitions_, alone.transitions_, rtol=1e-12)
    assert found.predict(words) == alone.predict(words)
    array = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    table = rng.normal(size=(60, 2)) + y[:, None]
    chunked = array.from_array(table, chunks=(20, -1)), array.from_array(y, chunks=20)
    found, alone = cluster.fit(NaiveBayes(), *chunked, client=client), NaiveBayes().fit(table, y)
    np.testing.assert_allclose(found.emission_.means, alone.emission_.means, rtol=1e-9)
    assert cluster.score(found, *chunked, client=client) == pytest.approx(alone.score(table, y))
    weight = np.repeat([0.0, 1.0, 2.0], 20)  # none in the first partition
    score = cluster.score(found, *chunked, array.from_array(weight, chunks=20), client=client)
    assert score == pytest.approx(alone.score(table, y, sample_weight=weight))
    with pytest.raises(UnsupportedError, match="no validation_data"):
        cluster.fit(HMM(), both, client=client, validation_data=(words, Y))


def test_data_frames(client):
    pd, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    rows = [
        {"sentence": i, "word": token[0], "shape": token[1], "tag": label}
        for i, (x, y) in enumerate(zip(X, Y, strict=True))
        for token, label in zip(x, y, strict=True)
    ]
    words = [[{"word": t[0], "shape": t[1]} for t in x] for x in X]
    alone = crf().fit(words, Y)
    table = pd.DataFrame(rows)
    whole = frames.from_pandas(table.set_index("sentence"), npartitions=3)
    found = cluster.fit(crf(), cluster.from_tokens(whole, "sentence", "tag"), client=client)
    np.testing.assert_allclose(found.weights_, alone.weights_, rtol=0, atol=1e-5)
    torn = frames.from_pandas(table, npartitions=3)
    with pytest.raises(ValueError, match=r"stands in partitions \d and \d; keep sequences whole"):
        cluster.fit(crf(), cluster.from_tokens(torn, "sentence", "tag"), client=client)
    lists = pd.DataFrame({"x": X, "y": Y})
    text = frames.from_pandas(lists.astype(str), npartitions=3)
    with pytest.raises(TypeError, match="partition 0: column 'x' must hold lists"):
        cluster.fit(crf(), cluster.from_lists(text, "x", "y"), client=client)
    with dask.config.set({"dataframe.convert-string": False}):
        lists = frames.from_pandas(lists, npartitions=3)
    found = cluster.fit(crf(), cluster.from_lists(lists, "x", "y"), client=client)
    np.testing.assert_allclose(found.weights_, crf().fit(X, Y).weights_, rtol=0, atol=1e-5)
    for read in (cluster.from_tokens, cluster.from_lists):  # before any work
        with pytest.raises(TypeError, match="frame must be a Dask data frame, got DataFrame"):
            read(table, "sentence", "tag")
        with pytest.raises(ValueError, match="no column 'odd'; it has word, shape, tag, sentence"):
            read(whole, "odd", "tag")
        with pytest.raises(ValueError, match="no column 'odd'"):
            read(whole, "sentence", "odd")
    with pytest.raises(ValueError, match="no column 'odd'"):
        cluster.from_tokens(whole, "sentence", features=["odd"])
    with pytest.raises(TypeError, match="group must be the name of a column, or a list of names"):
        cluster.from_tokens(whole, None)


def test_a_prepared_data_set(client, tmp_path):
    for k in range(3):
        ChainCRF().prepare(
            tmp_path / "data", X[20 * k : 20 * (k + 1)], Y[20 * k : 20 * (k + 1)], append=k > 0
        )
    alone = crf().fit(X, Y)
    for given in (Dataset(tmp_path / "data"), str(tmp_path / "data")):
        found = cluster.fit(crf(), given, client=client)
        np.testing.assert_allclose(found.weights_, alone.weights_, rtol=0, atol=1e-5)
        assert list(cluster.predict(found, given, client=client)) == list(found.predict(X))
        assert cluster.score(found, given, client=client) == pytest.approx(found.score(X, Y))
    (tmp_path / "data" / Dataset(tmp_path / "data").parts[1].file).write_bytes(b"x" * 300)
    with pytest.raises((ValueError, RuntimeError), match="partition 1: "):
        cluster.fit(crf(), str(tmp_path / "data"), client=client)


def test_several_prepared_data_sets(client, tmp_path):
    """Attributes and labels are numbered as if all had been read at once."""
    halves = [slice(0, 20), slice(20, None)]
    paths = [str(tmp_path / name) for name in "ab"]
    for path, own in zip(paths, halves, strict=True):
        ChainCRF().prepare(path, X[own], Y[own])
    sets = [Dataset(path) for path in paths]
    alone = crf().fit(X, Y)
    for given in (sets, paths, (sets[0], Path(paths[1]))):
        found = cluster.fit(crf(), given, client=client)
        np.testing.assert_allclose(found.weights_, alone.weights_, rtol=0, atol=1e-5)
        assert found.reader_.inputs[0].vocabulary.names() == (
            alone.reader_.inputs[0].vocabulary.names()
        )
        assert list(cluster.predict(found, given, client=client)) == list(found.predict(X))
        assert cluster.score(found, given, client=client) == pytest.approx(found.score(X, Y))
    words = [[token[0] for token in x] for x in X]
    for path, own in zip(paths, halves, strict=True):
        HMM().prepare(f"{path}-words", words[own], Y[own])
    found = cluster.fit(HMM(), [f"{path}-words" for path in paths], client=client)
    assert found.predict(words) == HMM().fit(words, Y).predict(words)
    tables = [
        np.eye(4, dtype=int)[np.arange(40) % 4][:, order] for order in ([0, 0, 1, 1], [0, 1, 0, 1])
    ]
    for path, table in zip(paths, tables, strict=True):
        MultiLabelCRF().prepare(f"{path}-labels", np.ones((40, 1)), table)
    with pytest.raises(ValueError, match="prepared with other edges than the data set"):
        cluster.fit(MultiLabelCRF(), [f"{path}-labels" for path in paths], client=client)


def test_partitions_without_an_observed_label(client):
    """The first has no position, and another one no label."""
    examples = [[], []], [[], []]
    unknown = [[None] * len(y) for y in Y[:20]]
    parts = [examples, (X[:20], unknown), (X[20:], Y[20:])]
    given = bag.from_delayed([dask.delayed(list(zip(*own, strict=True))) for own in parts])
    alone = crf().fit(X, unknown + Y[20:])
    found = cluster.fit(crf(), given, client=client)
    np.testing.assert_allclose(found.weights_, alone.weights_, rtol=0, atol=1e-6)
    nothing = bag.from_delayed([dask.delayed(list(zip(*parts[1], strict=True)))])
    with pytest.raises(ValueError, match="y names no label: no variable is observed"):
        cluster.fit(crf(), nothing, client=client)


def test_a_search_with_joblib_on_dask(client):
    joblib = pytest.importorskip("joblib")
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(ChainCRF(max_iter=20), {"l2": [0.1, 1.0]}, cv=2)
    with joblib.parallel_config(backend="dask", client=client):
        search.fit(X, Y)
    alone = GridSearchCV(ChainCRF(max_iter=20), {"l2": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == alone.best_params_
    assert np.array_equal(search.best_estimator_.weights_, alone.best_estimator_.weights_)
