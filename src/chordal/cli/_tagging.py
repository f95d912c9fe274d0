"""Files labelled block by block, as a filter."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from chordal._errors import FormatError
from chordal.cli._data import Reading
from chordal.cli._labeller import Answers, Labeller
from chordal.cli._models import check_columns, open_tagger
from chordal.cli._watching import BytesRead, talks, written
from chordal.formats import Format, Place, open_target
from chordal.formats.arrow import Arrow
from chordal.formats.conll import CoNLL
from chordal.formats.crfsuite import CRFsuite
from chordal.formats.parquet import Parquet
from chordal.progress import Progress

if TYPE_CHECKING:
    from chordal import ChainCRF
    from chordal.cli._token_model import TokenModel


def label_file(
    model: str,
    reading: Reading,
    answers: Answers,
    *,
    input: str,
    output: str,
    jobs: int,
    verbose: int,
) -> None:
    """Write the input with the labels that a model finds; "-" are the standard streams."""
    crf = open_tagger(model)
    crf.set_params(n_jobs=1)
    shown = verbose if verbose == 2 or not talks(output) else 0
    with BytesRead([input]) as read:
        reading = replace(reading, read=read if shown else None)
        with Progress("tag", read.total / 1e3, "kB", measure=True, verbose=shown) as progress:
            _label(crf, reading, answers, input, output, jobs, (progress, read))


def _label(
    crf: ChainCRF | TokenModel,
    reading: Reading,
    answers: Answers,
    input: str,
    output: str,
    jobs: int,
    watch: tuple[Progress, BytesRead],
) -> None:
    if answers.text:
        found = raw(crf, reading.place(input), is_live(input), answers.constrain)
    else:
        labeller = Labeller(crf, answers, reading.separator, "<stdin>" if input == "-" else input)
        reader = reading.format_for(input)
        if isinstance(reader, (Arrow, Parquet)):
            label_table(labeller, reader, reading.place(input), output)
            return
        found = pieces(labeller, input, reading, jobs)
    with open_target(output) as target, _hinted(answers.text):
        found = written(found, *watch)
        for piece in found if reading.encoding is None else encoded(found, reading.encoding):
            target.write(piece)
            if output == "-":
                target.flush()


def label_table(labeller: Labeller, table: Arrow | Parquet, place: Place, output: str) -> None:
    """Write a table with the labels that a model finds, in the format of the one that is read."""
    if labeller.answers.marginals or labeller.answers.k_best > 1:
        raise ValueError(
            f"{table.name} files take labels alone; for --marginals and --k-best convert them to "
            "JSON Lines (chordal convert)"
        )
    found = map(labeller.labelled, batches(table.read(place), 256))
    table.write(chain.from_iterable(found), output)


def pieces(labeller: Labeller, path: str, reading: Reading, jobs: int) -> Iterator[bytes]:
    """The labelled text, piece by piece."""
    live = is_live(path)
    label, blocks = _work(labeller, reading.place(path), reading.format_for(path), live)
    return map(label, blocks) if live or jobs == 1 else in_order(label, blocks, jobs)


@contextmanager
def _hinted(text: bool) -> Iterator[None]:
    """Rows of different lengths are often raw text."""
    try:
        yield
    except FormatError as error:
        if text or ": expected " not in str(error):
            raise
        raise ValueError(f"{error}; for raw text give --text") from None


def raw(
    crf: ChainCRF | TokenModel, place: Place, live: bool, constrain: str | None
) -> Iterator[bytes]:
    """Entities of raw text; what they need is imported only here."""
    from chordal.cli._raw import raw_pieces

    return raw_pieces(crf, place, live, constrain)


def is_live(path: str) -> bool:
    """Whether somebody may wait for answers at the other end of a pipe."""
    return path == "-" and not is_regular(0)


def encoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The same text in another encoding, that of the input."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    encoder = codecs.getincrementalencoder(encoding)()
    for piece in pieces:
        yield encoder.encode(decoder.decode(piece))


def _work(
    labeller: Labeller, path: Place, reader: Format, live: bool
) -> tuple[Callable[[Any], bytes], Iterator[Any]]:
    """How blocks are labelled, and the blocks."""
    if isinstance(reader, CRFsuite) and labeller.reads_items:
        return labeller.items, reader.blocks(path, eager=live)
    if not isinstance(reader, CoNLL):
        return partial(labeller.records, reader), batches(reader.read(path), 1 if live else 256)
    check_columns(labeller.model)
    return labeller.passage, reader.passages(path, eager=live)


def batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` items.

    >>> list(batches(iter("abcde"), 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    while batch := list(islice(items, size)):
        yield batch


def is_regular(descriptor: int) -> bool:
    """Whether an open file is on a disk, so that no other program waits for its lines."""
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
