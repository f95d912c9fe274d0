"""Cost function networks: toulbar2's format .cfn, which is JSON with less punctuation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from chordal._errors import FormatError
from chordal.formats._files import Place, open_source
from chordal.formats.uai._costs import from_costs
from chordal.formats.uai._functions import Function
from chordal.formats.uai._tokens import LIMIT, allowance, product_up_to
from chordal.potentials import Floats, Potentials

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]])|(#[^\n]*|[\s,:]+)|([^\s,:{}\[\]"#]+)')
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|inf(inity)?)", re.I)
DEPTH = 20  # brackets within brackets


def read_cfn(place: Place) -> Potentials:
    """The cost function network of a .cfn file, one example; scores are minus costs.

    Costs that reach the bound of "mustbe" ("<10.0") become −inf (forbidden). With ">" the sum is
    maximised, and scores are the numbers of the file. Variables are numbered in the order of the
    file. Functions are tables, with or without a default cost; global functions are an error.

    Raises
    ------
    FormatError
        Naming the place or the function that is wrong.

    Examples
    --------
    >>> import io
    >>> p = read_cfn(io.BytesIO(b'''{
    ...     "problem": {"name": "tiny", "mustbe": "<10.0"},
    ...     "variables": {"x": ["left", "right"], "y": 2},
    ...     "functions": {
    ...         "right": {"scope": ["x"], "costs": [0, 2.5]},
    ...         "differ": {
    ...             "scope": ["x", "y"], "defaultcost": 0, "costs": ["left", 0, 10, 1, 1, 10]
    ...         }
    ...     }
    ... }'''))
    >>> p.unary, p.table(0)
    (array([ 0. , -2.5,  0. ,  0. ]), array([[-inf,   0.],
           [  0., -inf]]))
    """
    with open_source(place) as source:
        name, text = source.name, source.read(LIMIT + 1)
    if len(text) > LIMIT:
        raise FormatError(name, f"the text is longer than {LIMIT:,} bytes")
    parser = _Parser(name, text.decode("utf-8", "replace"))
    return _Network(name, parser.whole(), allowance(len(parser.tokens))).potentials()


class _Parser:
    """Objects, lists and words; commas and colons are blanks, as toulbar2 takes them."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.tokens = self._split()
        self.at = 0

    def _split(self) -> list[tuple[str, int]]:
        """Words and brackets with their places."""
        found, end = [], 0
        for match in _TOKEN.finditer(self.text):
            if match.start() != end:
                break
            end = match.end()
            if match[3] is None:
                found.append((match[0] if match[1] is None else match[1], match.start()))
        if end != len(self.text):
            raise self.error("there is a quote without its end", end)
        return found

    def error(self, what: str, place: int) -> FormatError:
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        return FormatError(self.name, what, line=line, column=column)

    def whole(self) -> dict[str, Any]:
        """The one object of the file."""
        found = self.value(0)
        if not isinstance(found, dict):
            raise self.error("a network begins with {", 0)
        if self.at < len(self.tokens):
            raise self.error("expected the end of the file", self.tokens[self.at][1])
        return found

    def value(self, depth: int) -> Any:
        """The next word, list or object."""
        word, place = self.take()
        quoted = self.text[place] == '"'
        if quoted or word not in ("{", "[", "}", "]"):
            return word
        if word in "}]" or depth > DEPTH:
            raise self.error(f"there is a {word!r} too many", place)
        found: list[Any] = []
        named: dict[str, Any] = {}
        close = {"{": "}", "[": "]"}[word]
        while self.peek() != close:
            if word == "[":
                found.append(self.value(depth + 1))
                continue
            key, where = self.take()
            if key in named or key in ("{", "[", "]"):
                raise self.error(f"{key!r} is not a new name", where)
            named[key] = self.value(depth + 1)
        self.at += 1
        return found if word == "[" else named

    def peek(self) -> str:
        if self.at >= len(self.tokens):
            raise self.error("the file is cut short: a bracket is open", len(self.text))
        word, place = self.tokens[self.at]
        return "" if self.text[place] == '"' else word

    def take(self) -> tuple[str, int]:
        if self.at >= len(self.tokens):
            raise self.error("the file is cut short", len(self.text))
        self.at += 1
        return self.tokens[self.at - 1]


class _Network:
    """Variables and functions, checked."""

    def __init__(self, name: str, facts: Mapping[str, Any], most: int) -> None:
        self.name, self.most = name, most  # cells or labels, for a file of this size
        for part in ("problem", "variables", "functions"):
            if part not in facts:
                raise FormatError(name, f"there is no {part!r}")
        self.sign, self.top = self._bound(facts["problem"])
        self.numbers: dict[str, int] = {}
        self.counts: list[int] = []
        self.labels: list[dict[str, int]] = []
        for variable, domain in _items(facts["variables"]):
            self._add_variable(variable, domain)
        if not 0 < sum(self.counts) <= most:
            raise FormatError(
                name, f"there must be 1 to {most:,} labels of variables in a file of this size"
            )
        self.functions = facts["functions"]

    def _bound(self, problem: object) -> tuple[float, float]:
        """1 where costs are to be small, else −1; and what they must be below."""
        given = problem.get("mustbe", "<inf") if isinstance(problem, dict) else ""
        number = given[1:].strip() if isinstance(given, str) else ""
        if not number or given[0] not in "<>" or not _NUMBER.fullmatch(number):
            raise FormatError(self.name, f"mustbe must be '<number' or '>number', got {given!r}")
        sign = 1.0 if given[0] == "<" else -1.0
        return sign, sign * float(number)

    def _add_variable(self, variable: str, domain: object) -> None:
        what = f"variable {variable!r}"
        if isinstance(domain, list):
            labels = {label: k for k, label in enumerate(map(str, domain))}
            count = len(domain)
            if len(labels) < count or not count:
                raise FormatError(self.name, f"{what} must have different labels, one or more")
        elif isinstance(domain, str) and domain.isdigit() and 0 < int(domain[:12]) <= self.most:
            labels, count = {}, int(domain)
        else:
            raise FormatError(
                self.name, f"{what} must have a list of labels or their number, got {domain!r:.40}"
            )
        self.numbers[variable] = len(self.counts)
        self.counts.append(count)
        self.labels.append(labels)

    def potentials(self) -> Potentials:
        """All functions as scores."""
        tables: dict[str, Floats] = {}
        functions: list[Function] = []
        n_cells = 0
        for key, facts in _items(self.functions):
            what = f"function {key!r}"
            if not isinstance(facts, dict) or "scope" not in facts:
                raise FormatError(self.name, f"{what} must be an object with a scope")
            if "type" in facts:
                raise FormatError(
                    self.name,
                    f"{what} is the global one {facts['type']!r:.40}; only tables are supported: "
                    "let toulbar2 decompose it, or list its costs",
                )
            scope = self._scope(facts["scope"], what)
            size = product_up_to((self.counts[v] for v in scope), self.most)
            n_cells += size
            if n_cells > self.most:
                raise FormatError(
                    self.name,
                    f"the tables up to {what} have more than {self.most:,} cells, too many for a "
                    "file of this size",
                )
            tables[key] = self._table(facts, scope, size, tables, what)
            functions.append((scope, self.sign * tables[key]))
        return from_costs(self.counts, functions, self.top)

    def _scope(self, given: object, what: str) -> list[int]:
        names = given if isinstance(given, list) else [None]
        scope = [self._number(v, self.numbers, len(self.counts)) for v in names]
        if None in scope or len(set(scope)) < len(scope):
            raise FormatError(self.name, f"{what} must have a scope of different variables")
        return [v for v in scope if v is not None]

    @staticmethod
    def _number(word: object, names: Mapping[str, int], n: int) -> int | None:
        """The number that a name has, or that it is."""
        if not isinstance(word, str):
            return None
        if word in names:
            return names[word]
        return int(word) if word.isdigit() and len(word) < 12 and int(word) < n else None

    def _table(
        self,
        facts: Mapping[str, Any],
        scope: list[int],
        size: int,
        tables: Mapping[str, Floats],
        what: str,
    ) -> Floats:
        given = facts.get("costs", [])
        if isinstance(given, str):  # those of another function
            if given not in tables or len(tables[given]) != size:
                raise FormatError(
                    self.name,
                    f"{what} has the costs of {given!r}, but no function of that name and size "
                    "comes before it",
                )
            return tables[given]
        words = list(_flat(given))
        if "defaultcost" not in facts:
            if len(words) != size:
                raise FormatError(
                    self.name,
                    f"{what} must have {size} costs, one for each labelling of its "
                    f"variables, got {len(words)}",
                )
            return self._costs(words, what)
        table = np.full(size, self._costs([facts["defaultcost"]], what)[0])
        width = len(scope) + 1
        if len(words) % width:
            raise FormatError(self.name, f"{what} must have {width - 1} labels before each cost")
        for first in range(0, len(words), width):
            cell = 0
            for word, v in zip(words[first : first + width - 1], scope, strict=True):
                label = self._number(word, self.labels[v], self.counts[v])
                if label is None:
                    raise FormatError(
                        self.name, f"{what}: its variables have no label {word!r:.40}"
                    )
                cell = cell * self.counts[v] + label
            table[cell] = self._costs([words[first + width - 1]], what)[0]
        return table

    def _costs(self, words: Sequence[Any], what: str) -> Floats:
        for word in words:
            if not isinstance(word, str) or not _NUMBER.fullmatch(word):
                raise FormatError(self.name, f"a cost of {what} must be a number, got {word!r:.40}")
        costs = np.array([float(word) for word in words])
        if (costs * self.sign == -inf).any():
            raise FormatError(self.name, f"a cost of {what} is infinitely good")
        return costs


def _items(given: object) -> list[tuple[str, Any]]:
    """Names and values; of a list, the numbers are names."""
    if isinstance(given, dict):
        return list(given.items())
    return [(str(k), own) for k, own in enumerate(given)] if isinstance(given, list) else []


def _flat(given: object) -> Sequence[Any]:
    """The words of lists within lists."""
    if not isinstance(given, list):
        return [given]
    return [word for own in given for word in _flat(own)]
