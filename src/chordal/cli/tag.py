"""``chordal tag``: label sequences, as a filter."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._data import Reading
from chordal.cli._models import open_model

if TYPE_CHECKING:
    from chordal.cli._tagger import Tagger


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file.")],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="Data; - is stdin.")] = "-",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is stdout.")
    ] = "-",
    marginals: Annotated[
        bool, typer.Option("--marginals", "-m", help="Add the probability of each label.")
    ] = False,
    all_marginals: Annotated[
        bool, typer.Option("--all-marginals", help="Add the probabilities of all labels.")
    ] = False,
    k_best: Annotated[
        int, typer.Option("--k-best", "-k", min=1, help="The so many best labellings.")
    ] = 1,
    method: Annotated[
        str,
        options.choice(
            "--method",
            names=["map", "mpm"],
            help="The best labelling as a whole, or the best label of each token.",
        ),
    ] = "map",
    constrain: Annotated[
        str | None,
        options.choice("--constrain", names=["bio", "iobes"], help="Legal tags of a scheme only."),
    ] = None,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    jobs: options.Jobs = 1,
) -> None:
    """Label data: lines are kept as they are, and a column is added.

    Sequences that arrive through a pipe are answered one by one. JSON Lines come back with the
    labels found; for CRFsuite's items, labels are printed as `crfsuite tag` prints them.

    With --k-best, a sequence is repeated for each labelling, after a line "# rank probability".
    """
    from chordal.cli._tagger import Answers, Tagger
    from chordal.formats import open_target

    if k_best > 1 and (marginals or all_marginals or method == "mpm"):
        raise typer.BadParameter("--k-best does not go with --marginals or --method mpm")
    reading = Reading(format, separator, comment, None)
    crf = open_model(model)
    crf.set_params(n_jobs=1)
    answers = Answers(method, constrain, marginals or all_marginals, all_marginals, k_best)
    tagger = Tagger(crf, answers, separator)
    with open_target(output) as target:
        for piece in pieces(tagger, input, reading, jobs):
            target.write(piece)
            if output == "-":
                target.flush()


def pieces(tagger: Tagger, path: str, reading: Reading, jobs: int) -> Iterator[bytes]:
    """The labelled text, piece by piece."""
    from chordal.formats.conll import Conll
    from chordal.formats.crfsuite import Crfsuite

    reader = reading.format_for(path)
    live = path == "-" and not is_regular(0)
    label: Callable[[Any], bytes]
    blocks: Iterator[Any]
    if isinstance(reader, Crfsuite) and tagger.reads_items:
        label, blocks = tagger.items, reader.blocks(path, eager=live)
    elif not isinstance(reader, Conll):
        blocks = batches(reader.read(path), 1 if live else 256)
        label = partial(tagger.records, reader)
    elif tagger.model.template is None:
        raise ValueError(
            "the model has no template for files of columns: it was trained on attributes; give "
            "--format crfsuite or jsonl"
        )
    else:
        label, blocks = tagger.passage, reader.passages(path, eager=live)
    yield from map(label, blocks) if live or jobs == 1 else in_order(label, blocks, jobs)


def batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items.

    >>> list(batches(iter("abcde"), 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    while batch := list(islice(items, size)):
        yield batch


def is_regular(descriptor: int) -> bool:
    """Whether an open file is one on a disk: nobody waits at the other end."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def in_order(function: Callable[[Any], Any], items: Iterator[Any], jobs: int) -> Iterator[Any]:
    """`map` with threads, a few items ahead and not more.

    >>> list(in_order(lambda k: k * k, iter(range(5)), 2))
    [0, 1, 4, 9, 16]
    """
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor

    n = (os.cpu_count() or 1) if jobs < 1 else jobs
    with ThreadPoolExecutor(n) as pool:
        waiting: deque[Future[Any]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * n:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
