"""Faults of less weight, one by one."""

import numpy as np
import pytest

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
