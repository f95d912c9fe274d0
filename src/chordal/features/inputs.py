"""Which input reads rows like these."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal._validate import is_sparse
from chordal.features._base import Input
from chordal.features.attributes import AttributeInput
from chordal.features.dense import DenseInput
from chordal.features.sparse import SparseInput


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
