"""CoNLL-U: the ten columns of Universal Dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, final

from chordal._errors import FormatError
from chordal.formats._base import Format, Record, check_labels, check_unweighted
from chordal.formats._files import Place, name_of
from chordal.formats._lines import read_paragraphs

COLUMNS = (
    "id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc",
)  # fmt: skip


@final
class CoNLLU(Format):
    """Treebanks in CoNLL-U: words with ten columns, ranges of words, empty nodes and comments.

    A row is a word. Lines of ranges (``1-2``) and empty nodes (``1.1``) are not words: they are in
    a record's `extras`, comments in its `comments`, and both are written again. With
    ``columns="all"`` a file is written back byte for byte.

    Parameters
    ----------
    columns : "all" or sequence of str
        The columns of a row, of id, form, lemma, upos, xpos, feats, head, deprel, deps and misc.
        Those left out are written as ``_``.
    label : str or None
        The label column. It may also be in `columns`; when writing, the label is used.

    Examples
    --------
    >>> import io
    >>> text = b"# text = Go home\\n" + b"".join(
    ...     f"{i}\\t{form}\\t_\\t{upos}\\t_\\t_\\t_\\t_\\t_\\t_\\n".encode()
    ...     for i, form, upos in [(1, "Go", "VERB"), (2, "home", "ADV")]
    ... )
    >>> record, = CoNLLU().read(io.BytesIO(text))
    >>> record.rows, record.labels, record.comments
    ([['Go'], ['home']], ['VERB', 'ADV'], ['# text = Go home'])
    """

    suffixes: ClassVar[tuple[str, ...]] = (".conllu",)

    def __init__(
        self, columns: str | Sequence[str] = ("form",), label: str | None = "upos"
    ) -> None:
        if isinstance(columns, str) and columns != "all":
            raise ValueError(f"columns must be 'all' or a list of names, got {columns!r}")
        self.columns = columns
        self.label = label
        chosen = COLUMNS if columns == "all" else columns
        for name in (*chosen, *([] if label is None else [label])):
            if name not in COLUMNS:
                raise ValueError(f"there is no column {name!r}; there are: {', '.join(COLUMNS)}")
        self._chosen = [COLUMNS.index(name) for name in chosen]
        self._label = None if label is None else COLUMNS.index(label)

    def read(self, source: Place) -> Iterator[Record]:
        """Records, one for each sentence."""
        name = name_of(source)
        for lines in read_paragraphs(source):
            comments: list[str] = []
            rows: list[list[str]] = []
            labels: list[str] = []
            extras: list[tuple[int, str]] = []
            for number, line in lines:
                if line.startswith("#") and not rows and not extras:
                    comments.append(line)
                    continue
                cells = _cells(line, name, number)
                if _is_word(cells[0], len(rows), name, number):
                    rows.append([cells[k] for k in self._chosen])
                    if self._label is not None:
                        labels.append(cells[self._label])
                else:
                    extras.append((len(rows), line))
            if not rows:
                raise FormatError(name, "a sentence without words", line=lines[-1][0])
            yield Record(rows, None if self._label is None else labels, comments, extras=extras)

    def encode(self, record: Record) -> str:
        """The lines of a sentence."""
        check_unweighted(record, "CoNLL-U")
        labels = check_labels(record)
        if not record.rows:
            raise ValueError("CoNLL-U holds no empty sentences")
        if labels is not None and self._label is None:
            raise ValueError("the record has labels, but label=None: set label to a column")
        lines = [line for line in record.comments if line.startswith("#")]
        extras = list(record.extras)[::-1]
        for t, row in enumerate(record.rows):
            while extras and extras[-1][0] <= t:
                lines.append(extras.pop()[1])
            cells = self._written(row, t)
            if labels is not None and self._label is not None:
                cells[self._label] = labels[t]
            for cell in cells:
                if not cell or any(c in cell for c in "\t\n\r\0"):
                    raise ValueError(
                        f"{cell!r:.60} of word {t + 1} cannot be a cell: it is empty or holds a tab"
                    )
            lines.append("\t".join(cells))
        lines += [line for _, line in reversed(extras)]
        for line in lines:
            if any(c in line for c in "\n\r\0"):
                raise ValueError(f"comments must be single lines, got {line!r:.60}")
        return "\n".join(lines) + "\n\n"

    def _written(self, row: Sequence[str], t: int) -> list[str]:
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(self._chosen):
            raise ValueError(
                f"word {t + 1} must be a list of {len(self._chosen)} strings, as columns says; "
                f"got {row!r:.60}"
            )
        cells = ["_"] * len(COLUMNS)
        cells[0] = str(t + 1)
        for k, cell in zip(self._chosen, row, strict=True):
            if not isinstance(cell, str) or (k == 0 and cell != cells[0]):
                raise ValueError(f"the {COLUMNS[k]} of word {t + 1} cannot be {cell!r:.60}")
            cells[k] = cell
        return cells


def _cells(line: str, name: str, number: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        what = f"expected {len(COLUMNS)} columns separated by tabs, found {len(cells)}: {line:.60}"
        raise FormatError(name, what, line=number)
    if "" in cells:
        k = cells.index("")
        column = len("\t".join(cells[:k]).encode()) + (k > 0) + 1
        raise FormatError(name, f"{COLUMNS[k]} is empty; write _", line=number, column=column)
    return cells


def _is_word(text: str, n_words: int, name: str, number: int) -> bool:
    """Whether an id is that of the next word; False if of a range or an empty node."""
    if text == str(n_words + 1):
        return True
    for mark, first in (("-", n_words + 1), (".", n_words)):
        begin, found, end = text.partition(mark)
        if found and begin == str(first) and end.isascii() and end.isdigit():
            return False
    what = f"expected the id {n_words + 1}, a range from it or an empty node, got {text!r:.60}"
    raise FormatError(name, what, line=number, column=1)
