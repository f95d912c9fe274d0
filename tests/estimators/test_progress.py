"""The live line of a fit, in a real terminal: nothing false, nothing cut, a steady width."""

import re
import sys

import numpy as np
import pytest

from chordal._fit_progress import Course
from chordal.solvers import Iteration

from ..terminal import in_terminal

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
@pytest.mark.parametrize("width", [30, 64, 80, 110])
def test_the_line_in_a_terminal(width):
    shown = in_terminal([sys.executable, "-c", PROGRAM], width)
    assert shown.output.startswith("ended")
    assert "\n" not in shown.error
    first, *frames, last, end = shown.error.split("\r")[1:]
    assert first.startswith("fit  starting ")
    assert (last.strip(), end) == ("", "")
    assert len(frames) >= 3
    assert len({len(frame.rstrip("\n")) for frame in frames}) == 1
    assert all(len(frame) < width for frame in frames)
    for frame in frames:
        assert "/1000" not in frame
        assert "objective 0 " not in frame
        assert frame.startswith("fit  iteration ")
        assert "  0:0" in frame  # the time is there whole
        assert frame.endswith(" left") == (width >= 64)
        assert ("objective " in frame) == (width >= 64)
        assert ("[" in frame) == (width >= 80)
        assert (" to 1e-06" in frame) == (width >= 110)
    if width >= 64:
        assert re.search(r" \d:\d\d left$", frames[-1])  # known by now


def state(iteration, value, gap=np.nan, norm=1.0):
    return Iteration(iteration, value, norm, iteration, 61.0, np.zeros(1), gap)


def test_the_share_is_one_when_the_objective_falls_by_less_than_the_tolerance():
    course = Course(max_iter=1000, tol=1e-4, window=2)
    shares = []
    for k, value in enumerate([1000.0, 500.0, 400.0, 390.0, 389.0, 388.9, 388.89, 388.889], 1):
        course.add(state(k, value), None)
        shares.append(course.share(state(k, value)))
    assert shares == sorted(shares)  # it never goes back
    assert shares[0] == 0.001
    assert shares[-1] == 1.0
    assert 0.1 < shares[4] < 0.9
    assert course.fall == pytest.approx((388.9 - 388.889) / 388.889)


def test_other_solvers():
    course = Course(max_iter=50, tol=1e-4, window=10)
    course.add(state(1, 10.0, gap=0.5), 0.25)
    figures = course.figures(state(1, 10.0, gap=0.5))
    assert figures == ["objective 10        ", "validation 0.2500", "gap 0.5     "]
    assert course.share(state(1, 10.0, gap=0.5)) == pytest.approx(np.log(0.05) / np.log(1e-4))
    course.add(state(2, 9.0, norm=np.nan), None)
    assert course.figures(state(2, 9.0, norm=np.nan))[-1] == "of at most 50 passes"
    assert course.share(state(2, 9.0, norm=np.nan)) == 2 / 50
