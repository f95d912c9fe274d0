"""Chunk cost: missed and spurious beginnings and ends of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from chordal._errors import UnsupportedError
from chordal._schemes import SCHEMES, split_tag
from chordal._validate import check_number
from chordal.costs._base import Cost, Floats, Ints, Labels
from chordal.potentials import Potentials
from chordal.structures import Chain, Structure

_PREFIXES = {prefix for scheme in SCHEMES.values() for prefix in scheme.prefixes} - {"O"}


@final
class ChunkCost(Cost):
    """Half a cost for each missed beginning or end of a chunk, and for each spurious one.

    A chunk of type T begins at "B-T" or "S-T", or where "I-T" or "E-T" follows another type or the
    end of a chunk; it ends accordingly. A missed chunk costs `missed`, a spurious chunk costs
    `false`, and a chunk with one wrong boundary costs half of each. This is how F1 counts errors,
    except for a chunk with correct boundaries and another chunk inside.

    F1 itself, 2·right / (found + gold), does not decompose. It is a ratio of sums over the data
    set, and a chunk depends on all labels from its beginning to its end. Beginnings and ends depend
    only on two neighbouring labels, so this cost is a sum over the transitions of a chain.

    Parameters
    ----------
    labels : list of str, optional
        The tags by number; an estimator sets them.
    missed, false : float
        Cost of a missed gold chunk, and of a spurious chunk. A larger `missed` favours recall, a
        larger `false` precision.

    Examples
    --------
    >>> p = Potentials(Chain([4], n_labels=3), np.zeros(12), np.zeros(9))
    >>> gold = np.array([1, 2, 2, 0], dtype=np.int32)
    >>> cost = ChunkCost(["O", "B-X", "I-X"])
    >>> guesses = [0, 0, 0, 0], [1, 2, 0, 0], [1, 2, 2, 0]
    >>> [float(cost.of(p, np.array(y), gold)[0]) for y in guesses]
    [1.0, 1.0, 0.0]
    """

    def __init__(
        self, labels: Sequence[str] | None = None, missed: float = 1.0, false: float = 1.0
    ) -> None:
        check_number("missed", missed)
        check_number("false", false)
        self.labels, self.missed, self.false = labels, missed, false
        self._begins = self._ends = np.zeros((0, 0), dtype=np.int64)
        if labels is not None:
            self._begins, self._ends = _limits(labels)

    def add(self, potentials: Potentials, labels: Labels) -> Potentials:
        """Add the cost of chunk boundaries to unary scores and tables."""
        structure = potentials.structure
        self.require(structure)
        n = len(self._begins) - 1
        gold = np.asarray(labels, dtype=np.int64)
        sizes = np.diff(structure.variable_offsets)
        first = structure.variable_offsets[:-1][sizes > 0]
        last = structure.variable_offsets[1:][sizes > 0] - 1
        rows = potentials.unary.reshape(-1, n)
        rows[first] += self._price(self._begins[n, :n], self._begins[n, gold[first]])
        rows[last] += self._price(self._ends[:n, n], self._ends[gold[last], n])

        # A table for every table and pair of neighbouring gold labels that go together.
        left = structure.scopes[::2]
        base = potentials.table_of_clique.astype(np.int64)
        situation = (base * n + gold[left]) * n + gold[left + 1]
        found, index = np.unique(situation, return_inverse=True)
        of_table, pair = np.divmod(found, n * n)
        i, j = np.divmod(pair, n)
        begins, ends = self._begins[:n, :n].ravel(), self._ends[:n, :n].ravel()
        tables = potentials.tables.reshape(-1, n * n)[of_table]
        tables = tables + self._price(begins, self._begins[i, j])
        tables += self._price(ends, self._ends[i, j])
        return Potentials.trusted(
            structure,
            potentials.unary,
            tables.ravel(),
            index.astype(np.int32),
            np.arange(len(found) + 1, dtype=np.int64) * (n * n),
        )

    def _price(self, types: Ints, gold: Ints) -> Floats:
        """[len(gold), len(types)]: the cost to begin or end these types; 0 for no type."""
        other = types[None, :] != gold[:, None]
        price = self.missed * (gold[:, None] > 0) + self.false * (types[None, :] > 0)
        return np.asarray(0.5 * other * price)

    def require(self, structure: Structure) -> None:
        """Raise an error for structures other than chains and labels that are not tags."""
        if self.labels is None:
            raise ValueError("cost 'chunk' needs the tags of all labels: give it labels")
        if not isinstance(structure, Chain):
            raise UnsupportedError(
                f"cost 'chunk' needs a chain, got a {type(structure).__name__} "
                "structure; use cost 'hamming'"
            )
        if (structure.label_counts != len(self.labels)).any():
            raise UnsupportedError(
                f"cost 'chunk' has tags for {len(self.labels)} labels, but some variables have "
                "another number of labels"
            )

    def for_labels(self, labels: Sequence[Any], order: Ints) -> ChunkCost:
        """The same cost with the tags by number."""
        odd = [label for label in labels if not isinstance(label, str)]
        if odd:
            raise ValueError(
                f"cost 'chunk' needs labels that are tags (B-…, I-…, O), got {odd[0]!r}"
            )
        return ChunkCost(list(labels), self.missed, self.false)


def _limits(labels: Sequence[str]) -> tuple[Ints, Ints]:
    """The types that begin at the second and end at the first of two neighbouring labels.

    Types count from 1, and 0 means none. The last row and column mean "outside the chain".
    """
    tags = [_split(label) for label in labels] + [("O", "")]
    numbers = {name: k + 1 for k, name in enumerate(sorted({t for p, t in tags if p != "O"}))}
    n = len(tags)
    begins, ends = np.zeros((n, n), dtype=np.int64), np.zeros((n, n), dtype=np.int64)
    for a, (before, old) in enumerate(tags):
        for b, (after, new) in enumerate(tags):
            inside = before in "BI" and after in "IEL" and old == new
            if after != "O" and not inside:
                begins[a, b] = numbers[new]
            if before != "O" and not inside:
                ends[a, b] = numbers[old]
    return begins, ends


def _split(label: str) -> tuple[str, str]:
    """Prefix and type of a tag; a label without a prefix is outside all chunks."""
    if not isinstance(label, str):
        raise TypeError(f"cost 'chunk' needs labels that are tags such as 'B-NP', got {label!r}")
    prefix, kind = split_tag(label)
    return (prefix, kind) if "-" in label and prefix in _PREFIXES else ("O", "")
