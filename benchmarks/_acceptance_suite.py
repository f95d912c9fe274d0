"""A package's own test suite, run in an environment of its own.

    python _acceptance_suite.py theirs|ours FOLDER OUT

Writes the outcome of every test of FOLDER/tests as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


class Outcomes:
    """A plugin of pytest's that keeps what became of each test."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "expected failure" if report.skipped else "unexpected pass"
        if report.when == "call" or outcome != "passed":
            self.found[report.nodeid] = outcome


def main(which: str, folder: str, out: str) -> None:
    if which == "ours":
        import chordal.compat

        chordal.compat.install()
    import pytest

    os.chdir(folder)
    outcomes = Outcomes()
    pytest.main(["-q", "-p", "no:cacheprovider", "-o", "addopts=", "tests"], plugins=[outcomes])
    import pycrfsuite

    if pycrfsuite.__name__.startswith("chordal") != (which == "ours"):
        raise RuntimeError(f"the tests used {pycrfsuite}")
    Path(out).write_text(json.dumps(outcomes.found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
