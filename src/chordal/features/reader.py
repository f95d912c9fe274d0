"""Readers: from user data to a batch of cliques and rows, by templates."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from chordal._validate import is_sparse
from chordal.features._base import Input
from chordal.features.arrays import DenseInput, SparseInput
from chordal.features.attributes import AttributeInput
from chordal.features.batch import Batch, Cliques, Ints, LabelCounts, Rows, Vectors, ranges
from chordal.features.clique_template import Beside, CliqueTemplate, itself, types_of
from chordal.features.vectors import VectorInput
from chordal.structures import check_scopes, offsets_of


class Reader:
    """Reads examples by templates; an input for each template with features reads its rows.

    Parameters
    ----------
    templates : list of CliqueTemplate
    inputs : list of Input or None
        None for a template without features.
    exclusive : bool
        See `Batch.exclusive`.
    """

    #: Templates whose columns do no more than number their cliques.
    numbering: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        templates: Sequence[CliqueTemplate],
        inputs: Sequence[Input | None],
        exclusive: bool = False,
    ) -> None:
        self.templates, self.inputs = list(templates), list(inputs)
        self.exclusive = exclusive

    @property
    def types(self) -> tuple[str, ...]:
        """The types of variables, by their numbers; none where all have the same labels."""
        return types_of(self.templates)

    def shape(self, template: CliqueTemplate, n_labels: LabelCounts) -> tuple[int, ...]:
        """How many labels each variable of a template's cliques has."""
        if isinstance(n_labels, int):
            return (1 if template.labelwise else n_labels,) * template.size
        return tuple(n_labels[self.types.index(own)] for own in template.types)

    @classmethod
    def like(
        cls, templates: Sequence[CliqueTemplate], X: Sequence[Any], exclusive: bool = False
    ) -> Reader:
        """A reader for rows like those of the first example that has any."""
        return cls(templates, [_input_like(template, X) for template in templates], exclusive)

    def knowing(self, other: Reader) -> Reader:
        """The same templates with copies of another reader's inputs, which can be extended."""
        names = {template.name for template in other.templates}
        inputs = [
            None if own.features is None or own.name not in names else other.input(own.name)
            for own in self.templates
        ]
        made = copy.copy(self)
        made.inputs = copy.deepcopy(inputs)
        return made

    def input(self, name: str) -> Input | None:
        """What reads the rows of the template of this name."""
        names = [template.name for template in self.templates]
        return self.inputs[names.index(name)]

    def read(self, X: Sequence[Any], grow: bool) -> Batch:
        """Cliques and observations of all examples; raises an error for inconsistent examples.

        `grow` adds new attributes.
        """
        rows: list[Rows | None] = []
        of_type: dict[str, Ints] = {}
        sizes: Ints | None = None
        counts: Ints | None = None
        found: dict[str, Vectors | None] = {
            template.features.template: None
            for template in self.templates
            if isinstance(template.features, Beside)
        }
        for k, (template, source) in enumerate(zip(self.templates, self.inputs, strict=True)):
            own: Rows | None = None
            if isinstance(template.features, Beside):
                own = self._beside(k, found[template.features.template], grow)
            elif source is not None and template.labelwise:
                own, sizes, counts = _labelwise(template, source, X)
            elif source is not None:
                own, vectors = _rows(template, source, X, grow)
                if template.name in found:
                    found[template.name] = vectors
                elif vectors is not None:
                    vectors.refuse()
                if template.types and template.cliques == "each":
                    of_type.setdefault(template.types[0], own.lengths)
                elif sizes is None and template.cliques == "each":
                    sizes = own.lengths
            rows.append(own)
        if of_type:
            return self._typed(X, rows, [of_type[own] for own in self.types])
        if sizes is None:
            raise ValueError("no template defines how many variables an example has")
        cliques = [
            _cliques(template, own, X, sizes)
            for template, own in zip(self.templates, rows, strict=True)
        ]
        return Batch(sizes, cliques, counts, self.exclusive)

    def _typed(self, X: Sequence[Any], rows: Sequence[Rows | None], counts: list[Ints]) -> Batch:
        """The variables of an example stand type after type, `counts` of each."""
        of_type = np.stack(counts, axis=1)  # [n_examples, n_types]
        first = np.cumsum(of_type, axis=1) - of_type
        numbers = np.tile(np.arange(len(counts)), len(of_type))
        kinds, sizes = np.repeat(numbers, of_type.ravel()), of_type.sum(axis=1)
        cliques = []
        for template, own in zip(self.templates, rows, strict=True):
            which = [self.types.index(name) for name in template.types]
            if template.cliques == "each":
                n = of_type[:, which[0]]
                scopes = ranges(first[:, which[0]], n)[:, None]
                found = Cliques(scopes, n, own, 1)
            else:
                listed = [
                    _of_types(template, x, i, of_type[i, which], first[i, which])
                    for i, x in enumerate(X)
                ]
                n = np.array([len(scopes) for scopes in listed], dtype=np.int64)
                scopes = np.concatenate([np.zeros((0, template.size), dtype=np.int64), *listed])
                found = Cliques(scopes, n, own, template.size)
            cliques.append(_with_its_rows(template, found.recognised(sizes)))
        return Batch(sizes, cliques, kinds=kinds)

    def _beside(self, k: int, vectors: Vectors | None, grow: bool) -> Rows | None:
        """The rows of a template of arrays; its input is created with the first array."""
        source = self.inputs[k]
        if vectors is None:
            return None
        if source is None:
            if not grow:
                vectors.refuse("and training saw no arrays")
            if not vectors.blocks:
                return None
            source = self.inputs[k] = VectorInput()
        assert isinstance(source, VectorInput)
        return source.gathered(vectors, grow)


def input_for(x: object) -> Input:
    """The input that reads sequences like x.

    >>> type(input_for([{"word": "Paris"}])).__name__
    'AttributeInput'
    """
    if is_sparse(x):
        return SparseInput(x.shape[1])
    if isinstance(x, np.ndarray) and x.dtype != object:
        if x.ndim != 2:
            raise ValueError(
                f"each sequence must be an array [length, n_features], got {x.ndim} dimensions"
            )
        return DenseInput(x.shape[1])
    return AttributeInput()


def length_of(x: Sized) -> int:
    """How many rows there are in a list, an array or a sparse matrix."""
    shape = getattr(x, "shape", None)
    if shape == () or (shape is None and not hasattr(x, "__len__")):
        raise TypeError(f"an example must be a list or an array of rows, got {type(x).__name__}")
    return int(shape[0]) if shape else len(x)


def _input_like(template: CliqueTemplate, X: Sequence[Any]) -> Input | None:
    if template.features is None or isinstance(template.features, Beside) or len(X) == 0:
        return None
    for i, x in enumerate(X):
        first = _observed(template, x, i)
        if length_of(first):
            break
    if template.labelwise:
        return DenseInput(first.shape[2])
    with _named(template, range(len(X))):
        return input_for(first)


def _rows(
    template: CliqueTemplate, source: Input, X: Sequence[Any], grow: bool
) -> tuple[Rows, Vectors | None]:
    """The observations of a template, and arrays among them; examples may have none."""
    if template.features is itself:
        return source.read_with_vectors(X, grow)
    observed = [_observed(template, x, i) for i, x in enumerate(X)]
    where = [i for i, own in enumerate(observed) if length_of(own)]
    with _named(template, where):
        rows, vectors = source.read_with_vectors([observed[i] for i in where], grow)
    counts = np.zeros(len(X), dtype=np.int64)
    counts[where] = rows.lengths
    return Rows(counts, rows.data), vectors and replace(vectors, lengths=counts)


def _observed(template: CliqueTemplate, x: object, i: int) -> Any:
    """What the function of a template makes of an example; an error if the result has no rows."""
    assert template.features is not None
    rows = template.features(x)
    if not hasattr(rows, "__len__") and not hasattr(rows, "shape"):
        raise TypeError(f"{_called(template)} must be rows, got {type(rows).__name__} for X[{i}]")
    return rows


def _labelwise(
    template: CliqueTemplate, source: Input, X: Sequence[Any]
) -> tuple[Rows, Ints, Ints]:
    """Rows of labels; how many variables each example has, and how many labels each variable."""
    arrays = [_observed(template, x, i) for i, x in enumerate(X)]
    shapes = np.array([a.shape[:2] for a in arrays], dtype=np.int64).reshape(-1, 2)
    with _named(template, range(len(X))):
        rows = source.read([a.reshape(-1, a.shape[2]) for a in arrays], grow=False)
    return rows, shapes[:, 0], np.repeat(shapes[:, 1], shapes[:, 0])


def _cliques(template: CliqueTemplate, rows: Rows | None, X: Sequence[Any], sizes: Ints) -> Cliques:
    """The cliques of a template, with a row of observations for each if it has any."""
    if isinstance(template.cliques, str):
        found = Cliques.of_pattern(template.cliques, template.size, sizes, rows)
    else:
        listed = [_scopes(template, template.cliques(x), i) for i, x in enumerate(X)]
        counts = np.array([len(own) for own in listed], dtype=np.int64)
        scopes = np.concatenate([np.zeros((0, template.size), dtype=np.int64), *listed])
        offsets = template.size * np.arange(len(scopes) + 1)
        try:
            check_scopes(scopes.ravel(), offsets, offsets_of(counts), sizes)
        except ValueError as error:
            raise ValueError(f"template {template.name!r}: {error}") from None
        found = Cliques(scopes, counts, rows, template.size).recognised(sizes)
    return _with_its_rows(template, found)


def _of_types(template: CliqueTemplate, x: object, i: int, sizes: Ints, first: Ints) -> Ints:
    """The cliques of an example by numbers of its variables, from numbers within their types."""
    assert callable(template.cliques)
    scopes = _scopes(template, template.cliques(x), i)
    wrong = np.argwhere((scopes < 0) | (scopes >= sizes))
    if len(wrong):
        clique, axis = wrong[0]
        raise ValueError(
            f"template {template.name!r}: clique {clique} of X[{i}] names variable "
            f"{scopes[clique, axis]} of type {template.types[axis]!r}, but there are only "
            f"{sizes[axis]} (numbered from 0)"
        )
    scopes = scopes + first
    order = np.sort(scopes, axis=1)
    again = np.argwhere(order[:, 1:] == order[:, :-1])
    if len(again):
        raise ValueError(
            f"template {template.name!r}: clique {again[0][0]} of X[{i}] names a variable twice; "
            "the variables of a clique must differ"
        )
    return scopes


def _with_its_rows(template: CliqueTemplate, found: Cliques) -> Cliques:
    """Cliques that have a row of observations each, if there are any."""
    rows = found.rows
    if rows is None or template.labelwise or found.counts is rows.lengths:
        return found
    wrong = np.flatnonzero(rows.lengths != found.counts)
    if len(wrong):
        i, each = int(wrong[0]), "variable" if template.cliques == "each" else "clique"
        raise ValueError(
            f"{_called(template)} must have one row per {each}, got {rows.lengths[i]} "
            f"rows for {found.counts[i]} {each}s of X[{i}]"
        )
    return found


def _scopes(template: CliqueTemplate, cliques: Iterable[Any], i: int) -> Ints:
    try:
        array = np.asarray(cliques)
    except ValueError:  # tuples of several lengths
        array = np.array(list(cliques), dtype=object)
    if array.size == 0:
        return np.zeros((0, template.size), dtype=np.int64)
    if template.size == 1 and array.ndim == 1:
        array = array[:, None]
    fits = array.ndim == 2 and array.shape[1] == template.size
    if not fits or not np.issubdtype(array.dtype, np.integer):
        other = array.ndim == 2 and not fits
        hint = f"; CliqueTemplate(…, order={array.shape[1]}) has such cliques" if other else ""
        raise ValueError(
            f"cliques of template {template.name!r} for X[{i}] must be whole numbers of shape "
            f"[n, {template.size}], got {array.dtype} of shape {array.shape}{hint}"
        )
    return array.astype(np.int64)


@contextmanager
def _named(template: CliqueTemplate, where: Sequence[int]) -> Iterator[None]:
    """Errors of reading rows, in terms of the template and of the examples as users count them."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = re.sub(r"\bX\[(\d+)\]", lambda m: f"X[{where[int(m[1])]}]", str(error))
        text = text.replace("each sequence", "they")
        raise type(error)(f"{_called(template)}: {text}") from None


def _called(template: CliqueTemplate) -> str:
    """The name of a template's features in messages: the function's `called`, if it has one."""
    return getattr(template.features, "called", f"features of template {template.name!r}")
