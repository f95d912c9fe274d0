"""Every registered cost × every model generator."""

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.costs import COSTS
from chordal.costs.chunk import ChunkCost
from chordal.costs.hamming import Hamming
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.structures import Chain
from chordal.testing import MODELS, check_cost, feasible_labels

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "S-Z"]


def matrix(n_labels, whole=False):
    costs = np.random.default_rng(1).integers(1, 4, (n_labels, n_labels)).astype(float)
    np.fill_diagonal(costs, 0.0)
    return costs if whole else 0.37 * costs


SETTINGS = {
    "hamming-normalized": lambda n: Hamming(normalize=True),
    "weighted_hamming-matrix": lambda n: WeightedHamming(matrix(n)),
    "weighted_hamming-whole": lambda n: WeightedHamming(matrix(n, whole=True), normalize=True),
    "chunk-prices": lambda n: ChunkCost(missed=3.0, false=0.0),
} | {name: lambda n, name=name: COSTS.get(name)() for name in COSTS}


@pytest.mark.parametrize("generator", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", SETTINGS)
def test_every_claim_holds(name, generator):
    rng = np.random.default_rng(0)
    potentials = generator(rng)
    n = int(potentials.structure.label_counts.max(initial=1))
    tags = [TAGS[k] if k < len(TAGS) else f"I-T{k}" for k in range(n)]
    cost = SETTINGS[name](n).for_labels(tags, np.arange(n))
    chain = isinstance(potentials.structure, Chain)
    if cost.name == "chunk" and not (chain and (potentials.structure.label_counts == n).all()):
        with pytest.raises(UnsupportedError, match="cost 'chunk'"):
            cost.require(potentials.structure)
        return
    check_cost(cost, potentials, feasible_labels(potentials, rng), rng)


class NotZeroAtGold(Hamming):
    def add(self, potentials, labels):
        potentials.unary += 0.1
        return super().add(potentials, labels)


class Negative(Hamming):
    def add(self, potentials, labels):
        gold = potentials.structure.state_offsets[:-1] + labels
        potentials.unary -= 1.0
        potentials.unary[gold] += 1.0
        return potentials


class Multiplies(Hamming):
    def add(self, potentials, labels):
        return super().add(potentials.like(1.01 * potentials.unary, potentials.tables), labels)


class WritesTables(Hamming):
    def add(self, potentials, labels):
        potentials.tables += 1.0
        return super().add(potentials, labels)


class OtherUnits(Hamming):
    def prices(self, structure, labels):
        found = super().prices(structure, labels)
        return found._replace(unit=2.0 * found.unit)


BROKEN = [
    (NotZeroAtGold, "the gold labelling has a cost"),
    (Negative, "a cost below zero"),
    (Multiplies, "does not change the score by the cost"),
    (WritesTables, "changed tables"),
    (OtherUnits, "prices in units"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    rng = np.random.default_rng(0)
    potentials = MODELS["chain_tied"](rng)
    with pytest.raises(AssertionError, match=message):
        check_cost(broken(), potentials, feasible_labels(potentials, rng), rng)
