"""The one road from data to weights: every fit of every estimator takes these steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from chordal._progress import FitProgress
from chordal._status import Status
from chordal._validate import (
    check_choice,
    check_function,
    check_number,
    check_sample_weight,
    generator_from,
)
from chordal.estimators._groups import (
    check_groups,
    free_weights,
    l2_of,
    members,
    minimized,
    scaling,
)
from chordal.estimators._interruption import keep_or_raise
from chordal.estimators._monitor import (
    FitReport,
    Monitor,
    fit_callbacks,
    warn_not_converged,
    with_model,
)
from chordal.execution import effective_n_jobs, execution_for, one_blas_thread
from chordal.features import (
    ArrayInput,
    Batch,
    Layout,
    Reader,
    Shard,
    layout_of,
    length_of,
    transferred,
)
from chordal.inference import INFERENCE, Inference, Pace, choose
from chordal.labels import SequenceLabels, observed, targets_of
from chordal.objectives import OBJECTIVES, Objective
from chordal.oracle import (
    Mapper,
    Problem,
    asks_examples,
    check_questions,
    oracle_for,
    single_examples,
)
from chordal.potentials import Floats
from chordal.solvers import SOLVERS, Callback, Solution, Solver, choose_solver
from chordal.structures import Matching
from chordal.targets import PartialLabels, Target, kind_of

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")


class Data(NamedTuple):
    """What was read, and which weights it has."""

    reader: Reader
    labels: SequenceLabels
    batch: Batch
    gold: Target  # what y says
    weight: Floats | None  # of examples
    layout: Layout
    start: Floats  # weights at zero, or those that are known


class Work(NamedTuple):
    """What a solver works on, and how its weights become the model's."""

    layout: Layout
    start: Floats
    shards: list[Shard]
    cuts: list[int] | None  # where each mini-batch begins
    spread: Callable[[Floats], Floats]


def fit(
    estimator: E,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    validation_data: tuple[Any, Any] | None = None,
    callback: Callback | None = None,
    keep: bool = False,
    centre: bool = False,
    scaled: str | None = None,
) -> E:
    """Learn the weights of an estimator, which stays as it was if anything goes wrong.

    `keep` goes on from the model it has, `centre` pulls towards its weights. The weights of the
    template `scaled` keep their proportions: one number is learned that multiplies them.
    """
    estimator._check_parameters()
    check_fit_arguments(callback, validation_data)
    solver = solver_for(estimator)
    objective = objective_for(estimator, solver)
    check_before_reading(estimator, objective, solver)

    data = read(estimator, X, y, sample_weight, objective, keep)
    objective, weight = weighed(estimator, objective, data)
    slices = data.layout.slices
    free = free_weights(estimator.freeze, slices, data.start)
    moved = None if scaled is None else slices[scaled]
    some_stay = free is not None or moved is not None
    problem = problem_of(estimator, objective, data, some_stay, centre)
    if estimator.solver == "auto":
        solver = solver_for(estimator, problem)
    check_before_compiling(estimator, problem, solver, data)
    validate = None if validation_data is None else validator(estimator, *validation_data, data)

    without = () if centre else estimator.unpenalised
    penalty = l2_of(estimator.l2, slices, data.start, without)
    scale, penalty = scaling(data.layout, data.batch, data.start, solver, penalty)
    work = compiled(data, weight, solver, objective, condense=not some_stay, scale=scale)
    inference = inference_for(estimator, objective, solver, work.shards)
    fitted: dict[str, Any] = {
        "reader_": data.reader,
        "labels_": data.labels,
        "classes_": data.labels.classes,
        "layout_": data.layout,
        "inference_": inference,
    }
    if isinstance(data.reader.inputs[0], ArrayInput):
        fitted["n_features_in_"] = data.reader.inputs[0].n_columns
    del data  # its rows are compiled
    metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
    given = {"X": X, "y": y, "metadata": metadata}
    if scale is None:
        penalty = l2_of(estimator.l2, work.layout.slices, work.start, without)
    with (
        fit_callbacks(
            estimator, solver.max_iter, given, lambda state: {**fitted, "weights_": state.weights}
        ) as watcher,
        training(
            estimator,
            solver,
            (with_model(callback, estimator, fitted), watcher),
            validate,
            work.spread,
        ) as (run, monitor),
    ):
        oracle = oracle_for(
            solver.asks,
            work.layout,
            work.shards,
            objective,
            inference,
            run,
            penalty,
            work.start if centre else None,
            work.cuts,
            members(estimator.unpenalised, work.layout.slices),
        )
        found = minimized(solver, oracle, work.start, monitor, free, moved)
        found = replace(found, status=status_of(found, solver, objective))
        solution = monitor.chosen(found)
        structures = [shard.frame.structure for shard in work.shards]
        exact = not objective.needs or all(map(inference.exact_on, structures))
        names = {"solver": solver.name, "inference": inference.name}
        ask = not exact and solution.status is not Status.INTERRUPTED
        settled = converged(inference, objective, work, found.weights) if ask else None
        known = {"exact": exact, "inference_converged": settled}
        report = FitReport.of(solution, **names, **known, validation=monitor.scores)
        fitted |= {"objective_": report.objective, "n_iter_": report.n_iter}
        vars(estimator).update(fitted, weights_=solution.weights, fit_report_=report)
    if report.status in (Status.MAX_ITERATIONS, Status.SETTLED):
        warn_not_converged(report)
    if report.status is Status.INTERRUPTED:
        keep_or_raise(report.n_iter, not np.array_equal(solution.weights, work.start))
    return estimator


def status_of(solution: Solution, solver: Solver, objective: Objective) -> Status:
    """How a run ended: at a kink no gradient tells, and without a gap nothing shows a minimum.

    Solvers with an objective of their own have rules of their own.
    """
    known = objective.smooth or not np.isnan(solution.gap) or len(solver.objectives) > 0
    if known or solution.status is not Status.CONVERGED:
        return solution.status
    return Status.SETTLED


def check_settings(estimator: BaseCRF) -> None:
    """Refuse parameters that are not numbers or names of their kind."""
    check_number("l1", estimator.l1)
    if estimator.tol is not None:
        check_number("tol", estimator.tol)
    check_number("validation_interval", estimator.validation_interval, minimum=1, integer=True)
    for name in ("max_iter", "n_iter_no_change"):
        if getattr(estimator, name) is not None:
            check_number(name, getattr(estimator, name), minimum=1, integer=True)
    effective_n_jobs(estimator.n_jobs)
    check_number("verbose", estimator.verbose, integer=True)
    check_number("min_freq", estimator.min_freq, integer=True)
    check_choice("pairs", estimator.pairs, ["seen", "all"])
    check_groups(estimator.l2, estimator.freeze, estimator._groups())


def check_fit_arguments(callback: object, validation_data: object) -> None:
    """Refuse what `fit` cannot use."""
    check_function("callback", callback, "an Iteration")
    if validation_data is not None and not (
        isinstance(validation_data, (tuple, list)) and len(validation_data) == 2
    ):
        raise ValueError("validation_data must be a pair (X, y) of examples and labels")


def solver_for(estimator: BaseCRF, problem: Problem | None = None) -> Solver:
    """The solver of this name with the estimator's settings, or the one given, seeded.

    "auto" is chosen by the problem; before data are read, by what is known then.
    """
    solver, l1, random_state = estimator.solver, estimator.l1, estimator.random_state
    if isinstance(solver, str) and solver == "auto":
        problem = problem or problem_before_reading(estimator, asked_objective(estimator))
        solver = choose_solver(problem, l1, estimator.preferred_solvers)
        if random_state is None:
            random_state = 0  # nobody asked for chance
    if solver == "lbfgs" and l1 > 0.0:
        solver = "owlqn"
    if isinstance(solver, str):
        settings: dict[str, Any] = {"max_iter": estimator.max_iter, "tol": estimator.tol}
        settings = {k: v for k, v in settings.items() if v is not None}
        if SOLVERS.get(solver).seeded:
            settings["random_state"] = generator_from(random_state)
        if SOLVERS.get(solver).handles_l1:
            settings["l1"] = l1
        elif l1 > 0.0:
            raise ValueError(f"solver {solver!r} does not take l1 > 0; 'owlqn' does")
        return SOLVERS.resolve(solver, **settings)
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


def objective_for(estimator: BaseCRF, solver: Solver) -> Objective:
    """The objective asked for; "auto" is what the solver minimises, else the estimator's."""
    asked, own = estimator.objective, solver.default_objective()
    chosen = isinstance(estimator.solver, str) and estimator.solver == "auto"
    if own == "likelihood" or chosen or not isinstance(asked, str) or asked != "auto":
        return asked_objective(estimator)
    return OBJECTIVES.resolve(own)


def asked_objective(estimator: BaseCRF) -> Objective:
    """The objective asked for; "auto" is the estimator's, whatever the solver."""
    asked = estimator.objective
    auto = isinstance(asked, str) and asked == "auto"
    return OBJECTIVES.resolve(estimator.default_objective if auto else asked)


def problem_before_reading(estimator: BaseCRF, objective: Objective) -> Problem:
    """What is known of the problem, whatever the data."""
    return Problem(objective, l2=estimator.l2, partial=len(estimator.freeze) > 0)


def check_before_reading(estimator: BaseCRF, objective: Objective, solver: Solver) -> None:
    """Refuse what cannot work together, whatever the data."""
    solver.check(problem_before_reading(estimator, objective))
    if estimator.inference != "auto":
        objective.require_answers(INFERENCE.resolve(estimator.inference))


def read(
    estimator: BaseCRF, X: object, y: object, weights: object, objective: Objective, keep: bool
) -> Data:
    """From what users gave to a batch and targets; copies, so that the model stays as it was."""
    X = estimator._examples(X, known=keep)
    if length_of(X) == 0:
        raise ValueError("X is empty: give at least one example")
    reader = estimator._new_reader(X, keep)
    if keep:
        reader = reader.knowing(estimator.reader_)
    labels = estimator.labels_.copy() if keep else estimator._new_labels()
    batch = reader.read(X, grow=True)
    flat = estimator._flat(y, X)
    estimator._check_lengths(batch.sizes, flat)
    weight = check_sample_weight(weights, len(batch.sizes))
    if weight is not None and not weight.any():
        raise ValueError("sample_weight is zero for every example: there is nothing to learn")
    gold = targets_of(labels, flat, estimator.ignore_label)
    batch, gold = learnable(batch, gold, objective)
    known = estimator.layout_ if keep else None
    settings = (estimator.pairs, estimator.min_freq, known)
    layout = layout_of(reader, batch, gold, len(labels), *settings)
    start = np.zeros(layout.n_weights)
    if known is not None:
        start = transferred(known, estimator.weights_, layout)
    return Data(reader, labels, batch, gold, weight, layout, start)


def learnable(batch: Batch, gold: Target, objective: Objective) -> tuple[Batch, Target]:
    """Without the variables that are not observed, where an objective has no use for them."""
    if not isinstance(gold, PartialLabels) or "partial" in objective.targets:
        return batch, gold
    known = gold.known()
    if known is None:
        return batch, gold  # sets of labels: refused by the objective
    return batch.kept(known[0]), known[1]


def weighed(
    estimator: BaseCRF, objective: Objective, data: Data
) -> tuple[Objective, Floats | None]:
    """The objective for these labels' numbers, and weights of examples, with `class_weight`."""
    labels = data.labels
    objective = objective.for_labels(labels.labels, labels.order)
    if estimator.class_weight is None:
        return objective, data.weight
    return estimator._class_weighted(objective, labels, data.gold, data.weight)


def problem_of(
    estimator: BaseCRF, objective: Objective, data: Data, some_stay: bool, centre: bool
) -> Problem:
    """What is to be minimised on these data; `some_stay`: not all weights move."""
    objective.require_targets(data.gold)
    without = () if centre else estimator.unpenalised
    return Problem(
        objective,
        kind_of(data.gold),
        estimator.l2,
        some_stay,
        data.layout.n_weights,
        exempt=len(members(without, data.layout.slices)) > 0,
        chains=data.batch.is_chain,
        warm=not centre and bool(data.start.any()),
    )


def check_before_compiling(
    estimator: BaseCRF, problem: Problem, solver: Solver, data: Data
) -> None:
    """Refuse what cannot work together on these data."""
    solver.check(problem)
    objective, batch = problem.objective, data.batch
    if estimator.inference != "auto":
        structure, _ = batch.structure(0, len(batch.sizes), len(data.labels))
        method = INFERENCE.resolve(estimator.inference)
        check_questions(solver.name, solver.asks, objective, method, structure)


def compiled(
    data: Data,
    weight: Floats | None,
    solver: Solver,
    objective: Objective,
    condense: bool,
    scale: Floats | None,
) -> Work:
    """The batch as shards, in a form that costs less where the solver does not mind.

    The solver's weights are the model's times `scale`, if that is given.
    """
    layout, start, batch, gold, cuts = data.layout, data.start, data.batch, data.gold, None
    spread: Callable[[Floats], Floats] = np.copy
    if condense and solver.rotates and scale is None and not start.any():
        condensed = layout.condensed(batch)
        if condensed is not None:
            layout, batch, spread = condensed
            start = np.zeros(layout.n_weights)
    if scale is not None:
        layout, start = layout.scaled(scale), start * scale
        spread = lambda weights: weights / scale  # noqa: E731
    single = not batch.is_chain or single_examples(solver.asks, layout, objective)
    if asks_examples(solver.asks) and single:
        limits = [(i, i + 1) for i in range(len(batch.sizes))]
    elif solver.batch_size is None:
        limits = batch.limits(layout.n_labels, training=True)
    else:
        order = np.random.default_rng(solver.random_state).permutation(len(batch.sizes))
        gold, weight = gold[batch.positions(order)], None if weight is None else weight[order]
        batch = batch.reordered(order)
        limits, cuts = batch.minibatches(layout.n_labels, solver.batch_size)
    shards = [layout.compile(batch, a, b, gold, weight) for a, b in limits]
    return Work(layout, start, shards, cuts, spread)


def inference_for(
    estimator: BaseCRF, objective: Objective, solver: Solver, shards: Sequence[Shard]
) -> Inference:
    """What training asks: a method that works on all structures, exact if it can be."""
    if estimator.inference != "auto":
        return INFERENCE.resolve(estimator.inference)
    question = min(objective.needs, default="map")
    structures = [shard.frame.structure for shard in shards]
    # The tables of a matching are known before any weights are, and some methods ask for them.
    models = [
        s.frame if isinstance(s.frame.structure, Matching) else s.frame.structure for s in shards
    ]
    found = {
        method.name: method
        for method in (choose(model, question, Pace.MOMENTS) for model in models)
    }
    fits = (m for m in found.values() if all(map(m.supports, structures)))
    widest = max(range(len(models)), key=lambda k: structures[k].n_cliques)
    method = next(fits, None) or choose(models[widest], question, Pace.MOMENTS)
    for structure in structures:
        check_questions(solver.name, solver.asks, objective, method, structure)
    return method


def converged(
    inference: Inference, objective: Objective, work: Work, weights: Floats
) -> bool | None:
    """Whether inference converges everywhere at a solver's weights; None: it does not iterate."""
    asked = next((q for q in ("marginals", "relaxed_map", "map") if q in objective.needs), None)
    if asked is None:
        return None
    expanded, settled = work.layout.expand(weights), None
    for shard in work.shards:
        ended = getattr(inference, asked)(work.layout.potentials(shard, expanded)).convergence
        if ended is not None:
            settled = ended.status.succeeded
        if settled is False:
            break
    return settled


def validator(estimator: BaseCRF, X: object, y: object, data: Data) -> Callable[[Floats], float]:
    """The share of the labels of the validation data that given weights get right."""
    from chordal.estimators._crf import decoded

    X = estimator._examples(X, "validation X")
    if length_of(X) == 0:
        raise ValueError("validation X is empty: give at least one example")
    batch, layout = data.reader.read(X, grow=False), data.layout
    flat = estimator._flat(y, X, "validation y")
    estimator._check_lengths(batch.sizes, flat, "validation ")
    gold, seen = data.labels.encode(flat, unknown=-1), observed(flat, estimator.ignore_label)
    shards = [layout.compile(batch, a, b) for a, b in batch.limits(layout.n_labels)]
    question = estimator._decoding()

    def score(weights: Floats) -> float:
        expanded = layout.expand(weights)
        found = []
        for shard in shards:
            potentials = layout.potentials(shard, expanded)
            method = estimator._method(question, potentials, Pace.MOMENTS)
            found.append(decoded(potentials, method, question))
        return float((np.concatenate(found) == gold)[seen].mean())

    return score


@contextmanager
def training(
    estimator: BaseCRF,
    solver: Solver,
    callbacks: Sequence[Callback | None],
    validate: Callable[[Floats], float] | None,
    spread: Callable[[Floats], Floats],
) -> Iterator[tuple[Mapper, Monitor]]:
    """Threads and progress for the time of a fit: what runs its tasks, and what watches it.

    `spread` makes the model's weights of those that are learned.
    """
    with (
        one_blas_thread(),
        execution_for(effective_n_jobs(estimator.n_jobs)) as mapper,
        FitProgress(estimator.verbose, solver) as progress,
    ):
        every, unchanged = estimator.validation_interval, estimator.n_iter_no_change
        yield mapper, Monitor(progress.update, callbacks, validate, every, unchanged, spread)
