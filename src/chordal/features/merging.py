"""Merge batches of several readers, numbered as if one reader had read them all."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chordal.features._base import Input
from chordal.features.attributes import VocabularyInput
from chordal.features.batch import Batch, Cliques, Ints, Occurrences, Rows
from chordal.features.clique_template import Beside
from chordal.features.reader import Reader
from chordal.features.template import TemplateInput
from chordal.features.vectors import VectorInput

#: Of each template, the number that each column of a part has in the whole; None if it is the same.
Columns = list[Ints | None]


def merged_readers(readers: Sequence[Reader]) -> tuple[Reader, list[Columns]]:
    """One reader for parts that were read by separate readers with the same initial attributes, and
    the new column numbers of each part.

    New attributes are numbered in the order of parts, as if one reader had read them all.
    """
    if not readers:
        raise ValueError("there is nothing to merge: give at least one reader")
    whole = copy.copy(readers[0])
    merged = [_merged(readers, k) for k in range(len(whole.templates))]
    whole.inputs = [source for source, _ in merged]
    return whole, [[columns[i] for _, columns in merged] for i in range(len(readers))]


def _merged(readers: Sequence[Reader], k: int) -> tuple[Input | None, Columns]:
    """The input of template k that knows what those of all parts know."""
    name = readers[0].templates[k].name
    reads = [reader.templates[k].features is not None for reader in readers]
    if len(set(reads)) > 1:
        i = reads.index(not reads[0])
        raise ValueError(f"parts {i} and 0 differ: only one has features of template {name!r}")
    inputs = [reader.inputs[k] for reader in readers]
    given = [(i, own) for i, own in enumerate(inputs) if own is not None]
    columns: Columns = [None] * len(inputs)
    if not given:
        return None, columns
    first, whole = given[0]
    if len(given) > 1:  # a vocabulary is large, so one that does not grow is shared
        whole = copy.deepcopy(whole)
    for i, own in given[1:]:
        try:
            columns[i] = _added(whole, own)
        except ValueError as error:
            raise ValueError(
                f"parts {i} and {first} differ: features of template {name!r} {error}"
            ) from None
    return whole, columns


def described(source: Input) -> str:
    """What an input reads, in words."""
    if isinstance(source, VocabularyInput):
        kind = "columns of text" if isinstance(source, TemplateInput) else "named attributes"
        return f"are {kind}"
    if isinstance(source, VectorInput):
        widths = ", ".join(f"{name!r} ({width} numbers)" for name, width in source.widths.items())
        return f"are arrays {widths}"
    kind = type(source).__name__.removesuffix("Input").lower()
    return f"are {kind} rows of {source.n_columns} columns"


def _added(whole: Input, part: Input) -> Ints | None:
    """Add the columns of another input; returns their new numbers."""
    if type(whole) is not type(part):
        raise ValueError(f"{described(part)}, but {described(whole)} in the other")
    if isinstance(whole, VocabularyInput) and isinstance(part, VocabularyInput):
        if isinstance(whole, TemplateInput) and isinstance(part, TemplateInput):
            if (whole.template, whole.part) != (part.template, part.part):
                raise ValueError("are made by another feature template")
            if 0 not in (whole.width, part.width) and whole.width != part.width:
                raise ValueError(
                    f"are of {part.width} columns of text, but of {whole.width} in the other"
                )
            whole.width = whole.width or part.width
        return _names_added(whole, part)
    if isinstance(whole, VectorInput) and isinstance(part, VectorInput):
        for name, width in part.widths.items():
            if whole.widths.setdefault(name, width) != width:
                raise ValueError(
                    f"have the array {name!r} of {width} numbers, but of {whole.widths[name]} in "
                    "the other"
                )
        places, at = {}, 0
        for name, width in whole.widths.items():
            places[name], at = np.arange(at, at + width), at + width
        return np.concatenate([np.zeros(0, np.int64), *(places[name] for name in part.widths)])
    if whole.n_columns != part.n_columns:
        raise ValueError(f"{described(part)}, but {described(whole)} in the other")
    return None


def _names_added(whole: VocabularyInput, part: VocabularyInput) -> Ints:
    names, offsets = part.vocabulary.arrays()
    fields = np.stack([offsets[:-1], offsets[1:]], axis=1).astype(np.uint32).ravel()
    if len(names) >= 2**32:
        raise ValueError("have names of more than 4 GB in all: make more, smaller parts")
    one_row = np.array([0, len(part.vocabulary)], dtype=np.int64)
    ids, _, _ = whole.vocabulary.read_fields(names.tobytes(), fields, None, one_row, True)
    return ids.astype(np.int64)


def known_columns(known: Input, part: Input) -> Ints | None:
    """The known input's number for each column of another; −1 if it does not have the column. None
    if the numbers are equal. An input of another kind is an error.
    """
    if type(known) is not type(part):
        raise ValueError(f"{described(part)}, but {described(known)} in training")
    if isinstance(known, VocabularyInput) and isinstance(part, VocabularyInput):
        names, offsets = part.vocabulary.arrays()
        fields = np.stack([offsets[:-1], offsets[1:]], axis=1).astype(np.uint32).ravel()
        rows = np.arange(len(part.vocabulary) + 1, dtype=np.int64)
        ids, _, found = known.vocabulary.read_fields(names.tobytes(), fields, None, rows, False)
        numbers = np.full(len(part.vocabulary), -1, dtype=np.int64)
        numbers[np.diff(found) > 0] = ids
        return numbers
    if isinstance(known, VectorInput) and isinstance(part, VectorInput):
        strange = [name for name in part.widths if known.widths.get(name) != part.widths[name]]
        if strange:
            raise ValueError(f"have the array {strange[0]!r}, which was not in the training data")
        return _added(VectorInput(known.widths), part)
    if known.n_columns != part.n_columns:
        raise ValueError(f"{described(part)}, but {described(known)} in training")
    return None


def renumbered_batch(batch: Batch, reader: Reader, columns: Columns) -> Batch:
    """A part by the numbers of the merged reader; arrays that only others have are zeros."""
    cliques = []
    for own, template, source, numbers in zip(
        batch.cliques, reader.templates, reader.inputs, columns, strict=True
    ):
        rows = own.rows
        if isinstance(source, VectorInput) and isinstance(template.features, Beside):
            rows = _with_zeros(own, source, numbers)
        elif rows is not None and numbers is not None and isinstance(rows.data, Occurrences):
            rows = Rows(rows.lengths, rows.data.renumbered(numbers))
        cliques.append(replace(own, rows=rows))
    return replace(batch, cliques=cliques)


def _with_zeros(own: Cliques, source: VectorInput, numbers: Ints | None) -> Rows:
    """Rows of arrays with the columns of the whole."""
    rows, n = own.rows, source.n_columns
    if rows is None:
        return Rows(own.counts, np.zeros((int(own.counts.sum()), n), dtype=np.float32))
    if numbers is None:
        numbers = np.arange(rows.data.shape[1])
    if len(numbers) == n and np.array_equal(numbers, np.arange(n)):
        return rows
    data = np.zeros((len(rows.data), n), dtype=rows.data.dtype)
    data[:, numbers] = rows.data
    return Rows(rows.lengths, data)
