"""A fit on partitions in other processes: the same steps, run where each partition is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from chordal._status import Status
from chordal.estimators._training import of_part, on_part
from chordal.estimators._training.checkpoint import Checkpoint, Checkpointer, Path
from chordal.estimators._training.choosing import (
    agreed,
    check_fit_arguments,
    chosen_before_reading,
    solver_for,
    validation_pair,
)
from chordal.estimators._training.crews import Crew, Handle, Tasks
from chordal.estimators._training.fingerprint import digest
from chordal.estimators._training.groups import free_weights, l2_of, members, minimized, scaling
from chordal.estimators._training.judging import PART, Validator, better_way, check_observed
from chordal.estimators._training.of_part import Verdict
from chordal.estimators._training.on_part import NumberedFacts, PartFacts
from chordal.estimators._training.resuming import (
    checked_by,
    digests_of_parts,
    refuse_state_elsewhere,
)
from chordal.estimators._training.steps import (
    attributes_of,
    status_of,
    taken,
    training,
    warn_of_end,
    weighed,
)
from chordal.estimators._training.work import Plan
from chordal.features import Layout, Reader, merged_readers, transferred
from chordal.inference import INFERENCE, Inference
from chordal.labels import SequenceLabels
from chordal.objectives import Objective
from chordal.oracle import PartedOracle, Problem, Term
from chordal.potentials import Floats
from chordal.solvers import Callback, Solution, Solver

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")


class Joined(NamedTuple):
    """Parts in one numbering, and the facts that the client keeps."""

    parts: list[Handle]  # of `Numbered`
    handles: tuple[Handle, Handle, Handle]  # of reader, labels and layout
    reader: Reader
    labels: SequenceLabels
    layout: Layout
    start: Floats
    facts: list[PartFacts]
    numbered: list[NumberedFacts]


class PartedWork(NamedTuple):
    """The solver's problem, and the map from its weights to the model's."""

    parts: list[Handle]  # of `PartOracle`, settled
    oracle: PartedOracle
    start: Floats
    spread: Callable[[Floats], Floats]
    inference: Inference


def fit_parts(
    estimator: E,
    crew: Crew,
    parts: list[Handle],
    *,
    validation_data: object = None,
    callback: Callback | None = None,
    checkpoint: Path | Checkpoint | None = None,
    dtype: str = "float64",
    scaled: str | None = None,
) -> E:
    """Train an estimator; it does not change if an error occurs.

    Parameters
    ----------
    parts : list of handles of `Given`, emptied once they are read
    validation_data : (X, y) in memory, data sets here, or a list of handles of `Given`
    checkpoint : path or Checkpoint, optional
        As in `fit` of the estimator.
    dtype : {"float64", "float32"}
        Precision of gradients sent between processes.
    scaled : str, optional
        A template whose weights keep their proportions: only one factor is learned.
    """
    keep = estimator._goes_on()
    model = copy(estimator)
    model._check_parameters()
    elsewhere = validation_data if isinstance(validation_data, list) else None
    check_fit_arguments(callback, None if elsewhere is not None else validation_data)
    keeper = None if checkpoint is None else Checkpointer(checkpoint)
    solver, objective = chosen_before_reading(model, parted=True)
    if not keep:
        glance_parts(model, crew, parts)
    joined = join_parts(model, crew, parts, objective, keep)
    parts.clear()  # what is read and compiled takes their place in memory
    plan, problem = planned_parts(model, joined, solver, objective, scaled)
    validate, checksum = validator_of(model, crew, validation_data, elsewhere, joined)
    if keeper is not None:
        read = (joined.parts, joined.labels, joined.start)
        digests = digests_of_parts(crew, *read, checksum(), dtype)
        plan = checked_by(keeper, estimator, plan, digests)
    work = compiled_parts(model, crew, joined, plan, problem, dtype)
    joined = joined._replace(parts=[])
    inference, spread = work.inference.in_training(), work.spread
    if keeper is not None:
        refuse_state_elsewhere(inference, plan.objective)
    whole = (joined.reader, joined.labels, joined.layout)
    learned = {name: value for name, value in vars(model).items() if name.endswith("_")}
    fitted = {**learned, **attributes_of(*whole, inference)}
    given: dict[str, Any] = {"X": None, "y": None, "metadata": {}}
    weights = (spread, len(work.start))
    watching = training(estimator, plan.solver, callback, given, fitted, validate, *weights)
    with watching as (run, monitor), nullcontext() if keeper is None else keeper.going_on():
        if keeper is not None:
            keeper.keep("monitor", monitor)
        work.oracle.run = run.map
        moving = (plan.free, plan.moved)
        found = minimized(plan.solver, work.oracle, work.start, monitor, *moving, keeper)
        found = replace(found, status=status_of(found, plan.solver, plan.objective))
        chosen, known = judged_parts(
            model, crew, work.parts, joined.facts, monitor.chosen(found), plan, inference
        )
        solution = replace(chosen, weights=spread(chosen.weights))
        known |= {"validation": monitor.scores}
        report = taken(estimator, fitted, solution, known)
    warn_of_end(report, solution, joined.start)
    return estimator


def glance_parts(model: BaseCRF, crew: Tasks, parts: Sequence[Handle]) -> None:
    """Let a model know what it needs before any part is read."""
    glances = crew.fetch(crew.map(on_part.glance, parts, model)) if model._glances else []
    if any(own is not None for own in glances):
        model._know([own for own in glances if own is not None])


def join_parts(
    model: BaseCRF, crew: Tasks, given: Sequence[Handle], objective: Objective, keep: bool
) -> Joined:
    """One vocabulary, one numbering of labels and one layout for all parts."""
    shared = crew.share(model)
    read = crew.map(on_part.read_part, given, shared, keep)
    found: list[PartFacts | None] = crew.fetch(crew.map(on_part.part_facts, read))
    facts = [own for own in found if own is not None]
    if not facts:
        raise ValueError("X is empty: give at least one example that has variables")
    if not any(own.observed for own in facts):
        raise ValueError("y names no label: no variable is observed")
    check_schema(found)
    if not sum(own.weight for own in facts) > 0.0:
        raise ValueError("sample_weight is zero for every example: give some a positive weight")
    read = [own for own, known in zip(read, found, strict=True) if known is not None]
    alike = check_sources(facts)
    vars(model).update(facts[0].learned)
    some = read[:1] if alike else read
    merged = crew.tree(on_part.two_readers, crew.map(on_part.reader_of, some))
    (reader,) = crew.map(on_part.whole_reader, [merged])
    if alike:
        (labels,) = crew.map(on_part.labels_of, some)
        model._take_stored(facts[0].reader, crew.take(labels), keep)
    else:
        begun = model.labels_ if keep else model._new_labels()
        labels = crew.join(on_part.all_labels, crew.map(on_part.labels_of, read), begun)
    parts = crew.map(on_part.number_part, read, reader, labels, objective, alike)
    weighted = bool(model.classifies)
    told = crew.map(on_part.numbered_facts, parts, labels, weighted)
    seen = crew.tree(
        on_part.two_seen, crew.map(on_part.seen_part, parts, reader, labels, model.pairs)
    )
    known = model.layout_ if keep else None
    settings = (model.pairs, model.min_freq, known)
    (layout,) = crew.map(on_part.layout_for, [seen], reader, labels, *settings)
    numbered = crew.fetch(told)
    handles = (reader, labels, layout)
    made: Layout = crew.take(layout)
    start = np.zeros(made.n_weights)
    if known is not None:
        start = transferred(known, model.weights_, made)
    whole = (crew.take(reader), crew.take(labels), made)
    return Joined(parts, handles, *whole, start, facts, numbered)


def check_sources(facts: Sequence[PartFacts]) -> bool:
    """Whether all parts belong to the same prepared data sets; a mixture is an error."""
    sources = {own.source for own in facts}
    if len(sources) == 1:
        return facts[0].source is not None
    raise ValueError(
        "the partitions were read from different states of a prepared data set, which was written "
        "to at the same time; fit again"
    )


def check_schema(found: Sequence[PartFacts | None]) -> None:
    """Raise an error if parts have examples of different kinds; it names two."""
    first = next(k for k, own in enumerate(found) if own is not None)
    known = found[first]
    assert known is not None
    readers = [known.reader if own is None else own.reader for own in found]
    asked = [own.description() for own in known.reader.templates]
    for k, reader in enumerate(readers):
        for own, other in zip(reader.templates, asked, strict=True):
            if own.description() != other:
                raise ValueError(
                    f"partitions {k} and {first} differ: template {own.name!r} is "
                    f"{own.description()} in the former and {other} in the latter"
                )
    try:
        merged_readers(readers)
    except ValueError as error:
        raise ValueError(str(error).replace("parts ", "partitions ")) from None


def planned_parts(
    model: BaseCRF, joined: Joined, solver: Solver, objective: Objective, scaled: str | None
) -> tuple[Plan, Problem]:
    """The training plan for these data; raises an error for settings that do not fit together."""
    kinds = {own.kind for own in joined.numbered}
    if {"soft", "partial"} <= kinds:
        raise ValueError(
            "y must not mix sets or None with distributions, even in different partitions"
        )
    kind = next((own for own in ("soft", "partial") if own in kinds), "hard")
    if isinstance(model.class_weight, str) and model.class_weight == "balanced":
        model.class_weight = balanced(joined)
    # A dict of weights does not ask for labels.
    nothing = lambda: np.zeros(0, dtype=np.int32)  # noqa: E731
    objective, _ = weighed(model, objective, joined.labels, nothing, None)
    free = free_weights(model.freeze, joined.layout.slices, joined.start)
    moved = None if scaled is None else joined.layout.slices[scaled]
    problem = Problem(
        objective,
        kind,
        model.l2,
        free is not None or moved is not None,
        joined.layout.n_weights,
        exempt=len(members(model.unpenalised, joined.layout.slices)) > 0,
        chains=all(own.chains for own in joined.numbered) and not joined.layout.shares_transitions,
        warm=bool(joined.start.any()),
        parted=True,
    )
    if model.solver == "auto":
        solver = solver_for(model, problem)
    solver.check(problem)
    return Plan(solver, objective, None, free, moved, False), problem


def balanced(joined: Joined) -> dict[Any, float]:
    """`class_weight="balanced"` as weights of all labels."""
    found = [own.counts for own in joined.numbered]
    counts = sum(own for own in found if own is not None)
    if any(own is None for own in found):
        raise ValueError(
            "class_weight='balanced' counts labels: y must have one label per position"
        )
    factors = np.sum(counts) / (len(joined.labels) * np.maximum(counts, 1))
    return dict(zip(joined.labels.labels, factors.tolist(), strict=True))


def validator_of(
    model: BaseCRF,
    crew: Crew,
    given: Any,
    elsewhere: Sequence[Handle] | None,
    joined: Joined,
) -> tuple[Callable[[Floats], float] | None, Callable[[], str | None]]:
    """The function that scores weights on validation data, which may be in parts, and one that
    gives their checksum.
    """
    if given is None:
        return None, lambda: None
    if elsewhere is None:
        X, y = validation_pair(given)
        whole = (joined.reader, joined.labels, joined.layout)
        own = Validator.of(model, X, y, *whole).required()
        return own, lambda: own.checksum
    made = crew.map(of_part.validator_part, elsewhere, model, *joined.handles)
    parts = crew.settle(made, [1.0] * len(made))

    def score(weights: Floats) -> float:
        right, n = crew.total(of_part.validated, of_part.two_counts, parts, [weights])
        check_observed(n, "validation ")
        return float(right / n)

    return score, lambda: digest(crew.total(of_part.checksum_of, of_part.two_lists, parts, []))


def compiled_parts(
    model: BaseCRF, crew: Crew, joined: Joined, plan: Plan, problem: Problem, dtype: str
) -> PartedWork:
    """Compiled parts, and the oracle that sums over them."""
    solver, layout, start = plan.solver, joined.layout, joined.start
    penalty = l2_of(model.l2, layout.slices, start, model.unpenalised)

    def squares() -> Any:
        found = crew.map(on_part.squares_of, joined.parts, joined.handles[2])
        return crew.take(crew.tree(on_part.two_squares, found))

    scale, penalty = scaling(layout, squares, start, solver, penalty)
    size, n_parts = solver.batch_size, len(joined.parts)
    size = None if size is None else ceil(size / n_parts)
    seeds = np.random.default_rng(solver.random_state).integers(2**31, size=n_parts).tolist()
    settings = (model, *joined.handles, problem, solver, scale, size)
    compiled = crew.map(on_part.compile_part, joined.parts, *settings, each=seeds)
    inference = inference_of(model, crew, compiled, plan.objective)
    ready = crew.map(of_part.ready_part, compiled, plan.objective, inference, solver)
    shares: list[float] = []
    if size is not None:
        sizes = crew.fetch(crew.map(of_part.batch_sizes, ready))
        longest = max(map(len, sizes))
        whole = [sum(own[k] for own in sizes if k < len(own)) for k in range(longest)]
        shares = [n / sum(whole) for n in whole]
    parts = crew.settle(ready, [own.n_variables for own in joined.facts])

    def ask(question: str, vectors: Sequence[Floats], batch: int | None) -> Term:
        found = crew.total(of_part.answer_part, Term.plus, parts, vectors, question, batch, dtype)
        assert isinstance(found, Term)
        return found

    oracle = PartedOracle(
        ask,
        layout.n_weights,
        plan.objective.stochastic,
        penalty,
        without_l1=members(model.unpenalised, layout.slices),
        shares=shares,
    )
    if scale is None:
        return PartedWork(parts, oracle, start, np.copy, inference)
    return PartedWork(parts, oracle, start * scale, lambda weights: weights / scale, inference)


def inference_of(
    model: BaseCRF, crew: Tasks, parts: Sequence[Handle], objective: Objective
) -> Inference:
    """The inference method of training: it supports the structures of all parts."""
    if model.inference != "auto":
        return INFERENCE.resolve(model.inference)
    found = crew.fetch(crew.map(of_part.candidates_of, parts, objective))
    methods = {name: method for own in found for name, method in own.methods.items()}
    if len(methods) == 1:
        return agreed(found, [methods])
    return agreed(found, crew.fetch(crew.map(of_part.supporting_of, parts, methods)))


def judged_parts(
    model: BaseCRF,
    crew: Crew,
    parts: Sequence[Handle],
    facts: Sequence[PartFacts],
    solution: Solution,
    plan: Plan,
    inference: Inference,
) -> tuple[Solution, dict[str, Any]]:
    """The solution with the facts of its report: methods used, exactness and scores."""
    known: dict[str, Any] = {"solver": plan.solver.name, "inference": inference.name}
    if solution.status is Status.INTERRUPTED:
        return solution, known
    more = verdict_on(model, crew, parts, facts, solution.weights, plan.objective, inference)
    return solution, known | more


def verdict_on(
    model: BaseCRF,
    crew: Crew,
    parts: Sequence[Handle],
    facts: Sequence[PartFacts],
    weights: Floats,
    objective: Objective,
    inference: Inference,
) -> dict[str, Any]:
    """Whether inference is exact on settled parts, and how to predict, for the report."""
    at, known = [weights], dict[str, Any]()
    verdicts: list[Verdict] = crew.total(
        of_part.judge_part, of_part.two_lists, parts, at, objective, inference
    )
    settled = [own.converged for own in verdicts if own.converged is not None]
    known["exact"] = all(own.exact for own in verdicts)
    if not known["exact"]:
        known["inference_converged"] = all(settled) if settled else None
    if all(own.forest for own in verdicts):
        return known
    known["label_share"] = max(own.label_share for own in verdicts)
    if model.prediction != "auto" or not objective.smooth:
        return known
    # Ways of prediction are compared on the first examples.
    before = np.cumsum([0, *(own.n_variables for own in facts)])[:-1]
    first = int((before < PART).sum())
    found = crew.total(of_part.compare_part, of_part.two_lists, parts, at, model, first=first)
    if all(own is not None for own in found):
        right = {way: sum(own[0][way] for own in found) for way in found[0][0]}
        known |= better_way(right, sum(own[1] for own in found))
    return known
