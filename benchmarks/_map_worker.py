"""`python -m benchmarks._map_worker MODEL METHOD SECONDS`: the best labelling found, as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

import numpy as np

from benchmarks._map_models import model
from chordal.potentials import Potentials

#: Costs that forbid, for toulbar2.
FORBIDDEN = 1e8


def chordal_answer(potentials: Potentials, method: str, seconds: float) -> dict[str, object]:
    from chordal.inference import INFERENCE

    inference = INFERENCE.get(method)(time_limit=seconds)
    inference.require("map", potentials.structure)
    if refusal := inference.refusal_of(potentials):
        return {"problem": refusal}
    found = inference.map(potentials)
    ended = found.convergence
    score = float(found.score[0])
    return {
        "score": score if score > -np.inf else None,
        "bound": score if found.bound is None else float(found.bound[0]),
        "status": "CONVERGED" if ended is None else ended.status.name,
        "found_by": found.found_by,
    }


def toulbar2_answer(potentials: Potentials, seconds: float) -> dict[str, object]:
    """By its default search; its limit is one of processor time."""
    if folder := os.environ.get("CHORDAL_TOULBAR2"):
        sys.path.append(folder)
    import pytoulbar2

    p, s = potentials.untied(), potentials.structure
    network = pytoulbar2.CFN(resolution=6, verbose=-1)
    for v in range(s.n_variables):
        network.AddVariable(f"x{v}", [f"v{k}" for k in range(s.label_counts[v])])

    def add(scope: list[int], scores: np.ndarray) -> None:
        network.AddFunction(scope, np.where(scores > -np.inf, -scores, FORBIDDEN).tolist())

    for v in range(s.n_variables):
        add([v], p.unary[s.state_offsets[v] : s.state_offsets[v + 1]])
    for c in range(s.n_cliques):
        add(s.scope(c).tolist(), p.tables[p.table_offsets[c] : p.table_offsets[c + 1]])
    found = network.Solve(timeLimit=int(seconds))
    if not found:
        return {}
    score = float(potentials.score(np.array(found[0], dtype=np.int32))[0])
    return {"score": score if score > -np.inf else None, "bound": -network.GetDDualBound()}


def main() -> None:
    name, method, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    warnings.simplefilter("ignore")
    potentials = model(name)
    start = time.perf_counter()
    try:
        if method == "toulbar2":
            answer = toulbar2_answer(potentials, seconds)
        else:
            answer = chordal_answer(potentials, method, seconds)
    except Exception as error:
        answer = {"problem": f"{type(error).__name__}: {error}"}
    answer["seconds"] = round(time.perf_counter() - start, 2)
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
