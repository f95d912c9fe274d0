"""Features: linear maps from weights to potentials, and their adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal._validate import is_sparse
from chordal.features._base import Input, RowFeatures, Rows, WeightKeys
from chordal.features._entries import RowEntries, packed_flags, unit_of
from chordal.features._tables import TABLES, TableLayout
from chordal.features.alignment import AlignmentFeatures
from chordal.features.attribute_features import AttributeFeatures
from chordal.features.attributes import AttributeInput, VocabularyInput
from chordal.features.binary import BinaryFeatures
from chordal.features.chain import GROUPS, ChainFeatures, ChainShard
from chordal.features.clique import (
    CliqueBatch,
    CliqueFeatures,
    CliqueLayout,
    Cliques,
    CliqueShard,
)
from chordal.features.columns import Columns
from chordal.features.dense import DenseFeatures, DenseInput
from chordal.features.items import Items
from chordal.features.matching import MatchingFeatures, MatchingShard, matching_potentials
from chordal.features.sparse import SparseInput
from chordal.features.template import Template, TemplateInput


def input_for(x: Any) -> Input:
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


__all__ = [
    "GROUPS",
    "TABLES",
    "AlignmentFeatures",
    "AttributeFeatures",
    "AttributeInput",
    "BinaryFeatures",
    "ChainFeatures",
    "ChainShard",
    "CliqueBatch",
    "CliqueFeatures",
    "CliqueLayout",
    "CliqueShard",
    "Cliques",
    "Columns",
    "DenseFeatures",
    "DenseInput",
    "Input",
    "Items",
    "MatchingFeatures",
    "MatchingShard",
    "RowEntries",
    "RowFeatures",
    "Rows",
    "SparseInput",
    "TableLayout",
    "Template",
    "TemplateInput",
    "VocabularyInput",
    "WeightKeys",
    "input_for",
    "matching_potentials",
    "packed_flags",
    "unit_of",
]
