"""Chain inference beyond what brute force can list, and the details of each answer."""

import itertools
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference import Spans, most_probable_labels
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials
from chordal.structures import Chain
from chordal.testing import MODELS

DOMAINS = pytest.mark.parametrize("domain", ["auto", "log"])
NO = -np.inf


def random_chain(length, n_labels, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    unary = scale * rng.normal(size=(length, n_labels))
    return Potentials(Chain([length], n_labels), unary, rng.normal(size=(n_labels, n_labels)))


def log_partition_by_numpy(potentials):
    """The forward recursion in log space, in the widest floating-point type there is."""
    n = potentials.structure.label_counts[0]
    unary = potentials.unary.astype(np.longdouble).reshape(-1, n)
    table = potentials.tables.astype(np.longdouble).reshape(n, n)
    alpha, total = unary[0], np.longdouble(0.0)
    for row in unary[1:]:
        alpha = np.logaddexp.reduce(alpha[:, None] + table, axis=0) + row
        total, alpha = total + alpha.max(), alpha - alpha.max()
    return float(total + np.logaddexp.reduce(alpha))


@DOMAINS
def test_one_variable(domain):
    potentials = Potentials(Chain([1], 3), np.log([1.0, 2.0, 5.0]), [])
    chain = ChainInference(domain)
    log_partition, parts, _ = chain.marginals(potentials)
    assert_allclose(log_partition, [np.log(8.0)], rtol=1e-14)
    assert_allclose(parts.unary, [1 / 8, 2 / 8, 5 / 8], rtol=1e-14)
    assert len(parts.tables) == 0
    assert chain.map(potentials).labels == [2]
    assert_array_equal(chain.k_best(potentials, 5).labels[:3, 0], [2, 1, 0])
    assert chain.sample(potentials, 10, np.random.default_rng(0)).shape == (10, 1)


@DOMAINS
def test_no_variable_at_all(domain):
    for lengths in ([], [0], [0, 0]):
        empty, chain = Potentials(Chain(lengths, 3), [], []), ChainInference(domain)
        zeros = np.zeros(len(lengths))
        assert_array_equal(chain.log_partition(empty), zeros)
        assert_array_equal(chain.map(empty).score, zeros)
        assert_array_equal(chain.entropy(empty), zeros)
        assert chain.k_best(empty, 2).labels.shape == (2, 0)
        assert chain.sample(empty, 4, np.random.default_rng(0)).shape == (4, 0)


@DOMAINS
@pytest.mark.parametrize(("length", "n_labels"), [(3000, 3), (1500, 20)])
def test_log_partition_of_long_chains(domain, length, n_labels):
    potentials = random_chain(length, n_labels)
    expected = log_partition_by_numpy(potentials)
    assert_allclose(ChainInference(domain).log_partition(potentials), expected, rtol=1e-12)


@DOMAINS
def test_a_million_variables(domain):
    # The same 1,000 rows a thousand times over: log Z is known from a power of their matrix.
    rng, length, n_labels = np.random.default_rng(0), 1_000_000, 3
    block, table = rng.normal(size=(1000, n_labels)), rng.normal(size=(n_labels, n_labels))
    unary = np.tile(block, (length // 1000, 1))
    unary[0] = 0.0
    potentials = Potentials(Chain([length], n_labels), unary, table)
    chain, started = ChainInference(domain), time.perf_counter()
    log_partition, parts, _ = chain.marginals(potentials)
    decoded = chain.map(potentials)
    assert time.perf_counter() - started < 10.0

    assert_allclose(log_partition, log_partition_by_powers(block, table, 1000), rtol=1e-10)
    rows = parts.unary.reshape(-1, n_labels)
    assert np.isfinite(rows).all()
    assert rows.min() >= 0.0
    assert_allclose(rows.sum(axis=1), 1.0, rtol=0.0, atol=1e-9)
    assert_allclose(parts.tables.sum(), length - 1, rtol=1e-9)
    assert_allclose(decoded.score, potentials.score(decoded.labels), rtol=1e-10)
    # In the middle nothing is seen of the ends: each block is like the next.
    assert_allclose(rows[500_000:501_000], rows[501_000:502_000], rtol=0.0, atol=1e-12)


def log_partition_by_powers(block, table, n_blocks):
    """log 1ᵀ D (M₁ … M_T)ⁿ 1 by repeated multiplication, with the scale kept apart."""

    def times(a, b):
        product, top = a[0] @ b[0], (a[0] @ b[0]).max()
        return product / top, a[1] + b[1] + np.log(top)

    steps = np.exp(table.astype(np.longdouble))[None] * np.exp(block.astype(np.longdouble))[:, None]
    one = np.eye(block.shape[1], dtype=np.longdouble)
    whole = tail = (one, np.longdouble(0.0))
    for t, step in enumerate(steps):
        whole = times(whole, (step, np.longdouble(0.0)))
        if t > 0:  # the first block begins with a row of its own: no scores and no transition
            tail = times(tail, (step, np.longdouble(0.0)))
    for _ in range(n_blocks - 1):
        tail = times(tail, whole)
    return float(np.log(tail[0].sum()) + tail[1])


@DOMAINS
def test_extreme_scores_on_a_long_chain(domain):
    rng, length = np.random.default_rng(0), 2000
    unary = rng.choice([-1e4, 0.0, 1e4], size=(length, 4)) + rng.normal(size=(length, 4))
    table = rng.choice([-1e4, 0.0, 1e4], size=(4, 4))
    potentials, chain = Potentials(Chain([length], 4), unary, table), ChainInference(domain)
    log_partition, parts, _ = chain.marginals(potentials)
    assert_allclose(log_partition, log_partition_by_numpy(potentials), rtol=1e-12)
    rows = parts.unary.reshape(-1, 4)
    assert_allclose(rows.sum(axis=1), 1.0, rtol=0.0, atol=1e-6)
    assert_allclose(parts.tables.sum(), length - 1, rtol=1e-7)
    assert log_partition >= chain.map(potentials).score
    assert np.isfinite(chain.entropy(potentials)).all()


@DOMAINS
@pytest.mark.parametrize("size", [1e299, 1e303])
def test_scores_near_the_largest_numbers_are_no_prohibitions(domain, size):
    rng, length = np.random.default_rng(0), 6
    unary, table = rng.normal(size=(100, length, 2)), np.array([[-0.3, 0.2], [0.1, 0.0]])
    structure, chain = Chain([length] * 100, 2), ChainInference(domain)
    best = chain.map(Potentials(structure, unary, table)).score
    found = chain.log_partition(Potentials(structure, size * unary, size * table))
    assert_allclose(found, size * best, rtol=1e-12)


@DOMAINS
def test_forbidden_everywhere_gives_no_nan(domain):
    rng, length = np.random.default_rng(0), 500
    unary = np.where(rng.random((length, 5)) < 0.6, NO, 3.0 * rng.normal(size=(length, 5)))
    unary[:, 0] = -20.0  # one label is left wherever the others are not
    table = np.where(rng.random((5, 5)) < 0.3, NO, rng.normal(size=(5, 5)))
    table[0], table[:, 0] = -1.0, -1.0
    potentials, chain = Potentials(Chain([length], 5), unary, table), ChainInference(domain)
    log_partition, parts, _ = chain.marginals(potentials)
    assert_allclose(log_partition, log_partition_by_numpy(potentials), rtol=1e-12)
    assert_allclose(parts.unary.reshape(-1, 5).sum(axis=1), 1.0, rtol=0.0, atol=1e-10)
    assert (parts.unary[potentials.unary == NO] == 0.0).all()
    assert (parts.tables[potentials.tables == NO] == 0.0).all()
    assert np.isfinite(chain.entropy(potentials)).all()
    for answer in (chain.map(potentials), chain.k_best(potentials, 3)):
        assert np.isfinite(answer.score).all()


@pytest.mark.parametrize("length", [20, 200, 2000])
def test_a_label_that_is_never_reached_leaves_no_nan(length):
    """Its backward message grows without limit; it must not spoil the labels that are."""
    unary = np.tile([-30.0, 0.0, -30.0], (length, 1))
    unary[0, 1] = NO
    table = [[0.0, NO, 0.5], [0.0, 0.0, 0.0], [0.2, NO, 0.0]]
    potentials = Potentials(Chain([length], 3), unary, table)
    auto, log = ChainInference(), ChainInference("log")
    a, b = auto.marginals(potentials), log.marginals(potentials)
    assert_allclose(a.log_partition, b.log_partition, rtol=1e-12, equal_nan=False)
    assert_allclose(a.parts.unary, b.parts.unary, rtol=0.0, atol=1e-9, equal_nan=False)
    assert_allclose(a.parts.tables, b.parts.tables, rtol=1e-9, atol=1e-9, equal_nan=False)
    assert_allclose(auto.entropy(potentials), log.entropy(potentials), rtol=1e-9)


@pytest.mark.parametrize("length", [5, 7, 101])
@pytest.mark.parametrize("worst", [-200.0, -350.0, -599.0])
def test_unavoidable_transitions_of_tiny_probability(length, worst):
    """Scores within the range that the scaled domain accepts, products that it cannot hold."""
    table = [[worst, worst], [0.0, worst]]
    potentials = Potentials(Chain([length], 2), np.zeros(2 * length), table)
    auto, log = ChainInference().marginals(potentials), ChainInference("log").marginals(potentials)
    assert_allclose(auto.log_partition, log.log_partition, rtol=1e-12)
    assert_allclose(auto.parts.unary, log.parts.unary, rtol=0.0, atol=1e-9, equal_nan=False)


def test_a_table_shared_between_shapes_is_exact_or_refused():
    """(2, 3) and (3, 2) have six cells each; the table must not be read in the wrong shape."""
    rng = np.random.default_rng(0)
    try:
        potentials = Potentials(Chain([3], [2, 3, 2]), rng.normal(size=7), rng.normal(size=6))
    except ValueError:
        return
    expected = ExhaustiveInference().marginals(potentials)
    for domain in ("auto", "log"):
        actual = ChainInference(domain).marginals(potentials)
        assert_allclose(actual.log_partition, expected.log_partition, rtol=1e-12)
        assert_allclose(actual.parts.unary, expected.parts.unary, rtol=1e-9)
        assert_allclose(actual.parts.tables, expected.parts.tables, rtol=1e-9)


def test_k_best_lists_every_labelling_and_no_more():
    potentials = random_chain(4, 3)
    ranked = ChainInference().k_best(potentials, 100)
    assert ranked.labels.shape == (100, 4)
    assert np.isfinite(ranked.score).sum() == 81
    assert (ranked.score[0, 81:] == NO).all()
    assert {tuple(y) for y in ranked.labels[:81]} == set(itertools.product(range(3), repeat=4))
    truth = ExhaustiveInference().k_best(potentials, 100)
    assert_allclose(ranked.score, truth.score, rtol=1e-12)
    assert_array_equal(ranked.labels[:81], truth.labels[:81])


def test_k_best_leaves_out_what_is_forbidden():
    table = [[0.0, NO], [0.0, 0.0]]
    ranked = ChainInference().k_best(Potentials(Chain([4, 1], 2), np.zeros(10), table), 10)
    assert_array_equal(np.isfinite(ranked.score).sum(axis=1), [5, 2])
    for labels in ranked.labels[:5, :4]:
        assert (0, 1) not in list(itertools.pairwise(labels))


@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_ties_go_to_the_smallest_label_at_the_last_difference(n_labels):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        unary, table = rng.integers(0, 2, 4 * n_labels), rng.integers(0, 2, n_labels**2)
        potentials = Potentials(Chain([4], n_labels), unary, table)
        best = ChainInference().map(potentials)
        every = np.array(list(itertools.product(range(n_labels), repeat=4)))
        scores = np.array([potentials.score(y)[0] for y in every])
        tied = every[scores == scores.max()]
        expected = min(tied.tolist(), key=lambda y: y[::-1])
        assert best.score == scores.max()
        assert_array_equal(best.labels, expected)


def test_equal_scores_give_the_same_answers_every_time():
    potentials = Potentials(Chain([6], 3), np.zeros(18), np.zeros(9))
    chain = ChainInference()
    assert_array_equal(chain.map(potentials).labels, np.zeros(6))
    first = chain.k_best(potentials, 50)
    for _ in range(3):
        assert_array_equal(chain.k_best(potentials, 50).labels, first.labels)
    assert len(np.unique(first.labels, axis=0)) == 50


@DOMAINS
def test_entropy_of_a_uniform_model(domain):
    lengths, n_labels = np.array([1, 7, 400]), 5
    chain = Chain(lengths, n_labels)
    potentials = Potentials(chain, np.full(chain.n_states, 3.0), np.full(25, -2.0))
    entropy = ChainInference(domain).entropy(potentials)
    assert_allclose(entropy, lengths * np.log(n_labels), rtol=1e-12)


@DOMAINS
def test_entropy_of_a_certain_model_is_zero(domain):
    unary = np.where(np.arange(30).reshape(10, 3) % 3 == 1, 0.0, NO)
    potentials = Potentials(Chain([10], 3), unary, np.zeros(9))
    assert_array_equal(ChainInference(domain).entropy(potentials), [0.0])


@DOMAINS
def test_most_probable_labels(domain):
    # Label 0 is the most probable at every position, yet never part of the best labelling.
    probability = {(0, 1): 0.3, (0, 2): 0.3, (1, 0): 0.4, (2, 0): 0.0}
    table = np.full((3, 3), NO)
    for (i, j), p in probability.items():
        table[i, j] = np.log(p) if p else NO
    potentials = Potentials(Chain([2], 3), np.zeros(6), table)
    chain = ChainInference(domain)
    parts = chain.marginals(potentials).parts
    assert_allclose(parts.unary, [0.6, 0.4, 0.0, 0.4, 0.3, 0.3], rtol=1e-12)
    assert_array_equal(most_probable_labels(parts), [0, 0])
    assert_array_equal(chain.map(potentials).labels, [1, 0])


def test_most_probable_labels_with_differing_counts_and_ties():
    chain = Chain([3, 0], [2, 1, 4])
    parts = Potentials(chain, [0.2, 0.8, 1.0, 0.3, 0.3, 0.2, 0.2], np.zeros(6))
    assert_array_equal(most_probable_labels(parts), [1, 0, 0])
    assert_array_equal(most_probable_labels(Potentials(Chain([0], 2), [], [])), [])


@DOMAINS
def test_spans(domain):
    potentials = random_chain(6, 3)
    chain = ChainInference(domain)
    only = np.eye(3, dtype=np.uint8)
    spans = Spans(
        example=np.zeros(4, dtype=np.int64),
        start=np.array([0, 2, 1, 5]),
        length=np.array([6, 1, 3, 1]),
        allowed=np.concatenate(
            [only[[0, 1, 2, 0, 1, 2]].ravel(), only[1], np.ones(9), np.zeros(3)]
        ).astype(np.uint8),
    )
    log_partition, parts, _ = chain.marginals(potentials)
    expected = [
        potentials.score([0, 1, 2, 0, 1, 2])[0] - log_partition[0],
        np.log(parts.unary[7]),
        0.0,
        NO,
    ]
    actual = chain.span_log_probability(potentials, spans)
    assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)
    assert_allclose(actual, ExhaustiveInference().span_log_probability(potentials, spans),
                    rtol=1e-12, atol=1e-14)  # fmt: skip


@DOMAINS
def test_spans_in_any_order_of_examples(domain):
    rng = np.random.default_rng(0)
    potentials = Potentials(Chain([3, 2, 3], 2), rng.normal(size=16), rng.normal(size=4))
    allowed = np.array([1, 0, 0, 1, 1, 0, 0, 1], dtype=np.uint8)
    spans = Spans(np.array([2, 0, 1, 0]), np.array([1, 0, 1, 2]), np.ones(4, np.int64), allowed)
    expected = ExhaustiveInference().span_log_probability(potentials, spans)
    actual = ChainInference(domain).span_log_probability(potentials, spans)
    assert_allclose(actual, expected, rtol=1e-12)


def test_spans_outside_the_model_are_refused():
    """Before the kernel sees them, for it reads where they point: hence a process of its own."""
    script = """
        import numpy as np
        from chordal.inference import Spans
        from chordal.inference.chain import ChainInference
        from chordal.potentials import Potentials
        from chordal.structures import Chain

        p = Potentials(Chain([3], 2), np.zeros(6), np.zeros(4))
        # example, first position, length, and how many flags are given
        for *at, flags in [(0, 2, 2, 4), (0, -1, 1, 2), (1, 0, 1, 2), (-1, 0, 1, 2), (0, 0, 2, 2)]:
            spans = Spans(*(np.array([k]) for k in at), np.ones(flags, np.uint8))
            try:
                print("answered", at, ChainInference().span_log_probability(p, spans))
            except (ValueError, IndexError):
                print("refused")
    """
    assert output_of(script).split("\n") == ["refused"] * 5


def output_of(script):
    """What a script prints, run in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, f"ended with {run.returncode}: {run.stdout}{run.stderr}"
    return run.stdout.strip()


@DOMAINS
def test_samples_respect_forbidden_transitions(domain):
    table = np.where(np.eye(4, k=1) + np.eye(4) > 0, 0.0, NO)  # stay, or go up by one
    table[3, 0] = -1.0
    potentials = Potentials(Chain([30, 5], 4), np.zeros(140), table)
    samples = ChainInference(domain).sample(potentials, 300, np.random.default_rng(0))
    for row in (samples[:, :30], samples[:, 30:]):
        assert np.isfinite(table[row[:, :-1], row[:, 1:]]).all()
    assert len(np.unique(samples, axis=0)) > 200


@DOMAINS
def test_the_seed_decides_the_samples(domain):
    potentials, chain = random_chain(50, 4), ChainInference(domain)
    first = chain.sample(potentials, 5, np.random.default_rng(3))
    assert_array_equal(chain.sample(potentials, 5, np.random.default_rng(3)), first)
    assert (chain.sample(potentials, 5, np.random.default_rng(4)) != first).any()


@DOMAINS
def test_pairs_in_samples_have_the_frequency_of_the_edge_marginals(domain):
    potentials, chain = random_chain(200, 3), ChainInference(domain)
    samples = chain.sample(potentials, 400, np.random.default_rng(0))
    counts = np.zeros((3, 3))
    np.add.at(counts, (samples[:, :-1].ravel(), samples[:, 1:].ravel()), 1.0)
    expected = chain.marginals(potentials).parts.tables.reshape(3, 3)
    assert_allclose(counts / 400, expected, rtol=0.05)


def test_infeasible_examples_are_named():
    potentials = Potentials(Chain([2, 2], 2), [0, 0, 0, 0, NO, NO, 0, 0], np.zeros(4))
    assert_array_equal(np.isfinite(ChainInference().log_partition(potentials)), [True, False])
    for question in ("map", "marginals", "entropy"):
        with pytest.raises(InfeasibleError, match="no labelling of example 1"):
            getattr(ChainInference(), question)(potentials)


def test_bad_arguments():
    with pytest.raises(ValueError, match="domain must be"):
        ChainInference("linear")
    triplets = MODELS["triplets"](np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match="'chain' does not support FactorGraph"):
        ChainInference().map(triplets)
    assert repr(ChainInference("log")) == "ChainInference(domain='log')"


@pytest.fixture(scope="module")
def seconds_to_stop():
    """How long each of three long calls goes on after Ctrl-C, in a process of their own."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("needs POSIX timers")
    script = """
        import signal, time
        import numpy as np
        from chordal.inference.chain import ChainInference
        from chordal.potentials import Potentials
        from chordal.structures import Chain

        rng, log, auto = np.random.default_rng(0), ChainInference("log"), ChainInference()

        def model(length, n=48):
            chain = Chain([length], n)
            return Potentials(chain, rng.normal(size=length * n), rng.normal(size=n * n))

        def lag(delay, call, *arguments):
            signal.setitimer(signal.ITIMER_REAL, delay)
            started = time.perf_counter()
            try:
                while True:
                    call(*arguments)
            except KeyboardInterrupt:
                print(time.perf_counter() - started - delay)

        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        short, long = model(10_000), model(120_000)
        started = time.perf_counter()
        log.log_partition(short)
        forward = 12 * (time.perf_counter() - started)
        lag(0.3 * forward, log.marginals, long)
        lag(1.5 * forward, log.marginals, long)
        lag(0.3, auto.sample, short, 10_000, rng)
    """
    return [float(line) for line in output_of(script).split("\n")]


@pytest.mark.parametrize(("place", "what"), list(enumerate(["forward", "backward", "samples"])))
def test_ctrl_c_stops_a_long_call(seconds_to_stop, place, what):
    assert seconds_to_stop[place] < 1.2, f"within the {what}"


def test_a_direction_of_another_shape_is_refused():
    p = MODELS["chain_tied"](np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"direction's unary must have shape \(24,\), got \(23,\)"):
        ChainInference().marginals_derivative(p, p.like(p.unary[1:], p.tables))
    with pytest.raises(ValueError, match=r"direction's tables must have shape"):
        ChainInference().marginals_derivative(p, p.like(p.unary, p.tables[1:]))


def test_the_derivative_of_a_long_chain_is_a_derivative():
    rng = np.random.default_rng(0)
    chain = Chain([3000], 5)
    p = Potentials(chain, rng.normal(size=chain.n_states), rng.normal(size=25))
    d = p.like(rng.normal(size=chain.n_states), rng.normal(size=25))
    parts = ChainInference().marginals_derivative(p, d)
    right, left = (
        ChainInference().marginals(p.like(p.unary + h * d.unary, p.tables + h * d.tables)).parts
        for h in (1e-5, -1e-5)
    )
    assert_allclose(parts.unary, (right.unary - left.unary) / 2e-5, rtol=0.0, atol=1e-7)
    assert_allclose(parts.tables, (right.tables - left.tables) / 2e-5, rtol=1e-7, atol=1e-4)
    rows = parts.unary.reshape(-1, 5)
    assert_allclose(rows.sum(axis=1), 0.0, atol=1e-14)  # marginals go on summing to one
