"""Predictions of a fitted estimator for partitions on a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from dask import delayed
from dask.bag import Bag, from_delayed
from dask.delayed import Delayed
from distributed import Client

from chordal._errors import not_fitted
from chordal._estimator import Estimator
from chordal.dask._crew import DaskCrew, client_of
from chordal.dask._inputs import found_by, inputs, partitions
from chordal.estimators import score_part
from chordal.model_selection import CrossValidated

AHEAD = 2  # partitions in work for each thread of the cluster


class Answers:
    """The answers for every example, partition by partition, computed on demand.

    Iterating returns the answers in the order of the examples. A few partitions are computed ahead,
    so the client never holds many. `to_bag` leaves all on the cluster.

    Attributes
    ----------
    partitions : list of Delayed
        The answers of each partition.
    """

    def __init__(self, partitions: Sequence[Delayed], crew: DaskCrew, model: Any) -> None:
        self.partitions, self._crew = list(partitions), crew
        self._model = model  # a future, which is needed as long as this is

    def __iter__(self) -> Iterator[Any]:
        for part in self.by_partition():
            yield from part

    def by_partition(self) -> Iterator[Any]:
        """The answers of one partition after another, as the estimator gives them."""
        left, ahead = deque(self.partitions), deque[Any]()
        with self._crew.talking():
            room = AHEAD * max(1, sum(self._crew.workers().values()))
        k = 0
        while left or ahead:
            with self._crew.talking():
                while left and len(ahead) < room:
                    ahead.append(self._crew.client.compute(left.popleft(), optimize_graph=False))
                found = self._crew.fetch([ahead.popleft()], first=k)[0]
            yield found
            k += 1

    def to_bag(self) -> Bag:
        """A bag with an answer for each example."""
        return from_delayed(self.partitions)


def predict(
    estimator: Estimator, X: object, *, client: Client | None = None, **options: Any
) -> Answers:
    """The predicted labels of all partitions, in the order of examples.

    Parameters
    ----------
    estimator : a fitted estimator, wherever it was fitted
    X : Dask collection, or list of delayed values or futures
        As in `fit`.
    client : distributed.Client, optional
    **options
        Options of the estimator's `predict` that are the same for all examples.
    """
    return _asked(estimator, "predict", X, client, options)


def predict_marginals(
    estimator: Estimator, X: object, *, client: Client | None = None, **options: Any
) -> Answers:
    """The marginals of all partitions, in the order of examples; see `predict`."""
    return _asked(estimator, "predict_marginals", X, client, options)


def score(
    estimator: Estimator,
    X: object,
    y: object = None,
    sample_weight: object = None,
    *,
    client: Client | None = None,
) -> float:
    """The share of labels that `predict` gets right; X and y as in `fit`.

    Other metrics need all labels at once, also that of a `ChainCRFCV`.
    """
    if isinstance(estimator, CrossValidated) and hasattr(estimator, "estimator_"):
        estimator = estimator.estimator_
    crew = DaskCrew(client_of(client))
    with crew.talking():
        crew.require(estimator)
        given = crew.start(partitions(found_by(crew, X), y, sample_weight))
        parts = crew.fetch(crew.map(score_part, given, crew.share(estimator)))
    right, total = (sum(own[k] for own in parts) for k in (0, 1))
    if not total > 0.0:
        raise ValueError("nothing to score: no observed label has a positive weight")
    return float(right / total)


def _asked(
    estimator: Estimator, question: str, X: object, client: Client | None, options: dict[str, Any]
) -> Answers:
    if not hasattr(estimator, estimator.learned):
        raise not_fitted(estimator)
    crew = DaskCrew(client_of(client))
    answer = delayed(_answer, pure=False)
    with crew.talking():
        crew.require(estimator)
        model = crew.share(estimator)
        parts = [answer(part, model, question, options) for part in inputs(found_by(crew, X))]
        return Answers(parts, crew, model)


def _answer(X: Any, estimator: Any, question: str, options: dict[str, Any]) -> Any:
    return getattr(estimator, question)(X, **options)
