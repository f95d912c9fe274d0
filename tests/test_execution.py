import threading
import time

import pytest

from chordal.execution import EXECUTION, effective_n_jobs
from chordal.execution.serial import Serial
from chordal.execution.threads import Threads

EVERY = pytest.mark.parametrize("name", list(EXECUTION))


def available(name):
    try:
        return EXECUTION.resolve(name, n_jobs=2)
    except ImportError as error:
        pytest.skip(str(error))


@EVERY
def test_results_come_back_in_order(name):
    def slow_first(k):
        time.sleep(0.02 * (3 - k) if k < 3 else 0.0)
        return k * k

    with available(name) as execution:
        assert execution.map(slow_first, range(10)) == [k * k for k in range(10)]
        assert execution.map(slow_first, iter([4])) == [16]
        assert execution.map(slow_first, []) == []


@EVERY
def test_an_error_reaches_the_caller(name):
    def fails(k):
        if k == 2:
            raise ZeroDivisionError("task 2")
        return k

    with available(name) as execution:
        with pytest.raises(ZeroDivisionError, match="task 2"):
            execution.map(fails, range(5))
        assert execution.map(abs, [-1]) == [1]  # and it can be used again


def test_threads_run_at_once():
    both = threading.Barrier(2, timeout=10.0)
    with Threads(n_jobs=2) as threads:
        names = threads.map(lambda _: (both.wait(), threading.current_thread().name)[1], range(2))
    assert len(set(names)) == 2
    assert all(name.startswith("chordal") for name in names)


def test_serial_runs_in_the_calling_thread():
    with Serial(n_jobs=4) as serial:
        assert serial.n_jobs == 1
        assert serial.map(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_runs_on_after_an_error(error):
    """A task that still wrote to shared memory would spoil the next evaluation."""
    running, started = [], threading.Event()

    def task(k):
        if k == 0:
            started.wait(10.0)
            raise error
        started.set()
        running.append(k)
        time.sleep(0.1)
        running.remove(k)

    with Threads(n_jobs=2) as threads:
        with pytest.raises(error):
            threads.map(task, range(40))
        assert running == []
        time.sleep(0.15)
        assert running == []


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (1, 1), (7, 7)])
def test_n_jobs(n_jobs, expected):
    assert effective_n_jobs(n_jobs) == expected


def test_n_jobs_counts_from_all_cores():
    cores = effective_n_jobs(-1)
    assert cores >= 1
    assert effective_n_jobs(-2) == max(1, cores - 1)
    assert effective_n_jobs(-10_000) == 1
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        effective_n_jobs(0)
