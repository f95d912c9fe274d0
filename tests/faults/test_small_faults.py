"""Faults of less weight, one by one."""

import io

import numpy as np
import pytest

from chordal import ChainCRF
from chordal.execution import EXECUTION, effective_n_jobs
from chordal.formats import FORMATS
from chordal.formats._base import Record
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain


def test_labels_do_not_wrap_around():
    p = Potentials(Chain([3], 2), np.arange(6.0), np.zeros(4))
    assert p.score([1, 0, 1]).tolist() == [1 + 2 + 5]
    for label in (2**32, 2**32 + 1, -(2**32), 2):
        with pytest.raises(ValueError, match="labels must be between"):
            p.score([label, 0, 0])
    with pytest.raises(ValueError, match="labels must be between"):
        p.score(np.array([2**63 + 1, 0, 0], dtype=np.uint64))


def test_more_threads_than_a_machine_has_are_not_made():
    assert effective_n_jobs(10_000) == 512
    assert effective_n_jobs(7) == 7
    assert type(effective_n_jobs(True)) is int  # PyTorch takes no other
    assert type(effective_n_jobs(np.int64(2))) is int


def test_tasks_that_no_thread_takes_are_done_by_the_caller(monkeypatch):
    """As at the end of the interpreter, or where the system gives no more threads."""
    with EXECUTION.resolve("threads", n_jobs=2) as threads:
        assert threads.map(abs, [-1, -2, -3]) == [1, 2, 3]
        submit, left = threads._pool.submit, [2]

        def refuse(*arguments):
            left[0] -= 1
            if left[0] < 0:
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            return submit(*arguments)

        monkeypatch.setattr(threads._pool, "submit", refuse)
        assert threads.map(abs, [-1, -2, -3, -4]) == [1, 2, 3, 4]


def test_samples_of_no_variables():
    p = Potentials(Chain([0], 2), [], [])
    drawn = INFERENCE.resolve("gibbs").sample(p, 3, np.random.default_rng(0))
    assert drawn.shape == (3, 0)


@pytest.mark.parametrize("method", ["chain", "tree", "junction_tree", "exhaustive"])
def test_how_many_labellings_is_a_number(method):
    p = Potentials(Chain([3], 2), np.arange(6.0), np.zeros(8))
    asked = INFERENCE.resolve(method)
    for k in (0, -1, 1.5, None, True):
        with pytest.raises(ValueError, match="k must be an integer of at least 1"):
            asked.k_best(p, k)
    assert asked.k_best(p, np.int64(2)).score.shape == (1, 2)
    for n in (-1, 1.5):
        with pytest.raises(ValueError, match="n must be an integer of at least 0"):
            asked.sample(p, n, np.random.default_rng(0))
    assert asked.sample(p, 0, np.random.default_rng(0)).shape == (0, 3)


@pytest.mark.parametrize("word", ["\ufeffa", "\ufeff", "\ufeff\ufeffa"])
def test_a_first_word_that_begins_like_a_byte_order_mark(word):
    form, file = FORMATS.get("conll")(), io.BytesIO()
    form.write([Record([[word], ["b"]], ["X", "Y"]), Record([[word]], ["X"])], file)
    found = list(form.read(io.BytesIO(file.getvalue())))
    assert [record.rows for record in found] == [[[word], ["b"]], [[word]]]


@pytest.mark.parametrize(
    "solver", ["frank_wolfe", "block_frank_wolfe", "one_slack", "cutting_plane"]
)
@pytest.mark.parametrize("y", [[["a", "a"]], [["a", "b"]]])
def test_a_fit_in_which_nothing_can_move(solver, y):
    crf = ChainCRF(objective="hinge", solver=solver, max_iter=20).fit([np.zeros((2, 1))], y)
    assert np.isfinite(crf.weights_).all()
    assert np.isfinite(crf.objective_)
