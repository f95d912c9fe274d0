"""Coursera's Probabilistic Graphical Models, assignment 7: all 2,366 shared weights of a chain CRF.

θ is W[label, pixel, value], b[label], T[label, next label]; pixels have the values 1 and 2.
"""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from scipy.ndimage import affine_transform, gaussian_filter, shift

from chordal import ChainCRF
from chordal.datasets import load_pa7
from chordal.estimators import chain_batch, chain_layout
from chordal.execution.serial import Serial
from chordal.features import input_for
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives.likelihood import Likelihood
from chordal.oracle import SummedOracle
from chordal.potentials import Potentials
from chordal.solvers.sgd import SGD
from chordal.structures import Chain

pytestmark = pytest.mark.data

N_LABELS, N_PIXELS = 26, 32
N_WEIGHTS = N_LABELS * N_PIXELS * 2 + N_LABELS + N_LABELS**2


@pytest.fixture(scope="module")
def pa7(require):
    with np.load(require("pa7/coursera_pgm_pa7.npz"), allow_pickle=False) as arrays:
        return dict(arrays)


def one_hot(images):
    """A column for each pixel and value."""
    return np.eye(2)[images.astype(int) - 1].reshape(len(images), -1)


def names(images):
    return [[f"p{i}={v}" for i, v in enumerate(row)] for row in images]


KINDS = {
    "dense": one_hot,
    "sparse": lambda images: sp.csr_array(one_hot(images)),
    "attributes": names,
}


class Model:
    """The assignment's model of one instance, made of chordal's features."""

    def __init__(self, kind, images, labels, theta, l2=0.0):
        """Both values of every pixel are shown first, so that every θ has its weight."""
        every = np.array([[1] * N_PIXELS, [2] * N_PIXELS])
        x, seen = KINDS[kind](images), KINDS[kind](every)
        self._input = input_for(x)
        rows = self._input.read([seen], True)
        node = self._input.features(rows, np.zeros(2, dtype=np.int32), N_LABELS, "all")
        kept = {"transitions": np.arange(N_LABELS**2), "intercept": np.arange(N_LABELS)}
        self.features = chain_layout(N_LABELS, {"node": node}, kept)
        gold = (labels.astype(int) - 1).astype(np.int32)
        self.shard = self.features.compile(chain_batch(self._input.read([x], False)), 0, 1, gold)
        self.theta, self.gold = theta, gold
        self.place = self._places()  # of each of our weights in θ
        self.weights = theta[self.place]
        self.potentials = self.features.potentials(self.shard, self.features.expand(self.weights))
        self.oracle = SummedOracle(
            self.features, [self.shard], Likelihood(), ChainInference(), Serial(), l2
        )

    def _places(self):
        layout = np.arange(N_WEIGHTS)
        W = layout[: -N_LABELS - N_LABELS**2].reshape(N_LABELS, N_PIXELS * 2)
        b, T = layout[W.size : W.size + N_LABELS], layout[W.size + N_LABELS :]
        keys = self.features["node"].rows.keys()
        columns = np.array([self._column(int(k)) for k in keys.column])
        place = np.empty(self.features.n_weights, dtype=int)
        place[self.features.slices["node"]] = W[keys.output, columns]
        place[self.features.slices["transitions"]] = T
        place[self.features.slices["intercept"]] = b
        return place

    def _column(self, column):
        name = self._input.name(column)
        if name.startswith("x"):
            return int(name[1:])
        pixel, value = name[1:].split("=")
        return 2 * int(pixel) + int(value) - 1

    def counts(self, parts):
        """What the adjoint makes of parts, in the order of θ."""
        sums = self.features.zeros()
        for block in range(self.features.n_blocks(1)):
            self.features.adjoint(self.shard, parts, sums, block, 1)
        return self.in_order(self.features.collect(sums))

    def in_order(self, values):
        out = np.empty(N_WEIGHTS)
        out[self.place] = values
        return out


@pytest.fixture(params=KINDS)
def sample(request, pa7):
    return Model(
        request.param,
        pa7["sampleX"],
        pa7["sampleY"],
        pa7["sampleTheta"],
        float(pa7["sampleLambda"]),
    )


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_npz_is_the_assignments_own_file(pa7, require):
    mat = scipy.io.loadmat(require("pa7/mat/Part2Sample.mat"))
    names = [name for name in pa7 if name.startswith("sample") and name in mat]
    assert len(names) == 11
    for name in names:
        assert (np.squeeze(mat[name]) == pa7[name]).all()


def test_there_is_a_weight_for_every_theta(sample):
    assert sample.features.n_weights == N_WEIGHTS == 2366
    assert sorted(sample.place) == list(range(N_WEIGHTS))


def test_log_partition(sample, pa7):
    close(ChainInference().log_partition(sample.potentials), pa7["sampleLogZ"])
    close(ChainInference(domain="log").log_partition(sample.potentials), pa7["sampleLogZ"])
    close(ExhaustiveInference().log_partition(sample.potentials), pa7["sampleLogZ"])


def test_feature_counts(sample, pa7):
    indicators = sample.potentials.zeros()
    indicators.add_indicators(sample.gold)
    counts = sample.counts(indicators)
    assert (counts == pa7["sampleFeatureCounts"]).all()
    weighted = counts * sample.theta
    close(weighted, pa7["sampleWeightedFeatureCounts"])
    close(sample.potentials.score(sample.gold), pa7["sampleWeightedFeatureCounts"].sum())


def test_model_expected_feature_counts(sample, pa7):
    for inference in (ChainInference(), ChainInference(domain="log"), ExhaustiveInference()):
        parts = inference.marginals(sample.potentials).parts
        close(sample.counts(parts), pa7["sampleModelFeatureCounts"])


def test_negative_log_likelihood_and_gradient(sample, pa7):
    value, gradient = sample.oracle.value_grad(sample.weights)
    close(value, pa7["sampleNLL"])
    close(sample.in_order(gradient), pa7["sampleGrad"])


def test_regularisation(sample, pa7):
    """What l2 adds to value and gradient."""
    plain = SummedOracle(
        sample.features, [sample.shard], Likelihood(), ChainInference(), Serial(), 0.0
    )
    value, gradient = sample.oracle.value_grad(sample.weights)
    bare_value, bare_gradient = plain.value_grad(sample.weights)
    np.testing.assert_allclose(
        value - bare_value, pa7["sampleRegularizationCost"], rtol=1e-9, atol=1e-13
    )
    np.testing.assert_allclose(
        sample.in_order(gradient - bare_gradient),
        pa7["sampleRegularizationGradient"],
        rtol=1e-9,
        atol=1e-15,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_test_instance(pa7, kind):
    """Values of the manifest, recomputed there by brute force over 26³ labellings."""
    model = Model(kind, pa7["testX"], pa7["testY"], pa7["testTheta"], float(pa7["testLambda"]))
    close(ChainInference().log_partition(model.potentials), 25.881999735417477)
    value, gradient = model.oracle.value_grad(model.weights)
    close(value, 20.431214296044633)
    close(model.in_order(gradient), pa7["testGrad_computed"])


def factors(pa7, name):
    """Potentials of the chain (1, 2, 3) whose cliques carry the tables of a clique tree."""
    tables = [np.log(pa7[f"{name}_clique{k}_table"]) for k in (0, 1)]
    return Potentials(Chain([3], N_LABELS), np.zeros(3 * N_LABELS), np.concatenate(tables))


def test_clique_trees(pa7):
    close(ChainInference().log_partition(factors(pa7, "sampleUncalibratedTree")), pa7["sampleLogZ"])
    close(
        ChainInference().log_partition(factors(pa7, "logZTestCliqueTree")),
        pa7["logZTest_logZ_computed"],
    )


def test_calibrated_beliefs_are_the_marginals(pa7):
    parts = ChainInference().marginals(factors(pa7, "sampleUncalibratedTree")).parts
    for k in (0, 1):
        belief = pa7[f"sampleCalibratedTree_clique{k}_table"]
        close(parts.table(k), belief / belief.sum())


def test_training_reads_the_assignments_letters(pa7):
    """The estimator on the assignment's own train and test words."""
    X = [one_hot(x) for x in pa7["full_trainData_X"]]
    y = [labels.tolist() for labels in pa7["full_trainData_y"]]
    test_X = [one_hot(x) for x in pa7["full_testData_X"]]
    test_y = [labels.tolist() for labels in pa7["full_testData_y"]]
    chain = ChainCRF(l2=1.0, transitions="all", fit_intercept=True).fit(X, y)
    single = ChainCRF(l2=1.0, transitions="none", fit_intercept=True).fit(X, y)
    assert chain.fit_report_.n_weights == N_WEIGHTS
    assert single.score(test_X, test_y) < chain.score(test_X, test_y)


# ------------------------------------------------------------------------ part 2, the full model


def test_the_assignments_training(require):
    """Five passes, steps 1 / (1 + 0.05 k), λ = 0.003: at least 73% and 62% of letters."""
    pa7 = load_pa7(require("pa7"))
    X, test_X = (
        [np.eye(2)[images.reshape(3, -1)].reshape(3, -1) for images in words]
        for words in (pa7.images_train, pa7.images_test)
    )
    solver = SGD(max_iter=5, tol=0.0, schedule="inverse", shuffle=False, keep_best=False)
    crf = ChainCRF(solver=solver, l2=0.003 * len(X), transitions="all", fit_intercept=True)
    crf.fit(X, pa7.y_train)
    assert crf.fit_report_.n_weights == N_WEIGHTS
    assert crf.score(X, pa7.y_train) >= 0.82  # the assignment: 0.73
    assert crf.score(test_X, pa7.y_test) >= 0.65  # 0.62


def views(images):
    """Pixels, pairs of neighbours, 2 × 2 blocks, and the image blurred [length, n_features]."""
    p, n = images.astype(int), len(images)
    pairs = [
        2 * p[:, :, :-1] + p[:, :, 1:],
        2 * p[:, :-1] + p[:, 1:],
        2 * p[:, :-1, :-1] + p[:, 1:, 1:],
        2 * p[:, :-1, 1:] + p[:, 1:, :-1],
    ]
    blocks = 4 * pairs[0][:, :-1] + pairs[0][:, 1:]
    coded = [(p, 2), *((pair, 4) for pair in pairs), (blocks, 16)]
    blurred = 2.0 * gaussian_filter(images.astype(float), (0.0, 0.7, 0.7))
    hot = [np.eye(k)[codes.reshape(n, -1)].reshape(n, -1) for codes, k in coded]
    return np.concatenate([*hot, blurred.reshape(n, -1)], axis=1)


def distorted(images, rng, n_random=8):
    """Shifted by a pixel each way, and turned, stretched and moved at random."""
    for step in ((0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0)):
        yield shift(images, step, order=0)
    for _ in range(n_random):
        angle, (wide, high) = np.deg2rad(rng.uniform(-12, 12)), rng.uniform(0.85, 1.15, size=2)
        turn = np.array(
            [[np.cos(angle) * high, -np.sin(angle)], [np.sin(angle), np.cos(angle) * wide]]
        )
        middle, moved = np.array([3.5, 1.5]), rng.uniform(-1.0, 1.0, size=2) * (1.0, 0.6)
        offset = middle - turn @ middle - moved
        yield np.array(
            [affine_transform(i.astype(float), turn, offset, order=1) > 0.5 for i in images]
        )


@pytest.mark.slow
def test_our_own_means(require):
    """Likelihood by L-BFGS, neighbouring pixels, distorted copies; all chosen by cross-validation
    over groups of training words that share no image: 73.8% of letters there, against 57.7% for
    the assignment's training, 63.5% for L-BFGS, 69.1% with pairs, 72.9% with shifted copies."""
    pa7, rng = load_pa7(require("pa7")), np.random.default_rng(0)
    X, y = [views(images) for images in pa7.images_train], list(pa7.y_train)
    weight = [1.0] * len(X)
    for images, labels in zip(pa7.images_train, pa7.y_train, strict=True):
        for copy in distorted(images, rng):
            X.append(views(copy))
            y.append(labels)
            weight.append(1 / 8)
    crf = ChainCRF(l2=1.0, transitions="all", fit_intercept=True, n_jobs=2).fit(
        X, y, sample_weight=weight
    )
    test_X = [views(images) for images in pa7.images_test]
    assert crf.score(test_X, pa7.y_test) >= 0.73
