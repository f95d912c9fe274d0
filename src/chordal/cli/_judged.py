"""True and predicted labels of a file, and checks that they are comparable."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from chordal._errors import FormatError
from chordal._opening import columns_of
from chordal.cli._data import Data, Reading, load_data, load_unlabelled
from chordal.cli._models import check_reads, open_tagger, template_of

if TYPE_CHECKING:
    from chordal import ChainCRF
    from chordal.cli._token_model import TokenModel

Labels = list[list[str]]

MARK = "-DOCSTART-"
_PROBABILITY = re.compile(r"(?:[01]?\.[0-9]+|[0-9.]+e-[0-9]+|.+:[01]\.[0-9]{6})")


def read_columns(
    path: str, reading: Reading, gold_column: int, predicted_column: int, marks: str | None
) -> tuple[Labels, Labels]:
    """Two columns of a file, or two keys of JSON Lines.

    conlleval counts a document mark with all columns as a token. `marks` says whether to "count" or
    to "skip" it; it is required if there is one.
    """
    from chordal.formats import open_source

    kind = reading.name(path)
    if kind not in ("conll", "jsonl"):
        raise typer.BadParameter(
            "true and predicted labels are in files of columns and JSON Lines only; give --model"
        )
    with open_source(reading.place(path)) as source:
        text = io.BytesIO(source.read(2**32 - 1))
    text.name = name = source.name  # for messages
    if kind == "jsonl":
        true, found = _of_json(text)
    else:
        true, found = _of_columns(text, reading, gold_column, predicted_column, marks)
    if not true:
        raise FormatError(name, "the file has no tokens")
    columns = (gold_column, predicted_column) if kind == "conll" else None
    check_comparable(name, true, found, columns)
    return true, found


def _of_columns(
    text: io.BytesIO, reading: Reading, gold_column: int, predicted_column: int, marks: str | None
) -> tuple[Labels, Labels]:
    from chordal.formats.conll import CoNLL

    rules = (reading.separator, None, reading.comment)
    columns = None
    if marks != "skip":
        try:
            columns = CoNLL(*rules, document=None).load(text)
        except FormatError:
            text.seek(0)  # marks have fewer columns: no token
    if columns is None:
        columns = CoNLL(*rules).load(text)
    elif marks is None and len(columns):
        n_marks = sum(word == MARK for words in columns.column(0) for word in words)
        if n_marks:
            raise FormatError(
                text.name,
                f"{n_marks} lines {MARK} would count as tokens, as in conlleval; give "
                "--document-marks skip or --document-marks count",
            )
    n = columns.n_columns
    if not len(columns):
        return [], []
    for what, k in (("true", gold_column), ("predicted", predicted_column)):
        if not -n <= k < n:
            raise FormatError(
                text.name, f"there is no column {k} of {what} labels; the file has {n} columns"
            )
    return columns.column(gold_column), columns.column(predicted_column)


def _of_json(text: io.BytesIO) -> tuple[Labels, Labels]:
    """What ``chordal tag`` writes: true labels are "gold_labels", predicted ones "labels"."""
    from chordal.formats.jsonl import JSONL

    both: list[Labels] = []
    for key in ("gold_labels", "labels"):
        text.seek(0)
        found: Labels = []
        for n, record in enumerate(JSONL(labels=key).read(text), 1):
            if record.labels is None:
                raise FormatError(
                    text.name,
                    f"sequence {n} has no {key!r}: `chordal tag` writes both if the data have "
                    "labels; or give --model to label them now",
                )
            found.append(list(record.labels))
        both.append(found)
    return both[0], both[1]


def predicted(
    model: str, path: str, reading: Reading, gold_column: int, jobs: int | None
) -> tuple[Labels, Labels]:
    """True labels, and those that a model gives."""
    crf, data = open_both(model, path, reading.with_label(gold_column), jobs)
    return data.y, [list(map(str, labels)) for labels in crf.predict(data.X)]


def open_both(
    model: str, path: str, reading: Reading, jobs: int | None
) -> tuple[ChainCRF | TokenModel, Data]:
    """A model and data that fit each other; data without labels if `reading` has no label."""
    crf = open_tagger(model)
    crf.set_params(n_jobs=jobs)
    load = load_unlabelled if reading.label is None else load_data
    data = load(path, reading, template_of(crf))
    check_reads(crf, data.X)
    width = columns_of(crf)
    if width and data.X.n_columns != width:
        beside = " besides the labels" if data.y else ""
        raise FormatError(
            data.path,
            f"it has {data.X.n_columns} columns{beside}, but the model was trained with {width}"
            + ("; see --gold-column" if data.y else ""),
        )
    known, given = {str(label) for label in crf.classes_}, _distinct(data.y)
    if given and not known & set(given):
        raise FormatError(
            data.path,
            f"its labels ({_some(given)}) are not those of the model ({_some(sorted(known))}); "
            "see --gold-column",
        )
    return crf, data


def check_comparable(
    name: str, true: Labels, found: Labels, columns: tuple[int, int] | None
) -> None:
    """Refuse columns that are not labels of the same kind."""
    kinds = [_distinct(true), _distinct(found)]
    for labels, k, option in zip(
        kinds, columns or (), ("--gold-column", "--predicted-column"), strict=False
    ):
        if all(_PROBABILITY.fullmatch(label) for label in labels):
            raise FormatError(
                name,
                f"column {k} holds probabilities ({_some(labels)}), as `chordal tag --marginals` "
                f"adds them; choose the columns of labels by {option}",
            )
    if not set(kinds[0]) & set(kinds[1]):
        what = "true and predicted labels" if columns is None else "columns {} and {}"
        choose = "" if columns is None else "; choose others by --gold-column, --predicted-column"
        raise FormatError(
            name,
            f"{what.format(*columns or ())} have no label in common ({_some(kinds[0])}; "
            f"{_some(kinds[1])}){choose}",
        )


def _distinct(labels: Labels) -> list[str]:
    return list(dict.fromkeys(label for sequence in labels for label in sequence))


def _some(labels: Iterable[str]) -> str:
    names = list(labels)
    return ", ".join(names[:3]) + (", …" if names[3:] else "")
