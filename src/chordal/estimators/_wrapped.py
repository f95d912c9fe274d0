"""Estimators around a chain CRF, which answers for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from numpy.typing import NDArray

from chordal.estimators._estimator import Estimator
from chordal.estimators.chain_crf import ChainCRF


def _asked(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same question to the chain, about what it reads."""

    @wraps(method)
    def ask(self: Wrapped, X: object, *arguments: object, **options: object) -> Any:
        observed = self._observed(X)
        return method(self.crf_, observed, *arguments, **options)

    return ask


class Wrapped(Estimator):
    """What it says about examples is what its `crf_` says about what that reads."""

    classes_: NDArray[Any]
    crf_: ChainCRF

    @abstractmethod
    def _observed(self, X: object) -> Sequence[Any]:
        """What the chain reads of these examples; refuses to answer before `fit`."""

    predict = _asked(ChainCRF.predict)
    predict_codes = _asked(ChainCRF.predict_codes)
    predict_marginals = _asked(ChainCRF.predict_marginals)
    node_scores = _asked(ChainCRF.node_scores)
    k_best = _asked(ChainCRF.k_best)
    sample = _asked(ChainCRF.sample)
    log_likelihood = _asked(ChainCRF.log_likelihood)
    entropy = _asked(ChainCRF.entropy)
    span_probabilities = _asked(ChainCRF.span_probabilities)
    score = _asked(ChainCRF.score)

    def _check_fitted(self) -> None:
        if not hasattr(self, "crf_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call 'fit' first"
            )
