"""PGMax on a grid, in a process of its own: `python _pgmax.py model.npz`, which it answers as JSON.

The file holds unary [height, width, labels], tables [edges, labels, labels], ends [edges, 2] and
iterations. Imports nothing of chordal, so that any Python that has PGMax can run it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import jax
import numpy as np
from pgmax import fgraph, fgroup, infer, vgroup


def main(path: str) -> dict[str, Any]:
    data = dict(np.load(path))
    height, width, n_labels = data["unary"].shape
    start = time.perf_counter()
    pixels = vgroup.NDVarArray(num_states=n_labels, shape=(height, width))
    graph = fgraph.FactorGraph(variable_groups=pixels)
    pairs = [[pixels[int(v) // width, int(v) % width] for v in edge] for edge in data["ends"]]
    graph.add_factors(
        fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=data["tables"])
    )
    bp = infer.build_inferer(graph.bp_state, backend="bp")

    def run() -> Any:
        state = bp.init(evidence_updates={pixels: data["unary"]})
        state = bp.run(state, num_iters=int(data["iterations"]), damping=0.0, temperature=1.0)
        beliefs = bp.get_beliefs(state)
        jax.block_until_ready(beliefs)
        return infer.get_marginals(beliefs)[pixels]

    marginals = run()
    first = time.perf_counter() - start
    times = []
    for _ in range(3):
        start = time.perf_counter()
        marginals = run()
        times.append(time.perf_counter() - start)
    return {"first": first, "then": min(times), "marginals": np.asarray(marginals).tolist()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
