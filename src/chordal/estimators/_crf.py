"""What every conditional random field can do: learn, and answer questions about examples."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._errors import InfeasibleError
from chordal._estimator import Estimator, ExampleList
from chordal._status import Status
from chordal._validate import (
    RandomState,
    check_choice,
    check_number,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
    generator_from,
)
from chordal.estimators._constraints import Constraints, Transitions
from chordal.estimators._monitor import CompactReport, FitReport
from chordal.execution import effective_n_jobs, execution_for
from chordal.features import Batch, CliqueTemplate, Layout, Reader, Shard, length_of
from chordal.inference import INFERENCE, Inference, Pace, choose, most_probable_labels
from chordal.labels import SequenceLabels, class_weights, observed
from chordal.objectives import Objective
from chordal.potentials import Floats, Potentials
from chordal.solvers import Callback, Solver
from chordal.structures import Chain, offsets_of
from chordal.targets import Target

E = TypeVar("E", bound="BaseCRF")
T = TypeVar("T")

Pair = tuple[Any, Any]

#: The least share of a time limit that some of a call's examples have, however many there are.
LEAST_SHARE = 0.02


class Part(NamedTuple):
    """Some examples of a batch, and what answers a question about them."""

    potentials: Potentials
    inference: Inference
    shard: Shard
    examples: slice
    variables: slice  # theirs, in the whole batch


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

    def _new_labels(self) -> SequenceLabels:
        return self.labels_type()

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
        return check_sequences(y, name, empty=True)

    def _check_lengths(
        self, sizes: NDArray[np.int64], flat: Sequence[Any], prefix: str = ""
    ) -> None:
        """Refuse labels that do not match their examples."""
        check_same_lengths(sizes, flat, prefix)

    def _shaped(self, values: list[Any], X: Sequence[Any]) -> list[Any]:
        """What concerns the variables of each example, in the shape that its labels have."""
        return values

    def _allowed(self, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        """`allowed_labels`, in the shape of labels, as a sequence of entries for each example."""
        return given

    def _check_parameters(self) -> None:
        """Refuse parameters that are not of their kind."""
        from chordal.estimators._fitting import check_settings  # not needed to predict

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
        y: object,
        sample_weight: object = None,
        *,
        validation_data: Pair | None = None,
        callback: Callback | None = None,
    ) -> E:
        """Learn the weights.

        Parameters
        ----------
        X : list of examples
        y : list of labels
            Of all variables of each example. With the likelihood, a variable may also have None
            (not observed), a set of possible labels, or a dict {label: probability}; or the labels
            of an example are an array [n_variables, n_classes] of probabilities, in the order of
            `classes_`. Other objectives learn from the graph without the variables that are not
            observed.
        sample_weight : array [n_examples], optional
        validation_data : (X, y), optional
            Scored every `validation_interval` iterations.
        callback : callable, optional
            Called with an `Iteration` after each; training stops when it returns True.
            ``callback=lambda state: save(state.model(), path)`` keeps the model so far.

        Ctrl-C ends training with a warning: the model that is returned has the best weights so
        far, and `fit_report_.status` is INTERRUPTED. A second Ctrl-C within seconds, or one before
        anything was learned, raises KeyboardInterrupt; so does the first within a search.
        """
        from chordal.estimators._fitting import fit

        keep = bool(self.warm_start) and hasattr(self, "weights_")
        options: dict[str, Any] = {"validation_data": validation_data, "callback": callback}
        return fit(self, X, y, sample_weight, **options, keep=keep)

    def partial_fit(self: E, X: object, y: object, sample_weight: object = None) -> E:
        """Go on learning from more data, which may hold new attributes and labels.

        The L2 term then pulls towards the weights so far instead of towards zero, so that what
        was learned before is kept where the new data say nothing.
        """
        from chordal.estimators._fitting import fit

        keep = hasattr(self, "weights_")
        return fit(self, X, y, sample_weight, keep=keep, centre=keep)

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
        from chordal.estimators._compact import compacted

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

    def predict(
        self,
        X: object,
        *,
        method: str | None = None,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> Any:
        """The labels of each example, in the type in which `fit` got them.

        Parameters
        ----------
        method : {"map", "mpm"}, optional
            The best labelling as a whole, or the best label of each variable by its marginal
            probability. By default the first, or the second where `inference` is a method such as
            "mean_field", which has marginals only.
        allowed_labels : list, optional
            Known and forbidden labels, in the shape of y: for each example None, or for each
            variable None (all labels), the label that is known, a list of those that are allowed,
            or flags in the order of `classes_`. Of `MatchingModel` labels are targets, and flags
            end with that of having none.
        allowed_transitions : {"auto", "bio", "iob1", "iobes", "bilou"}, matrix or pairs, optional
            On chains, only these: legal tags of a scheme ("auto": the one that the labels are
            of), a boolean matrix [from, to] in the order of `classes_`, or pairs (from, to) of
            labels.

        Examples
        --------
        The first word is known to be a determiner, and the second is no verb:

        >>> from chordal import ChainCRF
        >>> X = [[["the"], ["cat"], ["sleeps"]], [["cat"], ["sleeps"]]]
        >>> crf = ChainCRF(l2=0.1).fit(X, [["D", "N", "V"], ["N", "V"]])
        >>> crf.predict([[["the"], ["sleeps"]]])
        [['N', 'V']]
        >>> crf.predict([[["the"], ["sleeps"]]], allowed_labels=[["D", ["D", "N"]]])
        [['D', 'N']]
        """
        constraints = self._constraints(allowed_labels, allowed_transitions)
        labels = self._best_of_one(X) if method is None and constraints is None else None
        if labels is not None:
            return ExampleList([labels])
        X, batch, numbers = self._best(X, method, constraints)
        return self._decoded(numbers, batch, X)

    def predict_codes(
        self,
        X: object,
        *,
        method: str | None = None,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> NDArray[np.int32]:
        """What `predict` finds, as indices into `classes_`, one example after another.

        An array of numbers takes a fraction of the time of lists of labels.
        """
        constraints = self._constraints(allowed_labels, allowed_transitions)
        labels = self._best_of_one(X) if method is None and constraints is None else None
        if labels is not None:
            return self.labels_.codes(self.labels_.encode([labels]))
        _, _, numbers = self._best(X, method, constraints)
        return self.labels_.codes(numbers)

    def predict_marginals(
        self,
        X: object,
        template: str | None = None,
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> Any:
        """P(y_v | x) of the variables of each example, arrays [n_variables, n_classes] in the
        order of `classes_`; or of the cliques of a template.

        Parameters
        ----------
        template : str, optional
            Its name: arrays [n_cliques, n_classes, …], an axis of classes for each variable of a
            clique. On chains, "transitions" gives P(y_t, y_{t+1} | x).
        allowed_labels, allowed_transitions
            As in `predict`.
        """
        constraints = self._constraints(allowed_labels, allowed_transitions)
        if template is not None:
            return self._clique_marginals(X, template, constraints)
        if constraints is None:
            table = self._marginals_of_one(X)
            if table is not None:
                return ExampleList([table])

        def answer(part: Part) -> Floats:
            return part.inference.marginals(part.potentials, overwrite=True).parts.unary

        X, batch, found = self._ask(X, "marginals", answer, constraints)
        return self._arranged(_joined(found), batch, X)

    def _clique_marginals(
        self, X: object, name: str, constraints: Constraints | None
    ) -> list[Floats]:
        """P(labels of a clique | x), an array for each example."""
        self._check_fitted()
        layout = self.layout_
        check_choice("template", name, layout.slices)
        k, own = list(layout.slices).index(name), layout[name]
        order, shape = self.labels_.order, (layout.n_labels,) * own.order
        axes = np.ix_(*[order] * own.order)

        def answer(part: Part) -> Floats:
            if own.order == 1:
                unary = part.inference.marginals(part.potentials, overwrite=True).parts.unary
                of, rows = part.shard.variables[k], unary.reshape(-1, layout.n_labels)
                return (rows if of is None else rows[of])[:, order]
            parts = part.inference.marginals(part.potentials.untied(), overwrite=True).parts
            starts, places = parts.table_offsets[parts.table_of_clique], part.shard.places
            if places is not None:
                group = next(g for g, members in enumerate(batch.groups) if k in members)
                starts = starts[places[group]]
            tables = parts.tables[starts[:, None] + np.arange(own.tables.n_cells)]
            return tables.reshape(-1, *shape)[(slice(None), *axes)]

        X, batch = self._batch(X)
        _, _, found = self._ask(X, "marginals", answer, constraints, batch=batch)
        if not found:
            return []
        return np.split(np.concatenate(found), batch.cliques[k].offsets[1:-1])

    def node_scores(self, X: object) -> Any:
        """Scores of labels before any link counts, arrays [n_variables, n_classes].

        What the observations of a variable give to each label, with intercepts and ends: features
        of a second model, such as one with more links.

        Examples
        --------
        >>> from chordal import ChainCRF
        >>> model = ChainCRF(transitions="none").fit([[["a"], ["b"]]], [["A", "B"]])
        >>> scores = model.node_scores([[["b"], ["a"], ["?"]]])[0]
        >>> model.classes_[scores[:2].argmax(axis=1)].tolist(), scores[2].tolist()
        (['B', 'A'], [0.0, 0.0])
        """
        X, batch, found = self._ask(X, None, lambda part: part.potentials.unary)
        return self._arranged(_joined(found), batch, X)

    def potentials(
        self,
        X: object,
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> Potentials:
        """All scores of a batch, as every inference method takes them.

        Labels are numbered by their places in `classes_`, as in `predict_codes`: the numbers that
        inference finds are indices into `classes_`. (Of `MatchingModel`, a label is the number of a
        target, and the last one stands for none.)

        Parameters
        ----------
        allowed_labels, allowed_transitions
            As in `predict`: what is not allowed has the score −inf.

        Examples
        --------
        >>> from chordal import ChainCRF
        >>> from chordal.inference import INFERENCE
        >>> X, y = [[["w=a"], ["w=b"]], [["w=b"]]], [["A", "B"], ["B"]]
        >>> crf = ChainCRF().fit(X, y)
        >>> potentials = crf.potentials(X)
        >>> found = INFERENCE.resolve("chain").map(potentials).labels
        >>> crf.classes_[found]
        array(['A', 'B', 'B'], dtype='<U1')
        >>> bool(np.all(potentials.score(found) >= potentials.score([0, 0, 0])))
        True
        """
        constraints = self._constraints(allowed_labels, allowed_transitions)
        _, batch, found = self._ask(
            X, None, lambda part: part.potentials, constraints, serial=True, whole=True
        )
        if not found:
            return Potentials(Chain([], self.layout_.n_labels), [], [])
        if batch.label_counts is not None:
            return found[0]
        return _relabelled(found[0], self.labels_.order)

    def k_best(
        self,
        X: object,
        k: int = 5,
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> list[list[tuple[Any, float]]]:
        """For each example up to k labellings with their log-probabilities, best first."""
        check_number("k", k, minimum=1, integer=True)

        def answer(part: Part) -> tuple[NDArray[np.int32], Floats]:
            labels, score = part.inference.k_best(part.potentials, k)
            return labels, score - part.inference.log_partition(part.potentials)[:, None]

        constraints = self._constraints(allowed_labels, allowed_transitions)
        X, batch, found = self._ask(X, "k_best", answer, constraints)
        ranked = self._labellings([labels for labels, _ in found], batch, X)
        chances = [own for _, of_part in found for own in of_part.tolist()]
        return [
            [(y, p) for y, p in zip(own, of_example, strict=True) if p > -np.inf]
            for own, of_example in zip(ranked, chances, strict=True)
        ]

    def sample(
        self,
        X: object,
        n_samples: int = 1,
        *,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> list[list[Any]]:
        """For each example n samples from p(y | x); exact where the inference method is."""
        check_number("n_samples", n_samples, minimum=1, integer=True)
        rng = generator_from(self.random_state)

        def answer(part: Part) -> NDArray[np.int32]:
            return part.inference.sample(part.potentials, n_samples, rng)

        constraints = self._constraints(allowed_labels, allowed_transitions)
        X, batch, found = self._ask(X, "sample", answer, constraints, serial=True)
        return self._labellings(found, batch, X)

    def log_likelihood(self, X: object, y: object) -> Floats:
        """log p(y | x) of each example; as good as the log Z of the inference method."""
        X, batch, labels = self._labelled(X, y)
        gold = self.labels_.encode(labels)

        def answer(part: Part) -> Floats:
            score = part.potentials.score(gold[part.variables])
            return score - part.inference.log_partition(part.potentials)

        _, _, found = self._ask(X, "log_partition", answer, batch=batch)
        return _joined(found)

    def entropy(self, X: object) -> Floats:
        """The entropy of p(y | x) of each example, in nats: how unsure the model is."""
        _, _, found = self._ask(X, "entropy", lambda part: part.inference.entropy(part.potentials))
        return _joined(found)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of labels that `predict` gets right; unseen labels count as wrong, and those
        that are not observed are left out.
        """
        X, batch, labels = self._labelled(X, y)
        weight = check_sample_weight(sample_weight, length_of(X))
        gold, seen = self.labels_.encode(labels, unknown=-1), observed(labels, self.ignore_label)
        _, _, numbers = self._best(X, None, None, batch)
        weight = np.ones(len(batch.sizes)) if weight is None else weight
        of_variable = np.repeat(weight, batch.sizes)
        total = float(of_variable[seen].sum())
        if not total > 0.0:
            raise ValueError("there is nothing to score: no label with a weight is observed")
        return float(of_variable[seen & (numbers == gold)].sum() / total)

    def template_weights(self, name: str) -> dict[str, NDArray[Any]]:
        """The weights of a template, with labels in the order of `classes_`.

        Returns
        -------
        dict
            "features": array [n_features, n_classes, …], an axis of classes for each variable of a
            clique; "intercept": array [n_classes, …]. Only those that the template has.
        """
        self._check_fitted()
        check_choice("name", name, self.layout_.slices)
        own, weights = self.layout_[name], self.weights_[self.layout_.slices[name]]
        n, tables, out = own.n_row_weights, own.tables, {}
        every = np.arange(tables.n_labels)  # rows of labels have one
        order = self.labels_.order if tables.n_labels == self.layout_.n_labels else every
        axes, shape = np.ix_(*[order] * tables.order), (tables.n_labels,) * tables.order
        source = self.reader_.input(name)
        if own.rows is not None and source is not None:
            keys = own.rows.keys()
            table = np.zeros((source.n_columns, tables.n_outputs))
            table[keys.column, keys.output] = weights[:n]
            cells = tables.filled(table).reshape(-1, *shape)
            out["features"] = np.stack([cell[axes] for cell in cells]) if len(cells) else cells
        filled = own.table(weights[n:])
        if filled is not None:
            out["intercept"] = filled.reshape(shape)[axes]
        return out

    def _table(self, name: str, of: str = "intercept") -> Floats:
        """What `template_weights` has of this, or zeros where the template has none."""
        found = self.template_weights(name).get(of)
        shape = (self.layout_.n_labels,) * self.layout_[name].order
        return np.zeros(shape if of == "intercept" else (0, *shape)) if found is None else found

    # How questions are asked.

    def _constraints(
        self, allowed_labels: Sequence[Any] | None, allowed_transitions: Transitions | None
    ) -> Constraints | None:
        if allowed_labels is None and allowed_transitions is None:
            return None
        self._check_fitted()
        return Constraints(self.labels_, allowed_labels, allowed_transitions)

    def _best(
        self,
        X: object,
        method: str | None,
        constraints: Constraints | None,
        batch: Batch | None = None,
    ) -> tuple[Sequence[Any], Batch, NDArray[np.int32]]:
        """Examples, their batch, and the numbers of their best labels."""
        if method is not None:
            check_choice("method", method, ["map", "mpm"])
        question = {"map": "map", "mpm": "marginals", None: self._decoding()}[method]

        def answer(part: Part) -> NDArray[np.int32]:
            return decoded(part.potentials, part.inference, question)

        X, batch, found = self._ask(X, question, answer, constraints, batch=batch)
        return X, batch, np.concatenate([np.zeros(0, dtype=np.int32), *found])

    def _decoding(self) -> str:
        """The question whose answer has the labels to predict."""
        if self.inference == "auto":
            return "map"
        answers = INFERENCE.resolve(self.inference).answers
        return "marginals" if "marginals" in answers and "map" not in answers else "map"

    def _method(
        self,
        question: str,
        potentials: Potentials,
        pace: Pace = Pace.SECONDS,
        share: float = 1.0,
    ) -> Inference:
        """What answers a question about these potentials, a share of all that are asked about."""
        if self.inference == "auto":
            method = choose(potentials, question, pace)
            if method.time_limit is not None:  # that of a call, by default
                method.time_limit *= max(share, LEAST_SHARE)
            return method
        method = INFERENCE.resolve(self.inference)
        method.require(question, potentials.structure)
        return method

    def _ask(
        self,
        X: Any,
        question: str | None,
        answer: Callable[[Part], T],
        constraints: Constraints | None = None,
        *,
        batch: Batch | None = None,
        serial: bool = False,
        whole: bool = False,
    ) -> tuple[Sequence[Any], Batch, list[T]]:
        """Examples, their batch, and answers to a question, shard by shard or of the `whole`."""
        self._check_fitted()
        if batch is None:
            X, batch = self._batch(X)
        if constraints is not None:
            constraints.check(batch, lambda given: self._allowed(given, X))
        layout, expanded, given = self.layout_, self.layout_.expanded(self.weights_), batch

        def ask(limits: tuple[int, int]) -> T:
            begin, end = limits
            shard = layout.compile(given, begin, end, once=True)
            potentials = layout.potentials(shard, expanded)
            if constraints is not None:
                potentials = constraints.apply(potentials, begin)
            variables = slice(int(given.offsets[begin]), int(given.offsets[end]))
            share = (variables.stop - variables.start) / max(1, int(given.offsets[-1]))
            method = (
                self.inference_
                if question is None
                else self._method(question, potentials, share=share)
            )
            try:
                return answer(Part(potentials, method, shard, slice(begin, end), variables))
            except InfeasibleError as error:
                raise error.moved(begin) from None

        n_jobs = 1 if serial else effective_n_jobs(self.n_jobs)
        with execution_for(n_jobs) as mapper:
            limits = batch.limits(layout.n_labels)
            return (
                X,
                batch,
                mapper.map(ask, [(0, len(batch.sizes))] if whole and limits else limits),
            )

    def _batch(self, X: object) -> tuple[Sequence[Any], Batch]:
        """Examples, checked and read; none make an empty batch."""
        X = self._examples(X, known=True)
        if length_of(X) == 0:
            return X, Batch(np.zeros(0, dtype=np.int64), [])
        return X, self.reader_.read(X, grow=False)

    def _labelled(self, X: object, y: object) -> tuple[Sequence[Any], Batch, Sequence[Any]]:
        """Examples, their batch, and labels that match them."""
        self._check_fitted()
        X, batch = self._batch(X)
        labels = self._flat(y, X)
        self._check_lengths(batch.sizes, labels)
        return X, batch, labels

    def _decoded(self, numbers: NDArray[np.int32], batch: Batch, X: Sequence[Any]) -> Any:
        """Numbers of labels as the labels of each example."""
        return ExampleList(self._shaped(self.labels_.decode(numbers, batch.sizes), X))

    def _labellings(
        self, found: Sequence[NDArray[np.int32]], batch: Batch, X: Sequence[Any]
    ) -> list[list[Any]]:
        """For each example its labellings, of arrays that have a row for each."""
        if not found:
            return []
        decoded = [self._decoded(row, batch, X) for row in np.concatenate(found, axis=1)]
        return [list(of_example) for of_example in zip(*decoded, strict=True)]

    def _arranged(self, values: Floats, batch: Batch, X: Sequence[Any]) -> Any:
        """A number per label of every variable as an array for each example."""
        rows = values.reshape(-1, self.layout_.n_labels)[:, self.labels_.order]
        split = np.split(rows, offsets_of(batch.sizes)[1:-1]) if len(batch.sizes) else []
        return ExampleList(self._shaped(split, X))

    def _class_weighted(
        self, objective: Objective, labels: SequenceLabels, gold: Target, weight: Floats | None
    ) -> tuple[Objective, Floats | None]:
        """`class_weight` as what an error costs by the gold label."""
        return objective.with_class_weight(class_weights(self.class_weight, labels, gold)), weight


def decoded(potentials: Potentials, inference: Inference, question: str) -> NDArray[np.int32]:
    """The best labels by the answer to "map" or to "marginals"; may overwrite the potentials."""
    if question == "map":
        found = inference.map(potentials)
        if found.convergence is not None and found.convergence.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # labels of half a search are no prediction
        return found.labels
    return most_probable_labels(inference.marginals(potentials, overwrite=True).parts)


def _relabelled(potentials: Potentials, order: NDArray[np.int64]) -> Potentials:
    """The same scores, in which label k is the one that was number order[k]."""
    n, sizes = len(order), np.diff(potentials.table_offsets)
    cells = np.arange(len(potentials.tables))
    for size in np.unique(sizes):  # all labellings of a clique, of so many variables
        axes = round(np.log(size) / np.log(n)) if n > 1 else 0
        moved = np.arange(size).reshape((n,) * axes)[np.ix_(*[order] * axes)].ravel()
        starts = potentials.table_offsets[:-1][sizes == size]
        cells[starts[:, None] + np.arange(size)] = starts[:, None] + moved
    unary = potentials.unary.reshape(-1, n)[:, order].ravel()
    return potentials.like(unary, potentials.tables[cells])


def _joined(found: Sequence[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *found])
