"""Arrays of `Columns` and `Items` are checked when these are made, and copied."""

import pickle

import numpy as np
import pytest

from chordal import ChainCRF
from chordal.text import Columns, FeatureTemplate, Items

TEXT = b"ab"
CELLS = np.array([[[0, 1]], [[1, 2]]], dtype=np.uint32)
TEMPLATE = FeatureTemplate("U:%x[0,0]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXT, CELLS, [10**7]), "lengths must add up"),
        ((TEXT, CELLS, [1]), "lengths must add up"),
        ((TEXT, CELLS, [3, -1]), "lengths must be from 0"),
        ((TEXT, CELLS, [2**62, 2**62, 2**62, 2**62, 2]), "lengths must add up"),
        ((TEXT, CELLS, [2.0]), "lengths must be an array of integers"),
        ((TEXT, CELLS, 2), "lengths must be an array of integers"),
        ((TEXT, CELLS + 1, [2]), "cells must lie within"),
        ((TEXT, CELLS[:, :, ::-1], [2]), "cells must lie within"),
        ((TEXT, CELLS.astype(np.int64) - 1, [2]), "cells must be from 0"),
        ((TEXT, CELLS.astype(np.int64) + 2**32, [2]), "cells must be from 0"),
        ((TEXT, CELLS[:, 0], [2]), "cells must be an array of integers"),
        ((TEXT, CELLS.repeat(2, axis=2), [2]), "cells must have shape"),
        ((TEXT, CELLS, [2], [1]), "lines must have one entry per row"),
        ((bytearray(TEXT), CELLS, [2]), "text must be bytes"),
    ],
)
def test_columns_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Columns(*arguments)


FIELDS = np.array([[0, 1], [1, 2]], dtype=np.uint32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXT, FIELDS + 1, None, [0, 1, 2], [2]), "fields must lie within"),
        ((TEXT, FIELDS, None, [0, 1, 10**7], [2]), "offsets must end with"),
        ((TEXT, FIELDS, None, [0, 5, 2], [2]), "offsets must begin with 0 and not fall"),
        ((TEXT, FIELDS, None, [1, 1, 2], [2]), "offsets must begin with 0 and not fall"),
        ((TEXT, FIELDS, None, [], [2]), "offsets must begin with 0 and not fall"),
        ((TEXT, FIELDS, None, [0, 1, 2], [10**7]), "lengths must add up"),
        ((TEXT, FIELDS, [1.0], [0, 1, 2], [2]), "values must be 2 finite numbers"),
        ((TEXT, FIELDS, [1.0, np.nan], [0, 1, 2], [2]), "values must be 2 finite numbers"),
        ((TEXT, FIELDS[:, :1], None, [0, 1, 2], [2]), "fields must have shape"),
    ],
)
def test_items_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Items(*arguments)


def test_what_happens_to_the_arrays_later_does_not_reach_columns():
    cells, lengths = CELLS.copy(), np.array([2])
    columns = Columns(TEXT, cells, lengths)
    crf = ChainCRF(feature_template=TEMPLATE).fit(columns, [["x", "y"]])
    cells[:], lengths[:] = 10**9, 10**7
    assert crf.predict(columns)[0] == ["x", "y"]
    assert pickle.loads(pickle.dumps(columns)).rows() == [[["a"], ["b"]]]
    for made in (columns, Columns.from_sequences([[["a"], ["b"]]])[:1]):
        with pytest.raises(ValueError, match="read-only"):
            made.cells[:] = 10**9


def test_what_happens_to_the_arrays_later_does_not_reach_items():
    fields, offsets, lengths = FIELDS.copy(), np.array([0, 1, 2]), np.array([2])
    items = Items(TEXT, fields, None, offsets, lengths)
    crf = ChainCRF().fit(items, [["x", "y"]])
    fields[:], offsets[:], lengths[:] = 10**9, 10**7, 10**7
    assert crf.predict(items)[0] == ["x", "y"]
