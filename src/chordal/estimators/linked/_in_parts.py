"""The links of a CRF whose training examples are in parts, in other processes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from chordal.estimators._crf import BaseCRF
from chordal.estimators._training import of_part, on_part
from chordal.estimators._training.choosing import (
    Data,
    check_before_compiling,
    chosen_before_reading,
)
from chordal.estimators._training.crews import Crew, Handle, Tasks
from chordal.estimators._training.in_parts import (
    glance_parts,
    inference_of,
    join_parts,
    planned_parts,
    verdict_on,
)
from chordal.estimators._training.on_part import Compiled, Numbered
from chordal.estimators._training.steps import weighed
from chordal.estimators.linked._labels import Known
from chordal.estimators.linked._links import LinkedExamples, Links, objective_of
from chordal.features import Layout, Parts, Reader
from chordal.labels import SequenceLabels
from chordal.oracle import Problem
from chordal.potentials import Floats
from chordal.solvers import Solver
from chordal.solvers.adam import Adam


def linked_parts(
    crf: BaseCRF, crew: Tasks, given: Sequence[Handle], known: Sequence[Handle], keep: bool
) -> tuple[Links, list[Handle]]:
    """The links of all parts, and a handle of `LinkedExamples` for each.

    Parameters
    ----------
    given : handles of `Given`, with scores of any values
    known : handles of `Known`
    keep : whether the CRF is fitted and is to be trained further
    """
    objective, model = objective_of(crf), copy(crf)
    if not keep:
        glance_parts(model, crew, given)
    joined = join_parts(model, crew, given, objective, keep)
    planner, solver = _with_adam(model)
    plan, problem = planned_parts(planner, joined, solver, objective, None)
    shared = (crew.share(planner), *joined.handles, problem)
    examples = crew.map(link_part, joined.parts, *shared, each=known)
    full = crew.map(full_shards, examples, joined.handles[2])
    full = [own for own, part in zip(full, joined.facts, strict=True) if part.n_variables]
    # A method that goes on from earlier answers would depend on which worker gave them.
    method = inference_of(planner, crew, full, plan.objective)
    crew.fetch(crew.map(of_part.ready_part, full, plan.objective, method, solver))
    whole = (joined.reader, joined.labels, joined.layout)
    return Links(model, whole, joined.start, plan.objective, method, keep), examples


def check_relink(crf: BaseCRF) -> None:
    """Raise an error if the CRF's own solver cannot train the links on parts."""
    chosen_before_reading(crf, parted=True)


def facts_of_parts(
    links: Links, values: Floats, crew: Crew, given: Sequence[Handle]
) -> dict[str, Any]:
    """The report's facts on inference and prediction, for parts with the network's scores."""
    model, objective, method = links.fitted(values), links.objective, links.inference
    joined = join_parts(model, crew, given, objective_of(links.crf), keep=True)
    planner, solver = _with_adam(model)
    _, problem = planned_parts(planner, joined, solver, objective_of(links.crf), None)
    settings = (planner, *joined.handles, problem, solver, None, None)
    seeds = [0] * len(joined.parts)  # there is nothing to draw
    compiled = crew.map(on_part.compile_part, joined.parts, *settings, each=seeds)
    ready = crew.map(of_part.ready_part, compiled, objective, method, solver)
    parts = crew.settle(ready, [own.n_variables for own in joined.facts])
    known = (model, crew, parts, joined.facts, model.weights_, objective, method)
    return {"inference": method.name, **verdict_on(*known)}


def link_part(
    part: Numbered,
    crf: BaseCRF,
    reader: Reader,
    labels: SequenceLabels,
    layout: Layout,
    problem: Problem,
    known: Known,
) -> LinkedExamples:
    """The examples of a part, each compiled for itself; refuses what cannot work on them."""
    parts = Parts.of(part.batch, part.gold)
    data = Data(reader, labels, parts, part.weight, layout, np.zeros(0))
    check_before_compiling(crf, problem, Adam(1), data)
    _, weight = weighed(crf, problem.objective, labels, parts.gold, part.weight)
    return LinkedExamples.of(data._replace(weight=weight), known)


def full_shards(examples: LinkedExamples, layout: Layout) -> Compiled:
    """The examples that have variables, as what inference is chosen for."""
    return Compiled(layout, examples.full, None, None)


def _with_adam(crf: BaseCRF) -> tuple[BaseCRF, Solver]:
    """The CRF as joint training uses it: the solver takes steps along gradients."""
    own, solver = copy(crf), Adam(1)
    own.solver = solver
    return own, solver
