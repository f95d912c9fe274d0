"""NeuralCRF: a chain CRF whose scores of labels come from a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from importlib.metadata import version
from os import PathLike
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chordal._status import Status
from chordal._validate import (
    RandomState,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
    generator_from,
)
from chordal.estimators import (
    MAX_WEIGHT,
    ChainCRF,
    Checkpoint,
    Checkpointer,
    FitReport,
    Wrapped,
    described,
    digest,
    keep_or_raise,
    whole_fits,
)
from chordal.estimators.chain_crf import chain_crf
from chordal.execution import effective_n_jobs
from chordal.features import DenseInput
from chordal.inference import Inference
from chordal.labels import SequenceLabels, observed
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration
from chordal.torch._course import ChainNetwork, Course, Examples, Settings, fill, flat
from chordal.torch._inputs import Inputs, padded, tags_of
from chordal.torch._keeping import StageKeeper, stage_of
from chordal.torch._networks import Network, Sizes, network_of
from chordal.torch._parameters import check_parameters
from chordal.torch._training import reproducible, train


@final
@dataclass(eq=False, repr=False)
class NeuralCRF(Wrapped):
    """Chain CRF on top of a network, learned together.

    A sequence of X is an array [length, columns], images [length, height, width] (or [length,
    channels, height, width]), or a list of tokens: strings or whole numbers. The network gives each
    position a score for each label; `ChainCRF` answers all questions about them.

    Parameters
    ----------
    network : {"mlp", "cnn", "bilstm"}, nn.Module or function
        "mlp" sees each position by itself. "cnn" sees each image by itself, or of rows and tokens a
        window of neighbours. "bilstm" sees the whole sequence. A module gets inputs [batch, steps,
        …], filled up with zeros (tokens as whole numbers; 0 fills up, 1 is unknown), and the mask
        [batch, steps] if its `forward` takes a second argument. It gives scores [batch, steps,
        n_classes], and is copied. A function is called with the size of inputs (columns, shape of
        images, or number of tokens) and the number of classes, and gives a module.
    hidden, n_layers : int
        Hidden units of a layer (of the LSTM, in each direction), and hidden layers.
    embedding : int
        Length of the vectors of tokens.
    channels : int
        Of the first convolutions of images; the last has twice as many.
    window : int
        Positions that a convolution along the sequence sees; odd.
    dropout : float
        The share of hidden units that is left out in each step of training.
    training : {"joint", "two_stage", "two_stage_joint"}
        "joint" maximises the likelihood of whole sequences by all weights. "two_stage" first trains
        the network alone, by a softmax at each position, then transitions and ends with the
        network held fixed. "two_stage_joint" goes on from there with all weights.
    l2 : float
        Regularisation of transitions and ends in the second stage, as of `ChainCRF`.
    optimizer : {"adam", "adamw"}
        With `weight_decay`, Adam adds it to the gradient; AdamW shrinks the weights by themselves.
    learning_rate, weight_decay : float
    schedule : {"none", "cosine", "step"}
        How the learning rate falls: not at all, to zero along a cosine, or to a tenth after each
        third of `max_iter`.
    clip_norm : float, optional
        Longer gradients are cut to this length (5).
    max_iter : int
        Passes over the data, at most; of "two_stage_joint" in both of its stages.
    batch_size : int
        Sequences in a step.
    n_iter_no_change : int, optional
        Stop early after so many passes without a better validation score, and keep the best
        weights.
    validation_fraction : float
        With `n_iter_no_change` and no `validation_data`, the share of sequences that is held out.
    min_freq : int
        Tokens that occur less often in training are unknown.
    augment : function, optional
        Called with a list of sequences and a NumPy Generator in every step of training; gives
        sequences in their place, such as distorted images. Files do not keep it.
    n_jobs : int, optional
        Threads; −1 for all cores. Unlike elsewhere, the last digits depend on it.
    device : str
        Where the network learns and answers, such as "cpu" or "cuda".
    random_state : int, RandomState or None
        Seed of weights, batches, dropout and samples. The same seed gives the same model on one
        machine with the same `n_jobs`.
    warm_start : bool
        `fit` starts from the weights of the fit before. Labels and tokens stay what they were.
    verbose : int
        1 shows progress in a terminal, 2 prints a line per pass.

    Attributes
    ----------
    classes_ : array of labels
    module_ : nn.Module
        With `network` and `crf`, a `chordal.torch.CRF`; its tags are places in `classes_`.
    crf_ : ChainCRF
        Of the network's scores.
    fit_report_ : FitReport
        Of the last stage; `objective` is the mean loss of a position in a pass, with dropout.
    reports_ : list of FitReport, one for each stage

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["cats", "sleep"]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> model = NeuralCRF("bilstm", hidden=16, learning_rate=0.01, random_state=0).fit(X, y)
    >>> model.predict([["the", "cat", "sleeps"]])
    [['D', 'N', 'V']]
    """

    network: Network = "mlp"
    _: KW_ONLY
    hidden: int = 128
    n_layers: int = 1
    embedding: int = 64
    channels: int = 32
    window: int = 3
    dropout: float = 0.0
    training: str = "joint"
    l2: float = 1.0
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "none"
    clip_norm: float | None = 5.0
    max_iter: int = 50
    batch_size: int = 32
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    min_freq: int = 1
    augment: Callable[[list[Any], np.random.Generator], Sequence[Any]] | None = None
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: RandomState = None
    warm_start: bool = False
    verbose: int = 0

    module_: ChainNetwork = field(init=False)
    inference_: Inference = field(init=False)
    fit_report_: FitReport = field(init=False)
    reports_: list[FitReport] = field(init=False)
    objective_: float = field(init=False)
    n_iter_: int = field(init=False)

    #: A file names networks that have a name; others are given again.
    functions: ClassVar[tuple[str, ...]] = ("network",)

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: object = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> NeuralCRF:
        """Learn the network and the transitions.

        Parameters
        ----------
        X : list of sequences
        y : list of labels
            Of every position: a label, None (not observed), a set of possible labels, or a dict
            {label: probability}.
        sample_weight : array [n_sequences], optional
        validation_data : (X, y), optional
            Scored after each pass.
        callback : callable, optional
            Called with an `Iteration` after each pass; training stops when it returns True.
        checkpoint : path or Checkpoint, optional
            Keep the state of training in this file, after every pass or as a `Checkpoint` says. If
            the file is there, training goes on from it, as of other estimators.

        Ctrl-C in the last stage ends training with a warning, and the model has the best weights so
        far, as of other estimators.
        """
        self._check_parameters()
        X, y = check_sequences(X), check_sequences(y, "y")
        check_same_lengths(np.array([len(x) for x in X]), y)
        weight = check_sample_weight(sample_weight, len(X))
        weight = np.ones(len(X)) if weight is None else weight
        if not (weight > 0.0).any():
            raise ValueError("sample_weight must be positive for some sequence")
        keeper = None if checkpoint is None else Checkpointer(checkpoint, interval=1)
        unseeded = keeper is not None and self.random_state is None
        state = keeper.generator() if keeper and unseeded else self.random_state
        generator = generator_from(state)
        if self.n_iter_no_change is not None and validation_data is None:
            X, y, weight, validation_data = self._held_out(X, y, weight, generator)
        seed = int(generator.integers(2**31))
        going_on = nullcontext() if keeper is None else keeper.going_on()
        with reproducible(seed, effective_n_jobs(self.n_jobs)), going_on:
            self._learn(X, y, weight, validation_data, generator, callback, keeper)
        return self

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False))

    def _held_out(
        self, X: Sequence[Any], y: Sequence[Any], weight: Floats, generator: np.random.Generator
    ) -> tuple[list[Any], list[Any], Floats, tuple[list[Any], list[Any]]]:
        n = max(1, round(self.validation_fraction * len(X)))
        if n >= len(X):
            raise ValueError(
                f"n_iter_no_change holds out {n} of {len(X)} sequences: give more, or "
                "validation_data"
            )
        order = generator.permutation(len(X))
        out, kept = sorted(order[:n].tolist()), sorted(order[n:].tolist())
        apart = [X[i] for i in out], [y[i] for i in out]
        return [X[i] for i in kept], [y[i] for i in kept], weight[kept], apart

    def _learn(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        weight: Floats,
        validation: tuple[Any, Any] | None,
        generator: np.random.Generator,
        callback: Callback | None,
        keeper: Checkpointer | None,
    ) -> None:
        old = self if self.warm_start and hasattr(self, "module_") else None
        labels, tags = tags_of(y, None if old is None else old._labels)
        inputs = Inputs.of(X, self.min_freq) if old is None else old._inputs
        model = self._new_model(inputs, len(labels)) if old is None else deepcopy(old.module_)
        data = Examples(self._batches(X, inputs, generator), tags, weight)
        made = copy(self)  # the model so far: nothing of self changes before the end
        made._labels, made._inputs, made.module_ = labels, inputs, model
        made.classes_, made.reports_ = labels.classes, []
        settings, first, saved = self._settings(), 0, None
        stages: list[Callable[[], None]] = []
        if keeper is not None:
            keeper.check(made._fingerprint(X, tags, weight, validation, generator))
            saved = keeper.saved()

        def passes(joint: bool, last: bool) -> None:
            score = None if validation is None else made._scorer(validation, joint)
            parts = model.parameters() if joint else model.network.parameters()
            told = [made._told(callback)] if last and callback is not None else []
            course = Course(model, score, told)
            loss_of = model.joint_loss if joint else model.softmax_loss
            kept = None
            if keeper is not None:
                n = len(made.reports_)
                kept = StageKeeper(keeper, n, made.reports_, saved if n == first else None)
            train(course, loss_of, list(parts), data, generator, settings, kept)
            made._finish(course, settings)

        if self.training == "joint":
            stages = [partial(passes, True, True)]
        else:
            stages = [partial(passes, False, False), partial(made._link, X, y, weight)]
            if self.training == "two_stage_joint":
                stages.append(partial(passes, True, True))
        first, made.reports_ = stage_of(saved, len(stages))
        for stage in stages[first:]:
            with whole_fits() if stage is not stages[-1] else nullcontext():
                stage()
        made._report()
        vars(self).update(vars(made))

    def _new_model(self, inputs: Inputs, n_labels: int) -> ChainNetwork:
        sizes = Sizes(*(getattr(self, name) for name in Sizes.__dataclass_fields__))
        network = network_of(self.network, inputs, n_labels, sizes)
        return ChainNetwork(network, n_labels).to(self.device)

    def _settings(self) -> Settings:
        return Settings(*(getattr(self, name) for name in Settings._fields))

    def _batches(
        self, X: Sequence[Any], inputs: Inputs, generator: np.random.Generator
    ) -> Callable[[NDArray[np.int64]], tuple[Tensor, Tensor]]:
        """What makes batches of training: augmented, and with rare tokens hidden."""
        sequences = inputs.tensors(X)

        def batch(chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
            own = [sequences[i] for i in chosen]
            if self.augment is not None:
                made = list(self.augment([X[i] for i in chosen], generator))
                if [len(x) for x in made] != [len(x) for x in own]:
                    raise ValueError("augment must give as many sequences of the same lengths")
                own = inputs.tensors(made, "augment(X)")
            x, mask = padded(own)
            return inputs.hidden_rare(x, generator), mask

        return batch

    def _scorer(self, validation: tuple[Any, Any], joint: bool) -> Callable[[], float]:
        """The share of labels of validation data that are right; alone, those of the network."""
        X, y = check_sequences(validation[0]), check_sequences(validation[1], "y")
        check_same_lengths(np.array([len(x) for x in X]), y, "validation ")
        sequences = self._inputs.tensors(X, "validation X")
        numbers, seen = self._labels.encode(y, unknown=-1), observed(y)
        gold = np.where(numbers < 0, -1, self._labels.codes(numbers))
        if not seen.any():
            raise ValueError("validation_data has no label that is observed")

        def score() -> float:
            scores = self.module_.answers(sequences)
            if joint:
                found = self._chain().predict_codes(scores)
            else:
                found = np.concatenate(scores).argmax(axis=1)
            return float((found == gold)[seen].mean())

        return score

    def _fingerprint(
        self,
        X: Sequence[Any],
        tags: Sequence[Tensor],
        weight: Floats,
        validation: tuple[Any, Any] | None,
        generator: np.random.Generator,
    ) -> dict[str, Any]:
        """What has to be the same for training to go on."""
        given = self.get_params(deep=False)
        if self.schedule == "none":
            given.pop("max_iter")  # else steps depend on it
        for name in ("n_jobs", "verbose", "warm_start", "random_state", "network"):
            given.pop(name, None)
        return {
            "the version of chordal": version("chordal"),
            "the estimator": type(self).__name__,
            **{name: described(value) for name, value in given.items()},
            "the training data": digest(X),
            "their labels": digest([self._labels.to_facts(), [own.numpy() for own in tags]]),
            "sample_weight": digest(weight),
            "validation_data": digest(validation),
            "the network, or its weights at the start": digest(flat(self.module_)),
            "random_state": described(generator),
        }

    def _told(self, callback: Callback) -> Callback:
        """The user's callback, told how to make the model so far."""

        def so_far(state: Iteration) -> NeuralCRF:
            model = copy(self)
            model.module_ = deepcopy(self.module_)  # users may keep it
            model.crf_, model.objective_ = self._chain(), state.value
            model.inference_, model.n_iter_ = model.crf_.inference_, state.iteration
            return model

        return lambda state: callback(state._replace(model=lambda: so_far(state)))

    def _finish(self, course: Course, settings: Settings) -> None:
        if course.status is Status.INTERRUPTED:
            keep_or_raise(len(course.history), course.best is not None)
        loss = course.finish(settings)
        weights = flat(self.module_)
        self.reports_.append(
            FitReport(
                status=course.status,
                solver=settings.optimizer,
                inference="chain",
                objective=loss,
                gradient_norm=float("nan"),
                n_iter=len(course.history),
                n_evaluations=course.n_steps,
                n_weights=len(weights),
                n_nonzero=int(np.count_nonzero(weights)),
                elapsed=course.elapsed,
                history=course.history,
                validation=course.scores,
            )
        )

    def _link(self, X: Sequence[Any], y: Sequence[Any], weight: Floats) -> None:
        """The second stage: transitions and ends by the scores of the network as it is."""
        chain = self._chain().set_params(l2=self.l2, freeze=("node",))
        chain.fit(self.module_.answers(self._inputs.tensors(X)), y, sample_weight=weight)
        self.reports_.append(chain.fit_report_)
        crf = self.module_.crf
        with torch.no_grad():
            for own, learned in (
                (crf.transitions, chain.transitions_),
                (crf.start_transitions, chain.start_),
                (crf.end_transitions, chain.end_),
            ):
                own.copy_(torch.from_numpy(learned.copy()))

    def _chain(self) -> ChainCRF:
        """A chain of scores with the transitions and ends of the module."""
        crf = self.module_.crf

        def array(tensor: Tensor) -> Floats:
            return tensor.detach().double().cpu().numpy()

        return chain_crf(
            self._labels,
            DenseInput(len(self._labels)),
            np.eye(len(self._labels)),
            transitions=array(crf.transitions),
            start=array(crf.start_transitions),
            end=array(crf.end_transitions),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _report(self) -> None:
        self.module_.eval()
        self.crf_ = self._chain()
        self.inference_ = self.crf_.inference_
        self.fit_report_ = self.reports_[-1]
        self.objective_, self.n_iter_ = self.fit_report_.objective, self.fit_report_.n_iter

    def _observed(self, X: object) -> Sequence[Any]:
        self._check_fitted()
        X = check_sequences(X, empty=True)
        with reproducible(0, effective_n_jobs(self.n_jobs)):
            return self.module_.answers(self._inputs.tensors(X))

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned, as facts that JSON can hold and an array; see `from_state`."""
        self._check_fitted()
        self._check_parameters()
        facts: dict[str, Any] = {
            "labels": self._labels.to_facts(),
            "inputs": self._inputs.to_facts(),
            "objective": float(self.objective_),
            "n_iter": int(self.n_iter_),
            "reports": [report.to_facts() for report in self.reports_],
        }
        return facts, {"weights": flat(self.module_)}

    def from_state(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NeuralCRF:
        """Take over what `to_state` of a model with the same parameters gave.

        Facts and arrays may come from a hostile file: they are checked before memory is taken.
        """
        self._check_parameters()
        self._labels = SequenceLabels.from_facts(facts["labels"])
        self._inputs = Inputs.from_facts(facts["inputs"])
        weights = np.asarray(arrays["weights"], dtype=np.float64)
        if not (np.abs(weights) <= MAX_WEIGHT).all():
            raise ValueError(f"weights must be numbers of magnitude up to {MAX_WEIGHT:g}")
        self.module_ = self._filled(weights)
        self.classes_ = self._labels.classes
        self.reports_ = [FitReport.from_facts(report) for report in facts["reports"]]
        if self.reports_:
            self.fit_report_ = self.reports_[-1]
        self.objective_, self.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
        self.module_.eval()
        self.crf_ = self._chain()
        return self

    def _filled(self, weights: Floats) -> ChainNetwork:
        """The module with these weights, if they are as many as it has."""
        named = isinstance(self.network, str)
        try:
            # The sizes are a file's: on this device they take no memory.
            device = torch.device("meta") if named else nullcontext()
            with torch.random.fork_rng(devices=[]), device:
                model = self._new_model_here()
        except RuntimeError as error:
            raise ValueError(f"the network cannot be made: {error}") from None
        n = sum(tensor.numel() for tensor in model.state_dict().values())
        if n != len(weights):
            raise ValueError(f"the network has {n} weights, but the file {len(weights)}")
        model = model.to_empty(device="cpu") if named else model
        fill(model, weights)
        return model.to(self.device)

    def _new_model_here(self) -> ChainNetwork:
        """The module on the device that is the default at the moment."""
        here = copy(self)
        here.device = torch.get_default_device().type
        return here._new_model(self._inputs, len(self._labels))
