"""The contract of costs: prices that are sums over parts of the structure."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from chordal.costs import Cost
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials
from chordal.testing.contracts._common import copy_of, require

N_LABELLINGS = 100


def check_cost(
    cost: Cost, potentials: Potentials, labels: NDArray[np.int32], rng: np.random.Generator
) -> None:
    """Check a cost against its claims on one small model and one gold labelling.

    The cost must be 0 for the gold labelling and never negative. Added to the potentials, it must
    raise the score of every labelling by its cost, and leave the given arrays unchanged. Where it
    needs separate tables, each of these must belong to one of the given tables, so that parts can
    be added up again. Its prices in whole units, where it has them, must give the same cost.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.costs.hamming import Hamming
    >>> from chordal.testing.generators import MODELS, feasible_labels
    >>> rng = np.random.default_rng(0)
    >>> p = MODELS["chain_tied"](rng)
    >>> check_cost(Hamming(), p, feasible_labels(p, rng), rng)
    """
    structure = potentials.structure
    cost.require(structure)
    allowed = potentials.like(
        np.where(np.isfinite(potentials.unary), potentials.unary, 0.0),
        np.where(np.isfinite(potentials.tables), potentials.tables, 0.0),
    )
    given = copy_of(allowed)
    told = cost.add(given, labels)
    assert_array_equal(given.tables, allowed.tables, err_msg="add changed tables that are given")
    tables = told.table_offsets[told.table_of_clique]
    require(len(tables) == structure.n_cliques, "add lost a clique")
    _check_tying(told, potentials)

    require((cost.of(potentials, labels, labels) == 0.0).all(), "the gold labelling has a cost")
    flat = allowed.like(np.zeros_like(allowed.unary), np.zeros_like(allowed.tables))
    draws = ExhaustiveInference().sample(flat, N_LABELLINGS, rng)
    price = np.array([cost.of(potentials, predicted, labels) for predicted in draws])
    require((price >= 0.0).all(), f"a cost below zero: {price.min(initial=0.0)}")
    score = np.array([allowed.score(predicted) for predicted in draws])
    added = np.array([told.score(predicted) for predicted in draws]) - score
    off = np.abs(added - price) - 1e-9 * (1.0 + np.abs(score).max(axis=1, initial=0.0))[:, None]
    require((off <= 0.0).all(), f"add does not change the score by the cost: off by {off.max():g}")
    if cost.in_units:
        prices = cost.prices(structure, labels)
        counted = flat.like(prices.of_state.astype(np.float64), flat.tables)
        units = np.array([counted.score(predicted) for predicted in draws])
        message = "prices in units do not say the same"
        assert_allclose(prices.unit * units, price, rtol=1e-12, err_msg=message)


def _check_tying(told: Potentials, potentials: Potentials) -> None:
    """Indicators of a labelling come back as those in the given tying."""
    counts = told.structure.label_counts
    labels = (np.arange(len(counts)) % counts).astype(np.int32)
    fine = told.zeros()
    fine.add_indicators(labels)
    coarse = potentials.zeros()
    coarse.add_indicators(labels)
    back = fine.tied_as(potentials)
    assert_array_equal(back.tables, coarse.tables, err_msg="parts cannot be tied back")
    assert_array_equal(back.unary, coarse.unary, err_msg="parts cannot be tied back")
