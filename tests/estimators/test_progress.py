"""The live line of a fit, in a real terminal: nothing false, nothing cut, a steady width."""

import os
import subprocess
import sys

import numpy as np
import pytest

from chordal._progress import Course
from chordal.solvers import Iteration

PROGRAM = """
import time
import numpy as np
from chordal import ChainCRF

rng = np.random.default_rng(0)
X = [rng.normal(size=(20, 5)) for _ in range(30)]
y = [rng.integers(3, size=20).tolist() for _ in X]
crf = ChainCRF(verbose=1, l2=0.1, tol=1e-6).fit(X, y, callback=lambda state: time.sleep(0.12))
print("ended", crf.n_iter_)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("width", [30, 60, 100])
def test_the_line_in_a_terminal(width):
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, width, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stderr=theirs, stdout=subprocess.PIPE, text=True
    ) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        out = child.stdout.read()
    os.close(ours)
    assert out.startswith("ended")
    assert b"\n" not in shown
    first, *frames, last, end = shown.decode().split("\r")[1:]
    assert first == "fit  starting"
    assert (last.strip(), end) == ("", "")
    assert len(frames) >= 3
    assert len({len(frame.rstrip("\n")) for frame in frames}) == 1
    assert all(len(frame) < width for frame in frames)
    for frame in frames:
        assert "/1000" not in frame
        assert "objective 0 " not in frame
        assert frame.startswith("fit ")
        assert ":0" in frame[-5:]  # the time is there whole
        assert (" to 1e-06" in frame) == (width >= 60)
        assert ("[" in frame) == (width >= 100)


def state(iteration, value, gap=np.nan, norm=1.0):
    return Iteration(iteration, value, norm, iteration, 61.0, np.zeros(1), gap)


def test_the_bar_is_full_when_the_objective_falls_by_less_than_the_tolerance():
    course = Course(max_iter=1000, tol=1e-4, window=2)
    filled = []
    for k, value in enumerate([1000.0, 500.0, 400.0, 390.0, 389.0, 388.9, 388.89, 388.889], 1):
        course.add(state(k, value), None)
        filled.append(course.line(state(k, value), 100).count("="))
    assert filled == sorted(filled)  # it never goes back
    assert filled[1] == 0
    assert filled[-1] == 12
    assert 0 < filled[4] < 12
    assert course.fall == pytest.approx((388.9 - 388.889) / 388.889)


def test_other_solvers():
    course = Course(max_iter=50, tol=1e-4, window=10)
    course.add(state(1, 10.0, gap=0.5), 0.25)
    line = course.line(state(1, 10.0, gap=0.5), 100)
    assert "gap 0.5" in line
    assert "validation 0.2500" in line
    assert line.endswith("1:01")
    course.add(state(2, 9.0, norm=np.nan), None)
    assert "of at most 50 passes" in course.line(state(2, 9.0, norm=np.nan), 100)
