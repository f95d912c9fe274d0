"""The steps of a fit that estimators share: solver, oracle, and the report of how it went."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.estimators._estimator import generator_from
from chordal.estimators._progress import FitProgress
from chordal.estimators._training import (
    FitReport,
    Monitor,
    compile_batches,
    compile_shards,
    execution_for,
)
from chordal.execution import effective_n_jobs
from chordal.features import ChainFeatures, Rows
from chordal.inference import Inference
from chordal.objectives import OBJECTIVES, Objective
from chordal.oracle import (
    DualOracle,
    ExampleOracle,
    Mapper,
    Oracle,
    Problem,
    check_questions,
    oracle_for,
)
from chordal.potentials import Floats
from chordal.solvers import SOLVERS, Callback, Solution, Solver
from chordal.structures import Structure
from chordal.targets import Target


class Settings(Protocol):
    """An estimator's parameters that say how a fit is run."""

    l1: float
    max_iter: int | None
    tol: float | None
    n_jobs: int | None
    verbose: int
    validation_interval: int
    n_iter_no_change: int | None


def check_settings(settings: Settings) -> None:
    """Refuse parameters that are no numbers of their kind."""
    check_number("l1", settings.l1)
    if settings.tol is not None:
        check_number("tol", settings.tol)
    check_number("validation_interval", settings.validation_interval, minimum=1, integer=True)
    for name in ("max_iter", "n_iter_no_change"):
        if getattr(settings, name) is not None:
            check_number(name, getattr(settings, name), minimum=1, integer=True)
    effective_n_jobs(settings.n_jobs)
    check_number("verbose", settings.verbose, integer=True)


@contextmanager
def training(
    settings: Settings,
    solver: Solver,
    callback: Callback | None,
    validate: Callable[[Floats], float] | None,
    spread: Callable[[Floats], Floats] = np.copy,
) -> Iterator[tuple[Mapper, Monitor]]:
    """Threads and progress for the time of a fit: what runs its tasks, and what watches it.

    `spread` makes the model's weights of those that are learned.
    """
    from threadpoolctl import threadpool_limits  # not needed to predict

    with (
        threadpool_limits(1, user_api="blas"),
        execution_for(effective_n_jobs(settings.n_jobs)) as mapper,
        FitProgress(settings.verbose, solver.max_iter) as progress,
    ):
        interval, patience = settings.validation_interval, settings.n_iter_no_change
        yield mapper, Monitor(progress.update, callback, validate, interval, patience, spread)


def solver_for(
    solver: str | Solver, l1: float, max_iter: int | None, tol: float | None, random_state: Any
) -> Solver:
    """The solver of this name with an estimator's settings, or the one given, seeded."""
    if solver == "lbfgs" and l1 > 0.0:
        solver = "owlqn"
    if isinstance(solver, str):
        settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol}
        settings = {k: v for k, v in settings.items() if v is not None}
        if SOLVERS.get(solver).seeded:
            settings["random_state"] = generator_from(random_state)
        return SOLVERS.resolve(solver, l1=l1, **settings)
    given = SOLVERS.resolve(solver)
    if given.l1 != l1:
        raise ValueError(
            f"l1 must be that of the solver object ({given.l1}), got {l1}; "
            f"give the solver by name, or l1 to both"
        )
    if given.seeded and given.random_state is None and random_state is not None:
        given = copy(given)
        given.random_state = generator_from(random_state)
    return given


def check_fit_arguments(callback: Any, validation_data: Any) -> None:
    """Refuse what `fit` cannot use."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of an Iteration, got {callback!r}")
    if validation_data is not None and not (
        isinstance(validation_data, (tuple, list)) and len(validation_data) == 2
    ):
        raise ValueError("validation_data must be a pair (X, y) of sequences and labels")


def objective_for(asked: str | Objective, solver: Solver, default: str | None = None) -> Objective:
    """The objective asked for; "auto" is what the solver minimises, if it minimises but one."""
    if not isinstance(asked, str) or asked != "auto":
        return OBJECTIVES.resolve(asked)
    own = solver.default_objective()
    return OBJECTIVES.resolve(default if default is not None and own == "likelihood" else own)


def check_problem(
    solver: Solver, problem: Problem, inference: Inference, structure: Structure
) -> None:
    """Refuse what cannot work together, before any work."""
    solver.check(problem)
    check_questions(solver.name, solver.asks, problem, inference, structure)


def chain_oracle(
    solver: Solver,
    features: ChainFeatures,
    data: tuple[Rows, Rows | None, Target, Floats | None],
    objective: Objective,
    inference: Inference,
    mapper: Mapper,
    l2: float | Floats,
    centre: Floats | None,
    without_l1: NDArray[np.int64] | None = None,
) -> Oracle | ExampleOracle | DualOracle:
    """What the solver asks: sums over the data or mini-batches of them, or single examples.

    `data` are rows of nodes and of transitions, labels, and weights of sequences.
    """
    cuts = None
    if solver.batch_size is None:
        shards = compile_shards(features, *data)
    else:
        random = np.random.default_rng(solver.random_state)
        order = random.permutation(len(data[0].lengths))
        shards, cuts = compile_batches(features, *data, order, solver.batch_size)
    problem = (features, shards, objective, inference, mapper, l2, centre, cuts, without_l1)
    return oracle_for(solver.asks, *problem)


def report_of(
    solution: Solution, monitor: Monitor, solver: Solver, inference: Inference, exact: bool = True
) -> tuple[Floats, FitReport]:
    """The weights to keep, and how they were found."""
    weights, objective, gradient_norm, gap = monitor.chosen(solution)
    return weights, FitReport(
        status=solution.status,
        solver=solver.name,
        inference=inference.name,
        objective=objective,
        gradient_norm=gradient_norm,
        n_iter=solution.n_iter,
        n_evaluations=solution.n_evaluations,
        n_weights=len(weights),
        n_nonzero=int(np.count_nonzero(weights)),
        elapsed=solution.elapsed,
        history=solution.history,
        validation=monitor.scores,
        gap=gap,
        details=solution.details,
        n_products=solution.n_products,
        exact=exact,
    )
