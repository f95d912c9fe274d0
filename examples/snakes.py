"""Snakes: a conditional random field whose pairs see what lies at both of their ends.

A snake of ten cells has crossed a grid; each cell shows the direction in which it was left. Which
cell is the head and which the tail can only be told by following the snake. Pair weights that know
the direction of an edge alone do not see that; those that see the colours at both ends do.

    CHORDAL_DATA=… python examples/snakes.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from chordal import GridCRF
from chordal.datasets import load_snakes
from chordal.inference.ad3 import AD3Inference
from chordal.inference.loopy_bp import LoopyBPInference

#: In training, messages that are nearly settled will do; labels are found with a certificate.
MESSAGES = LoopyBPInference(tol=1e-3, max_iter=50)
LABELS = AD3Inference(max_iter=500, tol=1e-4)

LEARNERS: dict[str, dict[str, Any]] = {
    "hinge": {"solver": "block_frank_wolfe", "max_iter": 12, "random_state": 0},
    "likelihood": {"tol": 1e-3, "max_iter": 100},
    "pseudo_likelihood": {"tol": 1e-3, "max_iter": 100},
}


def both_ends(a: Any, b: Any) -> Any:
    """What is seen at both ends of edges."""
    return np.hstack([a, b])


def main(learners: dict[str, dict[str, Any]] = LEARNERS) -> dict[tuple[str, str], float]:
    """Train, and print the share of the test images' cells that are labelled right."""
    snakes = load_snakes()
    X, test_X = snakes.X, snakes.test_X
    found: dict[tuple[str, str], float] = {}
    for name, pairs in (("direction alone", None), ("both ends", both_ends)):
        for objective, settings in learners.items():
            began = time.perf_counter()
            crf = GridCRF(
                objective,
                inference=MESSAGES,
                directions=True,
                tables="full",
                edge_features=pairs,
                n_jobs=-1,
                **settings,
            ).fit(X, snakes.y)
            seconds = time.perf_counter() - began
            crf.set_params(inference=LABELS)
            found[objective, name] = crf.score(test_X, snakes.test_y)
            print(f"{objective:18} {name:16} {found[objective, name]:.4f}  {seconds:5.1f} s")
    return found


if __name__ == "__main__":
    main()
