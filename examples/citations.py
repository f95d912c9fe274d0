"""Sort papers into fields by their words, and by the papers they cite.

Run it by `python examples/citations.py`; it reads the citation graphs Cora and CiteSeer from the
folder named by CHORDAL_DATA, and prints a table.

Half of the papers have labels. Logistic regression looks at each paper's words alone. The CRF has
the same words and an edge for every citation: papers cite their own field more often than not.
It learns by pseudo-likelihood from the labelled papers and the citations among them; then all
papers, of which the others' labels were never seen, are labelled together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from chordal import CRFClassifier, GraphCRF
from chordal.datasets import Citations, load_citations
from chordal.inference.loopy_bp import LoopyBPInference

L2 = 5.0


def compared(data: Citations, seed: int) -> tuple[float, float]:
    """Shares of unlabelled papers that logistic regression and the CRF label right."""
    known = np.random.default_rng(seed).random(len(data.y)) < 0.5
    alone = CRFClassifier(l2=L2).fit(data.X[known], data.y[known])
    labels: list[Any] = [int(k) if seen else None for k, seen in zip(data.y, known, strict=True)]
    crf = GraphCRF("pseudo_likelihood", inference=LoopyBPInference(damping=0.3, tol=1e-4), l2=L2)
    crf.fit([(data.X, data.edges)], [labels])
    found = np.asarray(crf.predict([(data.X, data.edges)], method="mpm")[0])
    return alone.score(data.X[~known], data.y[~known]), float((found == data.y)[~known].mean())


def main(n_splits: int = 3) -> dict[str, list[tuple[float, float]]]:
    """Accuracies of both, by graph and random half."""
    table = Table(title="Share of unlabelled papers in the right field", title_justify="left")
    for column in ("Graph", "Logistic regression", "CRF"):
        table.add_column(column)
    scores = {}
    for name in ("cora", "citeseer"):
        data = load_citations(name)
        scores[name] = [compared(data, seed) for seed in range(n_splits)]
        table.add_row(name, *(f"{mean:.3f}" for mean in np.mean(scores[name], axis=0)))
    Console().print(table)
    return scores


if __name__ == "__main__":
    main()
