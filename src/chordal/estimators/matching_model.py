"""MatchingModel: which item of one side belongs to which of the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from chordal._status import Status
from chordal._validate import check_number, check_sample_weight, check_sequences
from chordal.estimators._estimator import Estimator
from chordal.estimators._fitting import (
    check_problem,
    check_settings,
    objective_for,
    report_of,
    solver_for,
    training,
)
from chordal.estimators._training import shard_limits
from chordal.features import MatchingFeatures, MatchingShard
from chordal.inference import INFERENCE, Inference
from chordal.objectives import Objective
from chordal.oracle import (
    Mapper,
    Problem,
    StructuredExamples,
    SummedOracle,
    asks_examples,
    oracle_for,
)
from chordal.potentials import Floats, Potentials
from chordal.solvers import Callback, Solver
from chordal.structures import Matching
from chordal.targets import Labels


@final
class MatchingModel(Estimator):
    """Bipartite matching with learned scores of pairs, as in word alignment.

    The score of a matching is the sum of w · f(i, j) over its pairs, plus a learned score for
    every source item that has no target. No target is taken twice. The best matching is a linear
    assignment, found exactly, which is all that the perceptron and the hinge need.

    Parameters
    ----------
    objective : str or Objective, default="auto"
        "hinge" (a max-margin matching) or "perceptron"; "auto" is the one that the solver
        minimises, else the hinge. Objectives that sum over all matchings,
        such as "likelihood", need an inference that can: "exhaustive", for a handful of items.
    solver : str or Solver, default="frank_wolfe"
        "frank_wolfe" and "one_slack" (which needs the package clarabel) end with a duality
        gap; "sgd" is the subgradient method; "averaged_perceptron" has its own objective.
    inference : str or Inference, default="matching"
    l2 : float
        Regularisation (l2/2)·‖w‖².
    features : callable, optional
        Makes the features of pairs [n_source, n_target, n_features] from a source and a target.
        X is then a list of pairs (source, target); otherwise it holds such arrays.
    max_iter, tol : int, float, optional
        As the solver takes them.
    random_state : int, RandomState or None
        Seed of the order in which a solver visits examples.
    verbose : int
        1 shows progress in a terminal, 2 prints a line per iteration.

    Attributes
    ----------
    coef_ : array [n_features]
    no_target_ : float
        The score of having no target.
    inference_ : the inference method in use
    objective_, n_iter_ : final objective, iterations
    fit_report_ : FitReport

    References
    ----------
    Taskar, Lacoste-Julien and Klein (2005), A discriminative matching approach to word alignment.

    Examples
    --------
    >>> near = lambda a, b: -np.abs(np.subtract.outer(a, b))[:, :, None]
    >>> X = [([1.0, 5.0], [5.2, 1.1]), ([3.0, 9.0], [2.8])]
    >>> model = MatchingModel(features=near, l2=0.01).fit(X, [[1, 0], [0, -1]])
    >>> model.predict([([7.0, 4.0, 2.0], [2.1, 4.2])])
    [array([-1,  1,  0])]
    """

    # What `fit` of other estimators lets users set; weights here are few.
    l1: float = 0.0
    n_jobs: int | None = None
    validation_interval: int = 10
    n_iter_no_change: int | None = None

    def __init__(
        self,
        objective: str | Objective = "auto",
        solver: str | Solver = "frank_wolfe",
        inference: str | Inference = "matching",
        *,
        l2: float = 1.0,
        features: Callable[[Any, Any], Any] | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.solver = solver
        self.inference = inference
        self.l2 = l2
        self.features = features
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
    ) -> MatchingModel:
        """Learn the weights.

        Parameters
        ----------
        X : list of arrays [n_source, n_target, n_features], or of pairs for `features`
        y : list of int arrays [n_source]
            The target of every source item, −1 for none; no target twice.
        sample_weight : array [n_examples], optional
        callback : callable, optional
            Called with an `Iteration` after each; training stops when it returns True.
        """
        check_settings(self)
        check_number("l2", self.l2)
        pairs = self._pairs(X)
        gold = [_labels(pairs, y, i) for i in range(len(pairs))]
        weight = check_sample_weight(sample_weight, len(pairs))
        features = MatchingFeatures(pairs[0].shape[2])
        inference = INFERENCE.resolve(self.inference)
        solver = solver_for(self.solver, self.l1, self.max_iter, self.tol, self.random_state)
        objective = objective_for(self.objective, solver, "hinge")
        problem, two = Problem(objective, l2=self.l2), Matching([2], [2])
        check_problem(solver, problem, inference, two)
        inference.require("map", two)
        with training(self, solver, callback, None) as (mapper, monitor):
            oracle = self._oracle(
                solver, features, (pairs, gold, weight), objective, inference, mapper
            )
            solution = solver.minimize(oracle, np.zeros(features.n_weights), monitor)
        self.weights_, self.fit_report_ = report_of(solution, monitor, solver, inference)
        self.features_, self.inference_ = features, inference
        self.coef_, self.no_target_ = self.weights_[:-1], float(self.weights_[-1])
        self.objective_, self.n_iter_ = self.fit_report_.objective, solution.n_iter
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # the model is fitted with the best weights so far
        return self

    def predict(self, X: Sequence[Any]) -> list[np.ndarray]:
        """The target of every source item of each example, −1 for none."""
        potentials = self.potentials(X)
        structure = potentials.structure
        if not isinstance(structure, Matching):
            raise TypeError(f"features must make matchings, not {structure!r}")
        labels = self.inference_.map(potentials).labels.astype(np.int64)
        labels[labels == structure.label_counts - 1] = -1
        return np.split(labels, structure.variable_offsets[1:-1])

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """The share of source items whose target, or none, is right."""
        pairs = self._pairs(X)
        gold = np.concatenate([_labels(pairs, y, i) for i in range(len(pairs))])
        counts = np.repeat([p.shape[1] for p in pairs], [len(p) for p in pairs])
        found = np.concatenate(self.predict(X))
        return float((np.where(found < 0, counts, found) == gold).mean()) if len(gold) else 1.0

    def potentials(self, X: Sequence[Any]) -> Potentials:
        """The scores of all pairs, and what may not be taken twice."""
        self._check_fitted()
        pairs = self._pairs(X)
        for i, array in enumerate(pairs):
            if array.shape[2] != self.features_.n_features:
                raise ValueError(
                    f"X[{i}] has {array.shape[2]} features per pair, and the model "
                    f"{self.features_.n_features}"
                )
        return self.features_.potentials(self.features_.compile(pairs), self.weights_)

    def _oracle(
        self,
        solver: Solver,
        features: MatchingFeatures,
        data: tuple[list[Floats], list[Labels], Floats | None],
        objective: Objective,
        inference: Inference,
        mapper: Mapper,
    ) -> SummedOracle | StructuredExamples:
        """What the solver asks: sums over examples or mini-batches of them, or single ones."""
        pairs, gold, weight = data
        order, size = np.arange(len(pairs)), solver.batch_size or len(pairs)
        if asks_examples(solver.asks):
            size = 1
        elif size < len(pairs):
            order = np.random.default_rng(solver.random_state).permutation(len(pairs))
        shards, cuts = [], [0]
        for first in range(0, len(order), size):
            chosen = order[first : first + size]
            shards += _shards(features, chosen, pairs, gold, weight)
            cuts.append(len(shards))
        l2, parts = float(self.l2), (features, shards, objective, inference, mapper)
        return oracle_for(solver.asks, *parts, l2, cuts=cuts)

    def _pairs(self, X: Sequence[Any]) -> list[Floats]:
        """Features of the pairs of each example [n_source, n_target, n_features]."""
        arrays: list[Floats] = []
        for i, x in enumerate(check_sequences(X)):
            made = x
            if self.features is not None:
                if not isinstance(x, (tuple, list)) or len(x) != 2:
                    raise TypeError(f"X[{i}] must be a pair (source, target) for `features`")
                made = self.features(*x)
            array = np.asarray(made, dtype=np.float64)
            if array.ndim != 3 or array.shape[2] == 0:
                raise ValueError(
                    f"X[{i}] must have features [n_source, n_target, n_features], "
                    f"got shape {array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"X[{i}] holds features that are not finite")
            if array.shape[2] != (arrays or [array])[0].shape[2]:
                raise ValueError(
                    f"X[{i}] has {array.shape[2]} features per pair, and X[0] {arrays[0].shape[2]}"
                )
            arrays.append(array)
        return arrays


def _shards(
    features: MatchingFeatures,
    chosen: np.ndarray,
    pairs: list[Floats],
    gold: list[Labels],
    weight: Floats | None,
) -> list[MatchingShard]:
    """Shards of these examples."""
    states = np.array([len(pairs[i]) * (pairs[i].shape[1] + 1) for i in chosen])
    made = []
    for a, b in shard_limits(states, features.n_weights):
        part = chosen[a:b]
        labels = np.concatenate([gold[i] for i in part])
        own = None if weight is None else weight[part]
        made.append(features.compile([pairs[i] for i in part], labels, own))
    return made


def _labels(pairs: list[Floats], y: Sequence[Any], i: int) -> Labels:
    """The targets of example i as labels: the last is none."""
    if len(y) != len(pairs):
        raise ValueError(f"X and y must have the same length, got {len(pairs)} and {len(y)}")
    n_source, n_target, _ = pairs[i].shape
    target = np.asarray(y[i])
    if target.shape != (n_source,) or (n_source and target.dtype.kind not in "iu"):
        raise ValueError(
            f"y[{i}] must be {n_source} whole numbers, the target of each source item, "
            f"got {target.dtype} of shape {target.shape}"
        )
    target = target.astype(np.int64)
    if n_source and (target.min() < -1 or target.max() >= n_target):
        raise ValueError(f"y[{i}] must hold targets from 0 to {n_target - 1}, or -1 for none")
    taken = target[target >= 0]
    if len(np.unique(taken)) < len(taken):
        twice = int(np.argmax(np.bincount(taken)))
        raise ValueError(f"y[{i}] takes target {twice} twice: a matching takes it once at most")
    return np.where(target < 0, n_target, target).astype(np.int32)
