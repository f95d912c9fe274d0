"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def no_ctrl_c_before(monkeypatch):
    """Tests that press Ctrl-C follow each other faster than a user presses twice."""
    monkeypatch.setattr("chordal.estimators._training.monitor._last", float("-inf"))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """A test file that cannot be imported is an error: with doctests, pytest skips it silently."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and "unable to import module" in str(report.longrepr):
        report.outcome = "failed"
