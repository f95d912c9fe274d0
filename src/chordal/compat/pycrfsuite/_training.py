"""From training data and CRFsuite's parameters to a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from chordal._status import Status
from chordal.compat._assembly import assembled
from chordal.compat.pycrfsuite import _messages
from chordal.compat.pycrfsuite._data import Batch, TrainingData, layout_of
from chordal.compat.pycrfsuite._owlqn import OriginalOWLQN
from chordal.compat.pycrfsuite._parameters import Parameters
from chordal.estimators import ChainCRF, chain_batch
from chordal.execution import execution_for, one_blas_thread
from chordal.features import Layout, Shard
from chordal.inference import INFERENCE, Inference
from chordal.objectives import OBJECTIVES
from chordal.oracle import oracle_for
from chordal.potentials import Floats
from chordal.solvers import SOLVERS, Iteration, Solution, Solver
from chordal.targets import Labels

Say = Callable[[str], None]

NOTHING_TO_DO = {"lbfgs": "L-BFGS terminated with error code (-1020)"}
SEED = 0  # of the order of instances: CRFsuite's own order is the same in every run, too


def trained(
    data: TrainingData, parameters: Parameters, holdout: int, say: Say
) -> tuple[ChainCRF | None, int]:
    """The trained model and the number of its features; says what CRFsuite would say.

    There is no model if there is no item to train on.
    """
    began = time.perf_counter()
    tell(say, _messages.beginning(parameters, holdout))
    if data.is_empty(holdout):
        tell(say, _messages.prepared(parameters, 0, time.perf_counter() - began))
        tell(say, _messages.ending(NOTHING_TO_DO.get(parameters.algorithm, ""), 0.0))
        return None, 0
    train, held = data.split(holdout)
    features = layout_of(
        train,
        data.source.n_columns,
        len(data.labels),
        parameters["feature.minfreq"],
        parameters["feature.possible_states"],
        parameters["feature.possible_transitions"],
    )
    seconds = time.perf_counter() - began
    tell(say, _messages.prepared(parameters, features.n_weights, seconds))
    inference = INFERENCE.resolve("chain")
    watch = Watch(parameters, say)
    if held is not None:
        watch.evaluate = evaluator(list(data.labels), held, features, inference)
    began = time.perf_counter()
    solution = minimised(train, features, inference, parameters, watch)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    how = watch.reason or _reason(parameters.algorithm, solution.status)
    tell(say, _messages.ending(how, time.perf_counter() - began))
    return model_of(data, features, solution.weights), features.n_weights


def tell(say: Say, lines: Iterable[str]) -> None:
    """Say each line."""
    for line in lines:
        say(line)


class Watch:
    """Follows a run: says how it goes, and stops it by CRFsuite's rules."""

    def __init__(self, parameters: Parameters, say: Say) -> None:
        self._parameters, self._say = parameters, say
        self._history: list[float] = []
        self._evaluations, self._elapsed = 1, 0.0  # the start was evaluated before any search
        self.evaluate: Callable[[Floats], Iterable[str]] | None = None
        self.reason = ""

    def __call__(self, state: Iteration) -> bool:
        seconds, self._elapsed = state.elapsed - self._elapsed, state.elapsed
        trials, self._evaluations = state.n_evaluations - self._evaluations, state.n_evaluations
        algorithm = self._parameters.algorithm
        tell(self._say, _messages.iteration(algorithm, state, seconds, trials))
        if self.evaluate is not None:
            tell(self._say, self.evaluate(state.weights))
        self._say("\n")
        return algorithm == "lbfgs" and self._converged(state)

    def _converged(self, state: Iteration) -> bool:
        """A small gradient, or little improvement over `period` iterations (liblbfgs)."""
        epsilon, delta = self._parameters["epsilon"], self._parameters["delta"]
        if state.gradient_norm <= epsilon * max(1.0, float(np.linalg.norm(state.weights))):
            self.reason = "L-BFGS resulted in convergence"
            return True
        self._history.append(state.value)
        period = self._parameters["period"]
        if 0 < period < len(self._history):
            improved = self._history[-1 - period] - state.value
            if improved < delta * abs(state.value):
                self.reason = "L-BFGS terminated with the stopping criteria"
                return True
        return False


def minimised(
    batch: Batch,
    features: Layout,
    inference: Inference,
    parameters: Parameters,
    watch: Watch,
) -> Solution:
    """Run the solver that corresponds to CRFsuite's algorithm."""
    solver = SOLVERS_OF[parameters.algorithm](parameters)
    l2 = 2.0 * parameters["c2"] if "c2" in parameters else 0.0  # CRFsuite's penalty has no ½
    with one_blas_thread(), execution_for(1) as mapper:
        shards = compiled(features, batch, batch.gold)
        likelihood = OBJECTIVES.resolve("likelihood")
        oracle = oracle_for(solver.asks, features, shards, likelihood, inference, mapper, l2)
        return solver.minimize(oracle, np.zeros(features.n_weights), watch)


def compiled(layout: Layout, batch: Batch, gold: Labels | None = None) -> list[Shard]:
    """The whole batch as shards."""
    chains = chain_batch(batch.rows())
    return [layout.compile(chains, a, b, gold) for a, b in chains.limits(layout.n_labels)]


def _lbfgs(p: Parameters) -> Solver:
    """The solver's own tests of convergence are off, `Watch` has CRFsuite's."""
    limit, memory = p["max_iterations"] or 2**31 - 1, p["num_memories"]
    if p["c1"] > 0.0:
        trials = p["max_linesearch"]
        return OriginalOWLQN(limit, l1=p["c1"], memory=memory, max_trials=trials)
    return SOLVERS.resolve("lbfgs", max_iter=limit, tol=0.0, memory=memory)


def _sgd(p: Parameters) -> Solver:
    return SOLVERS.resolve(
        "sgd",
        max_iter=p["max_iterations"],
        tol=p["delta"],
        random_state=SEED,
        period=p["period"],
        first_rate=p["calibration.eta"],
        rate_factor=p["calibration.rate"],
        sample_size=p["calibration.samples"],
        n_rates=p["calibration.candidates"],
        max_trials=p["calibration.max_trials"],
        look_ahead=True,
    )


def _mistake_driven(name: str, p: Parameters, **settings: object) -> Solver:
    common = {"max_iter": p["max_iterations"], "tol": p["epsilon"], "random_state": SEED}
    return SOLVERS.resolve(name, **common, **settings)


def _perceptron(p: Parameters) -> Solver:
    return _mistake_driven("averaged_perceptron", p)


def _passive_aggressive(p: Parameters) -> Solver:
    return _mistake_driven(
        "passive_aggressive",
        p,
        variant=("hard", "linear", "squared")[p["type"]],
        aggressiveness=p["c"],
        error_sensitive=p["error_sensitive"],
        averaged=p["averaging"],
    )


def _arow(p: Parameters) -> Solver:
    return _mistake_driven("arow", p, variance=p["variance"], regularization=p["gamma"])


SOLVERS_OF: dict[str, Callable[[Parameters], Solver]] = {
    "lbfgs": _lbfgs,
    "l2sgd": _sgd,
    "averaged-perceptron": _perceptron,
    "passive-aggressive": _passive_aggressive,
    "arow": _arow,
}


def evaluator(
    labels: list[str], held: Batch, features: Layout, inference: Inference
) -> Callable[[Floats], Iterable[str]]:
    """A function of weights that reports how well they label the holdout group."""
    shards = compiled(features, held) if len(held.gold) else []

    def evaluate(weights: Floats) -> Iterable[str]:
        expanded = features.expand(weights)
        found = [inference.map(features.potentials(s, expanded)).labels for s in shards]
        predicted = np.concatenate([np.zeros(0, np.int32), *found])
        return _messages.evaluation(labels, held.gold, predicted, held.lengths)

    return evaluate


def model_of(data: TrainingData, features: Layout, weights: Floats) -> ChainCRF:
    """A fitted model with all attributes; weights of zero are left out, as CRFsuite does."""
    rows = features["node"].rows
    assert rows is not None
    keys, node = rows.keys(), weights[features.slices["node"]]
    active = np.flatnonzero(node)
    source, target = np.divmod(features["transitions"].kept, features.n_labels)
    tied = weights[features.slices["transitions"]]
    kept = np.flatnonzero(tied)
    return assembled(
        list(data.labels),
        data.source.vocabulary.names(),
        (keys.column[active], keys.output[active], node[active]),
        (source[kept], target[kept], tied[kept]),
    )


def _reason(algorithm: str, status: Status) -> str:
    if algorithm in ("lbfgs", "l2sgd"):
        name = "L-BFGS" if algorithm == "lbfgs" else "SGD"
        if status is Status.MAX_ITERATIONS:
            return f"{name} terminated with the maximum number of iterations"
        if status.succeeded:
            return f"{name} resulted in convergence"
        return f"{name} terminated with the stopping criteria"
    return "Terminated with the stopping criterion" if status.succeeded else ""
