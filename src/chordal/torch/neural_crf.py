"""NeuralCRF: a CRF on chains, grids or graphs whose scores of labels come from a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import RandomState, check_function, check_sample_weight, generator_from
from chordal.estimators import BaseCRF, ChainCRF, FitReport, Wrapped
from chordal.estimators.linked import check_crf
from chordal.execution import effective_n_jobs
from chordal.inference import Inference
from chordal.potentials import Floats
from chordal.solvers import Callback
from chordal.torch._forms import Form, Raw, answers, form_for
from chordal.torch._inputs import Inputs
from chordal.torch._learners import Potentials
from chordal.torch._networks import Network, Sizes
from chordal.torch._parameters import check_parameters
from chordal.torch._training import Saved, Settings, reproducible

Augment: TypeAlias = Callable[[list[Any], np.random.Generator], Sequence[Any]]


@final
@dataclass(eq=False, repr=False)
class NeuralCRF(Wrapped):
    """CRF on top of a network, learned together.

    The network gives each variable a score for each label; a CRF links the labels and answers all
    questions about them. Which CRF, says `crf`: sequences by default, or images and graphs.

    A sequence of X is an array [length, columns], images [length, height, width] (or [length,
    channels, height, width]), or a list of tokens: strings or whole numbers. With a `GridCRF`,
    examples are its images [height, width, features], with a `GraphCRF` its graphs (nodes, edges[,
    features of edges]), whose nodes are what positions of sequences may be.

    Parameters
    ----------
    network : {"mlp", "cnn", "bilstm"}, nn.Module or function
        "mlp" sees each variable by itself. "cnn" sees a window around a pixel, each image of a
        sequence or graph by itself, or of rows and tokens a window of neighbours. "bilstm" sees the
        whole sequence. A module gives scores, and is copied. Of sequences it gets inputs [batch,
        steps, …], filled up with zeros (tokens as whole numbers; 0 fills up, 1 is unknown), and the
        mask [batch, steps] if its `forward` takes a second argument; it gives [batch, steps,
        n_classes]. Of images of one size it gets [batch, features, height, width], and gives
        [batch, n_classes, height, width]. Of graphs it gets the nodes of a batch [nodes, …] and, as
        a second argument, their edges [2, n_edges]; it gives [nodes, n_classes]. A function is
        called with the size of inputs (columns, features, shape of images, or number of tokens) and
        the number of classes, and gives a module.
    crf : ChainCRF, GridCRF or GraphCRF, optional
        What links the labels, and how it is learned: tables of edges, contrast, objective,
        inference, prediction. By default ``ChainCRF(transitions="all", ends=True)``. Its solver,
        l2, tol and max_iter are those of the second stage; joint training has `weight_decay`.
    hidden, n_layers : int
        Hidden units of a layer (of the LSTM, in each direction), and hidden layers.
    embedding : int
        Length of the vectors of tokens.
    channels : int
        Of the first convolutions of images at positions; the last has twice as many.
    window : int
        Positions that a convolution along the sequence sees, and pixels in each direction of one
        over a grid; odd.
    dropout : float
        The share of hidden units that is left out in each step of training.
    training : {"joint", "two_stage", "two_stage_joint"}
        "joint" minimises the CRF's objective by all weights. "two_stage" first trains the network
        alone, by a softmax of each variable, then the links with the network held fixed.
        "two_stage_joint" goes on from there with all weights.
    optimizer : {"adam", "adamw"}
        With `weight_decay`, Adam adds it to the gradient; AdamW shrinks the weights by themselves.
    learning_rate, weight_decay : float
        The loss is the mean over variables: weight_decay = l2 / n_variables is the l2 of the CRF.
    schedule : {"none", "cosine", "step"}
        How the learning rate falls: not at all, to zero along a cosine, or to a tenth after each
        third of `max_iter`.
    clip_norm : float, optional
        Longer gradients are cut to this length (5).
    max_iter : int
        Passes over the data, at most; of "two_stage_joint" in both of its stages.
    batch_size : int
        Examples in a step.
    n_iter_no_change : int, optional
        Stop early after so many passes without a better validation score, and keep the best
        weights.
    validation_fraction : float
        With `n_iter_no_change` and no `validation_data`, the share of examples that is held out.
    min_freq : int
        Tokens that occur less often in training are unknown.
    augment : function, optional
        Called with a list of examples and a NumPy Generator in every step of training; gives
        examples of the same sizes in their place, such as distorted images, to the network. Links
        see the examples as they are. Files do not keep it.
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
        With `network`, and what links labels: `crf`, a `chordal.torch.CRF` whose tags are places in
        `classes_`, or where other settings of `crf` or other structures ask for it `links`, the
        weights of `crf_` that were learned.
    inputs_ : what reads features, with `shape` and `tokens`
    crf_ : ChainCRF, GridCRF or GraphCRF
        Of the network's scores.
    fit_report_ : FitReport
        Of the last stage; `objective` is the mean loss of a variable in a pass, with dropout.
        `inference` and `exact` say what stood for log Z and marginals.
    reports_ : list of FitReport, one for each stage

    Notes
    -----
    On graphs with loops the CRF decides as everywhere: inference is exact where that is affordable,
    else approximate, and ``GridCRF(objective="pseudo_likelihood")`` needs none.

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["cats", "sleep"]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> model = NeuralCRF("bilstm", hidden=16, learning_rate=0.01, random_state=0).fit(X, y)
    >>> model.predict([["the", "cat", "sleeps"]])
    [['D', 'N', 'V']]

    Images, whose pixels depend on their neighbours:

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

    _form: Form = field(init=False)
    _saved: Saved = field(init=False)  # of training, in checkpoints

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: object = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> NeuralCRF:
        """Learn the network and the links.

        Parameters
        ----------
        X : list of examples
        y : list of labels
            Of every variable: a label, None (not observed), a set of possible labels, or a dict
            {label: probability}, as the CRF takes them.
        sample_weight : array [n_examples], optional
        validation_data : (X, y), optional
            Scored after each pass.
        callback : callable, optional
            Called with an `Iteration` after each pass; training stops when it returns True.
        checkpoint : path, optional
            The model so far is saved there after each pass of the last stage, for `chordal.load`.
            If the file is there, training goes on from it, to the same weights as if it had not
            been interrupted, bit for bit on the CPU. A file of other data or parameters is refused.

        Ctrl-C in the last stage ends training with a warning, and the model has the best weights so
        far, as of other estimators.
        """
        self._check_parameters()
        check_function("callback", callback, "an Iteration")
        if validation_data is not None and not (
            isinstance(validation_data, (tuple, list)) and len(validation_data) == 2
        ):
            raise ValueError("validation_data must be a pair (X, y) of examples and labels")
        crf = self._given_crf()
        X = form_for(crf).examples(crf, X)
        if not len(X):
            raise ValueError("X is empty: give at least one example")
        y = _listed(y, len(X))
        weight = check_sample_weight(sample_weight, len(X))
        weight = np.ones(len(X)) if weight is None else weight
        if not (weight > 0.0).any():
            raise ValueError("sample_weight must be positive for some example")
        generator = generator_from(self.random_state)
        if self.n_iter_no_change is not None and validation_data is None:
            X, y, weight, validation_data = self._held_out(X, y, weight, generator)
        from chordal.torch._neural_fit import Given, fit  # not needed to predict

        given = Given(X, y, weight, validation_data, callback, checkpoint)
        with reproducible(int(generator.integers(2**31)), effective_n_jobs(self.n_jobs)):
            fit(self, crf, given, generator)
        return self

    def _check_parameters(self) -> None:
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
                f"n_iter_no_change holds out {n} of {len(X)} examples: give more, or "
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

    def _observed(self, X: object) -> list[Any]:
        self._check_fitted()
        form = self._form
        given = form.examples(form.crf, X)
        seen = form.seen(given)
        with reproducible(0, effective_n_jobs(self.n_jobs)):
            scores = answers(form, self.module_.network, seen, len(self.classes_))
        return form.observed(given, scores)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned, as facts that JSON can hold and arrays; see `from_state`."""
        self._check_fitted()
        self._check_parameters()
        from chordal.torch._neural_state import to_state

        return to_state(self)

    def from_state(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NeuralCRF:
        """Take over what `to_state` of a model with the same parameters gave.

        Facts and arrays may come from a hostile file: they are checked before memory is taken.
        """
        self._check_parameters()
        from chordal.torch._neural_state import set_state

        set_state(self, facts, arrays)
        return self


def _listed(y: Sequence[Any], n: int) -> Raw:
    """Labels of so many examples."""
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a list with the labels of each example, got {y!r}")
    if len(y) != n:
        raise ValueError(f"X and y must have the same length, got {n} examples and {len(y)} of y")
    return y
