"""NeuralCRF: a CRF on chains, grids or graphs, with label scores from a neural network."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, ClassVar, cast, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import RandomState, check_function, check_sample_weight
from chordal.estimators import (
    BaseCRF,
    ChainCRF,
    Checkpoint,
    Crew,
    FitReport,
    Handle,
    Keeping,
    LocalCrew,
    RowForm,
    Tasks,
    Train,
    Wrapped,
    fit_kept,
    is_kept,
    kept_validation,
)
from chordal.estimators import Given as Examples
from chordal.estimators.linked import check_crf
from chordal.execution import effective_n_jobs
from chordal.inference import Inference
from chordal.potentials import Floats
from chordal.solvers import Callback
from chordal.torch._drawing import Stream
from chordal.torch._forms import Form, Raw, answers, form_for
from chordal.torch._heads import Potentials
from chordal.torch._inputs import Inputs
from chordal.torch._keeping import glance_of, keeper_of, keeping_of, restored
from chordal.torch._networks import Network, Sizes
from chordal.torch._parameters import check_parameters, device_here
from chordal.torch._shown import Augment
from chordal.torch._threads import threads
from chordal.torch._training import UNSAVED, Saved, Settings


@final
@dataclass(eq=False, repr=False)
class NeuralCRF(Wrapped):
    """CRF on top of a neural network, trained jointly.

    The network computes a score per variable and label; a CRF links the labels and makes all
    predictions. `crf` chooses the CRF: for sequences by default, or for images or graphs.

    A sequence of X is an array [length, columns], images [length, height, width] or [length,
    channels, height, width], or a list of tokens (strings or whole numbers). With a `GridCRF`,
    examples are images [height, width, features]. With a `GraphCRF` they are graphs (nodes, edges[,
    edge features]); nodes have the same forms as positions of sequences.

    Parameters
    ----------
    network : {"mlp", "cnn", "bilstm"}, nn.Module or function, default="mlp"
        "mlp" sees single variables. "cnn" sees a window around a pixel, each image of a sequence or
        graph, or a window of neighbouring rows or tokens. "bilstm" sees the whole sequence.
        A module returns scores; it is copied. For sequences it gets inputs [batch, steps, …],
        padded with zeros (tokens as numbers: 0 is padding, 1 is unknown). If its `forward` has a
        second argument, this is the mask [batch, steps]. It returns [batch, steps, n_classes]. For
        images of one size it gets [batch, features, height, width] and returns [batch, n_classes,
        height, width]. For graphs it gets the nodes of a batch [nodes, …] and, as a second
        argument, their edges [2, n_edges]; it returns [nodes, n_classes]. A function gets the input
        size (columns, features, shape of images, or number of tokens) and the number of classes,
        and returns a module.
    crf : ChainCRF, GridCRF or GraphCRF, optional
        The CRF that links the labels, with its settings: tables of edges, contrast, objective,
        inference, prediction. Default: ``ChainCRF(transitions="all", ends=True)``. Its solver, l2,
        tol and max_iter are those of the second stage; joint training uses `weight_decay`.
    hidden, n_layers : int, default=128 and 1
        Hidden units per layer (of the LSTM, in each direction), and number of hidden layers.
    embedding : int, default=64
        Length of the token vectors.
    channels : int, default=32
        Channels of the first convolutions of images at positions; the last has twice as many.
    window : int, default=3
        Width of a convolution, in positions of a sequence or pixels of a grid; odd.
    dropout : float, default=0.0
        Share of hidden units that are dropped in each training step.
    training : {"joint", "two_stage", "two_stage_joint"}, default="joint"
        "joint" minimises the CRF's objective over all weights. "two_stage" first trains the network
        alone, with a softmax per variable, then the links with the network fixed. "two_stage_joint"
        then continues with all weights.
    optimizer : {"adam", "adamw"}, default="adam"
        Adam adds `weight_decay` to the gradient; AdamW shrinks the weights directly.
    learning_rate, weight_decay : float, default=1e-3 and 0.0
        The loss is the mean over variables, so weight_decay = l2 / n_variables corresponds to l2.
    schedule : {"none", "cosine", "step"}, default="none"
        Decay of the learning rate: none, to zero along a cosine, or to a tenth after each third of
        `max_iter`.
    clip_norm : float or None, default=5.0
        Maximum norm of the gradient; longer ones are clipped.
    max_iter : int, default=50
        Maximum number of passes over the data; for "two_stage_joint", in each of its stages.
    batch_size : int, default=32
        Number of examples per step.
    n_iter_no_change : int, optional
        Stop early after this many passes without a better validation score, and keep the best
        weights.
    validation_fraction : float, default=0.1
        Share of examples to hold out, with `n_iter_no_change` and without `validation_data`.
    min_freq : int, default=1
        Tokens that occur less often in training count as unknown.
    augment : function, optional
        Called in every training step with a list of examples and a NumPy Generator. It returns
        examples of the same sizes for the network, such as distorted images; the links see the
        original examples. Model files do not store it.
    n_jobs : int, optional
        Number of threads; −1 uses all cores. PyTorch uses no more than there are cores, and one in
        a process made by `fork`. Unlike in other estimators, the last digits depend on it.
    device : str, default="cpu"
        Device of the network, such as "cpu" or "cuda".
    random_state : int, RandomState or None
        Seed of weights, batches, dropout and samples. The same seed gives the same model on one
        machine with the same `n_jobs`.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the previous fit. Labels and tokens stay the same.
    verbose : int, default=0
        1 shows progress in a terminal; 2 prints a line per pass.

    Attributes
    ----------
    classes_ : array of labels
    module_ : nn.Module
        It has `network` and the links. These are `crf`, a `chordal.torch.CRF` whose tags are
        indices into `classes_`; or `links`, the learned weights of `crf_`, for other settings and
        structures.
    inputs_ : the reader of features, with `shape` and `tokens`
    crf_ : ChainCRF, GridCRF or GraphCRF
        The CRF; it reads the network's scores.
    fit_report_ : FitReport
        The report of the last stage. `objective` is the mean loss per variable in a pass, with
        dropout. `inference` and `exact` tell how log Z and marginals were computed.
    reports_ : list of FitReport, one for each stage

    Notes
    -----
    On graphs with loops, inference is exact if affordable, else approximate.
    ``GridCRF(objective="pseudo_likelihood")`` needs none.

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["cats", "sleep"]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> model = NeuralCRF("bilstm", hidden=16, learning_rate=0.01, random_state=0).fit(X, y)
    >>> model.predict([["the", "cat", "sleeps"]])
    [['D', 'N', 'V']]

    Images with links between neighbouring pixels:

    >>> from chordal import GridCRF
    >>> rng = np.random.default_rng(0)
    >>> y = [np.repeat([[0, 0, 1, 1]], 3, axis=0) for _ in range(5)]
    >>> X = [image[..., None] + rng.normal(size=(3, 4, 1)) for image in y]
    >>> model = NeuralCRF("cnn", GridCRF(), hidden=8, learning_rate=0.02, random_state=0)
    >>> model.fit(X, y).predict(X[:1])[0]
    array([[0, 0, 1, 1],
           [0, 0, 1, 1],
           [0, 0, 1, 1]])
    """

    network: Network = "mlp"
    crf: BaseCRF | None = None
    _: KW_ONLY
    hidden: int = 128
    n_layers: int = 1
    embedding: int = 64
    channels: int = 32
    window: int = 3
    dropout: float = 0.0
    training: str = "joint"
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
    augment: Augment | None = None
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: RandomState = None
    warm_start: bool = False
    verbose: int = 0

    module_: Potentials = field(init=False)
    inference_: Inference = field(init=False)
    fit_report_: FitReport = field(init=False)
    reports_: list[FitReport] = field(init=False)
    objective_: float = field(init=False)
    n_iter_: int = field(init=False)

    #: A file names networks that have a name. Others, and a CRF with functions, are given again.
    functions: ClassVar[tuple[str, ...]] = ("network", "crf")
    packages: ClassVar[tuple[str, ...]] = ("torch",)

    _form: Form = field(init=False)
    _saved: Saved = field(init=False, default=UNSAVED)  # of training, in checkpoints

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: object = None,
        *,
        validation_data: object = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> NeuralCRF:
        """Train the network and the links.

        Parameters
        ----------
        X : list of examples
            Or, without y, a `Dataset` that `prepare` wrote, its path, a list of them, or an
            iterator of batches (X, y) or (X, y, sample_weight). Memory then holds the weights and
            a few parts of the data; mini-batches are drawn from one part each.
        y : list of labels
            A label per variable, None (not observed), a set of possible labels, or a dict {label:
            probability}, as in the CRF.
        sample_weight : array [n_examples], optional
            Weight of each example; default 1.
        validation_data : (X, y), optional
            Scored after each pass. Or a `Dataset`, its path or a list of them, read into memory.
        callback : callable, optional
            Called with an `Iteration` after each pass; training stops when it returns True.
        checkpoint : path or Checkpoint, optional
            Save the current model to this file, for `chordal.load`: after each pass of the last
            stage, or as often as `Checkpoint` says. If the file exists, training resumes from it
            and reaches the same weights, bit for bit on the CPU. A file of other data or parameters
            is an error.

        Ctrl-C in the last stage ends training with a warning; the model has the best weights so
        far, as in other estimators.
        """
        self._check_parameters()
        check_function("callback", callback, "an Iteration")
        if validation_data is not None:
            validation_data = kept_validation(self, validation_data)
        if is_kept(X, y):
            options = {
                "validation_data": validation_data, "callback": callback, "checkpoint": checkpoint
            }  # fmt: skip
            fit_kept(self, X, y, sample_weight, **options)
            return self
        crf = self._given_crf()
        X = form_for(crf).examples(crf, X)
        if not len(X):
            raise ValueError("X is empty: give at least one example")
        from chordal.torch._neural_fit import Given, fit, listed, watch_of  # not needed to predict

        y = listed(y, len(X))
        weight = check_sample_weight(sample_weight, len(X))
        weight = np.ones(len(X)) if weight is None else weight
        if not (weight > 0.0).any():
            raise ValueError("sample_weight must be positive for some example")
        watch, generator = watch_of(self, callback, checkpoint)
        if self.n_iter_no_change is not None and validation_data is None:
            X, y, weight, validation_data = self._held_out(X, y, weight, generator)
        given = Given(X, y, weight, validation_data)
        fit(self, crf, given, watch, generator)
        return self

    def _fit_parts(self, crew: Tasks, parts: list[Handle], train: Train, **options: Any) -> None:
        self._check_parameters()
        check_function("callback", options.get("callback"), "an Iteration")
        held = options.get("validation_data")
        if held is not None and not isinstance(held, list):  # of handles
            options["validation_data"] = kept_validation(self, held)
        if isinstance(crew, LocalCrew):
            from chordal.torch._neural_disk import fit_disk

            fit_disk(self, parts, train, **options)
            return
        from chordal.torch._neural_parts import fit_parts

        fit_parts(self, cast("Crew", crew), parts, train, **options)

    def _check(self) -> None:
        self._check_parameters()

    def _keeper(self) -> BaseCRF:
        return keeper_of(self._given_crf())

    def _tells(self, X: Any) -> bool:
        return glance_of(self._given_crf(), X) is not None

    def _keeping(self, X: Any) -> Keeping:
        return keeping_of(self._given_crf(), X)

    def _restored(self, part: Examples, form: RowForm) -> Examples:
        return restored(self._given_crf(), part, form)

    def _check_parameters(self) -> None:
        self._check_flags()
        check_parameters(self.get_params(deep=False))
        if self.crf is not None:
            form_for(self.crf)
            check_crf(self.crf)

    def _given_crf(self) -> BaseCRF:
        """The parameters of the CRF, with threads and seed of this estimator."""
        crf = ChainCRF(transitions="all", ends=True) if self.crf is None else copy(self.crf)
        return crf.set_params(n_jobs=self.n_jobs, random_state=self.random_state)

    def _held_out(
        self, X: Raw, y: Raw, weight: Floats, generator: np.random.Generator
    ) -> tuple[Raw, Raw, Floats, tuple[Raw, Raw]]:
        n = max(1, round(self.validation_fraction * len(X)))
        if n >= len(X):
            raise ValueError(
                f"n_iter_no_change would hold out {n} of {len(X)} examples: give more examples, or "
                "validation_data"
            )
        order = generator.permutation(len(X))
        out, kept = sorted(order[:n].tolist()), sorted(order[n:].tolist())
        apart = [X[i] for i in out], [y[i] for i in out]
        return [X[i] for i in kept], [y[i] for i in kept], weight[kept], apart

    def _sizes(self) -> Sizes:
        return Sizes(*(getattr(self, name) for name in Sizes.__dataclass_fields__))

    def _settings(self) -> Settings:
        return Settings(*(getattr(self, name) for name in Settings._fields))

    @property
    def inputs_(self) -> Inputs:
        """What reads the features of variables: their shape, and the vocabulary of tokens."""
        self._check_fitted()
        return self._form.inputs

    @property
    def on_scores(self) -> bool:
        """Whether the CRF reads a score for each label: those of the network."""
        return True

    def _observed(self, X: object) -> list[Any]:
        self._check_fitted()
        form = self._form
        given = form.examples(form.crf, X)
        seen = form.seen(given)
        stream = Stream(0, self.network, self.dropout)
        with threads(effective_n_jobs(self.n_jobs)), stream.answer():
            scores = answers(form, self.module_.network, seen, len(self.classes_))
        return form.observed(given, scores)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The fitted model as facts that JSON can hold and arrays; see `from_state`."""
        self._check_fitted()
        self._check_parameters()
        from chordal.torch._neural_state import to_state

        return to_state(self)

    def from_state(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NeuralCRF:
        """Restore the fitted model that `to_state` returned; the parameters must be the same.

        Facts and arrays may come from a hostile file: they are checked before memory is taken.
        """
        self.device = device_here(self.device)
        self._check_parameters()
        from chordal.torch._neural_state import set_state

        set_state(self, facts, arrays)
        return self
