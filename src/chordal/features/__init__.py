"""Features: linear maps from weights to potentials, and their adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal._validate import is_sparse
from chordal.features._base import Input, RowFeatures, Rows, WeightKeys
from chordal.features._entries import RowEntries
from chordal.features.attribute_features import AttributeFeatures
from chordal.features.attributes import AttributeInput, VocabularyInput
from chordal.features.binary import BinaryFeatures
from chordal.features.chain import GROUPS, ChainFeatures, ChainShard
from chordal.features.columns import Columns
from chordal.features.dense import DenseFeatures, DenseInput
from chordal.features.items import Items
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
    "AttributeFeatures",
    "AttributeInput",
    "BinaryFeatures",
    "ChainFeatures",
    "ChainShard",
    "Columns",
    "DenseFeatures",
    "DenseInput",
    "Input",
    "Items",
    "RowEntries",
    "RowFeatures",
    "Rows",
    "SparseInput",
    "Template",
    "TemplateInput",
    "VocabularyInput",
    "WeightKeys",
    "input_for",
]
