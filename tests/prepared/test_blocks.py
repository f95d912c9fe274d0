"""Online solvers take large data block after block; from disk, few blocks are in memory."""

from itertools import pairwise

import numpy as np
import pytest

from chordal import ChainCRF, Checkpoint, CliqueTemplate, GraphCRF, TemplateCRF
from chordal.estimators._training import preparing, stored
from chordal.features import Spilled, parts
from chordal.features.clique_template import itself
from chordal.oracle.chains import ChainExamples
from chordal.solvers._online import OnlineRun, OnlineSolver
from chordal.solvers.sgd import SGD
from chordal.testing.listed import Listed, ListedExamples

RNG = np.random.default_rng(3)
N = 50
LENGTHS = RNG.integers(1, 9, size=N)
SOLVERS = ("sgd", "averaged_perceptron", "passive_aggressive", "arow")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 7)
    monkeypatch.setattr(parts, "BLOCK", 100)
    monkeypatch.setattr(parts, "WINDOW", 60)


X = [[[f"t{RNG.integers(9)}", f"w{RNG.zipf(1.5)}"] for _ in range(n)] for n in LENGTHS]
Y = [[f"L{min(int(token[0][1:]), 4)}" for token in x] for x in X]
VALUES = [[{name: 0.5 + k for k, name in enumerate(token)} for token in x] for x in X]
DENSE = [RNG.normal(size=(n, 4)) for n in LENGTHS]
MARKED = [[{"w": token[1], "v": RNG.normal(size=2)} for token in x] for x in X]
LOOPS = [np.array([(i, (i + 1) % n) for i in range(n if n > 2 else n - 1)] or [(0, 0)][:0])
         for n in LENGTHS]  # fmt: skip
GRAPHS = [(x, edges.reshape(-1, 2)) for x, edges in zip(DENSE, LOOPS, strict=True)]
TWO = [[label in ("L1", "L3") for label in y] for y in Y]
RELATIVE = [
    CliqueTemplate("words", features=itself, tables="relative"),
    CliqueTemplate("steps", "steps"),
]


def edges_of(x):
    return [[f"{a[0]}+{b[0]}"] for a, b in pairwise(x)]


CASES = {
    **{solver: (ChainCRF, {"solver": solver}, X) for solver in SOLVERS},
    **{f"{solver}, numbers": (ChainCRF, {"solver": solver}, DENSE) for solver in SOLVERS},
    "averaged": (ChainCRF, {"solver": SGD(average_after=2, max_iter=4)}, X),
    "momentum": (ChainCRF, {"solver": SGD(learning_rate=0.01, momentum=0.5, max_iter=4)}, X),
    "in order": (ChainCRF, {"solver": SGD(shuffle=False, max_iter=4)}, X),
    "softmax margin": (ChainCRF, {"solver": "sgd", "objective": "softmax_margin"}, X),
    "pseudo-likelihood": (ChainCRF, {"solver": "sgd", "objective": "pseudo_likelihood"}, X),
    "values, ends": (ChainCRF, {"solver": "sgd", "ends": True, "fit_intercept": True}, VALUES),
    "arrays beside words": (ChainCRF, {"solver": "arow"}, MARKED),
    "pairs of words": (ChainCRF, {"solver": "arow", "transition_features": edges_of}, X),
    "graphs": (GraphCRF, {"solver": "sgd"}, GRAPHS),
    "graphs by mistakes": (GraphCRF, {"solver": "averaged_perceptron"}, GRAPHS),
    "one weight for two labels": (
        TemplateCRF, {"templates": RELATIVE, "solver": "averaged_perceptron"}, X
    ),
}  # fmt: skip


def made(case):
    kind, parameters, examples = CASES[case]
    labels = TWO if kind is TemplateCRF else Y
    return kind(**{"random_state": 0, "max_iter": 4, **parameters}), examples, labels


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_blocks_on_disk_give_the_weights_of_blocks_in_memory(case, tmp_path):
    model, examples, labels = made(case)
    weight = RNG.random(N)
    data = model.prepare(tmp_path / "data", examples, labels, sample_weight=weight)
    expected = model.fit(examples, labels, sample_weight=weight).weights_.copy()
    assert np.abs(expected).max() > 0.0
    np.testing.assert_array_equal(model.fit(data).weights_, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_blocks_change_the_order_alone(case, monkeypatch):
    model, examples, labels = made(case)
    monkeypatch.setattr(OnlineSolver, "mixes", False)
    monkeypatch.setattr(SGD, "mixes", False)
    monkeypatch.setattr(OnlineRun, "order", lambda self: np.arange(self.oracle.n_examples))
    found = model.fit(examples, labels).weights_.copy()
    monkeypatch.setattr(parts, "BLOCK", 10**9)
    np.testing.assert_allclose(model.fit(examples, labels).weights_, found, rtol=1e-9, atol=1e-12)


def test_blocks_lie_in_a_file_and_are_released(tmp_path, monkeypatch):
    seen, released = [], []
    take, release = ChainExamples._take, Spilled.release

    def watched(self, *given):
        take(self, *given)
        seen.append(self.chains.blocks)

    monkeypatch.setattr(ChainExamples, "_take", watched)
    monkeypatch.setattr(Spilled, "release", lambda own: (released.append(own), release(own))[1])
    model, _, _ = made("sgd")
    model.fit(model.prepare(tmp_path / "data", X, Y))
    (blocks,) = seen
    assert isinstance(blocks, Spilled)
    assert len(blocks) > 3
    for own in blocks:
        assert not own.node.wide_codes.flags.owndata
        assert not own.node.wide_codes.flags.writeable
    assert sum(len(own) == 1 and own[0] is blocks[0] for own in released) > 2
    model.fit(X, Y)
    assert isinstance(seen[1], list)


def test_a_pass_takes_every_example_once_and_one_block_after_another():
    one = Listed(np.zeros((2, 1)), 0, np.zeros(2), 1, 1.0)
    examples = ListedExamples([one] * 12)
    examples.limits = np.array([0, 5, 6, 12])
    run = OnlineRun(examples, np.zeros(examples.n_weights), None, SGD(random_state=0))
    block = np.repeat([0, 1, 2], [5, 1, 6])
    firsts = set()
    for _ in range(30):
        order = run.order()
        assert sorted(order) == list(range(12))
        assert (np.diff(block[order]) != 0).sum() == 2
        firsts.add(int(order[0]))
    assert len(firsts) > 6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_checkpoint_in_the_middle_is_gone_on_from(solver, tmp_path):
    class Killed(Exception):
        pass

    def killed(state):
        if state.iteration == 3:
            raise Killed

    def model():
        return ChainCRF(solver=solver, max_iter=5, tol=0.0)

    noisy = [RNG.permutation(y).tolist() for y in Y]  # not learned in a few passes
    data = model().prepare(tmp_path / "data", X, noisy)
    kept = Checkpoint(tmp_path / "c", interval=1)
    with pytest.raises(Killed):
        model().fit(data, checkpoint=kept, callback=killed)  # the seed is in the file
    found = model().fit(data, checkpoint=kept)
    again = model().fit(data, checkpoint=kept)
    np.testing.assert_array_equal(found.weights_, again.weights_)
    whole = model().set_params(random_state=7).fit(data)
    kept = Checkpoint(tmp_path / "d", interval=1)
    with pytest.raises(Killed):
        model().set_params(random_state=7).fit(data, checkpoint=kept, callback=killed)
    found = model().set_params(random_state=7).fit(data, checkpoint=kept)
    np.testing.assert_array_equal(found.weights_, whole.weights_)


def test_a_data_set_alone_shares_its_vocabulary_with_the_model(tmp_path, monkeypatch):
    """A copy of a large vocabulary would be the largest thing in memory."""
    seen = []
    made = stored.merged_readers
    monkeypatch.setattr(
        stored, "merged_readers", lambda readers: (seen.append(readers), made(readers))[1]
    )
    model = ChainCRF(max_iter=2)
    model.fit(model.prepare(tmp_path / "data", X, Y))
    assert model.reader_.inputs[0] is seen[0][0].inputs[0]
    model.set_params(warm_start=True).fit(tmp_path / "data")
    assert model.reader_.inputs[0] is not seen[1][0].inputs[0]
