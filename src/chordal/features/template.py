"""Columns of text, read by a feature template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import check_choice
from chordal.features.attributes import VocabularyInput
from chordal.features.batch import Occurrences, Rows
from chordal.text import Columns, FeatureTemplate


@final
class TemplateInput(VocabularyInput):
    """Sequences of rows of columns, read by a template's lines U or by its lines B."""

    def __init__(
        self,
        template: FeatureTemplate,
        part: str,
        vocabulary: _kernels.Vocabulary | None = None,
        width: int = 0,
    ) -> None:
        self.template, self.part = template, part
        self.width = width  # columns of the rows that were learned from; 0 if that is not known
        self.program = template.unigrams if part == "unigrams" else template.bigrams
        self.vocabulary = _kernels.Vocabulary() if vocabulary is None else vocabulary
        # Those that are not in use: each thread takes its own.
        self._readers: list[_kernels.TemplateReader] = []

    def with_vocabulary(self, vocabulary: _kernels.Vocabulary) -> TemplateInput:
        """The same input with other attributes."""
        return TemplateInput(self.template, self.part, vocabulary, self.width)

    def read(self, X: object, grow: bool) -> Rows:
        """Read a batch of sequences."""
        columns, program = Columns.of(X), self.program
        try:  # a reader that remembers what others have read, if one is free
            reader = self._readers.pop()
        except IndexError:
            reader = program.reader(self.vocabulary)
        if grow and len(columns.cells):
            self._check_width(columns.n_columns)
        ids, offsets = program.read(reader, columns, grow)
        if grow:
            self.width = self.width or columns.n_columns
        else:
            self._readers.append(reader)
        lengths = np.maximum(columns.lengths - program.begin, 0)
        return Rows(lengths, Occurrences(offsets, ids, None))

    def _check_width(self, n: int) -> None:
        if self.width not in (0, n):
            raise ValueError(
                f"X has rows of {n} columns of text, but those that were read before have "
                f"{self.width}"
            )

    def facts(self) -> dict[str, Any]:
        """What a model file keeps besides arrays."""
        template = self.template
        return {
            "template": template.text,
            "dialect": template.dialect,
            "part": self.part,
            "width": self.width,
        }

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> TemplateInput:
        """What a model file holds, checked."""
        check_choice("part", facts["part"], ["unigrams", "bigrams"])
        template = FeatureTemplate(facts["template"], facts["dialect"])
        width = facts.get("width", 0)
        if type(width) is not int or not 0 <= width < 2**31:
            raise ValueError(f"width must be a number of columns, got {width!r}")
        return cls(template, facts["part"], cls.vocabulary_from(arrays), width)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.template, self.part, self.vocabulary.arrays(), self.width

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        template, part, arrays, width = state
        self.__init__(template, part, _kernels.Vocabulary.from_arrays(*arrays), width)
