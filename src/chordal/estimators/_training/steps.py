"""The steps of every fit, from data to weights."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from chordal._fit_progress import FitProgress
from chordal._scratch import scratch_folder
from chordal._status import Status
from chordal.estimators._training.checkpoint import Checkpoint, Checkpointer, Path
from chordal.estimators._training.choosing import (
    Data,
    check_before_compiling,
    check_fit_arguments,
    chosen_before_reading,
    inference_for,
    problem_of,
    solver_for,
    validation_pair,
)
from chordal.estimators._training.groups import free_weights, l2_of, members, minimized, scaling
from chordal.estimators._training.judging import (
    Validator,
    completions,
    converged,
    prediction_facts,
)
from chordal.estimators._training.monitor import (
    FitReport,
    Monitor,
    fit_callbacks,
    keep_or_raise,
    stateful,
    warn_not_converged,
    whole_fits,
    with_model,
)
from chordal.estimators._training.preparing import is_stream, prepare
from chordal.estimators._training.reading import read
from chordal.estimators._training.resuming import checked_by, digests_of
from chordal.estimators._training.turns import Turns, completed_by
from chordal.estimators._training.work import Plan, Work
from chordal.estimators._typed import refuse_prices
from chordal.execution import effective_n_jobs, execution_for, one_blas_thread
from chordal.features import (
    ArrayInput,
    Layout,
    Parts,
    Reader,
    Shard,
    Spilled,
)
from chordal.inference import Inference
from chordal.labels import SequenceLabels
from chordal.objectives import Objective
from chordal.oracle import Mapper, asks_examples, oracle_for, single_examples
from chordal.oracle.examples import ExampleOracle
from chordal.potentials import Floats
from chordal.prepared import Dataset
from chordal.solvers import Callback, Solution, Solver
from chordal.targets import PartialLabels, Target

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")

SHORT = 30  # iterations of the likelihood, twice, before labels are completed
NOISE = 0.3  # of weights between the two


def fit(
    estimator: E,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    validation_data: object = None,
    callback: Callback | None = None,
    checkpoint: Path | Checkpoint | None = None,
    keep: bool = False,
    centre: bool = False,
    scaled: str | None = None,
) -> E:
    """Train an estimator; it does not change if an error occurs.

    `keep` continues from the current model; `centre` makes the L2 penalty pull towards its weights.
    The weights of the template `scaled` keep their proportions: only one factor is learned.
    """
    estimator._check_parameters()
    check_fit_arguments(callback, validation_data)
    held = None if validation_data is None else validation_pair(validation_data)
    keeper = None if checkpoint is None else Checkpointer(checkpoint)
    chosen = chosen_before_reading(estimator)
    model = copy(estimator)  # reading sets attributes, which come with the weights
    stream = y is None and is_stream(X)
    with written(estimator, X, keep) if stream else nullcontext(X) as X:
        data = read(model, X, y, sample_weight, chosen[1], keep)
        plan = planned(model, data, *chosen, scaled, centre)
        validate = (
            None
            if held is None
            else Validator.of(model, *held, data.reader, data.labels, data.layout).required()
        )
        if keeper is not None:
            digests = digests_of(data, None if validate is None else validate.checksum)
            plan = checked_by(keeper, model, plan, digests)
        work = compiled(model, data, plan)
        inference = inference_for(model, plan.objective, plan.solver, work.shards)
        fitted = changed_in(model, estimator)
        fitted |= attributes_of(data.reader, data.labels, data.layout, inference)
        sets = isinstance(data.parts[0].gold, PartialLabels)
        latent = sets and "partial" not in plan.objective.targets
        del data  # its rows are compiled
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        given = {"X": X, "y": y, "metadata": metadata}
        learned = (work.spread, len(work.start))
        watching = training(estimator, plan.solver, callback, given, fitted, validate, *learned)
        with watching as (run, monitor), nullcontext() if keeper is None else keeper.going_on():
            if keeper is not None:
                keep_states(keeper, monitor, plan, work, inference)
            first = partial(first_completion, model, X, y, sample_weight, keep, work, inference)
            settings = (inference, run, monitor, keeper, first if latent else None)
            found, work, completed = solved(model, plan, work, *settings)
            last, known = judged(model, monitor.chosen(found), plan, work, inference)
            solution = replace(last, weights=work.spread(last.weights))
            known |= {"validation": monitor.scores, "completions": completed}
            report = taken(estimator, fitted, solution, known)
    warn_of_end(report, solution, work.start)
    return estimator


def changed_in(model: BaseCRF, before: BaseCRF) -> dict[str, Any]:
    """The attributes that a copy of an estimator has, and the estimator has not."""
    known = vars(before)
    return {
        name: own
        for name, own in vars(model).items()
        if name not in known or known[name] is not own
    }


@contextmanager
def written(estimator: BaseCRF, batches: object, keep: bool) -> Iterator[Dataset]:
    """The batches of an iterator as a data set in a temporary folder."""
    with scratch_folder("batches") as folder:
        yield prepare(estimator, os.path.join(folder, "data"), batches, known=keep)


def taken(
    estimator: BaseCRF, fitted: Mapping[str, Any], solution: Solution, known: Mapping[str, Any]
) -> FitReport:
    """Give an estimator what was learned; `known` are facts for the report."""
    report = FitReport.of(solution, **known)
    vars(estimator).update(fitted, objective_=report.objective, n_iter_=report.n_iter)
    vars(estimator).update(weights_=solution.weights, fit_report_=report)
    return report


def warn_of_end(report: FitReport, solution: Solution, start: Floats) -> None:
    """Warn of a fit that did not converge or was interrupted."""
    if report.status in (Status.MAX_ITERATIONS, Status.SETTLED):
        warn_not_converged(report)
    if report.status is Status.INTERRUPTED:
        keep_or_raise(report.n_iter, not np.array_equal(solution.weights, start))


def weighed(
    estimator: BaseCRF,
    objective: Objective,
    labels: SequenceLabels,
    gold: Callable[[], Target],
    weight: Floats | None,
) -> tuple[Objective, Floats | None]:
    """The objective for these labels' numbers, and weights of examples, with `class_weight`."""
    if labels.types:
        refuse_prices(objective, labels, estimator.class_weight)
    objective = objective.for_labels(labels.labels, labels.order)
    if estimator.class_weight is None:
        return objective, weight
    return estimator._class_weighted(objective, labels, gold(), weight)


def planned(
    estimator: BaseCRF,
    data: Data,
    solver: Solver,
    objective: Objective,
    scaled: str | None,
    centre: bool,
) -> Plan:
    """The training plan for these data; raises an error for settings that do not fit together."""
    objective, weight = weighed(estimator, objective, data.labels, data.parts.gold, data.weight)
    free = free_weights(estimator.freeze, data.layout.slices, data.start)
    moved = None if scaled is None else data.layout.slices[scaled]
    some_stay = free is not None or moved is not None
    problem = problem_of(estimator, objective, data, some_stay, centre)
    if estimator.solver == "auto":
        solver = solver_for(estimator, problem)
    check_before_compiling(estimator, problem, solver, data)
    return Plan(solver, objective, weight, free, moved, centre)


def compiled(estimator: BaseCRF, data: Data, plan: Plan) -> Work:
    """The batch as shards, condensed if the solver allows it.

    If columns or penalties differ much in size, the solver's weights are scaled.
    """
    solver, layout, start, parts = plan.solver, data.layout, data.start, data.parts
    without = () if plan.centre else estimator.unpenalised
    penalty = l2_of(estimator.l2, layout.slices, start, without)
    scale, penalty = scaling(
        layout, lambda: layout.column_squares(parts.batches), start, solver, penalty
    )
    spread: Callable[[Floats], Floats] = np.copy
    condense = solver.rotates and plan.free is None and plan.moved is None
    if condense and scale is None and not start.any():
        condensed = layout.condensed(parts.batches)
        if condensed is not None:
            layout, change, spread = condensed
            parts = parts.changed(change)
            start = np.zeros(layout.n_weights)
            penalty = l2_of(estimator.l2, layout.slices, start, without)
    if scale is not None:
        layout, start = layout.scaled(scale), start * scale
        spread = lambda weights: weights / scale  # noqa: E731
    shards, cuts = shards_of(layout, parts, plan)
    return Work(layout, start, penalty, shards, cuts, spread)


def shards_of(layout: Layout, parts: Parts, plan: Plan) -> tuple[Sequence[Shard], list[int] | None]:
    """The shards for the solver, and where each mini-batch or block begins, if there are several.

    For parts that are not in memory, compiled shards are written to a file. Solvers that visit
    single examples take them in blocks, so that few have to be in memory.
    """
    solver, outline, weight = plan.solver, parts.outline, plan.weight
    n, size, order, cuts = parts.n_examples, solver.batch_size, None, None
    in_blocks = solver.asks is ExampleOracle and parts.n_blocks > 1
    if solver.mixes and (in_blocks or size is not None):
        order = np.random.default_rng(solver.random_state).permutation(n)
    given = np.arange(n) if order is None else order
    blocks = parts.blocks(given) if in_blocks else []
    if in_blocks:
        limits, cuts = outline.within(layout.counts, blocks, given)
    elif size is not None:
        limits, cuts = outline.minibatches(layout.counts, size, given)
    else:
        limits = outline.limits(layout.counts, training=True)
    chains = outline.is_chain and not single_examples(solver.asks, layout, plan.objective)
    if asks_examples(solver.asks) and not chains:
        cuts = [0, *(end for _, end in blocks)] if in_blocks else None
        limits = [(i, i + 1) for i in range(n)]
    if order is not None:
        weight = None if weight is None else weight[order]
    found = parts.runs(limits) if order is None else parts.mixed(order, limits)
    shards = (
        layout.compile(batch, a - at, b - at, gold, None if weight is None else weight[at:])
        for batch, gold, at, a, b in found
    )
    return list(shards) if parts.in_memory else Spilled.of(shards), cuts


def attributes_of(
    reader: Reader, labels: SequenceLabels, layout: Layout, inference: Inference
) -> dict[str, Any]:
    """The fitted attributes besides the weights."""
    fitted: dict[str, Any] = {
        "reader_": reader,
        "labels_": labels,
        "classes_": labels.classes,
        "layout_": layout,
        "inference_": inference,
    }
    if isinstance(reader.inputs[0], ArrayInput):
        fitted["n_features_in_"] = reader.inputs[0].n_columns
    return fitted


def keep_states(
    keeper: Checkpointer, monitor: Monitor, plan: Plan, work: Work, inference: Inference
) -> None:
    """Let the checkpoint keep what has a state besides the solver."""
    keeper.keep("monitor", monitor)
    for name, method in (("inference", inference), ("objective", plan.objective)):
        own = method.kept_for(shard.frame.structure for shard in work.shards)
        if own is not None:
            keeper.keep(name, own, in_place=True)


def solved(
    estimator: BaseCRF,
    plan: Plan,
    work: Work,
    inference: Inference,
    run: Mapper,
    monitor: Monitor,
    keeper: Checkpointer | None,
    first: Callable[[], list[Target | None]] | None,
) -> tuple[Solution, Work, list[float]]:
    """The solution and the work that it solves.

    With `first`, which gives labels within sets, sets are completed in turns; then there are also
    the objective's values after each.
    """

    def solve(work: Work) -> Solution:
        return minimized_by(estimator, plan, work, inference, run, monitor, keeper)

    if first is None:
        return solve(work), work, []
    turns = Turns([shard.labels for shard in work.shards], len(work.start))
    if keeper is not None:
        keeper.keep("turns", turns)
    if not turns.labels:
        turns.labels = first()
    found, work = completed_by(solve, plan, work, turns, inference, keeper)
    return found, work, turns.values


def minimized_by(
    estimator: BaseCRF,
    plan: Plan,
    work: Work,
    inference: Inference,
    run: Mapper,
    monitor: Monitor,
    keeper: Checkpointer | None = None,
) -> Solution:
    """The solution of the solver with its kind of oracle."""
    oracle = oracle_for(
        plan.solver.asks,
        work.layout,
        work.shards,
        plan.objective,
        inference,
        run,
        work.penalty,
        work.start if plan.centre else None,
        work.cuts,
        members(estimator.unpenalised, work.layout.slices),
    )
    found = minimized(plan.solver, oracle, work.start, monitor, plan.free, plan.moved, keeper)
    return replace(found, status=status_of(found, plan.solver, plan.objective))


def first_completion(
    estimator: BaseCRF,
    X: object,
    y: object,
    sample_weight: object,
    keep: bool,
    work: Work,
    inference: Inference,
) -> list[Target | None]:
    """First labels within the sets: the best ones after a short fit of the likelihood."""
    model = copy(estimator)
    model.set_params(objective="likelihood", solver="auto", inference="auto", prediction="map")
    model.set_params(max_iter=SHORT, class_weight=None, l1=0.0, verbose=0)
    vars(model).pop("_skl_callbacks", None)  # they watch the fit that was asked for
    noise = np.random.default_rng(0)
    with whole_fits(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is not finished
        fit(model, X, y, sample_weight, keep=keep)
        # Labels that always stand in sets together are alike so far: no gradient parts them.
        model.weights_ = model.weights_ + NOISE * noise.normal(size=len(model.weights_))
        fit(model, X, y, sample_weight, keep=True)
    weights = model.weights_ if len(model.weights_) == len(work.start) else work.start
    scale = work.layout.scale
    sets = [shard.labels for shard in work.shards]
    return completions(
        work.layout, work.shards, sets, inference, weights if scale is None else weights * scale
    )


def status_of(solution: Solution, solver: Solver, objective: Objective) -> Status:
    """Correct a run's status: for a non-smooth objective without a gap, convergence is not proven.

    Solvers with their own objective have their own rules.
    """
    known = objective.smooth or not np.isnan(solution.gap) or len(solver.objectives) > 0
    if known or solution.status is not Status.CONVERGED:
        return solution.status
    return Status.SETTLED


def judged(
    estimator: BaseCRF, solution: Solution, plan: Plan, work: Work, inference: Inference
) -> tuple[Solution, dict[str, Any]]:
    """The solution with the facts of its report: methods used, exactness and scores.

    Ctrl-C ends this step too.
    """
    # Shards may lie in a file, whose pages leave memory as the loop goes on.
    structures = (shard.frame.structure for shard in work.shards)
    exact = not plan.objective.needs or all(map(inference.exact_on, structures))
    known = {"solver": plan.solver.name, "inference": inference.name, "exact": exact}
    if solution.status is Status.INTERRUPTED:
        return solution, known
    model = (work.layout, work.shards, solution.weights)
    try:
        if not exact:
            known["inference_converged"] = converged(inference, plan.objective, *model)
        if not all(shard.frame.structure.is_forest for shard in work.shards):
            known |= prediction_facts(estimator, plan.objective, *model)
    except KeyboardInterrupt:
        solution = replace(solution, status=Status.INTERRUPTED)
    return solution, known


@contextmanager
def training(
    estimator: BaseCRF,
    solver: Solver,
    callback: Callback | None,
    given: Mapping[str, object],
    fitted: Mapping[str, object],
    validate: Callable[[Floats], float] | None,
    spread: Callable[[Floats], Floats],
    n_weights: int,
) -> Iterator[tuple[Mapper, Monitor]]:
    """Threads and progress for the duration of a fit.

    `given` and `fitted` are for callbacks; `spread` turns the `n_weights` learned weights into all
    weights of the model.
    """
    with (
        fit_callbacks(
            estimator, solver.max_iter, given, lambda state: {**fitted, "weights_": state.weights}
        ) as watcher,
        one_blas_thread(),
        execution_for(effective_n_jobs(estimator.n_jobs)) as mapper,
        FitProgress(estimator.verbose, solver) if estimator.verbose else nullcontext() as progress,
    ):
        told = (with_model(callback, estimator, fitted), watcher)
        every, unchanged = estimator.validation_interval, estimator.n_iter_no_change
        show = None if progress is None else progress.update
        learned = (spread, n_weights, stateful(callback))
        yield mapper, Monitor(show, told, validate, every, unchanged, *learned)
