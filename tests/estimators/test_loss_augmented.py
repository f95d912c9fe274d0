"""Loss-augmented prediction, beside the listing of all labellings."""

from itertools import product

import numpy as np
import pytest

from chordal import HMM, ChainCRF, CRFClassifier, GraphCRF, GridCRF, MatchingModel, MultiLabelCRF
from chordal.costs.chunk import ChunkCost
from chordal.costs.hamming import Hamming
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.objectives.hinge import Hinge

RNG = np.random.default_rng(0)
RING = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
GRAPHS = [(RNG.normal(size=(4, 2)), RING) for _ in range(5)]
LABELS = [[str(k) for k in RNG.integers(0, 3, 4)] for _ in GRAPHS]
PRICES = {("0", "1"): 3.0, ("2", "0"): 0.5}


def price(cost, gold, labels):
    if isinstance(cost, WeightedHamming):
        return sum(PRICES.get((g, k), float(g != k)) for g, k in zip(gold, labels, strict=True))
    return float(sum(g != k for g, k in zip(gold, labels, strict=True)))


@pytest.mark.parametrize("objective", ["likelihood", "hinge"])
@pytest.mark.parametrize("cost", [None, "hamming", WeightedHamming(PRICES)], ids=str)
def test_graphs(objective, cost):
    model = GraphCRF(objective, l2=0.5).fit(GRAPHS, LABELS)
    against = LABELS[::-1]
    found = model.loss_augmented_predict(GRAPHS, against, cost)
    names = model.classes_.tolist()
    for x, gold, labels in zip(GRAPHS, against, found, strict=True):
        scores = model.potentials([x])
        every = list(product(range(3), repeat=4))
        values = [
            scores.score(own)[0] + price(cost, gold, [names[k] for k in own]) for own in every
        ]
        best = [names[k] for k in every[int(np.argmax(values))]]
        assert labels == best
        assert model.loss_augmented_predict([x], [gold], cost) == [best]
    assert found != model.predict(GRAPHS)


def test_the_cost_of_the_objective():
    prices = WeightedHamming(PRICES)
    model = GraphCRF(Hinge(prices), l2=0.5).fit(GRAPHS, LABELS)
    by_default = model.loss_augmented_predict(GRAPHS, LABELS)
    assert by_default == model.loss_augmented_predict(GRAPHS, LABELS, prices)
    assert by_default != model.loss_augmented_predict(GRAPHS, LABELS, Hamming())


def test_costs_of_transitions_refine_tables():
    X = [RNG.normal(size=(4, 2)) for _ in range(6)]
    y = [["B-x", "I-x", "O", "B-x"], ["O", "B-x", "I-x", "I-x"], ["O", "O", "B-x", "O"]] * 2
    model = ChainCRF(l2=0.3).fit(X, y)
    names, cost = model.classes_.tolist(), ChunkCost()
    own = cost.for_labels(model.labels_.labels, model.labels_.order)
    every = [list(k) for k in product(names, repeat=4)]
    for x, gold, labels in zip(X, y, model.loss_augmented_predict(X, y, cost), strict=True):
        potentials = model.potentials([x])
        order = model.labels_.order
        codes = [[names.index(k) for k in labelling] for labelling in every]
        numbers = [order[k].astype(np.int32) for k in codes]
        target = order[[names.index(k) for k in gold]].astype(np.int32)
        values = [
            potentials.score(k)[0] + own.of(potentials.zeros(), n, target)[0]
            for k, n in zip(codes, numbers, strict=True)
        ]
        assert labels == every[int(np.argmax(values))]


def test_every_estimator():
    pixels = [RNG.normal(size=(2, 3, 1)) for _ in range(4)]
    images = [(p[..., 0] > 0).astype(int) for p in pixels]
    pairs, targets = [RNG.normal(size=(2, 3, 1)) for _ in range(4)], [[0, 1]] * 4
    table, classes = RNG.normal(size=(30, 2)), RNG.integers(0, 2, 30)
    both = np.stack([classes, 1 - classes], axis=1)
    words = [["a", "b", "a"], ["b", "b"]]
    problems = [
        (GridCRF(), pixels, images),
        (MatchingModel(), pairs, targets),
        (CRFClassifier(), table, classes),
        (MultiLabelCRF(), table, both),
        (HMM(), words, [["A", "B", "A"], ["B", "B"]]),
    ]
    for model, X, y in problems:
        model.fit(X, y)
        found, predicted = model.loss_augmented_predict(X, y), model.predict(X)
        assert [np.shape(own) for own in found] == [np.shape(own) for own in predicted]
        wrong = [np.sum(np.asarray(a) != np.asarray(b)) for a, b in zip(found, y, strict=True)]
        plain = [np.sum(np.asarray(a) != np.asarray(b)) for a, b in zip(predicted, y, strict=True)]
        assert sum(wrong) >= sum(plain)


def test_refusals():
    model = GraphCRF().fit(GRAPHS, LABELS)
    with pytest.raises(ValueError, match="not seen in training"):
        model.loss_augmented_predict(GRAPHS[:1], [["0", "1", "2", "9"]])
    with pytest.raises(ValueError, match="cost"):
        model.loss_augmented_predict(GRAPHS[:1], LABELS[:1], "price")
