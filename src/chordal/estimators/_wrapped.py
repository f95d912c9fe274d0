"""Estimators that wrap a CRF, which answers for them."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._estimator import Estimator
from chordal.estimators._asking import names_data
from chordal.estimators._crf import BaseCRF
from chordal.estimators._training.preparing import AS_GIVEN, Keeping
from chordal.estimators._training.row_forms import RowForm
from chordal.estimators.chain_crf import ChainCRF
from chordal.prepared import Dataset

if TYPE_CHECKING:
    from chordal.estimators._training.crews import Handle, Tasks
    from chordal.estimators._training.on_part import Given

F = TypeVar("F", bound=Callable[..., Any])

#: Trains a CRF on handles of parts, as `train_here` does.
Train = Callable[..., Any]


def by_parts(answer: F) -> F:
    """Make a method accept prepared data sets: it answers for the examples of each part."""

    @wraps(answer)
    def asked(self: Wrapped, X: object, *args: Any, **options: Any) -> Any:
        if not names_data(X):
            return answer(self, X, *args, **options)
        from chordal.estimators._training.keeping import answered  # not needed otherwise

        return answered(self, answer, X, args, options)

    return cast("F", asked)


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

    @property
    def on_scores(self) -> bool:
        """Whether the CRF reads a score for each label, in the order of `classes_`."""
        return False

    @abstractmethod
    def _observed(self, X: object) -> Sequence[Any]:
        """The CRF's input for these examples; raises an error before `fit`."""

    def _allowed(self, given: Sequence[Any]) -> Sequence[Any]:
        """`allowed_labels` as the CRF takes them."""
        return given

    def _learned_html(self) -> str:
        return self.crf_._learned_html() if hasattr(self, "crf_") else ""

    # Prepared data: a CRF reads the examples, and a data set keeps what it has read.

    def _check(self) -> None:
        """Raise an error for wrong parameters."""

    def _keeper(self) -> BaseCRF:
        """The CRF that reads examples for a data set."""
        return ChainCRF()

    def _tells(self, X: Any) -> bool:
        """Whether these examples, of which there are some, show what others are like."""
        return True

    def _keeping(self, X: Any) -> Keeping:
        """How examples such as these become those that this CRF reads."""
        return AS_GIVEN

    def _restored(self, part: Given, form: RowForm) -> Given:
        """The examples of a part that such a CRF has read, as `fit` takes them.

        `form` is the form of their rows; a ValueError says what differs from this model's.
        """
        if form != RowForm():
            raise ValueError(f"its rows are {form.described}")
        return part

    def _fit_parts(self, crew: Tasks, parts: list[Handle], train: Train, **options: Any) -> None:
        """Learn from parts, which may be elsewhere.

        Parameters
        ----------
        crew : Tasks
        parts : list of handles of `Given`, with examples and labels
        train : function
            ``train(crf, parts, scaled=None, checkpoint=None)`` trains a CRF on handles of parts.
        **options
            Arguments of `fit` besides the data, such as `callback`, if they are not None.
        """
        raise UnsupportedError(f"{type(self).__name__} needs examples in memory: give X and y")

    def prepare(
        self,
        path: str | os.PathLike[str],
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        append: bool = False,
    ) -> Dataset:
        """Read examples and write them to a folder that `fit` and `predict` accept.

        Memory holds a few examples and the vocabulary.

        Parameters
        ----------
        path : str or path
            The folder to create.
        X, y, sample_weight
            As in `fit`; or X is an iterator of batches (X, y) or (X, y, sample_weight).
        append : bool, default=False
            Whether to add to an existing data set.

        Examples
        --------
        >>> import tempfile
        >>> from chordal import HMM
        >>> batches = [([["sun", "rain"]], [["H", "L"]]), ([["sun"]], [["H"]])]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = HMM().prepare(f"{folder}/data", iter(batches))
        ...     data.n_examples, data.n_variables, HMM().fit(data).classes_.tolist()
        (2, 3, ['H', 'L'])
        """
        from chordal.estimators._training.keeping import keep  # not needed otherwise

        return keep(self, path, X, y, sample_weight, append)

    predict = by_parts(_asked(BaseCRF.predict))
    loss_augmented_predict = _asked(BaseCRF.loss_augmented_predict)
    predict_codes = by_parts(_asked(BaseCRF.predict_codes))
    predict_marginals = by_parts(_asked(BaseCRF.predict_marginals))
    node_scores = by_parts(_asked(BaseCRF.node_scores))
    potentials = _asked(BaseCRF.potentials)
    k_best = by_parts(_asked(BaseCRF.k_best))
    sample = by_parts(_asked(BaseCRF.sample))
    log_likelihood = _asked(BaseCRF.log_likelihood)
    entropy = by_parts(_asked(BaseCRF.entropy))
    span_probabilities = _asked(ChainCRF.span_probabilities, ChainCRF)
    _score = _asked(BaseCRF.score)

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """The share of labels that `predict` gets right; unseen labels count as wrong.

        Unobserved labels are skipped. A prepared data set has its own labels, so it needs no y.
        """
        if y is None and names_data(X, texts=True):
            from chordal.estimators._training.keeping import scored  # not needed otherwise

            return scored(self, X, sample_weight)
        return float(self._score(X, y, sample_weight))
