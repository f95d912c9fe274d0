"""WordClusters: the cluster of each word, by prefixes of its path or as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from chordal._errors import FormatError
from chordal._validate import is_list
from chordal.preprocessing._tokens import Marks, TokenTransformer


@final
@dataclass(eq=False, repr=False)
class WordClusters(TokenTransformer):
    """Adds the cluster of each word.

    A dict gets entries such as ``{"cluster:4": "0010", …}``, one per length, or ``{"cluster":
    "0010110"}``; a list of attributes gets the same as strings. Rows and `Columns` get a column per
    length, with "_" for words without a cluster.

    Parameters
    ----------
    clusters : path or dict of word to cluster
        A UTF-8 file with one word per line, separated by tabs: path, word and count as written
        by Brown clustering, or word and cluster.
    lengths : tuple of int, optional
        Use the first 4, 6, … characters of a cluster; for Brown clusters (4, 6, 10, 20) is
        usual. By default whole clusters.
    key : str or int
        Place of the word: the entry of a dict, the text before "=" or ":" in an attribute, or
        the number of a column.
    ignore_case : bool
        Whether "ROME" equals "Rome".
    name : str
        Name of the entries.

    References
    ----------
    Brown et al. (1992), Class-based n-gram models of natural language; Turian, Ratinov and
    Bengio (2010), Word representations: a simple and general method for semi-supervised learning.

    Examples
    --------
    >>> clusters = WordClusters({"Paris": "00101", "Rome": "0011"}, lengths=(2, 4))
    >>> clusters.transform([["in", "Rome"]])
    [[{'word': 'in'}, {'word': 'Rome', 'cluster:2': '00', 'cluster:4': '0011'}]]
    """

    clusters: str | os.PathLike[str] | Mapping[str, str]
    lengths: Sequence[int] | None = None
    key: str | int = "word"
    ignore_case: bool = False
    name: str = "cluster"
    _loaded: dict[str, str] = field(init=False)

    def load(self) -> None:
        """Read the clusters."""
        given = self.clusters
        if isinstance(given, (str, os.PathLike)):
            table = _read(Path(given))
        elif isinstance(given, Mapping):
            if not all(isinstance(text, str) for text in (*given, *given.values())):
                raise TypeError(f"clusters must be a dict of str to str, got {given!r:.80}")
            table = dict(given)
        else:
            raise TypeError(f"clusters must be a path or a dict of word to cluster, got {given!r}")
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a str, got {self.name!r:.60}")
        if self.lengths is not None and (
            not is_list(self.lengths)
            or not len(self.lengths)
            or not all(isinstance(n, int) and n > 0 for n in self.lengths)
        ):
            raise ValueError(f"lengths must be whole numbers above 0, got {self.lengths!r}")
        if self.ignore_case:  # the first of several forms, which a file has by frequency or so
            table = {word.casefold(): table[word] for word in reversed(table)}
        self._loaded = table

    def marks(self, words: Sequence[str]) -> list[Marks]:
        """The clusters of the words of one sequence, by length."""
        forms = [word.casefold() for word in words] if self.ignore_case else words
        found = [self._loaded.get(form) for form in forms]
        if self.lengths is None:
            return [(self.name, found)]
        return [(f"{self.name}:{n}", [own and own[:n] for own in found]) for n in self.lengths]

    def cell(self, name: str, mark: str | None) -> str:
        """A mark as a column of text holds it."""
        return "_" if mark is None else mark


def _read(path: Path) -> dict[str, str]:
    table: dict[str, str] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            parts = line.rstrip("\r\n").split("\t")
            if len(parts) == 3:
                cluster, word, _ = parts
            elif len(parts) == 2:
                word, cluster = parts
            elif line.strip():
                what = f"expected path, word and count, or word and cluster, got {len(parts)} parts"
                raise FormatError(str(path), what, line=number)
            else:
                continue
            table.setdefault(word, cluster)
    if not table:
        raise FormatError(str(path), "the file has no words")
    return table
