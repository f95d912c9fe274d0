"""Threads share a fitted model. On a Python without the GIL they run at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from chordal import ChainCRF

THREADS = 8


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    y = [[f"label{k}" for k in rng.integers(0, 5, size=n)] for n in rng.integers(1, 30, size=60)]
    X = [
        [{"w": f"{label}é{rng.integers(3)}", "n": 0.5, "in": ["a", "b"]} for label in own]
        for own in y
    ]
    return X, y


@pytest.fixture(scope="module")
def model(words):
    return ChainCRF(max_iter=20).fit(*words)


def at_once(task):
    """Runs a task in threads that start together; their results."""
    start = threading.Barrier(THREADS)

    def run(k):
        start.wait()
        return task(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_threads_that_predict_by_one_model_agree(words, model):
    X, _ = words
    labels, marginals = model.predict(X), model.predict_marginals(X)

    def ask(_):
        for x, expected, p in zip(X, labels, marginals, strict=True):
            assert model.predict([x]) == [expected]
            np.testing.assert_allclose(model.predict_marginals([x])[0], p, rtol=0, atol=1e-12)

    at_once(ask)


@pytest.mark.parametrize(
    "question",
    [
        lambda model, X, y: model.k_best(X, k=3),
        lambda model, X, y: model.predict(X, allowed_transitions=~np.eye(5, dtype=bool)),
        lambda model, X, y: model.score(X, y),
        lambda model, X, y: [m.tolist() for m in model.predict_marginals(X)],
        lambda model, X, y: model.predict(X, method="mpm"),
    ],
)
def test_other_questions_too(words, model, question):
    expected = question(model, *words)
    assert all(found == expected for found in at_once(lambda _: question(model, *words)))


def test_threads_may_ask_about_one_sequence(words, model):
    x = words[0][0] * 50
    expected = np.array(model.quick().sequence(x).marginals())
    np.testing.assert_allclose(expected.sum(axis=1), 1.0, rtol=1e-9)
    for _ in range(20):
        sequence = model.quick().sequence(x)
        for found in at_once(lambda _, s=sequence: (s.log_partition(), np.array(s.marginals()))):
            assert found[0] == sequence.log_partition()
            np.testing.assert_array_equal(found[1], expected)


def test_items_may_change_while_they_are_read(model):
    """The answer is of no use then, but memory is not read after it was released."""
    rows = [{"w": "label0é1", "in": ["a"]} for _ in range(20)]
    done = threading.Event()

    def change():
        for k in range(2000):
            row = rows[k % len(rows)]
            row[f"new{k % 50}"] = str(k)
            row["in"].append(f"c{k}")
            if len(row) > 40:
                row.clear()
                row["in"] = ["a"]
            rows.append(rows.pop(0))
        done.set()

    def read(k):
        if k == 0:
            return change()
        while not done.is_set():
            assert len(model.predict([rows])[0]) in (19, 20, 21)

    at_once(read)


def test_threads_that_train_their_own_models_agree(words):
    expected = ChainCRF(max_iter=5).fit(*words).weights_
    for weights in at_once(lambda _: ChainCRF(max_iter=5).fit(*words).weights_):
        np.testing.assert_array_equal(weights, expected)
