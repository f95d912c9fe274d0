"""Features of word pairs, beside definitions written out."""

import math

import numpy as np
import pytest

from chordal.preprocessing import AlignmentFeatures

PAIRS = [
    (["das", "haus"], ["the", "house"]),
    (["das", "buch"], ["the", "book"]),
    (["ein", "buch"], ["a", "book"]),
]


def column(features, name):
    return features[..., AlignmentFeatures.names.index(name)]


def test_dice_counts_sentences():
    found = column(AlignmentFeatures().fit(PAIRS)(["das", "haus"], ["the", "book"]), "dice")
    np.testing.assert_allclose(found, [[1.0, 2 / 4], [2 / 3, 0.0]])


def test_model_one_is_em_over_all_ways_to_link():
    """Two rounds by the definition: expected counts under the table, then their shares."""
    table = {}
    for _ in range(2):
        counts = {}
        for source, target in PAIRS:
            for t in target:
                share = {s: table.get((s, t), 1.0) for s in (None, *source)}
                for s, p in share.items():
                    counts[s, t] = counts.get((s, t), 0.0) + p / math.fsum(share.values())
        totals = {}
        for (s, _), n in counts.items():
            totals[s] = totals.get(s, 0.0) + n
        table = {(s, t): n / totals[s] for (s, t), n in counts.items()}
    found = column(AlignmentFeatures(n_iter=2).fit(PAIRS)(*PAIRS[1]), "model1")
    for j, t in enumerate(PAIRS[1][1]):
        scores = [table[s, t] for s in (None, *PAIRS[1][0])]
        np.testing.assert_allclose(found[:, j], np.array(scores[1:]) / sum(scores))


def test_more_rounds_are_more_certain():
    few, many = (
        column(AlignmentFeatures(n_iter=n).fit(PAIRS)(*PAIRS[0]), "model1_both") for n in (1, 15)
    )
    assert many[0, 0] > few[0, 0]
    assert many[1, 1] > few[1, 1]
    assert many[0, 1] < few[0, 1]


@pytest.mark.parametrize(
    ("a", "b", "letters", "prefix"),
    [("Haus", "haus", 1.0, 1.0), ("kolor", "color", 4 / 5, 0.0), ("abc", "abcd", 3 / 4, 3 / 4)],
)
def test_spelling(a, b, letters, prefix):
    found = AlignmentFeatures().fit(PAIRS)([a], [b])
    assert column(found, "equal").item() == float(a.lower() == b.lower())
    np.testing.assert_allclose(column(found, "common_letters"), [[letters]])
    np.testing.assert_allclose(column(found, "common_prefix"), [[prefix]])


def test_distance_from_the_diagonal():
    found = AlignmentFeatures().fit(PAIRS)(["x"] * 3, ["y"] * 3)
    np.testing.assert_allclose(
        column(found, "distance"), np.abs(np.subtract.outer(np.arange(3), np.arange(3))) / 3
    )


def test_bad_use():
    with pytest.raises(ValueError, match="call fit first"):
        AlignmentFeatures()(["a"], ["b"])
    with pytest.raises(ValueError, match="pairs is empty"):
        AlignmentFeatures().fit([])
    assert AlignmentFeatures().fit(PAIRS)([], ["a"]).shape == (0, 1, 9)
