"""Papers that cite each other: a pairwise CRF beside logistic regression."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_citations_help_on_both_graphs(require, monkeypatch):
    """Means of three halves: Cora 0.754 and 0.840, CiteSeer 0.715 and 0.753."""
    for name in ("cora", "citeseer"):
        require(f"graphs/{name}.npz")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    scores = importlib.import_module("citations").main(n_splits=2)
    gain = {name: np.diff(pairs, axis=1).ravel() for name, pairs in scores.items()}
    assert gain["cora"].min() > 0.05
    assert gain["citeseer"].min() > 0.02
