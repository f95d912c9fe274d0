"""A sub-interpreter is refused: locks and bound objects belong to the main one."""

import subprocess
import sys

import pytest

SUB = """
import _xxsubinterpreters as sub
try:
    sub.run_string(sub.create(), "import chordal; chordal.ChainCRF")
except sub.RunFailedError as error:
    print(error)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="_xxsubinterpreters has another name")
def test_refused():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SUB], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert "ImportError" in ran.stdout
    assert "main interpreter only" in ran.stdout or "once per process" in ran.stdout
