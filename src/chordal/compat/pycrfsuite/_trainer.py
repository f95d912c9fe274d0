"""Trainer: collects data, trains a model and writes it to a file."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, SupportsFloat

import numpy as np

from chordal._validate import check_path
from chordal.compat.crfsuite_model import write_crfsuite, write_labels_alone
from chordal.compat.pycrfsuite import _messages
from chordal.compat.pycrfsuite._data import TrainingData
from chordal.compat.pycrfsuite._logparser import TrainLogParser
from chordal.compat.pycrfsuite._parameters import Parameters
from chordal.compat.pycrfsuite._training import tell, trained
from chordal.estimators import ChainCRF


class CRFSuiteError(Exception):
    """Kept for programs that catch it; chordal raises ValueError, TypeError and OSError."""

    def __init__(self, code: object) -> None:
        self.code = code
        super().__init__(f"CRFsuite error {code}")


class BaseTrainer:
    """A data set, and the training of models on it.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
        See `select`.
    params : dict, optional
        Training parameters; see `set`.
    verbose : bool
        Whether `message` prints.
    """

    verbose: bool | None = None
    _cleared = False
    _data: TrainingData
    _parameters: Parameters

    def __new__(cls, *args: object, **kwargs: object) -> BaseTrainer:
        # Subclasses that have their own __init__ need not call ours.
        trainer = super().__new__(cls)
        trainer._data, trainer._parameters = TrainingData(), Parameters("lbfgs")
        return trainer

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    def message(self, message: str) -> None:
        """Receive a message of the training; prints it if `verbose`. Meant to be overridden."""
        if self.verbose:
            print(message, end="")

    def append(self, xseq: object, yseq: Iterable[str], group: int = 0) -> None:
        """Add an instance: items, as many labels, and the number of its group.

        Items are dicts or lists of attribute names, or an `ItemSequence`. They are read at once:
        what becomes of them later does not matter.
        """
        self._data.append(xseq, yseq, group)
        self._cleared = False

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the algorithm; parameters get its defaults.

        "lbfgs" (L-BFGS, and OWL-QN if c1 > 0), "l2sgd" (stochastic gradient descent), "ap"
        (averaged perceptron), "pa" (passive-aggressive) or "arow".
        """
        self._parameters = Parameters(algorithm, type)

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train, and write the model to the file `model`, unless that is "".

        Instances of the group `holdout` are not trained on; the model's answers to them are
        reported after each iteration. If there is no item to train on, the model has
        labels only, and a warning says so; after `clear` that is an error.
        """
        check_path("model", model)
        if self._cleared:
            raise ValueError("The data is empty. Call Trainer.append before Trainer.train.")
        if isinstance(holdout, bool) or not isinstance(holdout, Integral):
            raise TypeError(f"holdout must be an integer, got {holdout!r:.80}")
        self._before_train()
        crf, n_features = trained(self._data, self._parameters, holdout, self.message)
        if crf is None:
            warnings.warn(
                "there was nothing to train on: the model has no weights. Call Trainer.append "
                "before Trainer.train, with items outside of the holdout group",
                stacklevel=2,
            )
        if os.fspath(model) != "":
            self._write(crf, n_features, model)

    def _write(self, crf: ChainCRF | None, n_features: int, path: str | os.PathLike[str]) -> None:
        began = time.perf_counter()
        weights, active = 0, 0
        if crf is not None:
            weights, active = len(crf.weights_), len(np.unique(crf.node_weights()[0].column))
        labels = list(self._data.labels)
        attributes = (active, self._data.source.n_columns)
        tell(self.message, _messages.stored((weights, n_features), attributes, len(labels)))
        if crf is None:
            write_labels_alone(labels, path)
        else:
            write_crfsuite(crf, path)
        self.message(f"Seconds required: {time.perf_counter() - began:.3f}\n")
        self.message("\n")

    def params(self) -> list[str]:
        """The names of the algorithm's parameters."""
        return list(self._parameters)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters."""
        if not isinstance(params, Mapping):
            raise TypeError(f"params must be a dict of name to value, got {params!r:.60}")
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """All parameters and their values."""
        return {name: self._parameters[name] for name in self._parameters}

    def set(self, name: str, value: str | SupportsFloat) -> None:
        """Set a parameter of the selected algorithm; numbers may come as text."""
        self._parameters[name] = value

    def get(self, name: str) -> str | float:
        """The value of a parameter."""
        return self._parameters[name]

    def help(self, name: str) -> str:
        """What a parameter means."""
        return self._parameters.described(name).help

    def clear(self) -> None:
        """Forget all instances."""
        self._data, self._cleared = TrainingData(), True

    def _before_train(self) -> None:
        """For subclasses: called before each training."""


class Trainer(BaseTrainer):
    """A trainer that follows its own messages.

    `logparser.last_iteration` has the facts of the last iteration. The methods `on_…` are
    called with the messages of each stage if `verbose`; they print them, and are meant to be
    overridden.

    Examples
    --------
    >>> trainer = Trainer(params={"c1": 0.1, "c2": 0.01}, verbose=False)
    >>> trainer.append([["w=the"], ["w=cat"]], ["D", "N"])
    >>> trainer.train("")
    >>> round(trainer.logparser.last_iteration["loss"], 2)
    0.53
    """

    logparser: TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        """Follow a message; calls the method for the stage that it completes."""
        if self.logparser is None:
            self.logparser = TrainLogParser()
        event = self.logparser.feed(message)
        if not self.verbose or event is None:
            return
        log = self.logparser.last_log
        if event == "featgen_progress":
            self.on_featgen_progress(log, self.logparser.featgen_percent)
        elif event == "iteration":
            self.on_iteration(log, self.logparser.last_iteration or {})
        else:
            getattr(self, f"on_{event}")(log)

    def on_start(self, log: str) -> None:
        """CRFsuite is about to make features."""
        print(log, end="")

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Percentage of features that were created."""
        print(log, end="")

    def on_featgen_end(self, log: str) -> None:
        """All features are made."""
        print(log, end="")

    def on_prepared(self, log: str) -> None:
        """Training is about to begin."""
        print(log, end="")

    def on_prepare_error(self, log: str) -> None:
        """Training cannot begin."""
        print(log, end="")

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """An iteration is done."""
        print(log, end="")

    def on_optimization_end(self, log: str) -> None:
        """Training has ended."""
        print(log, end="")

    def on_end(self, log: str) -> None:
        """The model is stored."""
        print(log, end="")
