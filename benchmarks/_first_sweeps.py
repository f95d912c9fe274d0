"""chordal on the file that `_pgmax.py` reads, in a process of its own: seconds of its first run.

As there, what is imported does not count; building the model does.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from chordal.inference.loopy_bp import LoopyBPInference
from chordal.potentials import Potentials
from chordal.structures import Grid


def main(path: str) -> float:
    data = dict(np.load(path))
    height, width, n_labels = data["unary"].shape
    start = time.perf_counter()
    method = LoopyBPInference("parallel", tol=0.0, max_iter=int(data["iterations"]))
    method.marginals(Potentials(Grid([(height, width)], n_labels), data["unary"], data["tables"]))
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
