"""Constraints of prediction: allowed labels, transitions and segments."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._schemes import SCHEMES, misfit, scheme_of, split_tag
from chordal._validate import array_of, is_sparse
from chordal.features import Batch
from chordal.inference import Spans
from chordal.labels import SequenceLabels
from chordal.potentials import Potentials
from chordal.structures import Structure

Mask = NDArray[np.bool_]
#: The name of a scheme, a boolean matrix [from, to], or pairs (from, to) of labels.
Transitions = str | NDArray[np.bool_] | Iterable[tuple[Any, Any]]


def scheme_for(asked: str, labels: Sequence[Any]) -> str:
    """The requested scheme, if the labels follow it; for "auto", the scheme of the labels."""
    if asked != "auto" and asked not in SCHEMES:
        names = ", ".join(map(repr, ("auto", *SCHEMES)))
        raise ValueError(
            f"allowed_transitions must be one of {names}, a matrix or pairs of labels; "
            f"got {asked!r}"
        )
    own = scheme_of(labels)
    if asked == "auto" and own is None:
        known = reprlib.repr(sorted(map(str, labels)))
        raise ValueError(
            f"allowed_transitions='auto' found no scheme ({', '.join(SCHEMES)}) that matches the "
            f"labels {known}"
        )
    if asked == "auto" and own is not None:
        return own
    reason = misfit(labels, asked)
    if reason is not None:
        instead = f"the labels are of {own!r}" if own else "the labels are of no scheme"
        raise ValueError(
            f"allowed_transitions={asked!r} is not the scheme of the labels: {reason}; {instead}"
        )
    return asked


class Constraints:
    """The caller's constraints as masks over label numbers."""

    def __init__(
        self,
        labels: SequenceLabels,
        allowed_labels: Sequence[Any] | None = None,
        allowed_transitions: Transitions | None = None,
    ) -> None:
        self.labels_ = labels
        self._per_position = allowed_labels
        self._own_labels = False  # whether variables differ in the labels that they have
        self.transitions: Mask | None = None  # [from, to]
        self.first: Mask | None = None
        self.last: Mask | None = None
        if allowed_transitions is not None:
            self._compile_transitions(allowed_transitions)

    def _compile_transitions(self, allowed: Transitions) -> None:
        labels, n = self.labels_, len(self.labels_)
        if isinstance(allowed, str):
            legal = SCHEMES[scheme_for(allowed, labels.labels)].allows
            tags = [split_tag(label) for label in labels.labels]
            self.transitions = np.array([[legal(a, b) for b in tags] for a in tags])
            self.first = np.array([legal(None, b) for b in tags])
            # An entity may end the sequence only where "O" could follow it.
            self.last = np.array([legal(a, ("O", "")) for a in tags])
            return
        matrix = array_of(allowed)
        if matrix.dtype == bool:
            if matrix.shape != (n, n):
                raise ValueError(
                    f"allowed_transitions must be a boolean matrix [{n}, {n}] in the order of "
                    f"classes_, or pairs (from, to) of labels; got shape {matrix.shape}"
                )
            numbers = np.argsort(labels.order)
            self.transitions = matrix[np.ix_(numbers, numbers)]
            return
        self.transitions = np.zeros((n, n), dtype=bool)
        try:
            pairs = [(labels.number(a), labels.number(b)) for a, b in allowed]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"allowed_transitions must be a boolean matrix [{n}, {n}] in the order of "
                f"classes_, or pairs (from, to) of known labels: {error}"
            ) from None
        for a, b in pairs:
            self.transitions[a, b] = True

    def check(
        self, batch: Batch, listed: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    ) -> None:
        """Raise an error if the constraints do not fit these examples.

        `listed` turns the given labels into one entry per variable.
        """
        given, n = self._per_position, len(batch.sizes)
        if given is not None and len(given) != n:
            raise ValueError(
                f"allowed_labels must have one entry per example ({n}), got {len(given)}"
            )
        if self.transitions is not None and not batch.is_chain:
            raise UnsupportedError(
                "allowed_transitions works only on chains; use allowed_labels, or a ChainCRF"
            )
        self._own_labels = batch.label_counts is not None or batch.kinds is not None
        if given is not None and listed is not None:
            self._per_position = listed(given)

    def positions(self, begin: int, structure: Structure) -> Mask | None:
        """Allowed labels, flags [n_states], of the examples from `begin` on."""
        if self._per_position is None:
            return None
        mask, counts = np.ones(structure.n_states, dtype=bool), structure.label_counts
        limits, states = structure.variable_offsets, structure.state_offsets
        for i, (first, last) in enumerate(pairwise(limits.tolist()), start=begin):
            given = self._per_position[i]
            if given is None:
                continue
            if not hasattr(given, "__len__") or is_sparse(given):
                raise TypeError(
                    f"allowed_labels[{i}] must be a list with one entry per position, or None; "
                    f"got {type(given).__name__}"
                )
            if len(given) != last - first:
                raise ValueError(
                    f"allowed_labels[{i}] must have one entry per position ({last - first}), "
                    f"got {len(given)}"
                )
            for v, own in enumerate(given, start=first):
                if own is not None:
                    row = self._row(own, int(counts[v]), f"allowed_labels[{i}][{v - first}]")
                    mask[states[v] : states[v + 1]] = row
        return mask

    def _row(self, given: Any, n: int, where: str) -> Mask:
        """The allowed labels of a variable with n labels, by number."""
        flags = isinstance(given, (list, tuple)) and len(given) == n
        if flags and all(isinstance(flag, (bool, np.bool_)) for flag in given):
            given = np.array(given)
        row = np.zeros(n, dtype=bool)
        if isinstance(given, np.ndarray) and given.dtype == bool and given.ndim:
            if given.shape != (n,):
                raise ValueError(f"{where} must have {n} flags, got {given.shape}")
            row[slice(None) if self._own_labels else self.labels_.order] = given
            return row
        one = isinstance(given, (str, bytes)) or not isinstance(given, Iterable)
        try:
            row[[self.labels_.number(label) for label in ([given] if one else given)]] = True
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(
                f"{where} must be None, a label, a list of labels or flags: {error}"
            ) from None
        return row

    def apply(self, potentials: Potentials, begin: int) -> Potentials:
        """The same potentials with −inf where the constraints forbid."""
        structure = potentials.structure
        lengths = np.diff(structure.variable_offsets)
        unary, tables = potentials.unary, potentials.tables
        allowed = self.positions(begin, structure)
        if allowed is not None:
            unary = np.where(allowed, unary, -np.inf)
        if self.transitions is not None:
            n_cells = self.transitions.size
            tables = np.where(self.transitions.ravel(), tables.reshape(-1, n_cells), -np.inf)
            tables = tables.ravel()
        if self.first is not None and self.last is not None:
            unary = unary.copy() if unary is potentials.unary else unary
            rows = unary.reshape(-1, len(self.labels_))
            filled = lengths > 0
            starts = structure.variable_offsets[:-1][filled]
            ends = structure.variable_offsets[1:][filled] - 1
            rows[starts] = np.where(self.first, rows[starts], -np.inf)
            rows[ends] = np.where(self.last, rows[ends], -np.inf)
        return potentials.like(unary, tables)


def segment_spans(
    labels: SequenceLabels,
    segments: Sequence[Sequence[Any]],
    lengths: NDArray[np.int64],
    begin: int = 0,
) -> Spans:
    """Events of segments (start, end, label) per sequence; `end` is exclusive.

    `begin` is the number of the first sequence; error messages use it.
    """
    prefixes = {split_tag(label)[0] for label in labels.labels if "-" in str(label)}
    example, start, length, allowed = [], [], [], []
    for i, (of_sequence, n) in enumerate(zip(segments, lengths, strict=True)):
        for segment in of_sequence:
            first, masks = _event(labels, prefixes, segment, begin + i, int(n))
            example.append(i)
            start.append(first)
            length.append(len(masks))
            allowed.extend(masks)
    flags = np.concatenate(allowed) if allowed else np.zeros(0, dtype=np.uint8)
    return Spans(
        example=np.array(example, dtype=np.int64),
        start=np.array(start, dtype=np.int64),
        length=np.array(length, dtype=np.int64),
        allowed=flags.astype(np.uint8),
    )


def _event(
    labels: SequenceLabels, prefixes: set[str], segment: Sequence[Any], i: int, n: int
) -> tuple[int, list[NDArray[np.bool_]]]:
    """The first position of the event, and the labels allowed from there on."""
    try:
        begin, end, kind = segment
    except (TypeError, ValueError):
        raise ValueError(f"a segment must be (start, end, label), got {segment!r}") from None
    integers = isinstance(begin, Integral) and isinstance(end, Integral)
    if not integers or not 0 <= begin < end <= n:
        raise ValueError(
            f"segment {segment!r} of sequence {i} must satisfy 0 <= start < end <= {n}, integers"
        )

    def only(*tags: object) -> NDArray[np.bool_]:
        mask = np.zeros(len(labels), dtype=bool)
        mask[[labels.number(tag) for tag in tags]] = True
        return mask

    size = end - begin
    for scheme in SCHEMES.values():
        if scheme.marks_ends and prefixes & {scheme.end, scheme.single}:
            inner = [f"{scheme.inside}-{kind}"] * (size - 2)
            tags = [f"{scheme.begin}-{kind}", *inner, f"{scheme.end}-{kind}"]
            return begin, [only(t) for t in (tags if size > 1 else [f"{scheme.single}-{kind}"])]
    if "B" in prefixes:  # BIO: and the next position does not go on with it
        masks = [only(f"B-{kind}")] + [only(f"I-{kind}") for _ in range(size - 1)]
        if end < n and f"I-{kind}" in labels.labels:
            masks.append(~only(f"I-{kind}"))
        return begin, masks
    masks = [only(kind)] * size  # plain labels: a run that cannot be extended
    if begin > 0:
        masks = [~only(kind), *masks]
    if end < n:
        masks = [*masks, ~only(kind)]
    return max(begin - 1, 0), masks
