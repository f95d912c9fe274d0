"""Labels for blocks of columns and for records, as bytes to be written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import FormatError
from chordal._opening import columns_of
from chordal.formats import Format, Record
from chordal.formats.conll import append_column
from chordal.formats.crfsuite import CRFsuite
from chordal.formats.jsonl import JSONL
from chordal.text import Columns, Items

if TYPE_CHECKING:
    from chordal import ChainCRF
    from chordal.cli._token_model import TokenModel


Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Ranked = Sequence[tuple[Sequence[Any], float]]  # labellings and their probabilities


class Answers(NamedTuple):
    """The requested answers."""

    method: str | None = None
    constrain: str | None = None
    marginals: bool = False
    all_marginals: bool = False
    k_best: int = 1
    only: bool = False  # labels alone, of files of columns
    text: bool = False  # entities of raw text


class Labeller:
    """A model, and how its answers are written."""

    def __init__(
        self,
        model: ChainCRF | TokenModel,
        answers: Answers,
        separator: str | None,
        path: str,
    ) -> None:
        self.model, self.answers, self.separator, self.path = model, answers, separator, path
        self.width = columns_of(model)
        self._checked = self.width == 0
        self.labels: list[str] = [str(label) for label in model.classes_]
        self._constraint: dict[str, Any] = {"allowed_transitions": answers.constrain}
        self._method = {} if answers.method is None else {"method": answers.method}

    # Columns ---------------------------------------------------------------------------------

    def passage(self, block: tuple[Any, int]) -> bytes:
        """A block of columns with the labels as one more, all else as it is."""
        columns, size = block
        if not len(columns):
            return b"" if self.answers.only else columns.text[:size]
        if not self._checked:
            self._check_width(columns)
        if self.answers.k_best > 1:
            return self._ranked(columns, size)
        codes = self._codes(columns)
        if self.answers.only:
            own = np.split(codes, np.cumsum(columns.lengths)[:-1])
            return _encoded("\n".join(self.names(part)) + "\n\n" for part in own)
        separator = self._separator_of(columns)
        if not self.answers.marginals:
            texts = [separator + label for label in self.labels]
            return append_column(columns, size, codes, texts)
        chances = np.concatenate(self.model.predict_marginals(columns, **self._constraint))
        texts = [
            separator + text.replace("\t", separator) for text in self.with_chances(codes, chances)
        ]
        return append_column(columns, size, np.arange(len(texts), dtype=np.int32), texts)

    def _check_width(self, columns: Columns) -> None:
        """Refuse rows that are not those of the training data, with or without labels."""
        n, width = columns.n_columns, self.width
        labelled = n == width + 1 and not set(columns.codes(n - 1)[1]).isdisjoint(self.labels)
        if n != width and not labelled:
            last = "" if n != width + 1 else " (the last holds none of its labels)"
            raise FormatError(
                self.path,
                f"it has {n} columns{last}, but the model was trained with {width} besides the "
                "labels; for raw text give --text",
            )
        self._checked = True

    def _codes(self, X: object) -> Ints:
        return self.model.predict_codes(X, **self._method, **self._constraint)

    def _separator_of(self, columns: Columns) -> str:
        """What stands before the last cell of the first row; a tab if there is one cell."""
        if self.separator is not None or columns.n_columns < 2:
            return self.separator or "\t"
        (_, end), (begin, _) = columns.cells[0, -2:].tolist()
        return columns.text[end:begin].decode()

    def with_chances(self, codes: Ints, chances: Floats) -> list[str]:
        """Label and probability of each token, or those of all labels after it."""
        chosen = chances[np.arange(len(codes)), codes]
        lines = [f"{self.labels[k]}\t{p:.6f}" for k, p in zip(codes.tolist(), chosen, strict=True)]
        if not self.answers.all_marginals:
            return lines
        rows = (
            "\t".join(f"{label}:{p:.6f}" for label, p in zip(self.labels, row, strict=True))
            for row in chances
        )
        return [f"{line}\t{row}" for line, row in zip(lines, rows, strict=True)]

    def _ranked(self, columns: Columns, size: int) -> bytes:
        """Each sequence as often as it has labellings, each after a line with its probability."""
        text, separator = columns.text[:size], self._separator_of(columns)
        ranked = self._k_best(columns)
        out, copied, row = [], 0, 0
        for length, labellings in zip(columns.lengths.tolist(), ranked, strict=True):
            cells = columns.cells[row : row + length]
            row += length
            begin = text.rfind(b"\n", copied, int(cells[0, 0, 0])) + 1 or copied
            end = text.find(b"\n", int(cells[-1, -1, 1]))
            end = len(text) if end < 0 else end + 1
            out.append(text[copied:begin])
            part = type(columns)(text[begin:end], cells - np.uint32(begin), np.array([length]))
            copied = end
            for rank, (labels, chance) in enumerate(labellings):
                if rank:
                    out.append(b"\n")
                out.append(f"# {rank} {chance:.6f}\n".encode())
                texts = [f"{separator}{label}" for label in labels]
                numbers = np.arange(length, dtype=np.int32)
                out.append(append_column(part, end - begin, numbers, texts))
        out.append(text[copied:])
        return b"".join(out)

    # Records ---------------------------------------------------------------------------------

    @property
    def reads_items(self) -> bool:
        """Whether the model takes blocks of CRFsuite's items as they are."""
        # Models of arrays have a number of features, and those of tokens no input of attributes.
        attributes = self.model.feature_template is None and self.model.input_ is not None
        return attributes and not hasattr(self.model, "n_features_in_")

    def items(self, items: Items) -> bytes:
        """Labels alone, as CRFsuite's own tagger prints them."""
        return _encoded(_crfsuite(self, *found) for found in self._found(items, items.lengths))

    def records(self, writer: Format, batch: Sequence[Record]) -> bytes:
        """The text of records with their labels, in the writer's format."""
        found = self._found_for(batch)
        if isinstance(writer, CRFsuite):
            return _encoded(_crfsuite(self, *parts) for parts in found)
        write = _jsonl if isinstance(writer, JSONL) else _plain
        both = zip(batch, found, strict=True)
        return _encoded(write(self, writer, record, *parts) for record, parts in both)

    def labelled(self, batch: Sequence[Record]) -> list[Record]:
        """The records with the labels that the model finds."""
        both = zip(batch, self._found_for(batch), strict=True)
        return [record._replace(labels=self.names(codes)) for record, (codes, *_) in both]

    def _found_for(
        self, batch: Sequence[Record]
    ) -> Iterator[tuple[Ints, Floats | None, Ranked | None]]:
        """Answers for records, which must have the columns of the training data."""
        X = [list(record.rows) for record in batch]
        if self.model.feature_template is not None:
            X = [[list(row) for row in rows] for rows in X]  # columns, never dicts
            n = next((len(row) for rows in X for row in rows), self.width)
            if self.width and n != self.width:
                raise FormatError(
                    self.path,
                    f"its tokens have {n} columns, but the model was trained with {self.width}",
                )
        return self._found(X, [len(rows) for rows in X])

    def _found(
        self, X: object, lengths: Sequence[int] | NDArray[np.int64]
    ) -> Iterator[tuple[Ints, Floats | None, Ranked | None]]:
        """Codes of each sequence, and the probabilities or best labellings that are asked for."""
        codes = np.split(self._codes(X), np.cumsum(lengths)[:-1])
        chances: Iterable[Floats | None] = repeat(None, len(codes))
        ranked: Iterable[Ranked | None] = repeat(None, len(codes))
        if self.answers.marginals:
            chances = self.model.predict_marginals(X, **self._constraint)
        if self.answers.k_best > 1:
            ranked = self._k_best(X)
        return zip(codes, chances, ranked, strict=True)

    def _k_best(self, X: object) -> list[Ranked]:
        """The best labellings of each sequence with their probabilities."""
        ranked = self.model.k_best(X, self.answers.k_best, **self._constraint)
        return [[(labels, exp(chance)) for labels, chance in own] for own in ranked]

    def names(self, codes: Ints) -> list[str]:
        """Labels by their numbers."""
        return [self.labels[k] for k in codes.tolist()]


def _encoded(texts: Iterable[str]) -> bytes:
    return "".join(texts).encode(errors="backslashreplace")


def _plain(labeller: Labeller, writer: Format, record: Record, codes: Ints, *_: object) -> str:
    return writer.encode(record._replace(labels=labeller.names(codes)))


def _crfsuite(
    labeller: Labeller, codes: Ints, chances: Floats | None, ranked: Ranked | None
) -> str:
    """Labels alone, as CRFsuite's own tagger prints them."""
    if ranked is not None:
        blocks = [
            f"@probability\t{chance:.6f}\n" + "".join(f"{label}\n" for label in labels)
            for labels, chance in ranked
        ]
        return "\n".join(blocks) + "\n"
    lines = labeller.names(codes)
    if chances is not None:
        lines = [line.replace("\t", ":", 1) for line in labeller.with_chances(codes, chances)]
    return "".join(f"{line}\n" for line in lines) + "\n"


def _jsonl(
    labeller: Labeller,
    writer: Format,
    record: Record,
    codes: Ints,
    chances: Floats | None,
    ranked: Ranked | None,
) -> str:
    value = json.loads(writer.encode(record._replace(labels=None)))
    if record.labels is not None:
        value["gold_labels"] = list(record.labels)
    value["labels"] = labeller.names(codes)
    if chances is not None:
        chosen = chances[np.arange(len(codes)), codes]
        value["marginals"] = chosen.tolist()
        if labeller.answers.all_marginals:
            value["all_marginals"] = [
                dict(zip(labeller.labels, row, strict=True)) for row in chances.tolist()
            ]
    if ranked is not None:
        value["k_best"] = [
            {"labels": list(map(str, labels)), "probability": chance} for labels, chance in ranked
        ]
    return json.dumps(value, ensure_ascii=False) + "\n"
