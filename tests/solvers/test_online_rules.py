"""The compiled loop against the definition of each rule, on lists of all labellings."""

import itertools
from dataclasses import replace
from typing import final

import numpy as np
import pytest
import scipy.sparse as sp

from chordal.costs import Cost
from chordal.costs.hamming import Hamming
from chordal.estimators import chain_batch, chain_layout
from chordal.execution.serial import Serial
from chordal.features import input_for
from chordal.inference.chain import ChainInference
from chordal.objectives.hinge import Hinge
from chordal.objectives.likelihood import Likelihood
from chordal.objectives.perceptron import Perceptron
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.oracle.chains import ChainExamples
from chordal.oracle.examples import ExampleOracle
from chordal.oracle.rules.gradient import GradientRule
from chordal.potentials import Potentials
from chordal.solvers.arow import AROW
from chordal.solvers.averaged_perceptron import AveragedPerceptron
from chordal.solvers.passive_aggressive import PassiveAggressive
from chordal.structures import Chain
from chordal.testing import Listed, ListedExamples

RULES = {
    "perceptron": AveragedPerceptron()._rule(),
    "PA": PassiveAggressive(variant="hard")._rule(),
    "PA-I": PassiveAggressive(aggressiveness=0.05)._rule(),
    "PA-II": PassiveAggressive(
        variant="squared", aggressiveness=0.3, error_sensitive=False, averaged=False
    )._rule(),
    "AROW": AROW(regularization=2.0, variance=0.7)._rule(),
    "gradient": GradientRule(0.05, 1 / 0.3, 0.05, first=0.0),
    "gradient without decay": GradientRule(0.0, 5.0),
    "gradient of strong decay": GradientRule(3.0, 3.1, 3.0, look_ahead=True),
    "Pegasos": GradientRule(0.2, 0.0, 0.2, radius=2.0),
    "momentum": GradientRule(0.05, 5.0, momentum=0.8),
    "Nesterov": GradientRule(0.3, 5.0, 0.5, momentum=0.5, look_ahead=True),
    "averaged": GradientRule(0.1, 1.0, 0.05, 0.5, average_after=11.0),
    "averaged, with momentum": GradientRule(0.4, 8.0, 0.1, momentum=0.3, average_after=0.0),
}
LENGTHS = [3, 1, 4, 0, 2, 4, 1, 3]


def dense(rng):
    return [rng.normal(size=(n, 3)) for n in LENGTHS]


def sparse(rng):
    return [sp.random(n, 6, density=0.4, format="csr", random_state=rng) for n in LENGTHS]


def attributes(rng, values=True):
    # Frequent names go with every label, rare ones with few: wide rows and narrow pairs.
    def token():
        names = sorted({f"a{int(k)}" for k in np.minimum(rng.geometric(0.15, 4), 30)})
        return {n: float(rng.normal()) for n in names} if values else names

    return [[token() for _ in range(n)] for n in LENGTHS]


INPUTS = {
    "dense": dense,
    "sparse": sparse,
    "attributes": attributes,
    "names": lambda rng: attributes(rng, values=False),
}


def table_of(source, x):
    """The observations of one sequence as a dense array [length, n_columns]."""
    if isinstance(x, np.ndarray):
        return x
    if sp.issparse(x):
        return x.toarray()
    tokens = [t if isinstance(t, dict) else dict.fromkeys(t, 1.0) for t in x]
    names = [source.name(k) for k in range(source.n_columns)]
    return np.array([[t.get(name, 0.0) for name in names] for t in tokens]).reshape(
        len(x), len(names)
    )


def joint_features(features, nodes, edges, y):
    """φ(x, y), weight by weight, from what each weight is said to belong to."""
    n, T = features.n_labels, len(y)
    phi = np.zeros(features.n_weights)
    keys, edge = features["node"].rows.keys(), features["edge"].rows
    for t in range(T):
        phi[features.slices["node"]] += nodes[t, keys.column] * (keys.output == y[t])
        for group in ("intercept", "start", "end"):
            here = group == "intercept" or t == (0 if group == "start" else T - 1)
            if features.slices[group].stop > features.slices[group].start:
                phi[features.slices[group]] += here * (np.arange(n) == y[t])
        if t == 0:
            continue
        pair = y[t - 1] * n + y[t]
        phi[features.slices["transitions"]] += features["transitions"].kept == pair
        if edge is not None:
            keys_of_edges = edge.keys()
            found = edges[t - 1, keys_of_edges.column] * (keys_of_edges.output == pair)
            phi[features.slices["edge"]] += found
    return phi


def listed(features, nodes, edges, gold, weight, cost=None):
    labellings = list(itertools.product(range(features.n_labels), repeat=len(gold)))
    chain = Chain([len(gold)], features.n_labels)
    tables = np.zeros(features.n_labels**2 if len(gold) > 1 else 0)
    frame = Potentials(chain, np.zeros(chain.n_states), tables)
    costs = [0.0 if cost is None else cost.of(frame, np.array(y, int), gold)[0] for y in labellings]
    return Listed(
        np.array([joint_features(features, nodes, edges, y) for y in labellings]),
        np.array([sum(a != b for a, b in zip(y, gold, strict=True)) for y in labellings]),
        len(gold),
        weight,
        np.array(costs),
    )


def problem(
    kind,
    seed,
    n_labels=3,
    *,
    extras=False,
    edges=None,
    weighted=False,
    centre=False,
    objective=None,
):
    """The same examples twice: compiled, and as lists."""
    rng = np.random.default_rng(seed)
    X = INPUTS[kind](rng)
    source = input_for(X[0])
    rows = source.read(X, grow=True)
    gold = rng.integers(n_labels, size=rows.n_rows).astype(np.int32)
    by_sequence = np.split(gold, np.cumsum(LENGTHS)[:-1])
    pairs = [a[:-1].astype(np.int32) * n_labels + a[1:] for a in by_sequence]
    edge, edge_rows, edge_tables = None, None, [None] * len(X)
    if edges is not None:
        observed = [x[1:] for x in INPUTS[edges](rng)]
        edge_source = input_for(observed[0])
        edge_rows = edge_source.read(observed, grow=True)
        edge = edge_source.features(edge_rows, np.concatenate(pairs), n_labels**2)
        edge_tables = [table_of(edge_source, x) for x in observed]
    node = source.features(rows, gold, n_labels)
    seen = np.unique(np.concatenate(pairs)).astype(np.int64)
    kept = {"transitions": seen}
    if extras:
        kept |= dict.fromkeys(("intercept", "start", "end"), np.arange(n_labels))
    features = chain_layout(n_labels, {"node": node, "edge": edge}, kept)
    weight = rng.uniform(0.0, 2.0, len(X)) if weighted else None
    towards = rng.normal(size=features.n_weights) if centre else None
    batch = chain_batch(rows, edge_rows)
    limits = batch.limits(n_labels)
    shards = [features.compile(batch, a, b, gold, weight) for a, b in limits]
    lists = [
        listed(
            features,
            table_of(source, x),
            e,
            g,
            1.0 if weight is None else weight[i],
            None if objective is None else objective.cost,
        )
        for i, (x, e, g) in enumerate(zip(X, edge_tables, by_sequence, strict=True))
    ]
    start = rng.normal(size=features.n_weights)  # from zeros, the first labelling would be a tie
    loss = Likelihood() if objective is None else objective
    compiled = ChainExamples(features, shards, loss, ChainInference(), Serial(), 0.5, towards)
    temperature = 1 if objective is None else objective.temperature
    return compiled, ListedExamples(lists, 0.5, towards, temperature=temperature), start


def assert_same_learning(compiled, lists, start, rule, passes=6, moves=True):
    ours, definition = compiled.learner(rule, start), lists.learner(rule, start)
    rng = np.random.default_rng(1)
    for k in range(passes):
        order = rng.permutation(compiled.n_examples)
        loss, expected = ours.visit(order), definition.visit(order)
        np.testing.assert_allclose(loss, expected, rtol=1e-9, atol=1e-12, err_msg=f"loss {k}")
        np.testing.assert_allclose(
            ours.weights(), definition.weights(), rtol=1e-9, atol=1e-9, err_msg=f"weights {k}"
        )
    assert (np.abs(ours.weights() - start).max() > 1e-6) == moves


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_plain_chains(kind, rule, seed):
    assert_same_learning(*problem(kind, seed), rule)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("kind", INPUTS)
def test_bias_ends_and_weighted_examples(kind, rule):
    assert_same_learning(*problem(kind, 2, extras=True, weighted=True), rule)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("edges", ["dense", "attributes", "names"])
def test_observed_transitions(edges, rule):
    assert_same_learning(*problem("attributes", 3, extras=True, edges=edges), rule)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize(("n_labels", "lengths"), [(1, LENGTHS), (2, LENGTHS), (40, [2, 1, 2, 0])])
def test_few_and_many_labels(n_labels, lengths, rule, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LENGTHS", lengths)
    compiled, lists, start = problem("attributes", 4, n_labels)
    moves = n_labels > 1 or (isinstance(rule, GradientRule) and rule.decay > 0.0)
    assert_same_learning(compiled, lists, start, rule, passes=3, moves=moves)


@pytest.mark.parametrize("edges", [None, "dense"])
def test_the_gradient_pulls_towards_the_centre(edges):
    compiled, lists, start = problem("attributes", 5, edges=edges, centre=True)
    assert_same_learning(
        compiled, lists, start, GradientRule(0.3, 5.0, 0.3, momentum=0.5, average_after=3.0)
    )
    np.testing.assert_allclose(compiled.penalty(start), lists.penalty(start), rtol=1e-12)


@final
class PerLabel(Cost):
    """Wrong labels cost what the gold label says."""

    def add(self, potentials, labels):
        scores = potentials.unary.reshape(
            len(labels), potentials.structure.label_counts.max(initial=1)
        )
        scores += (1.0 + labels)[:, None]
        scores[np.arange(len(labels)), labels] -= 1.0 + labels
        return potentials


OBJECTIVES = {
    "likelihood": Likelihood(),
    "softmax_margin": SoftmaxMargin(),
    "hinge": Hinge(),
    "perceptron": Perceptron(),
    "normalised": Hinge(Hamming(normalize=True)),
    "weighted": SoftmaxMargin(PerLabel()),
}
STEPS = [
    GradientRule(0.05, 1 / 0.3, 0.05),
    GradientRule(0.2, 0.0, 0.2, radius=3.0, average_after=5.0),
    GradientRule(0.1, 4.0, 0.2, 0.5, momentum=0.7, average_after=9.0),
]


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("rule", STEPS, ids=["plain", "projected", "momentum"])
@pytest.mark.parametrize(("kind", "edges"), [("attributes", None), ("dense", "names")])
def test_objectives(objective, rule, kind, edges):
    made = problem(kind, 7, extras=True, edges=edges, weighted=True, objective=objective)
    assert_same_learning(*made, rule)


@pytest.mark.parametrize("rule", STEPS, ids=["plain", "projected", "momentum"])
def test_many_steps(rule):
    """Weights are written out now and then, when what stands for them would lose digits."""
    rule = replace(rule, decay=0.3, momentum=0.9 * (rule.momentum > 0))
    made = problem("attributes", 8, objective=OBJECTIVES["softmax_margin"])
    assert_same_learning(*made, rule, passes=60)


def test_the_ball_is_reached():
    compiled, _, start = problem("dense", 9)
    learner = compiled.learner(GradientRule(0.2, 0.0, 0.2, radius=0.5), start)
    lengths = []
    for n in range(40):
        learner.visit(np.array([n % 8]))
        lengths.append(np.linalg.norm(learner.weights()))
    assert max(lengths) == pytest.approx(0.5, rel=1e-12)
    assert min(lengths) < 0.49


def test_many_shards(monkeypatch):
    monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", 9)
    assert_same_learning(*problem("attributes", 6, weighted=True), RULES["PA"])
    assert_same_learning(*problem("dense", 6, edges="names"), RULES["gradient"])


def test_it_is_an_example_oracle():
    compiled, lists, _ = problem("dense", 0)
    assert isinstance(compiled, ExampleOracle)
    assert isinstance(lists, ExampleOracle)


@pytest.mark.parametrize("order", [[8], [-1], [0, 99]])
def test_examples_that_are_not_there_are_refused(order):
    compiled, _, start = problem("dense", 0)
    with pytest.raises(IndexError, match="0 to 7"):
        compiled.learner(RULES["perceptron"], start).visit(np.array(order))


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_scores_that_overflow_are_reported(rule):
    compiled, _, start = problem("dense", 0)
    with pytest.raises(OverflowError):
        compiled.learner(rule, np.full_like(start, 1e308)).visit(np.arange(8).repeat(3))
