"""The portfolio: its members' best, within a bound, by parts and by moves of subgraphs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import GraphCRF, _kernels
from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal.inference import INFERENCE, Pace, TimeLimitError
from chordal.inference._answers import Decoded
from chordal.inference._members import HEATS, Case
from chordal.inference._reduction import one_of, reduced
from chordal.inference._search import SubgraphSearch, softened
from chordal.inference._subgraphs import Subgraph, crossed
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.inference.portfolio import PortfolioInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid

TRUTH = ExhaustiveInference(max_labellings=100_000)


def random_model(seed, n=8, cliques=10, forbidden=0.0, examples=1):
    """Cliques of one to three variables with two or three labels; some labelling is allowed."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 4, size=n * examples)
    planted = rng.integers(counts)
    scopes, tables = [], []
    for e in range(examples):
        scopes.append([])
        for _ in range(cliques):
            scope = rng.choice(n, size=rng.integers(1, 4), replace=False)
            table = rng.normal(size=counts[e * n + scope])
            table[rng.random(table.shape) < forbidden] = -np.inf
            cell = tuple(planted[e * n + scope])
            table[cell] = rng.normal()
            scopes[-1].append(tuple(scope.tolist()))
            tables.append(table.ravel())
    structure = FactorGraph([n] * examples, scopes, counts)
    offsets = np.cumsum([0, *map(len, tables)])
    unary = rng.normal(size=structure.n_states)
    return Potentials(structure, unary, np.concatenate(tables), np.arange(len(tables)), offsets)


def frustrated(size, seed, n_labels=2):
    """A grid with any scores, which no relaxation solves."""
    rng = np.random.default_rng(seed)
    grid = Grid([(size, size)], n_labels)
    tables = rng.normal(size=grid.n_cliques * n_labels**2)
    return Potentials(grid, 0.1 * rng.normal(size=grid.n_states), tables)


def frequencies(seed, n=16, n_labels=44, links=60):
    """Links with exact or least distances that must be kept, and others at a price, as in CELAR."""
    rng = np.random.default_rng(seed)
    frequency = np.arange(n_labels) * 14 + 100 * (np.arange(n_labels) >= n_labels // 2)
    gap = np.abs(frequency[:, None] - frequency[None])
    planted = rng.integers(n_labels, size=n)
    scopes = [(a, a + 1) for a in range(0, n, 2)]
    while len(scopes) < links:
        pair = tuple(sorted(rng.choice(n, size=2, replace=False).tolist()))
        scopes += [pair] if pair not in scopes else []
    tables = []
    for k, (a, b) in enumerate(scopes):
        if k < n // 2:
            tables.append(np.where(gap == gap[planted[a], planted[b]], 0.0, -np.inf))
            continue
        least = rng.choice([14, 60, 100])
        hard = gap[planted[a], planted[b]] > least and rng.random() < 0.5
        tables.append(np.where(gap > least, 0.0, -np.inf if hard else -rng.choice([1, 10, 100])))
    structure = Graph([n], [scopes], n_labels)
    return Potentials(structure, np.zeros(n * n_labels), np.ravel(tables)), planted


@pytest.mark.parametrize("forbidden", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(15))
def test_small_models_are_solved_and_proved(seed, forbidden):
    p = random_model(seed, forbidden=forbidden)
    found = PortfolioInference().map(p)
    expected = TRUTH.map(p)
    assert_allclose(found.score, expected.score, rtol=1e-9)
    assert_allclose(p.score(found.labels), found.score, rtol=1e-12)
    assert_allclose(found.bound, found.score, rtol=1e-8, atol=1e-8)
    assert found.convergence.status is Status.CONVERGED


@pytest.mark.parametrize("limit", [1e-4, 0.01, 0.1])
def test_bounds_are_above_and_labels_below_whenever_time_is_over(limit):
    for seed in range(3):
        p = frustrated(14, seed)
        best = JunctionTreeInference().map(p).score
        found = PortfolioInference(time_limit=limit).map(p)
        assert found.bound >= best - 1e-9
        assert found.score <= best + 1e-9
        assert_allclose(p.score(found.labels), found.score)
        closed = found.gap[0] <= 1e-8 * (1 + abs(found.score[0]))
        assert (found.convergence.status is Status.CONVERGED) == closed


@pytest.mark.parametrize("name", [n for n in INFERENCE if "map" in INFERENCE.get(n).answers])
def test_never_worse_than_a_member(name):
    method = INFERENCE.get(name)()
    for seed in range(4):
        p = random_model(seed, n=12, cliques=24, forbidden=0.2 * (seed % 2))
        if method.refusal_of(p) is not None or not method.fits("map", p.structure):
            continue
        try:
            other = method.map(p)
        except (UnsupportedError, TimeLimitError):
            continue
        assert PortfolioInference().map(p).score[0] >= other.score[0] - 1e-9


def test_frequencies_are_assigned_within_all_constraints():
    for seed in range(2):
        p, planted = frequencies(seed)
        found = PortfolioInference(time_limit=3.0).map(p)
        assert np.isfinite(p.score(found.labels)[0])
        assert found.score[0] >= p.score(planted)[0]
        assert found.bound[0] >= found.score[0]


def test_each_example_is_solved_by_itself():
    p = random_model(3, examples=5, forbidden=0.3)
    found = PortfolioInference().map(p)
    assert len(found.found_by) == 5
    for k in range(5):
        alone = TRUTH.map(one_of(p, k))
        assert_allclose(found.score[k], alone.score[0], rtol=1e-9)


def test_no_labelling_is_proved_with_the_example_that_has_none():
    tables = np.zeros((3, 2, 2))
    tables[1:] = [[[-np.inf, 0], [0, -np.inf]], [[0, -np.inf], [-np.inf, 0]]]
    structure = FactorGraph([2, 2], [[(0, 1)], [(0, 1), (0, 1)]], 2)
    p = Potentials(structure, np.zeros(8), tables.ravel())
    with pytest.raises(InfeasibleError, match="example 1"):
        PortfolioInference().map(p)


def test_after_ctrl_c_the_best_so_far_is_returned():
    p = frustrated(30, 0)
    for n_steps in (0, 1, 3):
        seen = []

        def watch(state, n_steps=n_steps, seen=seen):
            seen.append(state)
            if len(seen) > n_steps:
                raise KeyboardInterrupt

        method = PortfolioInference()
        method.watch = watch
        found = method.map(p)
        assert found.convergence.status is Status.INTERRUPTED
        assert_allclose(found.score[0], seen[-1].score)
        assert_allclose(p.score(found.labels), found.score)
        assert found.bound[0] >= found.score[0]


def test_progress_only_improves():
    states = []
    method = PortfolioInference(time_limit=1.0)
    method.watch = states.append
    method.map(frustrated(20, 1, n_labels=4))
    scores, bounds = [s.score for s in states], [s.bound for s in states]
    assert scores == sorted(scores)
    assert bounds == sorted(bounds, reverse=True)
    assert {"trw_s", "subgraphs", "loopy_bp"} <= {s.member for s in states}


def test_an_estimator_does_not_take_half_a_search_for_a_prediction(monkeypatch):
    X = [(np.eye(2)[[0, 1, 0]], np.array([(0, 1), (1, 2), (2, 0)]))]
    model = GraphCRF().fit(X, [[0, 1, 0]]).set_params(inference=PortfolioInference())
    assert len(model.predict(X)) == 1

    def stopped(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("chordal.inference.portfolio._Run.work", stopped)
    with pytest.raises(KeyboardInterrupt):
        model.predict(X)


def test_training_takes_moments():
    assert PortfolioInference.pace is Pace.SECONDS
    rng = np.random.default_rng(0)
    edges = np.array([(a, b) for a in range(40) for b in range(a)])
    X = [(rng.normal(size=(40, 3)), edges)]
    y = [rng.integers(3, size=40)]
    model = GraphCRF("hinge", max_iter=3).fit(X, y)
    assert model.inference_.pace is Pace.MOMENTS


@pytest.mark.parametrize("forbidden", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(10))
def test_parts_have_the_scores_of_the_whole(seed, forbidden):
    p = random_model(seed, n=9, cliques=6, forbidden=forbidden, examples=2)
    parts = reduced(p)
    counts = parts.potentials.structure.label_counts
    assert (counts > 1).all()
    rng = np.random.default_rng(seed)
    for _ in range(5):
        labels = rng.integers(counts).astype(np.int32)
        whole = parts.labels(labels)
        assert_allclose(parts.total(parts.potentials.score(labels)), p.score(whole), atol=1e-9)
    best = TRUTH.map(p).score
    found = [TRUTH.map(one_of(parts.potentials, k)).score[0] for k in range(len(parts.owner))]
    assert_allclose(parts.total(np.array(found)), best, atol=1e-9)


def test_what_is_independent_is_split():
    structure = FactorGraph([6], [[(0, 5), (1, 2), (2, 1)]], 2)
    p = Potentials(structure, np.arange(12.0), np.arange(12.0))
    parts = reduced(p)
    assert_array_equal(np.diff(parts.potentials.structure.variable_offsets), [2, 2, 1, 1])
    assert parts.potentials.structure.n_cliques == 2  # the two of 1 and 2 have become one


@pytest.mark.parametrize("seed", range(8))
def test_a_move_gives_the_free_variables_their_best_labels(seed):
    p = random_model(seed, n=9, cliques=14)
    rng = np.random.default_rng(seed)
    free = rng.random(9) < 0.6
    labels = rng.integers(p.structure.label_counts).astype(np.int32)
    expected = TRUTH.map(p.given(labels, ~free)).score
    move = Subgraph(p, free, 16.0)
    after = labels.copy()
    move.improve(after)
    assert_allclose(p.score(after), expected)
    assert_array_equal(after[~free], labels[~free])


def test_a_drawn_labelling_has_the_probability_of_the_model_given_the_rest():
    p = random_model(1, n=4, cliques=5)
    labels = np.zeros(4, dtype=np.int32)
    free = np.array([True, False, True, False])
    move, rng = Subgraph(p, free, 16.0), np.random.default_rng(0)
    rest = p.given(labels, ~free)
    temperature = 2.0
    expected = TRUTH.marginals(rest.like(rest.unary / temperature, rest.tables / temperature))
    counts = np.zeros(p.structure.label_counts[0])
    for _ in range(4000):
        move.draw(labels, temperature, rng)
        counts[labels[0]] += 1
    assert_allclose(counts / 4000, expected.parts.unary[: len(counts)], atol=0.04)


@pytest.mark.parametrize("seed", range(8))
def test_a_mixture_is_the_best_of_all_by_pieces(seed):
    p = random_model(seed, n=12, cliques=8, forbidden=0.2)
    rng = np.random.default_rng(seed)
    a, b = rng.integers(p.structure.label_counts, size=(2, 12)).astype(np.int32)
    p = softened(p)
    mixed = crossed(p, a, b)
    assert ((mixed == a) | (mixed == b)).all()
    assert p.score(mixed) >= max(p.score(a)[0], p.score(b)[0]) - 1e-9
    # No piece, a set of differing variables that nothing joins to others, would be better turned.
    for v in np.flatnonzero(a != b):
        piece = {v}
        while True:
            more = {
                int(u)
                for c in range(p.structure.n_cliques)
                if piece & set(p.structure.scope(c).tolist())
                for u in p.structure.scope(c)
                if a[u] != b[u]
            }
            if more <= piece:
                break
            piece |= more
        turned = mixed.copy()
        places = list(piece)
        turned[places] = np.where(mixed[places] == a[places], b[places], a[places])
        assert p.score(turned) <= p.score(mixed) + 1e-9


def test_a_subgraph_has_small_tables_and_leaves_little_out():
    grid = Grid([(30, 30)], 2)
    p = Potentials(grid, np.zeros(1800), np.zeros(4))
    left_out = []
    for limit in (3.0, 6.0, 10.0):
        free = _kernels.bounded_subgraph(grid.topology, price=np.ones(900), limit=limit, seed=1)
        free = free.astype(bool)
        move = Subgraph(p, free, limit)
        assert move.works
        left_out.append(int((~free).sum()))
    assert left_out == sorted(left_out, reverse=True)
    assert left_out[0] < 400
    tree = Grid([(1, 50)], 3)
    price = np.ones(50)
    assert _kernels.bounded_subgraph(tree.topology, price=price, limit=4.0, seed=1).all()
    assert not _kernels.bounded_subgraph(tree.topology, price=price, limit=1.0, seed=1).any()


def test_the_same_seed_gives_the_same_search():
    p = frustrated(15, 2)
    start = np.zeros(225, dtype=np.int32)
    found = []
    for seed in (0, 0, 1):
        search = SubgraphSearch(p, start, np.random.default_rng(seed))
        search.descend()
        moves = [search._pool[0].free.tolist()]
        search.round()
        found.append((search.labels.tolist(), moves))
    assert found[0] == found[1]
    assert found[0][1] != found[2][1]
    first, second = (PortfolioInference(time_limit=None).map(frustrated(8, 0)) for _ in range(2))
    assert_array_equal(first.labels, second.labels)
    assert first.found_by == second.found_by


def test_the_search_finds_what_is_best():
    for seed in range(3):
        p = frustrated(12, seed)
        search = SubgraphSearch(p, np.zeros(144, dtype=np.int32), np.random.default_rng(0))
        search.descend()
        for _ in range(30):
            search.round()
        assert_allclose(p.score(search.labels), JunctionTreeInference().map(p).score)


def test_models_that_are_too_large_to_be_split_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr("chordal.inference._reduction.MAX_CELLS", 10)
    p = random_model(0, n=7, cliques=9, examples=2, forbidden=0.3)
    assert reduced(p).potentials is p
    assert_allclose(PortfolioInference().map(p).score, TRUTH.map(p).score)


@pytest.mark.parametrize("seed", range(5))
def test_annealing_at_several_temperatures_finds_the_best(seed):
    """A complete graph of strong and weak scores, from the worst start."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(7) for b in range(a)]
    tables = rng.normal(size=(len(pairs), 16)) * rng.choice([0.1, 10.0], size=(len(pairs), 1))
    p = Potentials(Graph([7], [pairs], n_labels=4), rng.normal(size=28), tables.ravel())
    best = TRUTH.map(p)
    worst = TRUTH.map(p.like(-p.unary, -p.tables))
    start = Decoded(worst.labels, p.score(worst.labels), p.bound())
    case = Case(p, start, "none", seed)
    asked = [case.annealing() for _ in HEATS]
    for step in asked:
        step.run()
    assert {step.name for step in asked} == {"annealing"}
    assert_allclose(case.score, best.score[0])
    assert_allclose(p.score(case.labels)[0], case.score)


def test_many_triples_begin_with_messages(monkeypatch):
    """The better labels and the lower bound of both methods are kept."""
    monkeypatch.setattr("chordal.inference.portfolio.MANY_CELLS", 0)
    seen = []
    for seed in range(5):
        p = random_model(seed, n=8, cliques=14)
        method = PortfolioInference()
        method.watch = lambda progress: seen.append(progress.member)
        found = method.map(p)
        assert_allclose(found.score, TRUTH.map(p).score)
        assert (found.bound >= found.score).all()
    assert seen.index("loopy_bp") < seen.index("ad3")
