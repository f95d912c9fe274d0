"""Data read in parts have the vocabulary, the labels and the layout of data read at once."""

from itertools import pairwise

import numpy as np
import pytest

from chordal import ChainCRF, GraphCRF
from chordal.features import (
    layout_from,
    layout_of,
    merged,
    merged_readers,
    renumbered_batch,
    seen_in,
)
from chordal.labels import SequenceLabels, merged_labels, observed, renumbered, targets_of

CUTS = [0, 3, 4, 9, 30]


def sentences(rng, n=30):
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 8))
        X.append([[f"w={rng.zipf(1.6)}", f"s={rng.integers(4)}"] for _ in range(length)])
        y.append([f"L{min(int(rng.zipf(1.7)), 6)}" for _ in range(length)])
    return X, y


def parts_of(data):
    return [data[a:b] for a, b in pairwise(CUTS)]


@pytest.mark.parametrize("pairs", ["seen", "all"])
@pytest.mark.parametrize("min_freq", [0, 3])
def test_layout_of_parts_is_that_of_the_whole(pairs, min_freq):
    X, y = sentences(np.random.default_rng(0))
    estimator = ChainCRF()
    reader, labels = estimator._new_reader(X), SequenceLabels()
    batch = reader.read(X, grow=True)
    gold = targets_of(labels, y)
    whole = layout_of(reader, batch, gold, len(labels), pairs, min_freq)

    readers, batches, learned = [], [], []
    for part, labels_of_part in zip(parts_of(X), parts_of(y), strict=True):
        readers.append(estimator._new_reader(part))
        batches.append(readers[-1].read(part, grow=True))
        learned.append(SequenceLabels())
        targets_of(learned[-1], labels_of_part)
    merged_reader, columns = merged_readers(readers)
    merged_numbers, numbers = merged_labels(SequenceLabels(), learned)
    assert merged_numbers.labels == labels.labels
    assert merged_reader.inputs[0].vocabulary.names() == reader.inputs[0].vocabulary.names()
    seen, ids, codes = [], [], []
    for own, cols, own_labels, n in zip(batches, columns, parts_of(y), numbers, strict=True):
        own = renumbered_batch(own, merged_reader, cols)
        target = renumbered(targets_of(SequenceLabels(), own_labels), n, len(labels))
        ids.append(own.cliques[0].rows.data.ids)
        codes.append(target)
        seen.append(seen_in(merged_reader, own, target, len(labels), pairs))
    assert np.array_equal(np.concatenate(ids), batch.cliques[0].rows.data.ids)
    assert np.array_equal(np.concatenate(codes), gold)
    layout = layout_from(merged_reader, merged(seen), len(labels), pairs, min_freq)
    assert layout.n_weights == whole.n_weights
    for own, other in zip(layout.templates, whole.templates, strict=True):
        assert np.array_equal(own.kept, other.kept)
        if own.rows is not None:
            mine, theirs = own.rows.arrays(), other.rows.arrays()
            assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)


def test_one_reader_that_reads_parts_in_turn_knows_them_in_the_same_order():
    X, _ = sentences(np.random.default_rng(1))
    whole, chunked = ChainCRF()._new_reader(X), ChainCRF()._new_reader(X)
    ids = whole.read(X, grow=True).cliques[0].rows.data.ids
    parts = [chunked.read(part, grow=True).cliques[0].rows.data.ids for part in parts_of(X)]
    assert np.array_equal(np.concatenate(parts), ids)
    assert chunked.inputs[0].vocabulary.names() == whole.inputs[0].vocabulary.names()


def test_arrays_that_some_parts_lack_are_zeros_there():
    vec = np.arange(2.0)
    parts = [[[{"w": "a"}]], [[{"w": "b", "v": vec}]], [[{"w": "b", "u": 2 * vec, "v": vec}]]]
    readers, batches = [], []
    for part in parts:
        readers.append(ChainCRF()._new_reader(part))
        batches.append(readers[-1].read(part, grow=True))
    reader, columns = merged_readers(readers)
    found = [renumbered_batch(own, reader, c) for own, c in zip(batches, columns, strict=True)]
    rows = np.concatenate([own.cliques[-1].rows.data for own in found])
    whole = [x for part in parts for x in part]
    expected = ChainCRF()._new_reader(whole)
    assert np.array_equal(rows, expected.read(whole, grow=True).cliques[-1].rows.data)
    assert reader.inputs[-1].widths == expected.inputs[-1].widths


def test_parts_that_do_not_go_together_are_named():
    dense = ChainCRF()._new_reader([np.zeros((2, 3))])
    wider = ChainCRF()._new_reader([np.zeros((2, 4))])
    named = ChainCRF()._new_reader([[["a"]]])
    with pytest.raises(
        ValueError, match=r"parts 2 and 0 differ: .*'node' are dense rows of 4 columns"
    ):
        merged_readers([dense, dense, wider])
    with pytest.raises(
        ValueError, match=r"parts 1 and 0.*'node' are named attributes, but are dense"
    ):
        merged_readers([dense, named])


def test_labels_met_later_are_possible_where_none_was_observed():
    first, second = SequenceLabels(), SequenceLabels()
    y, more = [["A", None, {"A", "B"}]], [["C", "C", "C", "B"]]
    target = targets_of(first, y)
    targets_of(second, more)
    labels, numbers = merged_labels(SequenceLabels(), [first, second])
    whole = SequenceLabels()
    expected = targets_of(whole, y + more)
    assert labels.labels == whole.labels
    found = renumbered(target, numbers[0], len(labels), observed(y))
    assert np.array_equal(found.allowed, expected.allowed[: len(found.allowed)])


def test_known_labels_keep_their_numbers():
    known = SequenceLabels.of([["B", "A", "B"]])
    parts = []
    for y in ([["C", "A", "A"]], [["D", "D", "B"]]):
        parts.append(known.copy())
        parts[-1].learn(y)
    labels, numbers = merged_labels(known, parts)
    assert labels.labels == ["B", "A", "D", "C"]
    assert [own.tolist() for own in numbers] == [[0, 1, 3], [0, 1, 2]]


def test_graphs_of_parts_have_the_layout_of_the_whole():
    rng = np.random.default_rng(3)
    X = [(rng.normal(size=(4, 3)), np.array([[0, 1], [1, 2], [0, 3]])) for _ in range(30)]
    y = [rng.integers(3, size=4) for _ in X]
    estimator, labels = GraphCRF(), SequenceLabels()
    reader = estimator._new_reader(X)
    batch, gold = reader.read(X, grow=True), targets_of(labels, y)
    whole = layout_of(reader, batch, gold, 3)
    seen = []
    for part, own in zip(parts_of(X), parts_of(y), strict=True):
        target = targets_of(labels.copy(), own)
        seen.append(seen_in(reader, reader.read(part, grow=True), target, 3))
    layout = layout_from(reader, merged(seen), 3)
    for own, other in zip(layout.templates, whole.templates, strict=True):
        assert np.array_equal(own.kept, other.kept)
        assert own.n_row_weights == other.n_row_weights
