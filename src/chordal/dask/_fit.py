"""Training on partitions on a cluster."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypeVar

from distributed import Client

from chordal._errors import UnsupportedError
from chordal._estimator import Estimator
from chordal._validate import check_choice, check_number
from chordal.dask._crew import DaskCrew, client_of
from chordal.dask._inputs import found_by, is_parted, partitions
from chordal.estimators import BaseCRF, Checkpoint, Wrapped, fit_parts, fit_wrapped, is_stored
from chordal.solvers import Callback

E = TypeVar("E", bound=Estimator)


def fit(
    estimator: E,
    X: object,
    y: object = None,
    sample_weight: object = None,
    *,
    client: Client | None = None,
    validation_data: tuple[Any, Any] | object | None = None,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
    dtype: str = "float64",
    timeout: float = 120.0,
) -> E:
    """Fit an estimator to partitions on a Dask cluster, and return it.

    The solver runs on the client. Each partition computes its part of the gradient where it is.
    Sums follow a tree that depends only on the number of partitions, so the weights are bit for bit
    the same for any number of workers. If a worker is lost, its partitions are read again
    elsewhere, and the fit continues.

    Parameters
    ----------
    estimator : an estimator of chordal
        Its parameters mean the same as in its own `fit`; `n_jobs` is for work on the client.
        Solvers that visit single examples are errors: use "lbfgs", "owlqn", "newton_cg", "adam" or
        "minibatch_lbfgs", or "one_slack" for the hinge. A mini-batch takes a share of every
        partition, also that of a `NeuralCRF`.
    X, y : Dask collections, lists of delayed values or futures, or a `Dataset`
        Bags of examples and labels with the same partitions, or one bag of pairs (x, y). Arrays or
        data frames, for estimators that read tables. Lists with a delayed list of examples, and one
        of labels, per partition; or a list of delayed pairs (X, y). For data frames of tokens see
        `from_tokens`, of sequences `from_lists`. A prepared `Dataset`, its path, or a list of them
        includes its labels; its parts are the partitions, and workers open them by path.
    sample_weight : collection of numbers, optional
    client : distributed.Client, optional
        By default the last one created.
    validation_data : (X, y), optional
        In memory, or on the cluster in one of the forms of X and y.
    callback : callable, optional
        As in `fit` of the estimator.
    checkpoint : path or Checkpoint, optional
        A file on the client, as in `fit` of the estimator. If it exists, the fit resumes from it
        to the same weights, bit for bit, with any number of workers.
    dtype : {"float64", "float32"}
        Type of the gradients that are sent. "float32" halves the traffic and gives the objective to
        about six digits.
    timeout : float
        Seconds to wait for a worker before ClusterError.

    Examples
    --------
    >>> import dask.bag
    >>> from distributed import Client
    >>> from chordal import ChainCRF
    >>> from chordal.dask import fit
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> pairs = dask.bag.from_sequence(zip(X, y), npartitions=2)
    >>> crf = fit(ChainCRF(l2=0.1), pairs, client=client)
    >>> crf.predict([[["w=a"], ["w=cat"], ["w=sleeps"]]])
    [['D', 'N', 'V']]
    >>> client.close()
    """
    if not isinstance(estimator, (BaseCRF, Wrapped)):
        raise UnsupportedError(
            f"chordal.dask does not fit {type(estimator).__name__}: give an estimator of chordal "
            "that learns from parts, such as ChainCRF. Searches run by joblib with its Dask backend"
        )
    check_choice("dtype", dtype, ["float64", "float32"])
    check_number("timeout", timeout, strict=True)
    crew = DaskCrew(client_of(client), timeout, dtype)
    with crew.talking():
        crew.require(estimator)
        given = partitions(found_by(crew, X), y, sample_weight)
        held: Any = validation_data
        if is_stored(held, None) or is_parted(held):
            held = crew.start(partitions(found_by(crew, held)))
        elif isinstance(held, (tuple, list)) and len(held) == 2 and is_parted(held[0]):
            held = crew.start(partitions(*held))
        options: dict[str, Any] = {"validation_data": held, "callback": callback}
        options["checkpoint"] = checkpoint
        if isinstance(estimator, Wrapped):
            named = {name: value for name, value in options.items() if value is not None}
            _fit_wrapped(estimator, crew, crew.start(given), dtype, named)
            return estimator
        return fit_parts(estimator, crew, crew.start(given), **options, dtype=dtype)


def _fit_wrapped(
    estimator: Wrapped, crew: DaskCrew, parts: list[Any], dtype: str, options: dict[str, Any]
) -> None:
    """Fit an estimator that wraps a CRF; the CRFs that it trains are trained on the cluster."""

    def train(crf: BaseCRF, parts: list[Any], **rest: Any) -> BaseCRF:
        return fit_parts(crf, crew, list(parts), dtype=dtype, **rest)

    fit_wrapped(estimator, crew, parts, train, **options)
