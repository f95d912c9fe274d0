"""``chordal prepare``: read data files once, and write a data set for training."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._data import Reading, batches_of, make_template, read_template
from chordal.cli._fit import estimator
from chordal.cli._output import print_facts, print_json

if TYPE_CHECKING:
    pass


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
    json: options.Json = False,
) -> None:
    """Read labelled data once, and write a data set for `chordal train DIR MODEL`.

    Memory holds one block of each file and the vocabulary, so files may be larger than memory.
    Formats, templates and tasks are those of `chordal train`.

    If a file cannot be read or the disk is full, nothing is left behind.
    """
    begin = time.perf_counter()
    if template is not None and task is not None:
        raise typer.BadParameter("give --feature-template or --task, not both")
    reading = Reading(format, separator, comment, label_column, encoding)
    columns = [path for path in data if reading.name(path) in ("conll", "conllu")]
    if template is None and task is None and columns:
        raise typer.BadParameter(
            "a file of columns needs a template: give -t FILE, or --task chunking, ner or pos"
        )
    program = None if template is None else read_template(template, dialect, encoding)
    shown = Shown(not quiet and not json)
    batches = shown.watched(all_batches(data, reading, program is not None or task is not None))
    if task is not None:
        first = next(batches, None)
        width = 1 if first is None else first[0].n_columns
        program = make_template(None, task, dialect, width)
        batches = _again(first, batches)
    made = estimator(program).prepare(output, batches, append=append)
    shown.clear()
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
    """The batches of all files; the next one is read while the last one is worked on."""
    from concurrent.futures import ThreadPoolExecutor

    found = (batch for path in paths for batch in batches_of(path, reading, columns))
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, found, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, found, None)
            yield batch


def _again(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    if first is not None:
        yield first
    yield from rest


class Shown:
    """A line in a terminal that says how many tokens were read."""

    def __init__(self, wanted: bool) -> None:
        self._live = wanted and sys.stderr.isatty()
        self._begin = time.monotonic()

    def watched(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches, counted."""
        tokens = 0
        for batch in batches:
            yield batch
            tokens += int(sum(map(len, batch[1])))
            if self._live:
                seconds = max(time.monotonic() - self._begin, 1e-3)
                text = f"prepare  {tokens:,} tokens  {tokens / seconds:,.0f}/s"
                sys.stderr.write(f"\r{text:<60}")
                sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._live:
            sys.stderr.write(f"\r{'':<60}\r")
            sys.stderr.flush()
