"""Models of examples and labels together, which learn by counting: in memory, or part by part."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import is_sparse
from chordal.emissions import EMISSIONS, Emission
from chordal.estimators._training.crews import Handle, Tasks
from chordal.estimators._training.keeping import fit_kept, is_kept
from chordal.estimators._training.on_part import Given
from chordal.estimators._training.preparing import Keeping
from chordal.estimators._training.row_forms import RowForm
from chordal.estimators._wrapped import Train, Wrapped
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import DenseInput, Input, Rows, SparseInput, length_of
from chordal.labels import SequenceLabels, merged_labels
from chordal.potentials import Floats

#: Arrays of which those of all parts are added up; the first two are an emission's.
Counts = tuple[Floats, ...]


class Known(NamedTuple):
    """Which observations and labels there are."""

    emission: Emission
    labels: SequenceLabels


class Generative(Wrapped):
    """p(x, y) of an emission and of labels.

    `fit` takes two steps, which parts of the data take too: to know what there is, and to count.
    """

    emission: str | Emission
    labels_: SequenceLabels
    emission_: Emission

    @abstractmethod
    def _read(
        self, emission: Emission, X: Any, y: Any, weight: object, grow: bool
    ) -> tuple[Rows, Sequence[Any], Floats | None]:
        """Rows, label sequences and the weight of every row."""

    @abstractmethod
    def _counts(
        self, known: Known, rows: Rows, codes: NDArray[np.int32], weight: Floats | None
    ) -> Counts:
        """What `_learn` has to know of rows with labels."""

    @abstractmethod
    def _learn(self, known: Known, counts: Counts) -> None:
        """Set the parameters."""

    @abstractmethod
    def _sequences(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        """Examples and labels as sequences."""

    def _named(self, crf: ChainCRF) -> ChainCRF:
        """The CRF that answers; explanations and summaries call its columns by these names."""
        crf.feature_names_in_ = np.array(self.emission_.names(), dtype=object)
        return crf

    def _fit(self, X: Any, y: Any, sample_weight: object) -> None:
        if is_kept(X, y):
            fit_kept(self, X, y, sample_weight)
            return
        self._check()
        emission = deepcopy(EMISSIONS.resolve(self.emission))
        rows, y, weight = self._read(emission, X, y, sample_weight, grow=True)
        known = Known(emission, SequenceLabels.of(y))
        self._take(known, self._counted(known, rows, y, weight))

    def _form(self) -> RowForm:
        """The form of rows in a data set: symbols, or numbers."""
        return RowForm(symbols=EMISSIONS.resolve(self.emission).name == "categorical")

    def _keeping(self, X: Any) -> Keeping:
        return Keeping(self._kept, self._form())

    def _kept(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        """Sequences of symbols or numbers, checked as in `fit`."""
        X, y = self._sequences(X, y)
        if len(X):
            deepcopy(EMISSIONS.resolve(self.emission)).read(X, grow=True)
        form = self._form()
        if form.symbols:
            return [form.stored(x, f"X[{i}]") for i, x in enumerate(X)], y
        return [x if is_sparse(x) else np.asarray(x) for x in X], y

    def _restored(self, part: Given, form: RowForm) -> Given:
        expected = self._form()
        if form != expected:
            raise ValueError(f"its rows are {form.described}, not {expected.described}")
        if not form.symbols and isinstance(part.X[0], list):
            raise ValueError("its rows are attributes, not numbers")
        return part

    def _fit_parts(self, crew: Tasks, parts: list[Handle], train: Train, **options: Any) -> None:
        if options:
            raise UnsupportedError(
                f"{type(self).__name__} learns by counting, without iterations: it takes no "
                f"{' and no '.join(options)}"
            )
        fit_counts(self, crew, parts)

    def _counted(self, known: Known, rows: Rows, y: Sequence[Any], weight: Floats | None) -> Counts:
        codes = known.labels.codes(known.labels.encode(y))
        return self._counts(known, rows, codes, weight)

    def _take(self, known: Known, counts: Counts) -> None:
        emission, labels = known
        if not (counts[1] > 0.0).all():
            label = labels.labels[labels.order[int(np.argmin(counts[1]))]]
            raise ValueError(
                f"label {label!r} has no observation of positive weight to learn from; "
                "raise sample_weight, or leave it out"
            )
        emission.learn(*counts[:2])
        self._learn(known, counts)


def fit_counts(model: Generative, crew: Tasks, parts: list[Handle]) -> None:
    """Learn from parts that are elsewhere."""
    model._check()
    told = crew.map(known_of, parts, model)
    crew.check(told)
    known = crew.join(all_known, told)
    counted = crew.map(counts_of, parts, model, known)
    counts = crew.tree(two_counts, counted)
    found = crew.take(known)
    crew.check(counted)
    model._take(found, crew.take(counts))


def known_of(part: Given, model: Generative) -> Known | None:
    """What a part has; None where it has no observations."""
    if length_of(part.X) == 0:
        return None
    emission = deepcopy(EMISSIONS.resolve(model.emission))
    rows, y, _ = model._read(emission, *part, grow=True)
    return Known(emission, SequenceLabels.of(y)) if rows.n_rows else None


def all_known(parts: Sequence[Known | None]) -> Known:
    """What there is in all parts."""
    found = {k: own for k, own in enumerate(parts) if own is not None}
    if not found:
        raise ValueError("X is empty: give at least one observation")
    first, *others = (own.emission for own in found.values())
    emission = deepcopy(first)
    try:
        emission.join(others)
    except ValueError as error:
        raise ValueError(f"the partitions do not go together: {error}") from None
    labels = merged_labels(SequenceLabels(), [own.labels for own in found.values()])[0]
    return Known(emission, labels)


def counts_of(part: Given, model: Generative, known: Known) -> Counts | None:
    """The counts of a part."""
    if length_of(part.X) == 0:
        return None
    return model._counted(known, *model._read(known.emission, *part, grow=False))


def two_counts(first: Counts | None, second: Counts | None) -> Counts | None:
    """Those of both."""
    if first is None or second is None:
        return second if first is None else first
    return tuple(a + b for a, b in zip(first, second, strict=True))


def input_of(emission: Emission) -> Input:
    """The input that reads the sufficient statistics of a family."""
    n = emission.natural.shape[1]
    return SparseInput(n) if emission.sparse else DenseInput(n)
