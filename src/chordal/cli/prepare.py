"""``chordal prepare``: read data files once, and write a data set for training."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from chordal._errors import FormatError
from chordal.cli import _options as options
from chordal.cli._data import Reading, batches_of, make_template, read_template
from chordal.cli._fit import check_template, estimator
from chordal.cli._output import print_facts, print_json
from chordal.cli._watching import BytesRead, counted, level
from chordal.progress import Progress


def command(
    data: Annotated[list[str], typer.Argument(metavar="DATA…", help="Labelled data; - is stdin.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder of the data set.")
    ],
    template: options.TemplateFile = None,
    task: options.Task = None,
    dialect: options.Dialect = "crf++",
    append: Annotated[bool, typer.Option("--append", help="Add to an existing data set.")] = False,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    encoding: options.Encoding = None,
    label_column: options.LabelColumn = -1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Read labelled data once, and write a data set for `chordal train DIR MODEL`.

    Memory holds one block of each file and the vocabulary, so files may be larger than memory.
    Formats, templates and tasks are those of `chordal train`.

    If a file cannot be read or the disk is full, nothing is left behind.
    """
    begin = time.perf_counter()
    reading = Reading(format, separator, comment, label_column, encoding)
    check_template(data, reading, template, task)
    program = None if template is None else read_template(template, dialect, encoding)
    columns_wanted = program is not None or task is not None
    shown = level(quiet, verbose)
    with (
        BytesRead(data) as read,
        Progress("prepare", None, "tokens", measure=True, verbose=shown) as progress,
    ):
        reading = replace(reading, read=read)
        batches = counted(all_batches(data, reading, columns_wanted), progress, read)
        if task is not None:
            first = next(batches, None)
            width = 1 if first is None else first[0].n_columns
            program = make_template(None, task, dialect, width)
            batches = _again(first, batches)
        made = estimator(program).prepare(output, batches, append=append)
    facts = {
        "sequences": made.n_examples,
        "tokens": made.n_variables,
        "labels": len(made.facts["labels"]["labels"]),
        "parts": made.n_parts,
        "bytes": made.n_bytes,
        "seconds": time.perf_counter() - begin,
        "data set": output,
    }
    if json:
        print_json(facts)
    elif not quiet:
        print_facts(facts)


def all_batches(paths: Sequence[str], reading: Reading, columns: bool) -> Iterator[Any]:
    """The batches of all files; the next one is read while the last one is worked on.

    A pipe is read by this thread: another that waits for it would not hear a signal.
    """
    from concurrent.futures import ThreadPoolExecutor

    found = alike(paths, reading, columns)
    if not all(map(os.path.isfile, paths)):
        yield from found
        return
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, found, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, found, None)
            yield batch


def alike(paths: Sequence[str], reading: Reading, columns: bool) -> Iterator[tuple[Any, ...]]:
    """The batches of all files, which must have equally many columns."""
    first = None
    for path in paths:
        for batch in batches_of(path, reading, columns):
            if columns:
                first = first or (path, batch[0].n_columns)
                if batch[0].n_columns != first[1]:
                    raise FormatError(
                        path,
                        f"it has {batch[0].n_columns} columns besides the labels, but {first[0]} "
                        f"has {first[1]}",
                    )
            yield batch


def _again(first: object, rest: Iterator[Any]) -> Iterator[Any]:
    if first is not None:
        yield first
    yield from rest
