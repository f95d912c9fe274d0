"""CRF: sklearn-crfsuite's estimator, trained by chordal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from chordal.compat import pycrfsuite
from chordal.compat.pycrfsuite._dumpparser import ParsedDump
from chordal.compat.pycrfsuite._logparser import TrainLogParser
from chordal.compat.sklearn_crfsuite._fileresource import FileResource, check_state
from chordal.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer

# What sklearn-crfsuite calls a parameter, where CRFsuite has another name.
_NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "calibration_eta": "calibration.eta",
    "calibration_rate": "calibration.rate",
    "calibration_samples": "calibration.samples",
    "calibration_candidates": "calibration.candidates",
    "calibration_max_trials": "calibration.max_trials",
    "pa_type": "type",
}
_NONE = object()  # where one of two iterables has ended
_OWN = {"algorithm", "verbose", "model_filename", "keep_tempfiles", "trainer_cls"}


class CRF(BaseEstimator):
    """Linear-chain CRF with the parameters, attributes and methods of sklearn-crfsuite's.

    A parameter of None has its algorithm's default (in parentheses). One that the algorithm does
    not know must stay None.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
        L-BFGS (with OWL-QN for c1 > 0), stochastic gradient descent, averaged perceptron,
        passive-aggressive, or AROW. ("lbfgs")
    min_freq : float
        Leave out features whose values sum to less in the training data. (0)
    all_possible_states, all_possible_transitions : bool
        Features also for pairs that do not occur in the training data. (False)
    c1, c2 : float
        Penalties c1·‖w‖₁ (lbfgs) and c2·‖w‖² (lbfgs, l2sgd). (0 and 1)
    max_iterations : int
        (lbfgs: no limit; l2sgd: 1000; others: 100)
    num_memories : int
        Steps that L-BFGS remembers. (6)
    epsilon : float
        Convergence: of the gradient (lbfgs: 1e-5), of the mean loss (ap, pa, arow: 0).
    period, delta : int, float
        Stop when the loss improved by less than `delta`, relatively, over `period` iterations.
        (10; lbfgs: 1e-5, l2sgd: 1e-6)
    linesearch, max_linesearch : str, int
        Without c1, chordal's line search is its own; with it, `max_linesearch` counts. (20)
    calibration_eta, calibration_rate, calibration_samples, calibration_candidates, \
calibration_max_trials : float, float, int, int, int
        How l2sgd finds its learning rate. (0.1, 2, 1000, 10, 20)
    pa_type, c, error_sensitive, averaging : int, float, bool, bool
        Of pa: 0 without slack, 1 PA-I, 2 PA-II; the slack's cost; whether the cost counts wrong
        labels; whether weights are averaged. (1, 1, True, True)
    variance, gamma : float
        Of arow: the weights' first variance; how much the loss counts. (1, 1)
    verbose : bool
        Print how training goes.
    model_filename : str, optional
        Where the model is kept, in CRFsuite's format. An existing model can be used at once,
        without `fit`. By default it is a temporary file.
    keep_tempfiles : bool
        Do not delete temporary files.
    trainer_cls : class, optional
        A subclass of `chordal.compat.pycrfsuite.Trainer`.

    Attributes
    ----------
    classes_ : list of labels, in order of first appearance
    state_features_ : dict of (attribute, label): weight
    transition_features_ : dict of (label from, label to): weight
    attributes_, num_attributes_ : names of the attributes with weights, and their number
    size_ : size of the model file in bytes
    tagger_ : chordal.compat.pycrfsuite.Tagger
    training_log_ : what the trainer reported, `training_log_.last_iteration` for example
    modelfile : the model's file, `modelfile.name` its path

    Before `fit` these are None.
    """

    training_log_: TrainLogParser | None = None
    _tagger: pycrfsuite.Tagger | None = None
    _info_cached: ParsedDump | None = None

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: type[pycrfsuite.Trainer] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.modelfile = self._new_modelfile()

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Any] | None = None,
    ) -> CRF:
        """Train.

        Parameters
        ----------
        X : list or generator of sequences of items
            Items are dicts or lists of attribute names, as python-crfsuite takes them.
        y : list or generator of sequences of labels, which are strings
        X_dev, y_dev : optional
            Data to report scores on while training; see `verbose` and `training_log_`.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        trainer = self._get_trainer()
        self._append(trainer, X, y, 0)
        if X_dev is not None and y_dev is not None:
            self._append(trainer, X_dev, y_dev, 1)
        holdout = -1 if X_dev is None else 1
        if trainer._data.is_empty(holdout):
            raise ValueError("X must have items to train on, got none")
        self._close()
        if self.modelfile.auto != (self.model_filename is None) or not self.modelfile.auto:
            self.modelfile = self._new_modelfile()  # set_params may have changed its name
        self.modelfile.keep_tempfiles = self.keep_tempfiles
        trainer.train(self.modelfile.refresh(), holdout=holdout)
        self.training_log_ = trainer.logparser
        return self

    def predict(self, X: Iterable[Any]) -> NDArray[Any]:
        """The labels of each sequence: an array of lists.

        As NumPy makes it of lists, it is a table where all sequences have the same length.
        """
        return np.array(self._fitted_tagger()._tag_all(X), dtype=object)

    def predict_single(self, xseq: object) -> list[str]:
        """The labels of one sequence."""
        return self._fitted_tagger().tag(xseq)

    def predict_marginals(self, X: Iterable[Any]) -> NDArray[Any]:
        """The probability of every label at each position: an array of lists of dicts.

        As NumPy makes it of lists, it is a table where all sequences have the same length.
        """
        tagger = self._fitted_tagger()
        labels = tagger.labels()
        found = [
            [dict(zip(labels, row, strict=True)) for row in table.tolist()]
            for table in tagger._marginals_all(X)
        ]
        return np.array(found, dtype=object)

    def predict_marginals_single(self, xseq: object) -> list[dict[str, float]]:
        """The probability of every label at each position of one sequence."""
        tagger = self._fitted_tagger()
        labels = tagger.labels()
        return [dict(zip(labels, row, strict=True)) for row in tagger._marginals_of(xseq)]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """The share of positions that `predict` labels right."""
        from chordal.compat.sklearn_crfsuite.metrics import flat_accuracy_score

        return flat_accuracy_score(y, self.predict(X))  # type: ignore[arg-type]

    @property
    def tagger_(self) -> pycrfsuite.Tagger | None:
        """The tagger that holds the model."""
        if self._tagger is None:
            if self.modelfile.name is None:
                return None
            tagger = pycrfsuite.Tagger()
            tagger.open(self.modelfile.name)
            self._tagger, self._info_cached = tagger, None
        return self._tagger

    @property
    def classes_(self) -> list[str] | None:
        """The labels, in order of first appearance."""
        tagger = self.tagger_
        return None if tagger is None else tagger.labels()

    @property
    def size_(self) -> int | None:
        """The size of the model file in bytes."""
        info = self._info
        return None if info is None else int(info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes with weights."""
        info = self._info
        return None if info is None else int(info.header["num_attrs"])

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes with weights."""
        info = self._info
        return None if info is None else list(info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (attribute, label)."""
        info = self._info
        return None if info is None else info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (label from, label to)."""
        info = self._info
        return None if info is None else info.transitions

    @property
    def _info(self) -> ParsedDump | None:
        tagger = self.tagger_
        if tagger is None:
            return None
        if self._info_cached is None:
            self._info_cached = tagger.info()
        return self._info_cached

    def _new_modelfile(self) -> FileResource:
        return FileResource(self.model_filename, self.keep_tempfiles, ".crfsuite", "model")

    def _get_trainer(self) -> pycrfsuite.Trainer:
        values = {k: v for k, v in self.get_params(deep=False).items() if k not in _OWN}
        params = {_NAMES.get(k, k): v for k, v in values.items() if v is not None}
        make = self.trainer_cls or LinePerIterationTrainer
        return make(algorithm=self.algorithm, params=params, verbose=self.verbose)

    def _append(
        self, trainer: pycrfsuite.Trainer, X: Iterable[Any], y: Iterable[Any], group: int
    ) -> None:
        suffix = "_dev" if group else ""
        if isinstance(X, Sized) and isinstance(y, Sized) and len(X) != len(y):
            raise ValueError(
                f"X{suffix} and y{suffix} must have the same number of sequences, "
                f"got {len(X)} and {len(y)}"
            )
        n = 0
        pairs: Iterable[tuple[Any, Any]] = zip_longest(X, y, fillvalue=_NONE)
        for xseq, yseq in pairs:
            if xseq is _NONE or yseq is _NONE:
                which = "X" if xseq is _NONE else "y"
                raise ValueError(
                    f"X{suffix} and y{suffix} must have the same number of sequences, "
                    f"{which}{suffix} ends after {n}"
                )
            try:
                trainer.append(xseq, yseq, group)
            except (TypeError, ValueError) as error:
                raise type(error)(f"X{suffix}[{n}], y{suffix}[{n}]: {error}") from error
            n += 1
        if self.verbose:
            print(f"loaded {n} sequences of {'dev' if group else 'training'} data")

    def _fitted_tagger(self) -> pycrfsuite.Tagger:
        tagger = self.tagger_
        if tagger is None:
            raise NotFittedError(
                "This CRF instance is not fitted yet; call 'fit' first, or give model_filename"
            )
        return tagger

    def _close(self) -> None:
        if self._tagger is not None:
            self._tagger.close()
        self._tagger = self._info_cached = None

    def __sklearn_is_fitted__(self) -> bool:
        return self.modelfile.name is not None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state["_tagger"] = state["_info_cached"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle, of sklearn-crfsuite's CRF too; its model is read at once."""
        check_state(state)
        missing = {k: v for k, v in CRF().get_params(deep=False).items() if k not in state}
        if "model_filename" in missing:  # versions before 0.5 did not keep it
            missing["model_filename"] = state["modelfile"].filename
        super().__setstate__({**missing, **state})
        if self.modelfile.auto and self.modelfile.name is not None:
            try:
                self.tagger_  # noqa: B018
            except ValueError as error:
                raise ValueError(f"this pickle of a CRF holds no sound model: {error}") from None
