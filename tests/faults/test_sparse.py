"""Sparse matrices with indices beyond their shape, which SciPy accepts, are refused."""

import numpy as np
import pytest

sp = pytest.importorskip("scipy.sparse")
pytest.importorskip("sklearn")

from chordal import ChainCRF, CRFClassifier, GraphCRF, MultiLabelCRF  # noqa: E402
from chordal._sparse import stacked_rows  # noqa: E402

GOOD = sp.csr_matrix(np.eye(2, 4))
EDGES = [(0, 1)]


def changed(kind, index):
    """A matrix whose index was changed after SciPy had looked at it."""
    x = sp.csr_matrix(np.eye(2, 4)).asformat("csr" if kind == "indptr" else kind)
    if kind == "indptr":
        x.indptr[1] = index
    elif kind == "coo":
        x.col[-1] = index
    elif kind == "lil":
        x.rows[1][0] = index
    else:
        x.indices[-1] = index
    return x


BAD = [
    changed(kind, k) for kind in ("csr", "csc", "bsr", "coo", "lil", "indptr") for k in (10**7, -1)
]


@pytest.mark.parametrize("bad", BAD, ids=lambda x: x.format)
def test_prediction_and_training_refuse(bad):
    chain = ChainCRF(max_iter=2).fit([GOOD], [[0, 1]])
    classifier = CRFClassifier(max_iter=2).fit(GOOD, [0, 1])
    graph = GraphCRF(max_iter=2).fit([(GOOD, EDGES)], [[0, 1]])
    labels = MultiLabelCRF(max_iter=2).fit(GOOD, [[0, 1], [1, 0]])
    for call in (
        lambda: chain.predict([GOOD, bad]),
        lambda: ChainCRF().fit([GOOD, bad], [[0, 1]] * 2),
        lambda: classifier.predict(bad),
        lambda: CRFClassifier().fit(bad, [0, 1]),
        lambda: graph.predict([(bad, EDGES)]),
        lambda: labels.predict(bad),
        lambda: MultiLabelCRF().fit(GOOD, bad),
    ):
        with pytest.raises(ValueError, match=r"[Xy](\[[01]\])? is a sparse matrix w"):
            call()


def test_matrices_are_left_as_they_are():
    x = sp.csr_matrix((np.ones(3), [1, 1, 0], [0, 3]), shape=(1, 4))
    rows = stacked_rows([x, x.tocoo(), sp.csr_array(x)], 4)
    assert rows.toarray().tolist() == [[1.0, 2.0, 0.0, 0.0]] * 3
    assert x.indices.tolist() == [1, 1, 0]
    x.indices[:] = 3
    assert rows.indices.max() == 1
