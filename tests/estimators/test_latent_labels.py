"""Sets as labels with the hinge: fitting and completing in turns."""

from itertools import pairwise, product

import numpy as np
import pytest

from chordal import ChainCRF, GraphCRF, GridCRF, UnsupportedError
from chordal.objectives.hinge import Hinge

SETS = {"a": {"a0", "a1"}, "b": {"b0", "b1"}}
CENTRES = {"a0": (0, 0), "a1": (2, 2), "b0": (2, 0), "b1": (0, 2)}


def problem(n=30, noise=0.4, seed=0, length=5):
    """Each visible label has two latent states, on opposite corners: no line parts a from b."""
    rng = np.random.default_rng(seed)
    states = np.array(list(CENTRES))[rng.integers(0, 4, (n, length))]
    X = [
        np.array([CENTRES[k] for k in own]) + noise * rng.normal(size=(length, 2)) for own in states
    ]
    return X, [[k[0] for k in own] for own in states]


def sets_of(y):
    return [[SETS[k] for k in own] for own in y]


def share(model, X, y):
    found = model.predict(X)
    return np.mean(
        [
            k[0] == g
            for own, gold in zip(found, y, strict=True)
            for k, g in zip(own, gold, strict=True)
        ]
    )


@pytest.mark.filterwarnings("ignore:solver")
@pytest.mark.parametrize(
    "solver", ["auto", "one_slack", "cutting_plane", "block_frank_wolfe", "frank_wolfe", "sgd"]
)
def test_latent_states_part_what_no_line_parts(solver):
    X, y = problem()
    Z, gold = problem(seed=1)
    flat = ChainCRF("hinge", fit_intercept=True, l2=0.1).fit(X, y)
    model = ChainCRF("hinge", solver, fit_intercept=True, l2=0.1, random_state=0)
    model.fit(X, sets_of(y))
    assert share(flat, Z, gold) < 0.8 < 0.88 < share(model, Z, gold)
    assert model.classes_.tolist() == ["a0", "a1", "b0", "b1"]


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_rises_and_is_that_of_the_best_turn(seed):
    X, y = problem(noise=1.0, seed=seed, n=15)
    model = ChainCRF("hinge", "one_slack", fit_intercept=True, l2=0.5, tol=1e-6)
    turns = model.fit(X, sets_of(y)).fit_report_.completions
    assert len(turns) >= 1
    assert all(after < before for before, after in pairwise(turns))
    assert model.objective_ == turns[-1]
    again = ChainCRF("hinge", "one_slack", fit_intercept=True, l2=0.5, tol=1e-6)
    np.testing.assert_array_equal(again.fit(X, sets_of(y)).weights_, model.weights_)
    # By listing: the weights' losses at their best completions are not above the objective.
    total = 0.25 * float(model.weights_ @ model.weights_)
    names = model.classes_.tolist()
    for x, own in zip(X, y, strict=True):
        potentials = model.potentials([x])
        every = list(product(range(4), repeat=len(own)))
        scores = np.array([potentials.score(k)[0] for k in every])
        table = np.array(every)
        within = [
            k
            for k, labels in enumerate(every)
            if all(names[v][0] == g for v, g in zip(labels, own, strict=True))
        ]
        losses = [(scores + (table != table[k]).sum(axis=1)).max() - scores[k] for k in within]
        total += min(losses)
    assert total <= model.objective_ + 1e-6 * abs(model.objective_)


def test_several_turns_happen():
    lengths = []
    for seed in range(8):
        X, y = problem(noise=1.2, seed=seed, n=12)
        model = ChainCRF("hinge", "one_slack", fit_intercept=True, l2=0.5)
        lengths.append(len(model.fit(X, sets_of(y)).fit_report_.completions))
    assert max(lengths) > 1


def test_sets_of_one_label_are_labels():
    X, y = problem(n=8)
    plain = ChainCRF("hinge", "one_slack").fit(X, y)
    sets = [[{k} for k in own] for own in y]
    latent = ChainCRF("hinge", "one_slack").fit(X, sets)
    np.testing.assert_allclose(latent.weights_, plain.weights_, atol=1e-8)


def test_graphs_and_grids():
    X, y = problem(n=20, length=4)
    ring = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    model = GraphCRF("hinge", l2=0.1).fit([(x, ring) for x in X], sets_of(y))
    assert share(model, [(x, ring) for x in X], y) > 0.85
    images = [x.reshape(2, 2, 2) for x in X]
    labels = []
    for own in sets_of(y):
        image = np.empty((2, 2), dtype=object)
        image.ravel()[:] = own
        labels.append(image)
    found = GridCRF("hinge", l2=0.1).fit(images, labels).predict(images)
    right = [
        k[0] == g
        for own, gold in zip(found, y, strict=True)
        for k, g in zip(own.ravel(), gold, strict=True)
    ]
    assert np.mean(right) > 0.85


def test_others_refuse_sets():
    X, y = problem(n=4)
    with pytest.raises(UnsupportedError, match="needs one label per variable"):
        ChainCRF("perceptron").fit(X, sets_of(y))
    with pytest.raises(UnsupportedError, match="needs one label per variable"):
        ChainCRF("hinge").fit(X, [[{"a": 0.5, "b": 0.5} for _ in own] for own in y])
    assert Hinge.completes
