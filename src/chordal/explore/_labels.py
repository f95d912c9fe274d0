"""The labels of variables: one set for all of them, or one for each type of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError

Ints = NDArray[np.int64]

UNOBSERVED = -1


class LabelSets:
    """All labels of a model. The page knows a label by its place: those of the first set come
    first, then those of the second, and so on.

    Parameters
    ----------
    values : the labels of each set
    titles : what each set is of, such as a type of nodes; one empty title if there is one set
    names : the labels as the page writes them; by default by their titles, as in "word: N"

    Examples
    --------
    >>> sets = LabelSets([["N", "V"], ["sport"]], ["word", "text"])
    >>> sets.names, sets.first.tolist()
    (['word: N', 'word: V', 'text: sport'], [0, 2])
    """

    def __init__(
        self,
        values: Sequence[Sequence[Any]],
        titles: Sequence[str] = ("",),
        names: Sequence[str] | None = None,
    ) -> None:
        self.values, self.titles = [list(own) for own in values], [str(own) for own in titles]
        self.counts = np.array([len(own) for own in self.values], dtype=np.int64)
        self.first = np.concatenate([[0], np.cumsum(self.counts)])[:-1]
        self.names = list(names) if names is not None else self._named()

    def __len__(self) -> int:
        return len(self.names)

    def _named(self) -> list[str]:
        both = zip(self.titles, self.values, strict=True)
        return [self.name(title, label) for title, own in both for label in own]

    @staticmethod
    def name(title: str, label: object) -> str:
        """How the page writes a label of a set."""
        return f"{title}: {label}" if title else str(label)

    def kinds(self, places: Ints) -> Ints:
        """The number of each label's set."""
        return np.searchsorted(self.first, places, side="right") - 1


class Coder:
    """Labels as places, with new places for true labels that the model does not know."""

    def __init__(self, sets: LabelSets, ignored: object = None) -> None:
        self._sets, self._ignored = sets, ignored
        self._places = [
            {label: int(first) + k for k, label in enumerate(own)}
            for first, own in zip(sets.first, sets.values, strict=True)
        ]
        self._by_text = [{str(k): v for k, v in own.items()} for own in self._places]
        self.unknown: list[str] = []

    def predicted(self, labels: Sequence[Any], kind: int = 0) -> Ints:
        """The places of labels of one set, all of them known."""
        places = self._places[kind]
        return np.array([places[label] for label in labels], dtype=np.int64)

    def gold(self, labels: Sequence[Any], kinds: Ints) -> Ints:
        """The places of true labels; UNOBSERVED for None and for the label that is ignored."""
        both = zip(labels, kinds.tolist(), strict=True)
        return np.array([self._gold(label, kind) for label, kind in both], dtype=np.int64)

    def _gold(self, label: Any, kind: int) -> int:
        if label is None or (self._ignored is not None and label == self._ignored):
            return UNOBSERVED
        places = self._places[kind]
        try:
            found = places.get(label)
        except TypeError:
            raise UnsupportedError(
                f"explore shows one true label per variable, got {label!r}; give None where it is "
                "not known"
            ) from None
        if found is None:  # files hold labels as text, models perhaps as numbers
            by_text = self._by_text[kind]
            found = by_text.get(str(label))
            if found is None:
                found = by_text[str(label)] = len(self._sets) + len(self.unknown)
                self.unknown.append(self._sets.name(self._sets.titles[kind], label))
            places[label] = found
        return found
