"""What every conditional random field can do: learn, and answer questions about examples."""

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

from chordal._estimator import Estimator, ExampleList
from chordal._validate import (
    RandomState,
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
from chordal.solvers import Callback, Solver
from chordal.structures import offsets_of
from chordal.targets import Target

if TYPE_CHECKING:
    from chordal.prepared import Dataset

E = TypeVar("E", bound="BaseCRF")
T = TypeVar("T")

Pair = tuple[Any, Any]


@dataclass(eq=False, repr=False)
class BaseCRF(Estimator, metaclass=ABCMeta):
    """A model made of clique templates. Subclasses give a reader, and say how labels look.

    After `fit` it is made of `reader_` (templates, and inputs that know attributes), `labels_`,
    `layout_` (which weights there are) and `weights_`. What follows is shown by `help` of every
    subclass that does not describe the same by itself.

    Parameters
    ----------
    objective : str or Objective, default="auto"
        What training minimises. "auto" is what the solver is made for, else the likelihood. "hinge"
        is the structured support vector machine. On graphs, "pseudo_likelihood" and "piecewise"
        need no inference and are quick; "stochastic_likelihood" samples.
    solver : str or Solver, default="auto"
        How. "auto" is "lbfgs" for smooth objectives; for those with kinks, such as the hinge, it is
        "one_slack" or "block_frank_wolfe", whichever suits the structure and is installed.
        `fit_report_.solver` says what it was. With l1 > 0, "lbfgs" means its orthant-wise form
        "owlqn". "newton" (few weights) and "newton_cg" use second derivatives; "adam",
        "minibatch_lbfgs" and "stochastic_meta_descent" pass over mini-batches. The online solvers
        "sgd", "averaged_perceptron", "passive_aggressive" and "arow" learn from one example after
        another; all but "sgd" have an objective of their own. A solver that needs a smooth
        objective refuses others.
    inference : str or Inference, default="auto"
        "auto" looks at the structure: exact where that is affordable (chains, trees, and graphs of
        low treewidth), else an approximation. `inference_` is what training used, and
        `fit_report_.exact` says whether it was exact; predictions choose for their own examples.
        Best labels that no exact method finds are searched for by "portfolio", for up to 5 seconds
        a call; another limit: `PortfolioInference(time_limit=…)`. Training never waits for it.
    prediction : {"auto", "map", "mpm"}
        What `predict` gives: "map", the best labelling as a whole, or "mpm", the most probable
        label of each variable by its marginals. "auto" is "map"; on graphs with loops and a smooth
        objective, such as the likelihood, it is the one that gets more labels of the training
        data right. `fit_report_.prediction` says which, and `fit_report_.prediction_scores` how
        good both are.
    l1 : float
        Regularisation by l1·‖w‖₁. Online solvers take none.
    l2 : float or dict
        Regularisation by (l2/2)·‖w‖², or by group of weights: a dict of the names of templates,
        1 for others. (CRFsuite's c2 is l2 / 2: it has no ½.) Of online solvers only "sgd" has a
        use for it.
    freeze : tuple of str
        Groups of weights that keep their starting values: those of the fit before with
        `warm_start`, else zeros.
    pairs : {"seen", "all"}
        For named attributes: weights for the labels (of cliques, labellings) seen with them in
        training, or for all. Arrays and sparse matrices always have all.
    min_freq : int
        Named attributes: leave out pairs seen less often (with pairs="all": attributes).
    ignore_label : label, optional
        A label in y that stands for "not observed", as None does. The likelihood sums over such
        variables; other objectives learn from the graph without them.
    max_iter, tol : int, float, optional
        Stop after so many iterations (1000), or when the objective falls by less than `tol`
        (1e-5), relatively, in ten iterations, or when the gradient is that small. Newton-type,
        mini-batch and online solvers have rules and defaults of their own, which None, the default,
        stands for. A solver that is given as an object keeps its own.
    validation_interval : int
        With `validation_data`, score it every so many iterations.
    n_iter_no_change : int, optional
        Stop early after so many scores without improvement, and keep the best weights.
    n_jobs : int, optional
        Threads; −1 for all cores. The result is the same, bit for bit.
    random_state : int, RandomState or None
        Seed of `sample`, of mini-batches, and of the order in which a solver visits examples,
        unless it is an object with a seed of its own.
    warm_start : bool
        `fit` starts from the weights of the fit before; new attributes and labels are added.
    class_weight : dict, "balanced" or None
        What an error costs by the gold label: {label: weight}, 1 for others, or n_variables /
        (n_classes · count). For objectives with a cost of errors, "softmax_margin" and "hinge";
        others are refused: the likelihood does not decompose over variables. Costs by
        pair of labels are given to the objective: `Hinge(WeightedHamming({(gold, label): 3}))`.
    verbose : int
        1 shows progress in a terminal, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : array of labels
    weights_ : array; see `template_weights`
    objective_, n_iter_ : final objective, iterations
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
    compact_report_: CompactReport = field(init=False)
    reader_: Reader = field(init=False)
    labels_: SequenceLabels = field(init=False)

    # Parameters of some estimators only, and what stands for them elsewhere.
    pairs: str = field(init=False, default="all")
    min_freq: int = field(init=False, default=0)
    ignore_label: object = field(init=False, default=None)

    #: What solver="auto" tries first for an objective with kinks.
    preferred_solvers: ClassVar[tuple[str, ...]] = ()
    #: What "auto" minimises where the solver has no objective of its own.
    default_objective: ClassVar[str] = "likelihood"
    #: Templates without regularisation, unless l2 names them.
    unpenalised: ClassVar[tuple[str, ...]] = ()
    #: Parameters that hold functions: a file has none, so that they are given again.
    functions: ClassVar[tuple[str, ...]] = ()
    #: How labels become numbers.
    labels_type: ClassVar[type[SequenceLabels]] = SequenceLabels

    # What subclasses say.

    @abstractmethod
    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        """What reads examples like these: templates, and inputs of their rows.

        With `keep` the model goes on learning, and the inputs that it has take over.
        """

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]:
        """What users gave as a list of examples, checked; `known` for a fitted model."""
        return check_sequences(X, name, empty=True)

    @abstractmethod
    def _groups(self) -> Sequence[str]:
        """Names of the templates, which are those of groups of weights."""

    def _types(self) -> tuple[str, ...]:
        """The types of variables that have labels of their own; none where all have the same."""
        return ()

    def _labels_type(self) -> type[SequenceLabels]:
        return TypedLabels if self._types() else self.labels_type

    def _new_labels(self) -> SequenceLabels:
        return TypedLabels(self._types()) if self._types() else self.labels_type()

    def _unlearned_labels(self) -> SequenceLabels:
        """Labels that learn from prepared data, which are read in parts."""
        return self._new_labels()

    def _begin_parts(self, X: object, y: object) -> None:
        """Look at the first data of many that will be read in parts."""

    def _check_stream(self) -> None:
        """Refuse settings that have to look at all data at once."""

    def _stored_reader(self, facts: Mapping[str, Any]) -> Reader:
        """The reader for prepared data with these facts; its inputs follow."""
        return self._reader_from(facts)

    def _take_stored(self, reader: Reader, labels: SequenceLabels, keep: bool) -> None:
        """Look at what prepared data have before learning from them."""

    def _own_facts(self) -> dict[str, Any]:
        """What `to_state` says of this class of models in particular."""
        return {}

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        """The reader of a model with these facts; its inputs follow."""
        return self._new_reader([], keep=True)

    def _check_reader(self, reader: Reader) -> None:
        """Refuse inputs that would read other rows than the model's."""

    def _flat(self, y: object, X: Sequence[Any], name: str = "y") -> Sequence[Any]:
        """Labels of every example as a sequence."""
        given = check_sequences(y, name, empty=True)
        if not self._types():
            return given
        return listed_types(given, self._types(), name, self.ignore_label)

    def _check_lengths(
        self, sizes: NDArray[np.int64], flat: Sequence[Any], prefix: str = ""
    ) -> None:
        """Refuse labels that do not match their examples."""
        check_same_lengths(sizes, flat, prefix)

    def _shaped(self, values: list[Any], X: Sequence[Any]) -> list[Any]:
        """What concerns the variables of each example, in the shape that its labels have."""
        return by_types(values, self._types()) if self._types() else values

    def _allowed(self, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        """`allowed_labels`, in the shape of labels, as a sequence of entries for each example."""
        return given

    def _allowed_in(self, batch: Batch, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        if isinstance(self.labels_, TypedLabels):
            return self.labels_.allowed(given, batch)
        return self._allowed(given, X)

    #: Whether `_glance` has anything to say.
    _glances: ClassVar[bool] = False

    def _glance(self, X: Any, y: Any, sample_weight: object) -> Any:
        """Of a part of the data, what has to be known of all parts before any is read."""

    def _know(self, glances: Sequence[Any]) -> None:
        """Take over what was seen by a glance at each part that has examples."""

    def _check_parameters(self) -> None:
        """Refuse parameters that are not of their kind."""
        from chordal.estimators._training.choosing import check_settings  # not needed to predict

        check_settings(self)

    def _best_of_one(self, X: object) -> list[Any] | None:
        """The best labels of a single example by a quicker way; None if there is none."""
        return None

    def _marginals_of_one(self, X: object) -> Floats | None:
        """The marginals of a single example by a quicker way; None if there is none."""
        return None

    # Learning.

    def fit(
        self: E,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        validation_data: Pair | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> E:
        """Learn the weights.

        Parameters
        ----------
        X : list of examples; or a `Dataset`, its path or a list of paths, without y
            Or an iterator of batches (X, y), or (X, y, sample_weight). Data on disk are read in
            parts, and memory holds the weights and few of them; those of an iterator are written
            to a temporary folder first.
        y : list of labels
            Of all variables of each example. With the likelihood, a variable may also have None
            (not observed), a set of possible labels, or a dict {label: probability}; or the labels
            of an example are an array [n_variables, n_classes] of probabilities, in the order of
            `classes_`. The hinge takes sets too, and completes them: see `Hinge`. Other objectives
            learn from the graph without the variables that are not observed.
        sample_weight : array [n_examples], optional
        validation_data : (X, y), optional
            Scored every `validation_interval` iterations.
        callback : callable, optional
            Called with an `Iteration` after each; training stops when it returns True.
            ``callback=lambda state: save(state.model(), path)`` keeps the model so far;
            `state.score`, `state.scores` and `state.best_score` are those of validation, and
            ``state.model().score(X, y)`` is any other.
        checkpoint : path or Checkpoint, optional
            Keep the state of training in this file, every 10 iterations or as a `Checkpoint` says.
            If the file is there, training goes on from it, to the same weights as if it had not
            been interrupted. A file of other data or parameters is refused; `max_iter` may change.

        Ctrl-C ends training with a warning: the model that is returned has the best weights so
        far, and `fit_report_.status` is INTERRUPTED. A second Ctrl-C within seconds, or one before
        anything was learned, raises KeyboardInterrupt; so does the first within a search.
        """
        from chordal.estimators._training.steps import fit

        keep = bool(self.warm_start) and hasattr(self, "weights_")
        options: dict[str, Any] = {"validation_data": validation_data, "callback": callback}
        return fit(self, X, y, sample_weight, **options, checkpoint=checkpoint, keep=keep)

    def partial_fit(self: E, X: object, y: object = None, sample_weight: object = None) -> E:
        """Go on learning from more data, which may hold new attributes and labels.

        The L2 term then pulls towards the weights so far instead of towards zero, so that what
        was learned before is kept where the new data say nothing.
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
        """Read examples and write them to a folder, from which `fit` and `predict` take them.

        Memory holds some examples and the vocabulary. What is written depends on how this estimator
        reads examples (its templates and feature functions), and not on the other parameters.

        Parameters
        ----------
        path : str or path
            The folder, which is made.
        X, y, sample_weight
            As `fit` takes them; or X is an iterator of batches (X, y), or (X, y, sample_weight).
        append : bool
            Add to the data set that is there.

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
        """A smaller copy; `compact_report_` says what it lost.

        Parameters
        ----------
        threshold : float
            Weights of attributes and of label pairs of this magnitude or less are dropped, and
            attributes without weights forgotten. Zero changes no prediction. Arrays and sparse
            matrices keep a weight for every column.
        dtype : {"float64", "float32", "float16"}
            Round weights to this, which a saved model is then stored in.
        X, y : optional
            Examples, and perhaps their labels, on which to measure the effect.

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
        """What was learned, as facts that JSON can hold and arrays; see `from_state`."""
        self._check_fitted()
        self._check_parameters()  # they may have been set after fit, and `from_state` checks them
        from chordal.estimators._state import to_state

        return to_state(self)

    def from_state(self: E, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> E:
        """Take over what `to_state` of a model with the same parameters gave.

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
        """What `template_weights` has of this, or zeros where the template has none."""
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
        """`class_weight` as what an error costs by the gold label."""
        return objective.with_class_weight(class_weights(self.class_weight, labels, gold)), weight
