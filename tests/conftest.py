"""What all tests share."""

import os
import signal
import sys

import pytest

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's background jobs do not hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_ctrl_c_before(monkeypatch):
    """Tests that press Ctrl-C follow each other faster than a user presses twice."""
    monkeypatch.setattr("chordal.estimators._training.monitor._last", float("-inf"))


def pytest_runtest_setup(item):
    """Skip what says nothing about a build with sanitizers, which `make sanitize` announces."""
    mark = item.get_closest_marker("unsanitized")
    if mark is not None and os.environ.get("CHORDAL_SANITIZED"):
        pytest.skip(f"under sanitizers: {mark.args[0]}")


def pytest_collection_modifyitems(items):
    """Names with addresses differ between the processes of one run."""
    bad = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if bad:
        raise pytest.UsageError(f"the name of a test has an address: {bad[0]}")


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Forget a test file whose import failed for doctests: it would pass for an empty one."""
    outcome = yield
    if outcome.get_result().skipped:
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == str(collector.path):
                del sys.modules[name]
