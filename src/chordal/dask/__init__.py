"""Fits and predictions on a Dask cluster, for data and work beyond one machine.

``fit(estimator, X, y)`` trains on partitions where they are and returns the estimator. It is then
an ordinary one: it predicts, can be saved and can be trained further without Dask. Needs the extra
"dask". See the guide to clusters.
"""

from chordal._optional import needed

with needed("dask", "chordal.dask"):
    import dask.bag  # noqa: F401

with needed("distributed", "chordal.dask"):
    import distributed  # noqa: F401

from chordal.dask._asking import Answers, predict, predict_marginals, score
from chordal.dask._crew import ClusterError
from chordal.dask._fit import fit
from chordal.dask._inputs import from_lists, from_tokens

__all__ = [
    "Answers",
    "ClusterError",
    "fit",
    "from_lists",
    "from_tokens",
    "predict",
    "predict_marginals",
    "score",
]
