"""BaseCRF: training and prediction, shared by all conditional random fields."""

from __future__ import annotations

import os
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._estimator import Estimator, ExampleList
from chordal._validate import (
    RandomState,
    check_flag,
    check_same_lengths,
    check_sequences,
)
from chordal.estimators import _answers
from chordal.estimators._asking import joined, rows_of
from chordal.estimators._training.checkpoint import Checkpoint
from chordal.estimators._training.monitor import CompactReport, FitReport
from chordal.estimators._typed import TypedLabels, by_types, listed_types
from chordal.features import Batch, CliqueTemplate, Layout, Reader
from chordal.inference import Inference
from chordal.labels import SequenceLabels, class_weights
from chordal.objectives import Objective
from chordal.potentials import Floats
from chordal.prepared import Dataset
from chordal.solvers import Callback, Solver
from chordal.structures import offsets_of
from chordal.targets import Target

if TYPE_CHECKING:
    from chordal.estimators._training.stored_rows import StoredRows

E = TypeVar("E", bound="BaseCRF")
T = TypeVar("T")

#: Examples and labels; or prepared data sets, or their paths.
ValidationData = tuple[Any, Any] | Dataset | str | PathLike[str] | Sequence[Dataset | str]


@dataclass(eq=False, repr=False)
class BaseCRF(Estimator, metaclass=ABCMeta):
    """A model made of clique templates. A subclass gives the reader and the shape of its labels.

    A fitted model consists of `reader_` (the templates and the vocabulary of their inputs),
    `labels_`, `layout_` (the list of weights) and `weights_`. `help` of a subclass repeats the
    entries below that it does not describe itself.

    Parameters
    ----------
    objective : str or Objective, default="auto"
        What training minimises. "auto" is the solver's own objective if it has one, else the
        likelihood. "hinge" is the structured support vector machine. "pseudo_likelihood" and
        "piecewise" need no inference, so they are quick on graphs. "stochastic_likelihood"
        estimates the gradient from samples.
    solver : str or Solver, default="auto"
        The optimiser. "auto" is "lbfgs" for smooth objectives. For the hinge and other
        non-smooth objectives it is "one_slack" or "block_frank_wolfe", by structure and
        installed packages. `fit_report_.solver` is the name of the solver used. With l1 > 0,
        "lbfgs" means its orthant-wise variant "owlqn". "newton" (for few weights) and
        "newton_cg" use second derivatives. "adam", "minibatch_lbfgs" and
        "stochastic_meta_descent" use mini-batches. The online solvers "sgd",
        "averaged_perceptron", "passive_aggressive" and "arow" update after each example; all
        but "sgd" define their own objective. A solver that needs a smooth objective raises an
        error for any other.
    inference : str or Inference, default="auto"
        The inference method. "auto" is exact where that is affordable: on chains, trees and
        graphs of low treewidth. Elsewhere it is approximate. `inference_` is the method that
        training used, and `fit_report_.exact` tells whether it was exact. Prediction chooses
        again for its own examples. Where no exact method is affordable, `predict` searches with
        "portfolio" for up to 5 seconds per call. `PortfolioInference(time_limit=…)` changes
        this limit. Training does not use "portfolio".
    prediction : {"auto", "map", "mpm"}, default="auto"
        What `predict` returns. "map" is the labelling with the highest score. "mpm" is the label
        with the highest marginal probability at each variable. "auto" is "map", except on graphs
        with loops under a smooth objective: there it is the one that labels the training data
        better. `fit_report_.prediction` is the choice, and `fit_report_.prediction_scores` has both
        scores.
    l1 : float, default=0.0
        Strength of the L1 penalty l1·‖w‖₁. Online solvers do not support it.
    l2 : float or dict, default=1.0
        Strength of the L2 penalty (l2/2)·‖w‖². A dict {template name: strength} sets it by group of
        weights; groups that it does not name get 1. CRFsuite's c2 is l2 / 2. Of the online solvers,
        only "sgd" uses it.
    freeze : tuple of str, default=()
        Groups of weights that training does not change. They stay at zero, or with `warm_start` at
        the values of the previous fit.
    pairs : {"seen", "all"}, default="seen"
        Which (attribute, label) pairs get a weight: those seen in training, or all. This concerns
        named attributes; arrays and sparse matrices always have all.
    min_freq : int, default=0
        Drop (attribute, label) pairs that occur less often than this; with pairs="all", drop
        attributes. This concerns named attributes only.
    ignore_label : label, optional
        A label in y that means "not observed", as None does. The likelihood sums over
        unobserved variables; other objectives remove them from the graph.
    max_iter : int, optional
        Maximum number of iterations. None is the solver's default: 1000 for "lbfgs". A solver
        given as an object keeps its own.
    tol : float, optional
        Stop when the objective falls by less than this fraction in ten iterations, or when the
        gradient is this small. None is the solver's default: 1e-5 for "lbfgs". Newton,
        mini-batch and online solvers have other rules; see their pages. A solver given as an
        object keeps its own.
    validation_interval : int, default=10
        Score `validation_data` every this many iterations.
    n_iter_no_change : int, optional
        Stop early after this many validation scores without improvement, and keep the best weights.
        By default training does not stop early.
    n_jobs : int, optional
        Number of threads; −1 uses all cores. The result is bit for bit the same.
    random_state : int, RandomState or None, default=None
        Seed of `sample`, of mini-batches and of the order of examples. A solver given as an object
        with a seed keeps its own.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the previous fit. New attributes and labels are
        added.
    class_weight : dict, "balanced" or None, default=None
        Cost of an error by gold label: {label: weight}, with 1 for other labels. "balanced" is
        n_variables / (n_classes · count). Needs an objective with a cost, "softmax_margin" or
        "hinge"; others raise an error. For costs by pair of labels use
        `Hinge(WeightedHamming({(gold, label): 3}))`.
    verbose : int, default=0
        1 shows progress in a terminal; 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : array of labels
    weights_ : array of all weights; `template_weights` gives them by template
    objective_, n_iter_ : the final objective and the number of iterations
    inference_ : the inference method that training used
    fit_report_ : FitReport
    """

    templates: Sequence[CliqueTemplate] = field(init=False)  # the first parameter of TemplateCRF
    objective: str | Objective = "auto"
    solver: str | Solver = "auto"
    inference: str | Inference = "auto"
    _: KW_ONLY
    prediction: str = "auto"
    l1: float = 0.0
    l2: float | Mapping[str, float] = 1.0
    freeze: Sequence[str] = ()
    max_iter: int | None = None
    tol: float | None = None
    validation_interval: int = 10
    n_iter_no_change: int | None = None
    n_jobs: int | None = None
    random_state: RandomState = None
    warm_start: bool = False
    class_weight: Mapping[Any, float] | str | None = None
    verbose: int = 0

    classes_: NDArray[Any] = field(init=False)
    layout_: Layout = field(init=False)
    inference_: Inference = field(init=False)
    weights_: Floats = field(init=False)
    fit_report_: FitReport = field(init=False)
    objective_: float = field(init=False)
    n_iter_: int = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: NDArray[Any] = field(init=False)
    compact_report_: CompactReport = field(init=False)
    reader_: Reader = field(init=False)
    labels_: SequenceLabels = field(init=False)

    # Parameters of some estimators only, and what stands for them elsewhere.
    pairs: str = field(init=False, default="all")
    min_freq: int = field(init=False, default=0)
    ignore_label: object = field(init=False, default=None)

    #: What solver="auto" tries first for a non-smooth objective.
    preferred_solvers: ClassVar[tuple[str, ...]] = ()
    #: The objective of "auto" if the solver does not define one.
    default_objective: ClassVar[str] = "likelihood"
    #: Templates without regularisation, unless l2 names them.
    unpenalised: ClassVar[tuple[str, ...]] = ()
    #: Parameters that hold functions. Model files do not store them: `load` needs them again.
    functions: ClassVar[tuple[str, ...]] = ()
    #: Parameters on which prepared data depend, besides those that templates show.
    read_by: ClassVar[tuple[str, ...]] = ("ignore_label",)
    #: How labels become numbers.
    labels_type: ClassVar[type[SequenceLabels]] = SequenceLabels

    # What subclasses say.

    @abstractmethod
    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        """The reader for examples like these: templates, and the inputs of their rows.

        With `keep`, the inputs of the fitted model are kept and extended.
        """

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]:
        """The user's X as a checked list of examples; `known` means that the model is fitted."""
        return check_sequences(X, name, empty=True)

    def _check_alike(self, X: Sequence[Any], reader: Reader) -> None:
        """Raise an error for examples of another form than a reader has read before."""

    @abstractmethod
    def _groups(self) -> Sequence[str]:
        """The names of the templates: one group of weights each."""

    def _types(self) -> tuple[str, ...]:
        """The variable types with separate label sets; empty if all variables share one set."""
        return ()

    def _labels_type(self) -> type[SequenceLabels]:
        return TypedLabels if self._types() else self.labels_type

    def _new_labels(self) -> SequenceLabels:
        return TypedLabels(self._types()) if self._types() else self.labels_type()

    def _unlearned_labels(self) -> SequenceLabels:
        """An empty label set, which learns from prepared data part by part."""
        return self._new_labels()

    def _begin_parts(self, X: object, y: object, sample_weight: object) -> None:
        """Look at the first part of data that are read part by part."""

    def _looks_first(self) -> bool:
        """Whether `_glance` looks at all batches of an iterator before any is read."""
        return self._glances

    def _stored_reader(self, facts: Mapping[str, Any]) -> Reader:
        """The reader for prepared data with these facts; its inputs are added later."""
        return self._reader_from(facts)

    def _shapes(self, X: Sequence[Any]) -> NDArray[np.int64] | None:
        """The shapes of images, which a data set keeps; None for other examples."""
        return None

    def _restored(self, stored: StoredRows) -> Any:
        """X from what a data set has kept of it; see `examples_of`."""
        raise UnsupportedError(
            f"a data set of a {type(self).__name__} does not keep its examples: give X and y"
        )

    def _restored_labels(self, y: list[Any], X: Any) -> Any:
        """Labels of restored examples in the form of y."""
        return y

    def _take_stored(self, reader: Reader, labels: SequenceLabels, keep: bool) -> None:
        """Check prepared data before training on them."""

    def _own_facts(self) -> dict[str, Any]:
        """The facts that `to_state` adds for this class of models."""
        return {}

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        """The reader of a model with these facts; its inputs are added later."""
        return self._new_reader([], keep=True)

    def _check_reader(self, reader: Reader) -> None:
        """Raise an error for inputs that read other rows than the model's."""

    def _flat(self, y: object, X: Sequence[Any], name: str = "y") -> Sequence[Any]:
        """Labels of every example as a sequence."""
        given = check_sequences(y, name, empty=True)
        if not self._types():
            return given
        return listed_types(given, self._types(), name, self.ignore_label)

    def _check_lengths(
        self, sizes: NDArray[np.int64], flat: Sequence[Any], prefix: str = ""
    ) -> None:
        """Raise an error if labels do not match their examples."""
        check_same_lengths(sizes, flat, prefix)

    def _shaped(self, values: list[Any], X: Sequence[Any]) -> list[Any]:
        """Values per variable, reshaped to the form of each example's labels."""
        return by_types(values, self._types()) if self._types() else values

    def _allowed(self, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        """`allowed_labels`, in the shape of labels, as a sequence of entries for each example."""
        return given

    def _allowed_in(self, batch: Batch, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        if isinstance(self.labels_, TypedLabels):
            return self.labels_.allowed(given, batch)
        return self._allowed(given, X)

    #: Whether `_glance` is needed.
    _glances: ClassVar[bool] = False

    def _glance(self, X: Any, y: Any, sample_weight: object) -> Any:
        """Facts about one part of the data that are needed before any part is read."""

    def _know(self, glances: Sequence[Any]) -> None:
        """Combine the glances at all parts that have examples."""

    def _check_parameters(self) -> None:
        """Raise an error for parameters of the wrong type or value."""
        from chordal.estimators._training.choosing import check_settings  # not needed to predict

        self._check_flags()
        check_settings(self)

    def _best_of_one(self, X: object) -> list[Any] | None:
        """The best labels of one example by a faster path; None if the model has no such path."""
        return None

    def _marginals_of_one(self, X: object) -> Floats | None:
        """The marginals of one example by a faster path; None if the model has no such path."""
        return None

    # Learning.

    def fit(
        self: E,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        validation_data: ValidationData | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> E:
        """Learn the weights.

        Parameters
        ----------
        X : list of examples; or a `Dataset`, its path or a list of paths, without y
            Or an iterator of batches (X, y) or (X, y, sample_weight). Data on disk are read part by
            part, so memory holds the weights and a few parts. Batches of an iterator are first
            written to a temporary folder.
        y : list of labels
            The labels of all variables of each example. With the likelihood, a variable may also
            have None (not observed), a set of possible labels, or a dict {label: probability}. The
            labels of an example may also be an array [n_variables, n_classes] of probabilities, in
            the order of `classes_`. The hinge accepts sets and completes them: see `Hinge`. Other
            objectives remove unobserved variables from the graph.
        sample_weight : array [n_examples], optional
            Weight of each example in the objective; default 1.
        validation_data : (X, y), optional
            Examples to score every `validation_interval` iterations; or a `Dataset`, its path or a
            list of paths. Memory holds them.
        callback : callable, optional
            Called with an `Iteration` after each iteration; training stops when it returns True.
            ``callback=lambda state: save(state.model(), path)`` saves the current model.
            `state.score`, `state.scores` and `state.best_score` are the validation scores;
            ``state.model().score(X, y)`` scores any other data.
        checkpoint : path or Checkpoint, optional
            Save the state of training to this file every 10 iterations, or as the `Checkpoint`
            says. If the file exists, training resumes from it and reaches the same weights as an
            uninterrupted run. A file of other data or parameters is an error; only `max_iter` may
            change.

        Ctrl-C ends training with a warning: the model keeps the best weights so far, and
        `fit_report_.status` is INTERRUPTED. A second Ctrl-C within seconds, or one before anything
        was learned, raises KeyboardInterrupt. So does the first one inside a search.
        """
        from chordal.estimators._training.steps import fit

        options: dict[str, Any] = {"validation_data": validation_data, "callback": callback}
        options["keep"] = self._goes_on()
        return fit(self, X, y, sample_weight, **options, checkpoint=checkpoint)

    def _goes_on(self) -> bool:
        """Whether `fit` starts from the weights of the previous fit."""
        check_flag("warm_start", self.warm_start)  # before anything is read
        return bool(self.warm_start) and hasattr(self, "weights_")

    def partial_fit(self: E, X: object, y: object = None, sample_weight: object = None) -> E:
        """Continue training on more data, which may have new attributes and labels.

        The L2 penalty then pulls towards the current weights instead of zero. So the model keeps
        what it learned wherever the new data have no evidence.
        """
        from chordal.estimators._training.steps import fit

        keep = hasattr(self, "weights_")
        return fit(self, X, y, sample_weight, keep=keep, centre=keep)

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

        Memory holds a few examples and the vocabulary. The folder depends on how this estimator
        reads examples (templates and feature functions), not on its other parameters.

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
        >>> from chordal import ChainCRF
        >>> batches = [([[["w=a"], ["w=b"]]], [["A", "B"]]), ([[["w=c"]]], [["C"]])]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = ChainCRF().prepare(f"{folder}/data", iter(batches))
        ...     data.n_examples, data.n_variables, ChainCRF().fit(data).classes_.tolist()
        (2, 3, ['A', 'B', 'C'])
        """
        from chordal.estimators._training.preparing import prepare

        return prepare(self, path, X, y, sample_weight, append)

    def compact(
        self: E,
        threshold: float = 0.0,
        dtype: str = "float64",
        X: Iterable[Any] | None = None,
        y: Iterable[Any] | None = None,
    ) -> E:
        """A smaller copy of the model; `compact_report_` tells what changed.

        Parameters
        ----------
        threshold : float
            Drop weights of attributes and label pairs of this magnitude or less, and attributes
            without weights. Zero changes no prediction. Arrays and sparse matrices keep a weight
            for every column.
        dtype : {"float64", "float32", "float16"}
            Round weights to this type; a saved model is stored in it.
        X, y : optional
            Examples, and optionally labels, on which to measure the effect.

        Examples
        --------
        >>> from chordal import ChainCRF
        >>> X, y = [[["w=a", "rare"], ["w=b"]], [["w=b"], ["w=a"]]], [["A", "B"], ["B", "A"]]
        >>> small = ChainCRF(l1=0.1, l2=0.1).fit(X, y).compact(dtype="float32", X=X, y=y)
        >>> small.compact_report_.accuracy
        1.0
        """
        from chordal.estimators._state import compacted

        self._check_fitted()
        return compacted(self, threshold, dtype, X, y)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The fitted model as facts that JSON can hold and arrays; see `from_state`."""
        self._check_fitted()
        self._check_parameters()  # they may have been set after fit, and `from_state` checks them
        from chordal.estimators._state import to_state

        return to_state(self)

    def from_state(self: E, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> E:
        """Restore the fitted model that `to_state` returned; the parameters must be the same.

        Facts and arrays may come from a hostile file: they are checked, and not copied.

        Examples
        --------
        >>> from chordal import ChainCRF
        >>> X, y = [[["w=a"], ["w=b"]]], [["A", "B"]]
        >>> facts, arrays = ChainCRF(l2=0.1).fit(X, y).to_state()
        >>> ChainCRF(l2=0.1).from_state(facts, arrays).predict(X)
        [['A', 'B']]
        """
        from chordal.estimators._state import set_state

        set_state(self, facts, arrays)
        return self

    # Answers.

    predict = _answers.predict
    loss_augmented_predict = _answers.loss_augmented_predict
    predict_codes = _answers.predict_codes
    predict_marginals = _answers.predict_marginals
    node_scores = _answers.node_scores
    potentials = _answers.potentials
    k_best = _answers.k_best
    sample = _answers.sample
    log_likelihood = _answers.log_likelihood
    entropy = _answers.entropy
    score = _answers.score
    template_weights = _answers.template_weights

    def _table(self, name: str, of: str = "intercept") -> Floats:
        """This entry of `template_weights`; zeros if the template does not have it."""
        found = self.template_weights(name).get(of)
        shape = self.layout_[name].tables.shape
        return np.zeros(shape if of == "intercept" else (0, *shape)) if found is None else found

    # How answers look.

    def _learned_html(self) -> str:
        if not hasattr(self, "weights_"):
            return ""
        from chordal.estimators.opened._learned import learned_html  # for notebooks alone

        return learned_html(self)

    def _decoded(self, numbers: NDArray[np.int32], batch: Batch, X: Sequence[Any]) -> Any:
        """Numbers of labels as the labels of each example."""
        return ExampleList(self._shaped(self.labels_.decode(numbers, batch.sizes), X))

    def _arranged(self, found: Sequence[Floats], batch: Batch, X: Sequence[Any]) -> Any:
        """A number per label of every variable as an array for each example."""
        if isinstance(self.labels_, TypedLabels):
            return ExampleList(self.labels_.arranged(joined(found), batch))
        rows, limits = rows_of(found, self.labels_.order), offsets_of(batch.sizes).tolist()
        split = [rows[a:b] for a, b in pairwise(limits)]
        return ExampleList(self._shaped(split, X))

    def _class_weighted(
        self, objective: Objective, labels: SequenceLabels, gold: Target, weight: Floats | None
    ) -> tuple[Objective, Floats | None]:
        """The objective with `class_weight` as the cost of an error by gold label."""
        return objective.with_class_weight(class_weights(self.class_weight, labels, gold)), weight
