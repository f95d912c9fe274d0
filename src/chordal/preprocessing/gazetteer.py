"""Gazetteer: marks tokens that belong to listed names, such as places or companies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from chordal._validate import is_list
from chordal.preprocessing._tokens import Marks, TokenTransformer

#: A file with a name in each line, or names: strings, or lists of their tokens.
Names = str | os.PathLike[str] | Iterable[str | Sequence[str]]

#: The words that may follow; None stands for the end of a name.
Trie = dict[str | None, "Trie"]


@final
@dataclass(eq=False, repr=False)
class Gazetteer(TokenTransformer):
    """Marks the tokens of listed names: "B" for the first, "I" for the others.

    In each list the longest name wins, from left to right. A dict gets the entry ``{"city": "B"}``,
    and a list of attributes gets ``"city:B"``; other tokens get nothing. Rows and `Columns` get a
    column per list with "B-city", "I-city" or "O", for use in a feature template (``%x[0,2]``).

    Parameters
    ----------
    lists : dict
        The lists by name: the path of a UTF-8 file with one name per line, or the names
        themselves. Names are strings, split at blanks, or lists of tokens.
    key : str or int
        Place of the word: the entry of a dict, the text before "=" or ":" in an attribute, or
        the number of a column.
    ignore_case : bool
        Whether "ROME" equals "Rome".

    Examples
    --------
    >>> gazetteer = Gazetteer({"city": ["York", "New York"]})
    >>> gazetteer.transform([["in", "New", "York"]])
    [[{'word': 'in'}, {'word': 'New', 'city': 'B'}, {'word': 'York', 'city': 'I'}]]
    >>> rows = [[["in", "IN"], ["New", "NNP"], ["York", "NNP"]]]
    >>> Gazetteer({"city": ["York", "New York"]}, key=0).transform(rows)
    [[['in', 'IN', 'O'], ['New', 'NNP', 'B-city'], ['York', 'NNP', 'I-city']]]
    """

    lists: Mapping[str, Names]
    key: str | int = "word"
    ignore_case: bool = False
    _loaded: dict[str, Trie] = field(init=False)

    def load(self) -> None:
        """Read the lists."""
        if not isinstance(self.lists, Mapping) or not self.lists:
            raise TypeError(f"lists must be a dict of name to file or names, got {self.lists!r}")
        self._loaded = {name: self._trie(name, given) for name, given in self.lists.items()}

    def _trie(self, name: str, given: Names) -> Trie:
        trie: Trie = {}
        named = isinstance(given, Iterable) and getattr(given, "shape", None) != ()
        if not named and not isinstance(given, os.PathLike):
            raise TypeError(f"list {name!r} must be the path of a file or names, got {given!r:.60}")
        for entry in _entries(given):
            words = entry.split() if isinstance(entry, str) else entry
            if not is_list(words) or not all(isinstance(word, str) for word in words):
                raise TypeError(f"names of list {name!r} must be str or lists of str: {entry!r}")
            node = trie
            for word in words:
                node = node.setdefault(self._form(word), {})
            if words:
                node[None] = {}
        if not trie:
            raise ValueError(f"list {name!r} is empty: give at least one name")
        return trie

    def _form(self, word: str) -> str:
        return word.casefold() if self.ignore_case else word

    def marks(self, words: Sequence[str]) -> list[Marks]:
        """The marks of the words of one sequence, list by list."""
        forms = [self._form(word) for word in words]
        return [(name, _matched(forms, trie)) for name, trie in self._loaded.items()]

    def cell(self, name: str, mark: str | None) -> str:
        """A mark as a column of text holds it."""
        return "O" if mark is None else f"{mark}-{name}"


def _matched(forms: Sequence[str], trie: Trie) -> list[str | None]:
    marks: list[str | None] = [None] * len(forms)
    begin = 0
    while begin < len(forms):
        node, end, at = trie, begin, begin
        while at < len(forms) and forms[at] in node:
            node, at = node[forms[at]], at + 1
            if None in node:
                end = at
        if end > begin:
            marks[begin:end] = ["B", *["I"] * (end - begin - 1)]
        begin = max(end, begin + 1)
    return marks


def _entries(given: Names) -> Iterable[str | Sequence[str]]:
    if isinstance(given, (str, os.PathLike)):
        return Path(given).read_text(encoding="utf-8").splitlines()
    return given
