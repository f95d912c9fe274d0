"""CoNLL-2000 learned one sentence after another: no worse than CRFsuite's learners.

Over the seeds 0 to 4, test F1 is 93.33 on average (93.21–93.38) for the averaged perceptron, 93.43
(93.30–93.53) for passive–aggressive, 92.39 (92.26–92.53) for AROW, 93.69 (93.66–93.72) for SGD, and
93.69 (93.65–93.72) for ten passes of averaged SGD. Seed 0 is the one asked for here.
"""

import pytest

from chordal import ChainCRF
from chordal.solvers.arow import AROW
from chordal.solvers.averaged_perceptron import AveragedPerceptron
from chordal.solvers.passive_aggressive import PassiveAggressive
from chordal.solvers.sgd import SGD

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.mark.parametrize(
    ("solver", "crfsuite"),
    [
        (AveragedPerceptron(max_iter=50, random_state=0), 93.29),
        (PassiveAggressive(max_iter=50, random_state=0), 93.44),
        (AROW(max_iter=50, random_state=0), 91.71),
        (SGD(max_iter=90, tol=0.0, random_state=0), 93.63),
        (SGD(max_iter=10, tol=0.0, average_after=5, random_state=0), 93.7),
    ],
    ids=["averaged perceptron", "passive-aggressive", "AROW", "SGD", "averaged SGD"],
)
def test_f1(conll2000, chunk_f1, solver, crfsuite):
    crf = ChainCRF(solver=solver, l2=1.0).fit(conll2000.X, conll2000.y)
    assert round(chunk_f1(conll2000.test_y, crf.predict(conll2000.test_X)), 2) >= crfsuite


def test_the_subgradient_method(conll2000, chunk_f1):
    """The hinge, ten passes."""
    solver = SGD(max_iter=10, tol=0.0, average_after=5, random_state=0)
    crf = ChainCRF("hinge", solver, l2=1.0).fit(conll2000.X, conll2000.y)
    assert chunk_f1(conll2000.test_y, crf.predict(conll2000.test_X)) >= 93.2
