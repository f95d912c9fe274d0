"""Limits of time and memory on every method, by the registry."""

import threading

import numpy as np
import pytest

from chordal import _memory
from chordal._errors import UnsupportedError
from chordal._limits import StopFlag, check_time, in_worker, no_time_limit, seconds_left
from chordal._memory import available_memory, parse_size
from chordal._status import Status
from chordal.execution import execution_for
from chordal.inference import INFERENCE, Convergence, TimeLimitError, choose, time_limit
from chordal.potentials import Potentials, matching_potentials
from chordal.structures import Chain, Graph, Grid
from chordal.testing import MODELS

#: Seconds that are over when the first loop looks at the clock.
NONE = 1e-6


def random(structure, scale=1.0):
    rng, n = np.random.default_rng(0), structure.label_counts[0]
    table = scale * rng.normal(size=(n, n))
    return Potentials(structure, rng.normal(size=structure.n_states), table)


def alike(structure):
    rng, n = np.random.default_rng(0), structure.label_counts[0]
    return Potentials(structure, rng.normal(size=structure.n_states), 0.5 * np.eye(n))


def matching():
    rng = np.random.default_rng(0)
    return matching_potentials([rng.normal(size=(20, 20))] * 5, [np.zeros(20)] * 5)


#: Too much work for no time; where it is not this grid.
LARGE = {
    "chain": lambda: random(Chain([30_000], 20)),
    "tree": lambda: random(Graph([30_000], [[(k // 2, k) for k in range(1, 30_000)]], 20)),
    "junction_tree": lambda: random(Grid([(9, 60)], 3)),
    "elimination": lambda: random(Grid([(9, 60)], 3)),
    "max_flow": lambda: alike(Grid([(300, 300)], 2)),
    "qpbo": lambda: random(Grid([(300, 300)], 2)),
    "matching": matching,
    "exhaustive": lambda: random(Graph([14], [[(k, k + 1) for k in range(13)]], 2)),
    "milp": lambda: random(Grid([(8, 8)], 4)),
    "linear_program": lambda: random(Grid([(8, 8)], 4)),
}


def large(name):
    return LARGE.get(name, lambda: random(Grid([(90, 90)], 12)))()


def ask(method, question, p):
    rest = {
        "k_best": (3,),
        "sample": (3, np.random.default_rng(0)),
        "map_by_cost": ((np.arange(p.structure.n_states) < 6).astype(np.int64),),
        "marginals_derivative": (p.like(np.ones_like(p.unary), np.ones_like(p.tables)),),
    }
    return getattr(method, question)(p, *rest.get(question, ()))


def questions(names):
    """All but those of spans, which need more than a model."""
    return [
        (name, question)
        for name in names
        for question in sorted(INFERENCE.get(name).answers - {"span_log_probability"})
    ]


@pytest.mark.parametrize(("name", "question"), questions(INFERENCE))
def test_no_time(name, question):
    method, p = INFERENCE.resolve(name, time_limit=NONE), large(name)
    assert p.structure.incidence is not None  # what structures keep is made once
    has_an_answer = {"map", "marginals", "log_partition", "relaxed_map"}
    if name == "linear_program":
        has_an_answer = {"map"}
    if not method.anytime or question not in has_an_answer:
        with pytest.raises(TimeLimitError) as error:
            ask(method, question, p)
        wanted = f"inference '{name}' did not answer '{question}' within time_limit=1e-06 seconds"
        assert str(error.value).startswith(wanted + "; raise it, or use ")
        assert isinstance(error.value, TimeoutError)
        return
    found = ask(method, question, p)
    if question == "log_partition":
        assert np.isfinite(found).all()
        return
    assert found.convergence.status is Status.MAX_TIME
    if question == "map":
        assert np.array_equal(found.score, p.score(found.labels))
        assert np.isfinite(found.score).all()
        assert (found.bound >= found.score).all()
        assert (found.bound <= p.bound() + 1e-9).all()
    else:
        s = p.structure
        assert np.isfinite(found.parts.unary).all()
        sums = np.add.reduceat(found.parts.unary, s.state_offsets[:-1])
        np.testing.assert_allclose(sums, 1.0, atol=1e-6)


@pytest.mark.parametrize(("name", "question"), questions(INFERENCE))
def test_enough_of_both_changes_nothing(name, question):
    rng, met = np.random.default_rng(0), 0
    free = INFERENCE.resolve(name)
    bound = INFERENCE.resolve(name, time_limit=1e6, memory_limit=1e9)
    for generator in MODELS.values():
        p = generator(rng)
        if not free.fits(question, p.structure) or free.refusal_of(p) is not None:
            continue
        met += 1
        for a, b in zip(flat(ask(free, question, p)), flat(ask(bound, question, p)), strict=True):
            np.testing.assert_array_equal(a, b)
        if met == 6:
            break
    assert met


def flat(answer):
    """All numbers of an answer."""
    if isinstance(answer, Potentials):
        return [answer.unary, answer.tables]
    if isinstance(answer, tuple) and not isinstance(answer, Convergence):
        return [number for part in answer for number in flat(part)]
    return [answer]


@pytest.mark.parametrize("name", [name for name in INFERENCE if name != "tree"])
def test_little_memory_is_refused(name):
    method, p = INFERENCE.resolve(name, memory_limit=1000.0), large(name)
    question = "map" if "map" in method.answers else "marginals"
    with pytest.raises(UnsupportedError, match=rf"'{name}' would need .*memory_limit is 1.0 kB"):
        ask(method, question, p)


@pytest.mark.parametrize("name", list(INFERENCE))
def test_limits_are_checked_shown_and_copied(name):
    for limit in ("time_limit", "memory_limit"):
        for bad in (0.0, -1, np.nan, "1"):
            with pytest.raises(ValueError, match=f"{limit} must be a number above 0, got "):
                INFERENCE.resolve(name, **{limit: bad})
    assert "limit" not in repr(INFERENCE.resolve(name))
    shown = repr(INFERENCE.resolve(name, time_limit=2.5, memory_limit=1e8))
    assert shown.endswith("time_limit=2.5, memory_limit=1e+08)")
    doc = INFERENCE.get(name).__doc__
    assert "time_limit : float, optional" in doc
    assert "memory_limit : float, optional" in doc


def test_the_nearest_deadline_counts():
    assert seconds_left() == np.inf
    with time_limit(50.0):
        with time_limit(1e3):
            assert 49.0 < seconds_left() <= 50.0
        with time_limit(1.0), time_limit(None):
            assert seconds_left() <= 1.0
            with no_time_limit() as over:
                assert seconds_left() == np.inf
                assert not over()
        assert 49.0 < seconds_left() <= 50.0
        with pytest.raises(ZeroDivisionError), time_limit(1.0):
            1 / 0  # noqa: B018
        assert seconds_left() > 49.0
    with time_limit(0.0):
        assert seconds_left() == 0.0
        with pytest.raises(TimeLimitError):
            check_time()
        with no_time_limit() as over:
            check_time()
            assert over()
    check_time()


def test_an_outer_limit_is_enough():
    p = large("chain")
    with time_limit(NONE), pytest.raises(TimeLimitError, match="within the time limit; raise it"):
        INFERENCE.resolve("chain").map(p)
    p = large("trw_s")
    with time_limit(NONE):
        assert INFERENCE.resolve("trw_s").map(p).convergence.status is Status.MAX_TIME


def test_threads_take_over_the_deadline():
    with execution_for(2) as threads:
        assert threads.map(lambda _: seconds_left(), range(3)) == [np.inf] * 3
        with time_limit(50.0):
            assert all(49.0 < left <= 50.0 for left in threads.map(lambda _: seconds_left(), "ab"))
        assert threads.map(lambda _: seconds_left(), range(3)) == [np.inf] * 3


def test_a_flag_ends_the_kernels_of_another_thread():
    p, stop, ended = random(Grid([(300, 300)], 8)), StopFlag(), []
    started = threading.Event()

    def work():
        started.set()
        try:
            INFERENCE.resolve("gibbs", burn_in=10**9).marginals(p)
        except KeyboardInterrupt:
            ended.append(True)

    thread = threading.Thread(target=in_worker(work, stop))
    thread.start()
    started.wait()
    stop.set()
    thread.join(60.0)
    assert ended == [True]


def test_a_program_at_its_limit_is_not_worse_than_its_start():
    p = random(Grid([(12, 12)], 4))
    tree = INFERENCE.resolve("icm", blocks="tree", max_iter=20).map(p)
    for name in ("milp", "linear_program"):
        found = INFERENCE.resolve(name, time_limit=NONE).map(p)
        assert found.score >= tree.score
        assert found.bound >= found.score


def test_sizes():
    assert [parse_size(text) for text in ("1", "2k", "1.5M", "2 GB", "1e3")] == [
        1.0,
        2e3,
        1.5e6,
        2e9,
        1e3,
    ]
    for text in ("", "G", "-1", "0", "1.2.3", "2X", "nan"):
        with pytest.raises(ValueError, match="a size must be a number above 0 such as 500M"):
            parse_size(text)


def test_memory_that_is_available(monkeypatch):
    meminfo = "MemTotal: 9000000 kB\nMemAvailable:    4000 kB\n"
    files = {"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/a\n"}
    monkeypatch.setattr(_memory, "_text", lambda path: files.get(str(path), ""))
    assert available_memory() == 4000 * 1024
    files["/sys/fs/cgroup/a/memory.max"] = "max\n"
    assert available_memory() == 4000 * 1024
    files["/sys/fs/cgroup/memory.max"] = "1000000\n"
    files["/sys/fs/cgroup/memory.current"] = "900000\n"
    files["/sys/fs/cgroup/memory.stat"] = "anon 5\ninactive_file 300000\n"
    assert available_memory() == 400_000
    files["/proc/self/cgroup"] = "4:memory,cpu:/b\n"
    files["/sys/fs/cgroup/memory/b/memory.limit_in_bytes"] = "70000"
    files["/sys/fs/cgroup/memory/b/memory.usage_in_bytes"] = "60000"
    assert available_memory() == 10_000


def test_auto_is_the_same_on_every_machine_but_a_small_one(monkeypatch):
    square = Grid([(20, 20)], 2)  # 2.2 GB as a junction tree
    for size, exact in ((1e12, "junction_tree"), (3e9, "elimination"), (1e6, "loopy_bp")):
        monkeypatch.setattr(_memory, "available_memory", lambda size=size: size)
        _memory.default_memory_limit.cache_clear()
        assert choose(square).name == "loopy_bp"
        assert choose(square, patient=True).name == exact
        assert choose(square, patient=True, memory_limit=1e9).name == "elimination"
    assert choose(Grid([(9, 60)], 3)).name == "loopy_bp"  # with 0.5 MB
    _memory.default_memory_limit.cache_clear()
    monkeypatch.undo()
    assert choose(Grid([(9, 60)], 3)).name == "junction_tree"
    _memory.default_memory_limit.cache_clear()
