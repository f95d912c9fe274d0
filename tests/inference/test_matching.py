"""The best matching: at any size, and where it is refused."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference.matching import MatchingInference
from chordal.potentials import Potentials, matching_potentials
from chordal.structures import Chain


def by_linear_program(scores, alone):
    """The best score, from the polytope of matchings, whose corners are whole numbers."""
    n, m = scores.shape
    pair = np.arange(n * m).reshape(n, m)
    rows = [*(np.append(pair[i], n * m + i) for i in range(n))]
    once = sp.lil_array((n, n * m + n))
    for i, columns in enumerate(rows):
        once[i, columns] = 1.0
    at_most = sp.lil_array((m, n * m + n))
    for j in range(m):
        at_most[j, pair[:, j]] = 1.0
    found = scipy.optimize.linprog(
        -np.append(scores.ravel(), alone),
        A_ub=at_most.tocsr(),
        b_ub=np.ones(m),
        A_eq=once.tocsr(),
        b_eq=np.ones(n),
        method="highs",
    )
    return -found.fun


@pytest.mark.parametrize("shape", [(12, 9), (9, 12), (10, 10), (1, 15)])
def test_as_good_as_the_linear_program(shape):
    rng = np.random.default_rng(sum(shape))
    scores, alone = rng.normal(size=shape), rng.normal(size=shape[0])
    best = MatchingInference().map(matching_potentials([scores], [alone]))
    np.testing.assert_allclose(best.score, by_linear_program(scores, alone), rtol=1e-9)
    taken = best.labels[best.labels < shape[1]]
    assert len(np.unique(taken)) == len(taken) > 0


def test_the_example_without_a_matching_is_named():
    good, bad = np.zeros((2, 2)), np.full((2, 2), -np.inf)
    potentials = matching_potentials([good, bad], [[0.0, 0.0], [-np.inf, 0.0]])
    with pytest.raises(InfeasibleError, match="1"):
        MatchingInference().map(potentials)


def test_other_tables_are_refused():
    potentials = matching_potentials([np.zeros((2, 2))])
    MatchingInference().map(potentials.untied())  # the same tables, tied otherwise
    other = potentials.like(potentials.unary, potentials.tables + 1.0)
    with pytest.raises(UnsupportedError, match=r"'matching' forbids equal targets.* clique 0 does"):
        MatchingInference().map(other)
    chain = Potentials(Chain([2], n_labels=2), np.zeros(4), np.zeros(4))
    with pytest.raises(UnsupportedError, match="'matching' does not support Chain"):
        MatchingInference().map(chain)
