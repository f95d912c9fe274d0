"""A model with its data: what pages of every kind ask of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_sequences, is_list
from chordal.explore._labels import Coder, Ints, LabelSets
from chordal.explore._shapes import Shapes
from chordal.explore._weights import Weights

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Looks:
    """What the caller says about how examples look; see `page`."""

    tokens: Sequence[Any] | None = None
    image_shape: tuple[int, int] | None = None
    positions: Sequence[Any] | None = None
    max_attributes: int = 0


class Subject(ABC):
    """A fitted model and examples. Each kind of page has one final class.

    Class attributes
    ----------------
    joint : whether the loss and the margin are those of whole labellings; else they are means
        over the variables of an example
    least : whether the confidence is that of the least sure variable; else it is the mean
    spans : whether labels may mark spans, as B-LOC and I-LOC do
    whole : whether the page keeps the marginals of all labels, however small
    """

    joint: ClassVar[bool] = False
    least: ClassVar[bool] = False
    spans: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    def __init__(self, model: Any, X: Any, looks: Looks) -> None:
        self.model, self.X, self.looks = model, X, looks
        self.crf = getattr(model, "crf_", model)
        self.sets = self.label_sets()

    def label_sets(self) -> LabelSets:
        """The labels of variables."""
        return LabelSets([self.model.classes_.tolist()])

    @property
    def n(self) -> int:
        """How many examples there are."""
        return len(self.X)

    def part(self, begin: int, end: int) -> Any:
        """Some examples, as the model takes them."""
        return self.X[begin:end]

    def predicted(self, coder: Coder, X: Any) -> list[Ints]:
        """The places of the labels that the model predicts for each example."""
        return [self.places(coder, own) for own in self.model.predict(X)]

    def places(self, coder: Coder, labels: Any) -> Ints:
        """The places of a labelling of one example."""
        return coder.predicted(listed(labels))

    def marginals(self, X: Any) -> list[Floats]:
        """P(label) [n_variables, largest number of labels] of each example."""
        width = len(self.sets)
        return [np.asarray(own).reshape(-1, width) for own in self.model.predict_marginals(X)]

    def gold(self, y: Any) -> Sequence[Sequence[Any]]:
        """True labels, a list for each example."""
        y = check_sequences(y, "y", empty=True)
        if len(y) != self.n:
            raise ValueError(f"y must have one entry per example ({self.n}), got {len(y)}")
        for i, own in enumerate(y):
            if not is_list(own) and not isinstance(own, Mapping):  # a dict has types of nodes
                raise TypeError(f"y[{i}] must be a list of labels, got {own!r:.60}")
        return [listed(own) for own in y]

    def ranked(self, coder: Coder, X: Any, k: int) -> list[list[tuple[Ints, float]]]:
        """The best labellings of each example with log-probabilities; empty for some kinds."""
        return []

    @abstractmethod
    def shapes(self, sizes: Ints) -> Shapes:
        """How examples look."""

    @abstractmethod
    def weights(self, local: Ints) -> Weights:
        """What explains predictions. `local` is the predicted label of every variable, by its
        number among the labels that the variable may have.
        """


def listed(labels: Any) -> list[Any]:
    """The labels of one example as a list."""
    return np.asarray(labels).ravel().tolist() if isinstance(labels, np.ndarray) else list(labels)


def with_labellings(
    subject: Subject, coder: Coder, X: Any, k: int
) -> list[list[tuple[Ints, float]]]:
    """The best labellings, with labels as places."""
    return [
        [(subject.places(coder, own), chance) for own, chance in of_example]
        for of_example in subject.model.k_best(X, k)
    ]
