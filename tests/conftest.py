"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def no_ctrl_c_before(monkeypatch):
    """Tests that press Ctrl-C follow each other faster than a user presses twice."""
    monkeypatch.setattr("chordal.estimators._training.monitor._last", float("-inf"))
