"""Attributes: rows hold few of many columns, which are named by strings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.features._base import Input, Ints, RowFeatures, Rows, WeightKeys
from chordal.features._occurrences import Occurrences, check_dtypes
from chordal.features.attribute_features import AttributeFeatures
from chordal.features.items import Items
from chordal.structures import offsets_of

V = TypeVar("V", bound="VocabularyInput")


class VocabularyInput(Input):
    """An input whose columns are attributes with names."""

    vocabulary: _kernels.Vocabulary

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.vocabulary)

    def name(self, column: int) -> str:
        """What users call a column."""
        return str(self.vocabulary.name(column))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a model file keeps."""
        names, offsets = self.vocabulary.arrays()
        return {"names": names, "name_offsets": offsets, "slots": self.vocabulary.slots()}

    @abstractmethod
    def with_vocabulary(self: V, vocabulary: _kernels.Vocabulary) -> V:
        """The same input with other attributes."""

    def with_attributes(self: V, ids: Ints) -> V:
        """The same input that knows these attributes only, numbered anew in their order."""
        names, offsets = self.vocabulary.arrays()
        lengths = np.diff(offsets)[ids]
        new = offsets_of(lengths)
        at = np.repeat(offsets[ids] - new[:-1], lengths) + np.arange(new[-1])
        return self.with_vocabulary(_kernels.Vocabulary.from_arrays(names[at], new))

    @staticmethod
    def vocabulary_from(arrays: Mapping[str, NDArray[Any]]) -> _kernels.Vocabulary:
        """The vocabulary that reads these arrays where they are."""
        check_dtypes(arrays, names=np.uint8, name_offsets=np.int64, slots=np.uint32)
        return _kernels.Vocabulary.borrowed(
            arrays["names"], arrays["name_offsets"], arrays["slots"]
        )

    def features(
        self,
        rows: Rows,
        outputs: NDArray[np.int32],
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> RowFeatures:
        """The linear map for training rows with these outputs."""
        return AttributeFeatures.fit(
            rows.data,
            outputs,
            self.n_columns,
            n_outputs,
            pairs=pairs,
            min_freq=min_freq,
            known=known,
        )


@final
class AttributeInput(VocabularyInput):
    """Sequences given as lists of dicts or of lists of strings, with CRFsuite's meaning."""

    def __init__(self, vocabulary: _kernels.Vocabulary | None = None) -> None:
        self.vocabulary = _kernels.Vocabulary() if vocabulary is None else vocabulary

    def with_vocabulary(self, vocabulary: _kernels.Vocabulary) -> AttributeInput:
        """The same input with other attributes."""
        return AttributeInput(vocabulary)

    def read(self, X: Sequence[Any] | Items, grow: bool) -> Rows:
        """Read a batch of sequences."""
        if isinstance(X, Items):
            fields = np.ascontiguousarray(X.fields).reshape(-1)
            ids, values, offsets = self.vocabulary.read_fields(
                X.text, fields, X.values, X.offsets, grow
            )
            return Rows(X.lengths, Occurrences(offsets, ids, values))
        ids, values, offsets, lengths = self.vocabulary.read(X, grow)
        return Rows(lengths, Occurrences(offsets, ids, values))

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> AttributeInput:
        """What a model file holds, checked."""
        return cls(cls.vocabulary_from(arrays))

    def __getstate__(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.vocabulary.arrays()

    def __setstate__(self, state: tuple[NDArray[Any], NDArray[Any]]) -> None:
        self.vocabulary = _kernels.Vocabulary.from_arrays(*state)
