"""Estimators that wrap a CRF, which answers for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar

from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._estimator import Estimator
from chordal.estimators._crf import BaseCRF
from chordal.estimators.chain_crf import ChainCRF


def refuse_stored(estimator: object, X: object) -> None:
    """Raise an error for a prepared data set: it stores what a CRF has read."""
    if hasattr(X, "n_parts"):
        raise UnsupportedError(
            f"{type(estimator).__name__} needs examples in memory, not a prepared data set "
            "of another model: give X and y"
        )


def _asked(method: Callable[..., Any], kind: type[BaseCRF] = BaseCRF) -> Callable[..., Any]:
    """Pass a method on to the wrapped CRF, which must be of class `kind`."""

    @wraps(method)
    def ask(self: Wrapped, X: object, *arguments: object, **options: Any) -> Any:
        observed = self._observed(X)
        if not isinstance(self.crf_, kind):
            raise UnsupportedError(
                f"{method.__name__} needs a {kind.__name__}, but this model wraps a "
                f"{type(self.crf_).__name__}"
            )
        if options.get("allowed_labels") is not None:
            options["allowed_labels"] = self._allowed(options["allowed_labels"])
        return method(self.crf_, observed, *arguments, **options)

    return ask


class Wrapped(Estimator):
    """An estimator whose answers come from the CRF in `crf_`."""

    classes_: NDArray[Any]
    crf_: BaseCRF
    learned: ClassVar[str] = "crf_"

    @abstractmethod
    def _observed(self, X: object) -> Sequence[Any]:
        """The CRF's input for these examples; raises an error before `fit`."""

    def _allowed(self, given: Sequence[Any]) -> Sequence[Any]:
        """`allowed_labels` as the CRF takes them."""
        return given

    def _learned_html(self) -> str:
        return self.crf_._learned_html() if hasattr(self, "crf_") else ""

    predict = _asked(BaseCRF.predict)
    loss_augmented_predict = _asked(BaseCRF.loss_augmented_predict)
    predict_codes = _asked(BaseCRF.predict_codes)
    predict_marginals = _asked(BaseCRF.predict_marginals)
    node_scores = _asked(BaseCRF.node_scores)
    potentials = _asked(BaseCRF.potentials)
    k_best = _asked(BaseCRF.k_best)
    sample = _asked(BaseCRF.sample)
    log_likelihood = _asked(BaseCRF.log_likelihood)
    entropy = _asked(BaseCRF.entropy)
    span_probabilities = _asked(ChainCRF.span_probabilities, ChainCRF)
    score = _asked(BaseCRF.score)
