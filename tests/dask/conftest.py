"""A cluster of worker processes for the tests of a file."""

from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@contextmanager
def workers(n, threads=1, processes=False):
    """A client of a cluster of its own."""
    distributed = pytest.importorskip("distributed", reason='needs "chordal[dask]"')
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=threads, processes=processes, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def local():
    """Two workers of one thread, each a process with a nanny that starts it again.

    They can import the tests, whose functions some models have.
    """
    distributed = pytest.importorskip("distributed", reason='needs "chordal[dask]"')
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)  # of workers too
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made:
            yield made


@pytest.fixture
def client(local):
    distributed = pytest.importorskip("distributed", reason='needs "chordal[dask]"')
    with distributed.Client(local) as made:
        made.wait_for_workers(2, timeout=60)
        yield made
