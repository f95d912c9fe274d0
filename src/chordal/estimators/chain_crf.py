"""ChainCRF: label sequences with a linear-chain conditional random field."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal._validate import (
    check_choice,
    check_number,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
)
from chordal.estimators._chain_inspection import ChainInspection
from chordal.estimators._compact import Compactable
from chordal.estimators._fitting import (
    chain_oracle,
    check_fit_arguments,
    check_problem,
    check_settings,
    objective_for,
    report_of,
    solver_for,
    training,
)
from chordal.estimators._groups import check_freeze, check_l2, free_weights, l2_of, minimized
from chordal.estimators._labels import SequenceLabels
from chordal.estimators._targets import class_weights, learn_targets, seen_pairs, seen_transitions
from chordal.estimators._training import compile_shards, transferred
from chordal.features import GROUPS, ChainFeatures, Input, Rows, Template, WeightKeys
from chordal.inference import INFERENCE, Inference
from chordal.objectives import Objective
from chordal.oracle import Problem
from chordal.solvers import Callback, Solver
from chordal.structures import Chain
from chordal.targets import Target, kind_of

Floats = NDArray[np.float64]


@final
class ChainCRF(Compactable, ChainInspection):
    """Linear-chain conditional random field.

    Minimises Σ −log p(y|x) + l1·‖w‖₁ + (l2/2)·‖w‖² over the weights of node features
    (observations × labels), transitions (label pairs) and, on request, more.

    Parameters
    ----------
    objective : str or Objective, default="auto"
        What training minimises; "auto" is the solver's own objective, mostly the likelihood.
    solver : str or Solver, default="lbfgs"
        How. With l1 > 0, "lbfgs" means its orthant-wise form "owlqn". "newton" (few weights) and
        "newton_cg" use second derivatives; "adam", "minibatch_lbfgs" and
        "stochastic_meta_descent" pass over mini-batches. The online solvers "sgd",
        "averaged_perceptron", "passive_aggressive" and "arow" learn from one sequence after
        another; all but "sgd" have an objective of their own, which the default stands for.
    inference : str or Inference, default="auto"
        "auto" takes the exact method for chains.
    l1, l2 : float
        Regularisation. (CRFsuite's c2 is l2 / 2: it has no ½.) Online solvers take no l1, and
        of them only "sgd" has a use for l2. l2 may be a dict by group of weights: "node",
        "edge" (of `transition_features`), "transitions", "bias", "start" and "end"; groups that
        it does not name have 1.
    freeze : tuple of str
        Groups of weights that keep their starting values: those of the fit before with
        `warm_start`, else zeros.
    states : {"seen", "all"}
        For named attributes: weights for attribute–label pairs seen in training, or for all.
        Arrays and sparse matrices always have all.
    transitions : {"seen", "all", "none"}
        Which label pairs have a weight. Unseen ones stay possible, with score 0.
    template : str or Template, optional
        Feature templates of CRF++ or Wapiti. X then holds rows of columns of text: each token a
        list of strings, or all of them `Columns`. Without a line "B", labels are not linked.
    transition_features : callable, optional
        Maps one sequence x of length T to observations of its T − 1 transitions (an array
        [T − 1, d], a sparse matrix, or a list of attributes): each has a weight per label pair.
    bias, ends : bool
        A weight per label; and one each for the first and the last position.
    min_freq : int
        Named attributes: leave out pairs seen less often (with states="all": attributes).
    max_iter, tol : int, float, optional
        Stop after so many iterations (1000), or when the objective falls by less than `tol`
        (1e-5), relatively, in ten iterations, or when the gradient is that small. Newton-type,
        mini-batch and online solvers have rules and defaults of their own, which None, the default,
        stands for. A solver that is given as an object keeps its own.
    validation_interval : int
        With `validation_data`, score it each so many iterations.
    n_iter_no_change : int, optional
        Stop early after so many scores without improvement, and keep the best weights.
    n_jobs : int, optional
        Threads; −1 for all cores. The result is the same, bit for bit.
    random_state : int, RandomState or None
        Seed of `sample`, of mini-batches, and of the order in which a solver visits sequences,
        unless it is an object with a seed of its own.
    warm_start : bool
        `fit` starts from the weights of the fit before; new attributes and labels are added.
    class_weight : dict, "balanced" or None
        What an error costs by the gold label: {label: weight}, 1 for others, or n_positions /
        (n_classes · count). For objectives with a cost of errors, "softmax_margin" and "hinge";
        others are refused, since the likelihood of a sequence is no sum over its labels. Costs by
        pair of labels are given to the objective: `Hinge(WeightedHamming({(gold, label): 3}))`.
    verbose : int
        1 shows progress in a terminal, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : array of labels
    transitions_ : array [n_classes, n_classes], weights from row to column
    coef_ : array or sparse matrix [n_classes, n_features]
    start_, end_, intercept_, transition_coef_ : arrays, weights of what was asked for
    objective_, n_iter_ : final objective, iterations
    inference_ : the inference method in use
    fit_report_ : FitReport

    Examples
    --------
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["w=a"], ["w=cat"], ["w=sleeps"]]])
    [['D', 'N', 'V']]
    """

    def __init__(
        self,
        objective: str | Objective = "auto",
        solver: str | Solver = "lbfgs",
        inference: str | Inference = "auto",
        *,
        l1: float = 0.0,
        l2: float | Mapping[str, float] = 1.0,
        freeze: Sequence[str] = (),
        states: str = "seen",
        transitions: str = "seen",
        template: str | Template | None = None,
        transition_features: Callable[[Any], Any] | None = None,
        bias: bool = False,
        ends: bool = False,
        min_freq: int = 0,
        max_iter: int | None = None,
        tol: float | None = None,
        validation_interval: int = 10,
        n_iter_no_change: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.solver = solver
        self.inference = inference
        self.l1 = l1
        self.l2 = l2
        self.freeze = freeze
        self.states = states
        self.transitions = transitions
        self.template = template
        self.transition_features = transition_features
        self.bias = bias
        self.ends = ends
        self.min_freq = min_freq
        self.max_iter = max_iter
        self.tol = tol
        self.validation_interval = validation_interval
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.verbose = verbose

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        *,
        sample_weight: Any = None,
        validation_data: tuple[Sequence[Any], Sequence[Any]] | None = None,
        callback: Callback | None = None,
    ) -> ChainCRF:
        """Learn the weights.

        Parameters
        ----------
        X : list of sequences
            Each an array [length, n_features], a sparse matrix of that shape, or a list of
            tokens that are dicts or lists of attribute strings.
        y : list of label sequences
            With the likelihood, a position may also hold None (not observed), a set of possible
            labels, or a dict {label: probability}; or the sequence is an array [length,
            n_classes] of probabilities, in the order of `classes_`.
        sample_weight : array [n_sequences], optional
        validation_data : (X, y), optional
            Scored each `validation_interval` iterations.
        callback : callable, optional
            Called with an `Iteration` after each; training stops when it returns True.
        """
        keep = bool(self.warm_start) and hasattr(self, "weights_")
        return self._fit(X, y, sample_weight, validation_data, callback, keep=keep, centre=False)

    def partial_fit(
        self, X: Sequence[Any], y: Sequence[Any], *, sample_weight: Any = None
    ) -> ChainCRF:
        """Go on learning from more data, which may hold new attributes and labels.

        The L2 term then pulls towards the weights so far instead of towards zero, so that what
        was learned before is kept where the new data say nothing.
        """
        keep = hasattr(self, "weights_")
        return self._fit(X, y, sample_weight, None, None, keep=keep, centre=keep)

    def _fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Any,
        validation_data: tuple[Sequence[Any], Sequence[Any]] | None,
        callback: Callback | None,
        *,
        keep: bool,
        centre: bool,
        scaled: str | None = None,
    ) -> ChainCRF:
        self._check_parameters()
        X, y = self._sequences(X), check_sequences(y, "y")
        check_fit_arguments(callback, validation_data)
        # Copies: whatever goes wrong below, the model stays as it was.
        inputs = copy.deepcopy(self._inputs) if keep else self._new_inputs(X)
        labels = copy.deepcopy(self._labels) if keep else SequenceLabels()
        node_rows, edge_rows = self._read(X, inputs, grow=True)
        check_same_lengths(node_rows.lengths, y)
        weight = check_sample_weight(sample_weight, len(X))
        gold = learn_targets(labels, y)
        known = self.features_ if keep else None
        features = self._layout(inputs, labels, node_rows, edge_rows, gold, known)
        start = np.zeros(features.n_weights)
        if known is not None:
            start = transferred(known, self.weights_, features)

        solver = solver_for(self.solver, self.l1, self.max_iter, self.tol, self.random_state)
        objective = self._objective_for(solver, labels, gold)
        inference = self._inference_for(features)
        free = free_weights(self.freeze, features.slices, start)
        partial = free is not None or scaled is not None
        problem = Problem(objective, kind_of(gold), self.l2, partial, features.n_weights)
        objective.require_targets(gold)
        longest = Chain([min(int(node_rows.lengths.max()), 2)], features.n_labels)
        check_problem(solver, problem, inference, longest)
        validate = None
        if validation_data is not None:
            validate = self._validator(*validation_data, inputs, labels, features, inference)
        trained: ChainFeatures = features
        spread: Callable[[Floats], Floats] = np.copy
        if solver.rotates and free is None and scaled is None and not start.any():
            merged = features.condensed(node_rows, edge_rows)
            if merged is not None:
                trained, node_rows, edge_rows, spread = merged
                start = np.zeros(trained.n_weights)
            del merged
        with training(self, solver, callback, validate, spread) as (mapper, monitor):
            oracle = chain_oracle(
                solver,
                trained,
                (node_rows, edge_rows, gold, weight),
                objective,
                inference,
                mapper,
                l2_of(self.l2, trained.slices, start),
                start if centre else None,
            )
            del node_rows, edge_rows  # compiled
            moved = None if scaled is None else trained.slices[scaled]
            solution = minimized(solver, oracle, start, monitor, free, moved)
            del oracle
        self._inputs, self._labels, self.classes_ = inputs, labels, labels.classes
        self.features_, self.inference_ = features, inference
        self.weights_, self.fit_report_ = report_of(solution, monitor, solver, inference)
        self.objective_, self.n_iter_ = self.fit_report_.objective, solution.n_iter
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # the model is fitted with the best weights so far
        return self

    def _check_parameters(self) -> None:
        check_settings(self)
        check_l2(self.l2, GROUPS)
        check_freeze(self.freeze, GROUPS)
        check_number("min_freq", self.min_freq, integer=True)
        check_choice("states", self.states, ["seen", "all"])
        check_choice("transitions", self.transitions, ["seen", "all", "none"])
        template = self._template()
        if template is not None and not isinstance(template, Template):
            raise TypeError(f"template must be a str or a Template, got {template!r}")
        if template is not None and self.transition_features is not None:
            raise ValueError(
                "give template or transition_features, not both: a template's lines B observe "
                "transitions"
            )
        if self.transition_features is not None and not callable(self.transition_features):
            raise TypeError(
                "transition_features must be a function of one sequence, or None, "
                f"got {self.transition_features!r}"
            )

    def _objective_for(self, solver: Solver, labels: SequenceLabels, gold: Target) -> Objective:
        """The objective for these labels' numbers, with the weights of their errors."""
        objective = objective_for(self.objective, solver).for_labels(labels.labels, labels.order)
        if self.class_weight is None:
            return objective
        return objective.with_class_weight(class_weights(self.class_weight, labels, gold))

    def _inference_for(self, features: ChainFeatures) -> Inference:
        return INFERENCE.resolve("chain" if self.inference == "auto" else self.inference)

    def _layout(
        self,
        inputs: tuple[Input, Input | None],
        labels: SequenceLabels,
        node_rows: Rows,
        edge_rows: Rows | None,
        gold: Target,
        known: ChainFeatures | None,
    ) -> ChainFeatures:
        """Which weights the model has."""
        n = len(labels)
        rows, seen = seen_pairs(gold, n)
        hard = isinstance(gold, np.ndarray)
        node = inputs[0].features(
            node_rows if hard else node_rows.taken(rows),
            seen.astype(np.int32),
            n,
            self.states,
            self.min_freq,
            known.node.keys() if known else None,
        )
        edges, pairs = seen_transitions(rows, seen, node_rows.lengths, n)
        edge, known_edge = None, None
        if known is not None and known.edge is not None:
            keys = known.edge.keys()
            i, j = np.divmod(keys.output, known.n_labels)
            known_edge = WeightKeys(keys.column, i * n + j)
        if inputs[1] is not None and edge_rows is not None:
            edge = inputs[1].features(
                edge_rows if hard else edge_rows.taken(edges),
                pairs.astype(np.int32),
                n * n,
                self.states,
                self.min_freq,
                known_edge,
            )
        kept = np.zeros(0, dtype=np.int64)
        template = self._template()
        choice = self.transitions if template is None or template.transitions else "none"
        if choice == "all":
            kept = np.arange(n * n)
        elif choice == "seen":
            seen, count = np.unique(pairs, return_counts=True)
            kept = seen[count >= self.min_freq]
            if known is not None:
                i, j = np.divmod(known.transitions, known.n_labels)
                kept = np.union1d(kept, i * n + j)
        return ChainFeatures(n, node, edge, kept, self.bias, self.ends)

    def _validator(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        inputs: tuple[Input, Input | None],
        labels: SequenceLabels,
        features: ChainFeatures,
        inference: Inference,
    ) -> Callable[[Floats], float]:
        """The share of positions of the validation data that given weights label right."""
        X, y = self._sequences(X, "validation X"), check_sequences(y, "validation y")
        rows = self._read(X, inputs, grow=False)
        check_same_lengths(rows[0].lengths, y, "validation ")
        gold = labels.encode(y, unknown=-1)
        shards = compile_shards(features, *rows)

        def score(weights: Floats) -> float:
            expanded = features.expand(weights)
            found = [inference.map(features.potentials(s, expanded)).labels for s in shards]
            return float((np.concatenate(found) == gold).mean())

        return score
