"""Training of models of cliques: from examples to weights."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from chordal._status import Status
from chordal._validate import (
    check_choice,
    check_number,
    check_same_lengths,
    check_sample_weight,
)
from chordal.estimators._clique_layout import layout_of, transferred_cliques
from chordal.estimators._clique_model import CliqueModel, decoded
from chordal.estimators._clique_reading import new_inputs, read_batch
from chordal.estimators._fitting import (
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
from chordal.estimators._targets import class_weights, observed_targets
from chordal.estimators._training import shard_limits
from chordal.estimators.clique_template import CliqueTemplate
from chordal.features import CliqueBatch, CliqueFeatures, CliqueShard
from chordal.inference import INFERENCE, Inference, choose
from chordal.objectives import Objective
from chordal.oracle import Problem, asks_examples, oracle_for
from chordal.potentials import Floats
from chordal.solvers import Callback, Solver
from chordal.targets import PartialLabels, Target, kind_of

E = TypeVar("E", bound="CliqueEstimator")


class CliqueEstimator(CliqueModel, ABC):
    """Fits the weights of clique templates."""

    objective: str | Objective
    solver: str | Solver
    l1: float
    l2: float | Mapping[str, float]
    freeze: Sequence[str]
    states: str
    min_freq: int
    max_iter: int | None
    tol: float | None
    validation_interval: int
    n_iter_no_change: int | None
    warm_start: bool
    class_weight: dict[Any, float] | str | None
    verbose: int

    @abstractmethod
    def _templates_for(self, X: Sequence[Any]) -> list[CliqueTemplate]:
        """The templates of a model for examples like these."""

    def fit(
        self: E,
        X: Sequence[Any],
        y: Sequence[Any],
        *,
        sample_weight: Any = None,
        validation_data: tuple[Sequence[Any], Sequence[Any]] | None = None,
        callback: Callback | None = None,
    ) -> E:
        """Learn the weights.

        Parameters
        ----------
        X : list of examples
        y : list of labels
            Of all variables of each example. With the likelihood, a variable may also have None
            (not observed), a set of possible labels, or a dict {label: probability}. Other
            objectives learn from the graph without the variables that are not observed.
        sample_weight : array [n_examples], optional
        validation_data : (X, y), optional
            Scored each `validation_interval` iterations.
        callback : callable, optional
            Called with an `Iteration` after each; training stops when it returns True.
        """
        keep = bool(self.warm_start) and hasattr(self, "weights_")
        return self._fit(X, y, sample_weight, validation_data, callback, keep=keep, centre=False)

    def partial_fit(self: E, X: Sequence[Any], y: Sequence[Any], *, sample_weight: Any = None) -> E:
        """Go on learning from more data, which may hold new attributes and labels.

        The L2 term then pulls towards the weights so far instead of towards zero.
        """
        keep = hasattr(self, "weights_")
        return self._fit(X, y, sample_weight, None, None, keep=keep, centre=keep)

    def _fit(
        self: E,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Any,
        validation_data: tuple[Sequence[Any], Sequence[Any]] | None,
        callback: Callback | None,
        *,
        keep: bool,
        centre: bool,
    ) -> E:
        self._check_parameters()
        check_fit_arguments(callback, validation_data)
        X = self._examples(X, known=keep)
        # Copies: whatever goes wrong below, the model stays as it was.
        templates = self._templates if keep else self._templates_for(X)
        inputs = copy.deepcopy(self._inputs) if keep else new_inputs(templates, X)
        labels = copy.deepcopy(self._labels) if keep else SequenceLabels()
        names = [template.name for template in templates]
        check_l2(self.l2, names)
        check_freeze(self.freeze, names)
        batch = read_batch(templates, inputs, X, grow=True)
        flat = self._flat(y, X)
        check_same_lengths(batch.sizes, flat)
        weight = check_sample_weight(sample_weight, len(X))
        solver = solver_for(self.solver, self.l1, self.max_iter, self.tol, self.random_state)
        objective = objective_for(self.objective, solver)
        batch, gold = _observed(batch, observed_targets(labels, flat, self.void), objective)
        known = self.features_ if keep else None
        features = layout_of(
            templates, inputs, batch, gold, len(labels), self.states, self.min_freq, known
        )
        start = np.zeros(features.n_weights)
        if known is not None:
            start = transferred_cliques(known, self.weights_, features)
        objective = objective.for_labels(labels.labels, labels.order)
        if self.class_weight is not None:
            weights = class_weights(self.class_weight, labels, gold)
            objective = objective.with_class_weight(weights)
        free = free_weights(self.freeze, features.slices, start)
        objective.require_targets(gold)
        problem = Problem(objective, kind_of(gold), self.l2, free is not None, features.n_weights)
        solver.check(problem)

        trained: CliqueFeatures = features
        spread: Callable[[Floats], Floats] = np.copy
        if solver.rotates and free is None and not start.any():
            condensed = features.condensed(batch)
            if condensed is not None:
                trained, batch, spread = condensed
                start = np.zeros(trained.n_weights)
        shards, cuts = compiled(trained, batch, gold, weight, solver)
        inference = self._inference_for(shards, objective)
        for shard in shards:
            check_problem(solver, problem, inference, shard.frame.structure)
        validate = None
        if validation_data is not None:
            validate = self._validator(*validation_data, templates, inputs, labels, features)
        with training(self, solver, callback, validate, spread) as (mapper, monitor):
            parts = (trained, shards, objective, inference, mapper)
            penalty = l2_of(self.l2, trained.slices, start)
            oracle = oracle_for(solver.asks, *parts, penalty, start if centre else None, cuts)
            solution = minimized(solver, oracle, start, monitor, free)
        exact = not objective.needs or all(inference.exact_on(s.frame.structure) for s in shards)
        self._templates, self._inputs = templates, inputs
        self._labels, self.classes_ = labels, labels.classes
        self.features_, self.inference_ = features, inference
        self.weights_, self.fit_report_ = report_of(solution, monitor, solver, inference, exact)
        self.objective_, self.n_iter_ = self.fit_report_.objective, solution.n_iter
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # the model is fitted with the best weights so far
        return self

    def _check_parameters(self) -> None:
        check_settings(self)
        check_number("min_freq", self.min_freq, integer=True)
        check_choice("states", self.states, ["seen", "all"])

    def _inference_for(self, shards: Sequence[CliqueShard], objective: Objective) -> Inference:
        """What training asks: a method that works on all graphs, exact if it can be."""
        if self.inference != "auto":
            return INFERENCE.resolve(self.inference)
        question = min(objective.needs, default="map")
        structures = [shard.frame.structure for shard in shards]
        found = {m.name: m for m in (choose(s, question) for s in structures)}
        for method in found.values():
            if all(method.supports(structure) for structure in structures):
                return method
        return choose(max(structures, key=lambda s: s.n_cliques), question)

    def _validator(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        templates: Sequence[CliqueTemplate],
        inputs: Any,
        labels: SequenceLabels,
        features: CliqueFeatures,
    ) -> Callable[[Floats], float]:
        """The share of the labels of the validation data that given weights get right."""
        X = self._examples(X, "validation X")
        batch = read_batch(templates, inputs, X, grow=False)
        flat = self._flat(y, X, "validation y")
        check_same_lengths(batch.sizes, flat, "validation ")
        gold = labels.encode(flat, unknown=-1)
        seen = np.concatenate([self._observed(own) for own in flat])
        shards, _ = compiled(features, batch)

        question = self._decoding()

        def score(weights: Floats) -> float:
            expanded = features.expand(weights)
            found = []
            for shard in shards:
                potentials = features.potentials(shard, expanded)
                found.append(decoded(potentials, self._method(question, potentials), question))
            return float((np.concatenate(found) == gold)[seen].mean())

        return score


def compiled(
    features: CliqueFeatures,
    batch: CliqueBatch,
    labels: Target | None = None,
    weight: Floats | None = None,
    solver: Solver | None = None,
) -> tuple[list[CliqueShard], list[int] | None]:
    """The batch as shards, and where each mini-batch of the solver begins, if it has them.

    Inference on graphs takes long beside Python's part, so that shards may be small.
    """
    if solver is not None and asks_examples(solver.asks):
        each = range(len(batch.sizes))
        return [features.compile(batch, i, i + 1, labels, weight) for i in each], None
    if solver is None or solver.batch_size is None:
        cells = batch.cells(features.n_labels)
        limits = shard_limits(cells, 1, min(8, int(cells.sum()) // 2000))
        return [features.compile(batch, a, b, labels, weight) for a, b in limits], None
    order = np.random.default_rng(solver.random_state).permutation(len(batch.sizes))
    if labels is not None:
        first = np.cumsum(batch.sizes) - batch.sizes
        at = [np.arange(first[i], first[i] + batch.sizes[i]) for i in order]
        labels = labels[np.concatenate(at)]
    batch, weight = batch.reordered(order), None if weight is None else weight[order]
    cells = batch.cells(features.n_labels)
    shards, cuts = [], [0]
    for begin in range(0, len(order), solver.batch_size):
        own = cells[begin : begin + solver.batch_size]
        for a, b in shard_limits(own, 1, min(4, int(own.sum()) // 2000)):
            shards.append(features.compile(batch, begin + a, begin + b, labels, weight))
        cuts.append(len(shards))
    return shards, cuts


def _observed(batch: CliqueBatch, gold: Target, objective: Objective) -> tuple[CliqueBatch, Target]:
    """What an objective can learn from: without the variables that are not observed where it
    has no use for them.
    """
    if not isinstance(gold, PartialLabels) or "partial" in objective.targets:
        return batch, gold
    n = int(np.diff(gold.state_offsets)[0]) if len(gold) else 1
    allowed = gold.allowed.reshape(-1, n)
    possible = allowed.sum(axis=1)
    observed = possible == 1
    if not (observed | (possible == n)).all():
        return batch, gold  # sets of labels: refused by the objective
    return batch.kept(observed), allowed.argmax(axis=1)[observed].astype(np.int32)
