"""The one road from data to weights: every fit of every estimator takes these steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from chordal._status import Status
from chordal._validate import check_choice, check_number, check_sample_weight
from chordal.estimators._estimator import generator_from
from chordal.estimators._groups import (
    check_freeze,
    check_l2,
    free_weights,
    l2_of,
    members,
    minimized,
)
from chordal.estimators._interruption import keep_or_raise
from chordal.estimators._labels import SequenceLabels, targets_of
from chordal.estimators._monitor import (
    FitReport,
    Monitor,
    fit_callbacks,
    warn_not_converged,
    with_model,
)
from chordal.estimators._progress import FitProgress
from chordal.execution import effective_n_jobs, execution_for
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
from chordal.inference import INFERENCE, Inference, choose
from chordal.objectives import OBJECTIVES, Objective
from chordal.oracle import Mapper, Problem, asks_examples, check_questions, oracle_for
from chordal.potentials import Floats
from chordal.solvers import SOLVERS, Callback, Solver
from chordal.structures import Matching
from chordal.targets import PartialLabels, Target, kind_of

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")


class Data(NamedTuple):
    """What was read: who reads it, its labels, cliques and rows, what y says, and weights."""

    reader: Reader
    labels: SequenceLabels
    batch: Batch
    gold: Target
    weight: Floats | None


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
    layout, start = laid_out(estimator, data, keep)
    free = free_weights(estimator.freeze, layout.slices, start)
    moved = None if scaled is None else layout.slices[scaled]
    some_stay = free is not None or moved is not None
    check_before_compiling(estimator, objective, solver, data, layout, some_stay)
    validate = None
    if validation_data is not None:
        validate = validator(estimator, *validation_data, data.reader, data.labels, layout)

    work = compiled(layout, start, data, weight, solver, condense=not some_stay)
    fitted: dict[str, Any] = {
        "reader_": data.reader,
        "labels_": data.labels,
        "classes_": data.labels.classes,
    }
    del data  # its rows are compiled
    fitted["layout_"] = layout
    if isinstance(fitted["reader_"].inputs[0], ArrayInput):
        fitted["n_features_in_"] = fitted["reader_"].inputs[0].n_columns
    inference = fitted["inference_"] = inference_for(estimator, objective, solver, work.shards)
    metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
    given = {"X": X, "y": y, "metadata": metadata}
    without = () if centre else estimator.unpenalised
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
            l2_of(estimator.l2, work.layout.slices, work.start, without),
            work.start if centre else None,
            work.cuts,
            members(estimator.unpenalised, work.layout.slices),
        )
        solution = minimized(solver, oracle, work.start, monitor, free, moved)
        exact = all(inference.exact_on(shard.frame.structure) for shard in work.shards)
        exact = exact or not objective.needs
        weights, report = FitReport.of(solution, monitor, solver.name, inference.name, exact)
        fitted |= {"objective_": report.objective, "n_iter_": report.n_iter}
        vars(estimator).update(fitted, weights_=weights, fit_report_=report)
    warn_not_converged(report.status, report.solver, report.n_iter)
    if report.status is Status.INTERRUPTED:
        keep_or_raise(report.n_iter, not np.array_equal(solution.weights, work.start))
    return estimator


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
    groups = estimator._groups()
    if groups is not None:
        check_l2(estimator.l2, groups)
        check_freeze(estimator.freeze, groups)


def check_fit_arguments(callback: object, validation_data: object) -> None:
    """Refuse what `fit` cannot use."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of an Iteration, got {callback!r}")
    if validation_data is not None and not (
        isinstance(validation_data, (tuple, list)) and len(validation_data) == 2
    ):
        raise ValueError("validation_data must be a pair (X, y) of examples and labels")


def solver_for(estimator: BaseCRF) -> Solver:
    """The solver of this name with the estimator's settings, or the one given, seeded."""
    solver, l1, random_state = estimator.solver, estimator.l1, estimator.random_state
    if solver == "lbfgs" and l1 > 0.0:
        solver = "owlqn"
    if isinstance(solver, str):
        settings: dict[str, Any] = {"max_iter": estimator.max_iter, "tol": estimator.tol}
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


def objective_for(estimator: BaseCRF, solver: Solver) -> Objective:
    """The objective asked for; "auto" is what the solver minimises, else the estimator's."""
    asked, own = estimator.objective, solver.default_objective()
    if not isinstance(asked, str) or asked != "auto":
        return OBJECTIVES.resolve(asked)
    return OBJECTIVES.resolve(estimator.default_objective if own == "likelihood" else own)


def check_before_reading(estimator: BaseCRF, objective: Objective, solver: Solver) -> None:
    """Refuse what cannot work together, whatever the data."""
    frozen = len(estimator.freeze) > 0
    solver.check(Problem(objective, l2=estimator.l2, partial=frozen))
    if estimator.inference != "auto":
        objective.require_answers(INFERENCE.resolve(estimator.inference))


def read(
    estimator: BaseCRF,
    X: object,
    y: object,
    sample_weight: object,
    objective: Objective,
    keep: bool,
) -> Data:
    """From what users gave to a batch and targets; copies, so that the model stays as it was."""
    X = estimator._examples(X, known=keep)
    if length_of(X) == 0:
        raise ValueError("X is empty: give at least one example")
    reader = estimator._new_reader(X, keep)
    if keep:
        reader = reader.knowing(estimator.reader_)
    groups = [template.name for template in reader.templates]
    check_l2(estimator.l2, groups)
    check_freeze(estimator.freeze, groups)
    labels = estimator.labels_.copy() if keep else estimator._new_labels()
    batch = reader.read(X, grow=True)
    flat = estimator._flat(y, X)
    estimator._check_lengths(batch.sizes, flat)
    weight = check_sample_weight(sample_weight, len(batch.sizes))
    if weight is not None and not weight.any():
        raise ValueError("sample_weight is zero for every example: there is nothing to learn")
    gold = targets_of(labels, flat, estimator.ignore_label)
    return Data(reader, labels, *observed(batch, gold, objective), weight)


def observed(batch: Batch, gold: Target, objective: Objective) -> tuple[Batch, Target]:
    """What an objective can learn from: without the variables that are not observed where it
    has no use for them.
    """
    if not isinstance(gold, PartialLabels) or "partial" in objective.targets:
        return batch, gold
    n = int(np.diff(gold.state_offsets)[0]) if len(gold) else 1
    allowed = gold.allowed.reshape(-1, n)
    possible = allowed.sum(axis=1)
    known = possible == 1
    if not (known | (possible == n)).all():
        return batch, gold  # sets of labels: refused by the objective
    return batch.kept(known), allowed.argmax(axis=1)[known].astype(np.int32)


def weighed(
    estimator: BaseCRF, objective: Objective, data: Data
) -> tuple[Objective, Floats | None]:
    """The objective for these labels' numbers, and weights of examples, with `class_weight`."""
    labels = data.labels
    objective = objective.for_labels(labels.labels, labels.order)
    if estimator.class_weight is None:
        return objective, data.weight
    return estimator._class_weighted(objective, labels, data.gold, data.weight)


def laid_out(estimator: BaseCRF, data: Data, keep: bool) -> tuple[Layout, Floats]:
    """Which weights there are, and where they start: at zero, or at those that are known."""
    known = estimator.layout_ if keep else None
    n, settings = len(data.labels), (estimator.pairs, estimator.min_freq, known)
    layout = layout_of(data.reader, data.batch, data.gold, n, *settings)
    if known is None:
        return layout, np.zeros(layout.n_weights)
    return layout, transferred(known, estimator.weights_, layout)


def check_before_compiling(
    estimator: BaseCRF,
    objective: Objective,
    solver: Solver,
    data: Data,
    layout: Layout,
    some_stay: bool,
) -> None:
    """Refuse what cannot work together on these data; `some_stay`: not all weights move."""
    objective.require_targets(data.gold)
    exempt = len(estimator.unpenalised) > 0
    kind, l2 = kind_of(data.gold), estimator.l2
    solver.check(Problem(objective, kind, l2, some_stay, layout.n_weights, exempt))
    if estimator.inference != "auto":
        structure, _ = data.batch.structure(0, len(data.batch.sizes), layout.n_labels)
        method = INFERENCE.resolve(estimator.inference)
        check_questions(solver.name, solver.asks, objective, method, structure)


def compiled(
    layout: Layout,
    start: Floats,
    data: Data,
    weight: Floats | None,
    solver: Solver,
    condense: bool,
) -> Work:
    """The batch as shards, in a form that costs less where the solver does not mind."""
    batch, gold, cuts = data.batch, data.gold, None
    spread: Callable[[Floats], Floats] = np.copy
    if condense and solver.rotates and not start.any():
        condensed = layout.condensed(batch)
        if condensed is not None:
            layout, batch, spread = condensed
            start = np.zeros(layout.n_weights)
    if asks_examples(solver.asks) and not batch.is_chain:
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
    found = {method.name: method for method in (choose(model, question) for model in models)}
    fits = (m for m in found.values() if all(map(m.supports, structures)))
    widest = max(range(len(models)), key=lambda k: structures[k].n_cliques)
    method = next(fits, None) or choose(models[widest], question)
    for structure in structures:
        check_questions(solver.name, solver.asks, objective, method, structure)
    return method


def validator(
    estimator: BaseCRF,
    X: object,
    y: object,
    reader: Reader,
    labels: SequenceLabels,
    layout: Layout,
) -> Callable[[Floats], float]:
    """The share of the labels of the validation data that given weights get right."""
    from chordal.estimators._crf import decoded

    X = estimator._examples(X, "validation X")
    if length_of(X) == 0:
        raise ValueError("validation X is empty: give at least one example")
    batch = reader.read(X, grow=False)
    flat = estimator._flat(y, X, "validation y")
    estimator._check_lengths(batch.sizes, flat, "validation ")
    gold, seen = labels.encode(flat, unknown=-1), estimator._observed(flat)
    shards = [layout.compile(batch, a, b) for a, b in batch.limits(layout.n_labels)]
    question = estimator._decoding()

    def score(weights: Floats) -> float:
        expanded = layout.expand(weights)
        found = []
        for shard in shards:
            potentials = layout.potentials(shard, expanded)
            found.append(decoded(potentials, estimator._method(question, potentials), question))
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
    from threadpoolctl import threadpool_limits  # not needed to predict

    with (
        threadpool_limits(1, user_api="blas"),
        execution_for(effective_n_jobs(estimator.n_jobs)) as mapper,
        FitProgress(estimator.verbose, solver) as progress,
    ):
        every, unchanged = estimator.validation_interval, estimator.n_iter_no_change
        yield mapper, Monitor(progress.update, callbacks, validate, every, unchanged, spread)
