"""Training through approximate inference: what the report says, and what is refused."""

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.estimators import GridCRF
from chordal.estimators._training.monitor import FitReport
from chordal.inference.gibbs import GibbsInference
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.potentials import Potentials
from chordal.structures import Grid


def drawn(coupling, shape=(10, 10), n=10):
    """Images drawn from a model whose neighbours attract each other, and their labels' scores."""
    rng = np.random.default_rng(0)
    grid = Grid([shape] * n, 2)
    unary = rng.normal(size=grid.n_states)
    p = Potentials(grid, unary, coupling * np.array([1.0, -1.0, -1.0, 1.0]))
    labels = GibbsInference(blocks="tree").sample(p, 1, rng)[0]
    return list(unary.reshape(n, *shape, 2)), list(labels.reshape(n, *shape))


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_a_likelihood_that_falls_without_end_is_refused(l2):
    X, y = drawn(1.5)
    with pytest.raises(UnsupportedError, match=r"'mean_field' runs away.*'tree_reweighted'"):
        GridCRF(inference="mean_field", l2=l2).fit(X, y)


def test_a_mean_field_that_is_good_enough_is_not_refused():
    X, y = drawn(0.1)
    assert GridCRF(inference="mean_field").fit(X, y).fit_report_.objective > 0.0


def test_the_report_says_whether_inference_converged():
    X, y = drawn(0.2, (4, 4))
    settled = GridCRF(inference="loopy_bp").fit(X, y).fit_report_
    hasty = GridCRF(inference=LoopyBPInference(max_iter=2), max_iter=5).fit(X, y).fit_report_
    exact = GridCRF(inference="junction_tree").fit(X, y).fit_report_
    assert settled.inference_converged is True
    assert hasty.inference_converged is False
    assert exact.inference_converged is None
    assert "did not converge on some examples" in str(hasty)
    assert "did not converge" not in str(settled) + str(exact)
    for report in (settled, hasty, exact):
        again = FitReport.from_facts(report.to_facts())
        assert again.inference_converged is report.inference_converged
