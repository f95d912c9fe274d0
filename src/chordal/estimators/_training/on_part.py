"""Functions on one partition of the data, run where it is; and how partitions are joined.

These functions run on other machines: their arguments and results can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._validate import check_sample_weight
from chordal.estimators._crf import BaseCRF
from chordal.estimators._training.choosing import (
    Data,
    check_before_compiling,
)
from chordal.estimators._training.preparing import observed_targets, whole_sets
from chordal.estimators._training.reading import learnable
from chordal.estimators._training.steps import changed_in, shards_of, weighed
from chordal.estimators._training.stored import Stored
from chordal.estimators._training.work import Plan
from chordal.features import (
    AttributeFeatures,
    Batch,
    Beside,
    DenseInput,
    Layout,
    Occurrences,
    Parts,
    Reader,
    Rows,
    Seen,
    Shard,
    Squares,
    VocabularyInput,
    input_for,
    layout_from,
    length_of,
    merged,
    merged_readers,
    renumbered_batch,
    seen_in,
)
from chordal.labels import SequenceLabels, merged_labels, observed, renumbered
from chordal.objectives import Objective
from chordal.oracle import Problem
from chordal.oracle.parted import SPARSE
from chordal.potentials import Floats
from chordal.prepared import Dataset
from chordal.solvers import Solver
from chordal.targets import PartialLabels, Target, kind_of


class Given(NamedTuple):
    """The examples of one part as given by the user, with optional labels and weights."""

    X: Any
    y: Any = None
    weight: Any = None


class PreparedPart(NamedTuple):
    """One part of one of several prepared data sets, which are opened where it is read."""

    paths: tuple[str, ...]  # of all data sets that are numbered together
    place: int  # of its own among them
    number: int

    def opened(self) -> Dataset:
        """A data set of this part alone."""
        data = Dataset(self.paths[self.place])
        data.parts = [data.parts[self.number]]
        return data

    def together(self) -> list[Dataset]:
        """All data sets, of which one has this part, and the others none."""
        found = []
        for place, path in enumerate(self.paths):
            if place != self.place:
                found.append(Dataset(path))
                found[-1].parts = []
            else:
                found.append(self.opened())
        return found


class ReadPart(NamedTuple):
    """A part read by its own reader, with its own numbering of labels."""

    reader: Reader
    labels: SequenceLabels
    batch: Batch
    gold: Target | None  # None if no label is observed
    observed: NDArray[np.bool_] | None  # of labels that may be missing
    weight: Floats | None
    learned: dict[str, Any]  # attributes of the estimator that reading has set
    source: str | None = None  # data sets, whose parts have one reader and one numbering


class PartFacts(NamedTuple):
    """Facts about a part, without its rows."""

    reader: Reader  # without attributes
    learned: dict[str, Any]
    source: str | None
    n_examples: int
    n_variables: int
    weight: float  # of all examples
    observed: bool  # whether a label is


class NumberedFacts(NamedTuple):
    """Facts about a part in the common numbering."""

    kind: str  # of targets
    chains: bool
    counts: Floats | None  # of labels, where each variable has one


class Numbered(NamedTuple):
    """A part in the numbers that all parts have."""

    batch: Batch
    gold: Target
    weight: Floats | None


class Compiled(NamedTuple):
    """The shards of a part, before it is known what answers their questions."""

    layout: Layout
    shards: Sequence[Shard]
    cuts: list[int] | None
    touched: NDArray[np.int32] | None


def glance(given: Given, estimator: BaseCRF) -> object:
    """The facts of a part that the estimator needs before reading."""
    if isinstance(given.X, PreparedPart) or length_of(given.X) == 0:
        return None
    return copy(estimator)._glance(given.X, given.y, given.weight)


def read_part(given: Given, estimator: BaseCRF, keep: bool) -> ReadPart | None:
    """The rows and labels of a part; None where it has no examples, or only empty ones."""
    if isinstance(given.X, PreparedPart):
        return read_prepared(given.X, copy(estimator), keep)
    if length_of(given.X) == 0:
        return None
    before, estimator = estimator, copy(estimator)
    X = estimator._examples(given.X, known=keep)
    reader = estimator._new_reader(X, keep or estimator._glances)
    if keep:
        reader = reader.knowing(estimator.reader_)
    labels = estimator.labels_.copy() if keep else estimator._new_labels()
    batch = reader.read(X, grow=True)
    flat = estimator._flat(given.y, X)
    estimator._check_lengths(batch.sizes, flat)
    weight = check_sample_weight(given.weight, len(batch.sizes))
    if not batch.sizes.any():
        return None
    gold = observed_targets(labels, flat, int(batch.sizes.sum()), estimator.ignore_label)
    sets = isinstance(gold, PartialLabels)
    seen = observed(flat, estimator.ignore_label) if sets else None
    # What read no rows does not know of which kind they are in other parts.
    reader.inputs = [
        None if own.rows is not None and own.rows.n_rows == 0 else source
        for own, source in zip(batch.cliques, reader.inputs, strict=True)
    ]
    return ReadPart(reader, labels, batch, gold, seen, weight, learned_by(estimator, before))


def read_prepared(part: PreparedPart, estimator: BaseCRF, keep: bool) -> ReadPart | None:
    """The same of a part of a data set on disk."""
    before, datasets = copy(estimator), part.together()
    if not sum(data.n_examples for data in datasets):
        return None
    stored = Stored(estimator, datasets, keep)
    batch, gold = stored.load(0)
    learned = learned_by(estimator, before)
    source = " ".join(f"{data.id} {data.generation}" for data in datasets)
    return ReadPart(
        stored.reader, stored.labels, batch, gold, None, stored.weights(), learned, source
    )


def learned_by(estimator: BaseCRF, before: BaseCRF) -> dict[str, Any]:
    """The public attributes that an estimator has set since."""
    changed = changed_in(estimator, before)
    return {name: own for name, own in changed.items() if name.endswith("_")}


def part_facts(part: ReadPart | None) -> PartFacts | None:
    """The facts of a part for the client."""
    if part is None:
        return None
    schema, n = copy(part.reader), len(part.batch.sizes)
    schema.inputs = [
        own.with_vocabulary(_kernels.Vocabulary()) if isinstance(own, VocabularyInput) else own
        for own in part.reader.inputs
    ]
    total = float(n) if part.weight is None else float(part.weight.sum())
    n_variables = int(part.batch.sizes.sum())
    observed = part.gold is not None
    return PartFacts(schema, part.learned, part.source, n, n_variables, total, observed)


def reader_of(part: ReadPart) -> Reader:
    """What read a part, without the part."""
    return part.reader


def labels_of(part: ReadPart) -> SequenceLabels:
    """The labels of a part, without the part."""
    return part.labels


def two_readers(first: Reader, second: Reader) -> Reader:
    """A reader with the names of both; new names are numbered in their order."""
    return merged_readers([first, second])[0]


def whole_reader(merged: Reader) -> Reader:
    """What reads new examples: also of templates of which no part has rows."""
    merged.inputs = [
        source
        if source is not None or isinstance(own.features, (Beside, NoneType))
        else input_for([])
        for source, own in zip(merged.inputs, merged.templates, strict=True)
    ]
    return merged


def all_labels(parts: Sequence[SequenceLabels], known: SequenceLabels) -> SequenceLabels:
    """One numbering of the labels of all parts."""
    return merged_labels(known, parts)[0]


def number_part(
    part: ReadPart, reader: Reader, labels: SequenceLabels, objective: Objective, alike: bool
) -> Numbered:
    """A part by the numbers of the whole; `alike`: it has them, as parts of a data set do."""
    batch, gold = part.batch, part.gold
    if not alike:
        columns = merged_readers([reader, part.reader])[1][1]
        batch = with_empty_rows(renumbered_batch(batch, reader, columns), reader)
        gold = labels.within(gold_by(part, labels), batch.kinds)
    assert gold is not None  # parts of data sets have targets
    batch, gold = learnable(batch, gold, objective)
    objective.require_targets(gold)
    if kind_of(gold) == "partial" and "partial" not in objective.targets:
        raise UnsupportedError(
            f"objective {objective.name!r} completes sets of labels by repeated fits, which is not "
            "possible for data in parts; use 'likelihood', which sums over the sets"
        )
    return Numbered(batch, gold, part.weight)


def gold_by(part: ReadPart, labels: SequenceLabels) -> Target:
    """The targets of a part by the numbers of these labels."""
    if part.gold is None:
        n = int(part.batch.sizes.sum())
        return whole_sets(n, len(labels)) if n else np.zeros(0, dtype=np.int32)
    numbers = merged_labels(labels, [part.labels])[1][0]
    return renumbered(part.gold, numbers, len(labels), part.observed)


def with_empty_rows(batch: Batch, reader: Reader) -> Batch:
    """The batch with rows of the right kind where it has none."""
    rows = []
    for own, source in zip(batch.cliques, reader.inputs, strict=True):
        kept = own.rows
        if kept is not None and kept.n_rows == 0:
            data: Any = Occurrences(np.zeros(1, np.int64), np.zeros(0, np.int32), None)
            if isinstance(source, DenseInput):
                data = np.zeros((0, source.n_columns))
            kept = Rows(kept.lengths, data)
        rows.append(kept)
    return batch.with_rows(rows)


def numbered_facts(part: Numbered, labels: SequenceLabels, weighted: bool) -> NumberedFacts:
    """The facts that a client needs; `weighted`: labels count by the weight of their examples."""
    counts, kind = None, kind_of(part.gold)
    if kind == "hard" and not labels.types:
        weight = part.weight if weighted else None
        counts = np.bincount(np.asarray(part.gold), weight, minlength=len(labels)).astype(float)
    return NumberedFacts(kind, part.batch.is_chain, counts)


def seen_part(part: Numbered, reader: Reader, labels: SequenceLabels, pairs: str) -> Seen:
    """Which weights a part has a use for."""
    return seen_in(reader, part.batch, part.gold, labels.counts, pairs)


def two_seen(first: Seen, second: Seen) -> Seen:
    """What both have seen."""
    return merged([first, second])


def layout_for(
    seen: Seen,
    reader: Reader,
    labels: SequenceLabels,
    pairs: str,
    min_freq: int,
    known: Layout | None,
) -> Layout:
    """The layout of what all parts have seen."""
    return layout_from(reader, seen, labels.counts, pairs, min_freq, known)


def squares_of(part: Numbered, layout: Layout) -> Squares:
    """The sizes of columns of numbers."""
    return layout.column_squares([part.batch])


def two_squares(first: Squares, second: Squares) -> Squares:
    """The sizes of columns in both."""
    return [
        a or b if a is None or b is None else (a[0] + b[0], a[1] + b[1])
        for a, b in zip(first, second, strict=True)
    ]


def compile_part(
    part: Numbered,
    estimator: BaseCRF,
    reader: Reader,
    labels: SequenceLabels,
    layout: Layout,
    problem: Problem,
    solver: Solver,
    scale: Floats | None,
    batch_size: int | None,
    seed: int,
) -> Compiled:
    """The shards of a part; refuses what cannot work together on it."""
    parts = Parts.of(part.batch, part.gold)
    data = Data(reader, labels, parts, part.weight, layout, np.zeros(0))
    check_before_compiling(estimator, problem, solver, data)
    _, weight = weighed(estimator, problem.objective, labels, parts.gold, part.weight)
    used = layout if scale is None else layout.scaled(scale)
    own = copy(solver)
    own.batch_size, own.random_state = batch_size, seed
    plan = Plan(own, problem.objective, weight, None, None, False)
    shards, cuts = shards_of(used, parts, plan)
    return Compiled(used, shards, cuts, touched(layout, part.batch))


def touched(layout: Layout, batch: Batch) -> NDArray[np.int32] | None:
    """The weights that the examples use; None if these are most of all weights."""
    mask = np.ones(layout.n_weights, dtype=bool)
    for own, cliques, at in zip(
        layout.templates, batch.cliques, layout.slices.values(), strict=True
    ):
        if isinstance(own.rows, AttributeFeatures) and cliques.rows is not None:
            n = len(own.rows.arrays()["counts"])
            used = np.bincount(cliques.rows.data.ids, minlength=n) > 0
            mask[at.start : at.start + own.n_row_weights] = used[own.rows.keys().column]
    return np.flatnonzero(mask).astype(np.int32) if mask.mean() < SPARSE else None
