"""Generative–discriminative pairs: HMM and chain CRF, naive Bayes and logistic regression."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

from chordal import HMM, InfeasibleError, NaiveBayes, UnsupportedError, load, save
from chordal.emissions.categorical import Categorical
from chordal.emissions.gaussian import Gaussian
from chordal.emissions.multinomial import Multinomial
from chordal.emissions.poisson import Poisson
from chordal.estimators import Given
from chordal.estimators._generative import fit_counts
from chordal.estimators._training.here import LocalCrew

FAMILIES = {
    "categorical": Categorical(),
    "categorical, zeros": Categorical(alpha=0.0),
    "gaussian": Gaussian(),
    "gaussian, full": Gaussian("full"),
    "poisson": Poisson(),
    "poisson, zeros": Poisson(alpha=0.0),
    "multinomial": Multinomial(),
    "multinomial, zeros": Multinomial(alpha=0.0),
}


def observations(kind, codes, rng):
    """Rows for labels 0, 1, 2, far from the origin where the family has one."""
    if kind == "categorical":
        return np.stack([(codes + rng.integers(0, 3, len(codes))) % 5, codes // 2], axis=1)
    if kind == "gaussian":
        mix = np.array([[1.0, 0.5], [0.0, 0.3]])
        return 1000.0 + codes[:, None] * [1.0, -0.5] + rng.normal(size=(len(codes), 2)) @ mix
    if kind == "poisson":
        return rng.poisson(np.array([[1.0, 4.0, 0.0], [5.0, 0.5, 0.0], [2.0, 2.0, 3.0]])[codes])
    p = np.array([[0.6, 0.2, 0.2, 0.0], [0.2, 0.6, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1]])
    return rng.multinomial(rng.integers(1, 8, len(codes)), p[codes])


def labelled(family, n=40, seed=0):
    """Sequences of 1 to 7 positions; label "c" never begins and "a" never follows "b"."""
    rng = np.random.default_rng(seed)
    chances = np.array([[0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.4, 0.2, 0.4]])
    X, y = [], []
    for _ in range(n):
        codes = [int(rng.integers(2))]
        for _ in range(int(rng.integers(7))):
            codes.append(int(rng.choice(3, p=chances[codes[-1]])))
        X.append(observations(family.name, np.array(codes), rng))
        y.append(["abc"[k] for k in codes])
    return X, y


def densities(hmm, x):
    """p(x_t | y_t) [length, n_classes] from SciPy's distributions and the shown parameters."""
    e = hmm.emission_
    if isinstance(e, Categorical):
        columns = [
            np.stack([table[:, e.symbols[k].index(v)] for v in x[:, k].tolist()])
            for k, table in enumerate(e.probabilities)
        ]
        return np.prod(columns, axis=0)
    if isinstance(e, Gaussian):
        covariances = [np.diag(c) if c.ndim == 1 else c for c in e.covariances]
        pairs = zip(e.means, covariances, strict=True)
        return np.stack([stats.multivariate_normal(m, c).pdf(x) for m, c in pairs], -1).reshape(
            len(x), -1
        )
    if isinstance(e, Poisson):
        return np.stack([stats.poisson(r).pmf(x).prod(axis=1) for r in e.rates], axis=1)
    total = x.sum(axis=1)
    return np.stack([stats.multinomial.pmf(x, total, p) for p in e.probabilities], axis=1)


def forward_backward(hmm, x):
    """P(y_t | x) and p(x) by the textbook recursions on plain probabilities."""
    b, A = densities(hmm, x), hmm.transitions_
    alpha, beta = np.empty_like(b), np.ones_like(b)
    alpha[0] = hmm.start_ * b[0]
    for t in range(1, len(b)):
        alpha[t] = (alpha[t - 1] @ A) * b[t]
    for t in range(len(b) - 2, -1, -1):
        beta[t] = A @ (b[t + 1] * beta[t + 1])
    evidence = alpha[-1].sum()
    return alpha * beta / evidence, evidence


@pytest.fixture(params=FAMILIES, scope="module")
def pair(request):
    """A fitted HMM and its data."""
    family = FAMILIES[request.param]
    X, y = labelled(family)
    alpha = 0.0 if "zeros" in request.param else 1.0
    return HMM(family, alpha=alpha, random_state=0).fit(X, y), X, y


def test_the_crf_has_the_posterior_of_the_hmm(pair):
    hmm, X, y = pair
    crf = hmm.to_crf()
    T = hmm.statistics(X)
    marginals = crf.predict_marginals(T)
    log_posterior = crf.log_likelihood(T, y)
    joint = hmm.log_likelihood(X, y)
    for i, x in enumerate(X):
        expected, evidence = forward_backward(hmm, np.asarray(x))
        assert_allclose(marginals[i], expected, rtol=0.0, atol=1e-10)
        assert_allclose(hmm.predict_marginals([x])[0], expected, rtol=0.0, atol=1e-10)
        assert_allclose(log_posterior[i], joint[i] - np.log(evidence), rtol=0.0, atol=1e-9)
    assert crf.predict(T) == hmm.predict(X)
    assert crf.score(T, y) == hmm.score(X, y)


def test_the_joint_probability_is_the_product(pair):
    hmm, X, y = pair
    for i in range(10):
        codes = ["abc".index(c) for c in y[i]]
        p = hmm.start_[codes[0]] * densities(hmm, X[i])[range(len(codes)), codes].prod()
        p *= np.prod([hmm.transitions_[a, b] for a, b in pairwise(codes)])
        assert_allclose(hmm.log_likelihood(X[i : i + 1], y[i : i + 1]), np.log(p), rtol=1e-9)


def test_no_other_parameters_explain_the_data_better(pair):
    """Counting is maximum likelihood where nothing is smoothed."""
    hmm, X, y = pair
    if getattr(hmm.emission_, "alpha", 0.0) > 0.0:
        pytest.skip("smoothed")
    best = hmm.log_likelihood(X, y).sum()
    exact = HMM(hmm.emission, alpha=0.0).fit(X, y)
    assert exact.log_likelihood(X, y).sum() >= best
    rng = np.random.default_rng(1)
    for _ in range(20):
        subset = rng.random(len(X)) + 0.2
        other = HMM(hmm.emission, alpha=0.0).fit(X, y, sample_weight=subset)
        assert other.log_likelihood(X, y).sum() <= exact.log_likelihood(X, y).sum() + 1e-9


def test_training_goes_on_from_the_hmm(pair):
    """The likelihood rises from where the HMM left it, never below; what is impossible stays so."""
    hmm, X, y = pair
    crf = hmm.to_crf(l2=0.0, max_iter=30)
    T = hmm.statistics(X)
    before, transitions = crf.log_likelihood(T, y).sum(), crf.transitions_
    seen = []
    crf.fit(T, y, callback=lambda state: seen.append(-state.value))
    after = crf.log_likelihood(T, y).sum()
    assert after > before + 1e-3
    assert min(seen) > before
    assert_allclose(crf.objective_, -after, rtol=1e-8)
    assert_array_equal(np.isneginf(crf.transitions_), np.isneginf(transitions))
    assert crf.layout_.n_weights == len(crf.weights_)


def test_weights_are_what_they_are_called(pair):
    hmm, _, _ = pair
    crf = hmm.to_crf()
    with np.errstate(divide="ignore"):
        assert_array_equal(crf.transitions_, np.log(hmm.transitions_))
        assert_array_equal(crf.start_, np.log(hmm.start_))
    assert_array_equal(crf.intercept_, -hmm.emission_.log_partition)
    assert_array_equal(crf.coef_, hmm.emission_.natural)
    assert not crf.end_.any()


def test_samples_have_the_distribution_of_the_model(pair):
    hmm, _, _ = pair
    X, y = hmm.sample(4000, length=3)
    again, _ = hmm.sample(4000, length=3)
    assert_array_equal(np.concatenate(X), np.concatenate(again))
    codes = np.array([["abc".index(c) for c in s] for s in y])
    assert_allclose(np.bincount(codes[:, 0], minlength=3) / 4000, hmm.start_, atol=0.04)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (codes[:, :-1].ravel(), codes[:, 1:].ravel()), 1.0)
    assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), hmm.transitions_, atol=0.04)
    # A model fitted to the samples is the model.
    fitted = HMM(hmm.emission).fit(X, y)
    assert_allclose(
        fitted.emission_.log_density(fitted.emission_.read(X[:50], False).data).max(axis=1),
        hmm.emission_.log_density(hmm.emission_.read(X[:50], False).data).max(axis=1),
        atol=0.5,
    )


def test_impossible_observations_are_reported():
    X, y = [["u", "v"], ["v", "w"]], [["a", "b"], ["b", "a"]]
    hmm = HMM(Categorical(alpha=0.0), alpha=0.0).fit(X, y)
    assert hmm.predict([["u", "v"]]) == [["a", "b"]]
    with pytest.raises(InfeasibleError, match="example 1"):
        hmm.predict_marginals([["u", "v"], ["u", "u"]])
    with pytest.raises(UnsupportedError, match="weights of -inf"):
        save(hmm.to_crf(), "nowhere.chordal")


def test_unseen_symbols_say_nothing():
    X, y = [["u", "v"], ["v", "u"]], [["a", "b"], ["b", "a"]]
    hmm = HMM().fit(X, y)
    assert_allclose(hmm.predict_marginals([["new"]])[0], hmm.start_[None])


def test_sample_weight_repeats_sequences(pair):
    hmm, X, y = pair
    times = np.arange(len(X)) % 3
    times[:4] = 1
    family = hmm.emission
    a = HMM(family, alpha=0.5).fit(X, y, sample_weight=times)
    repeated = np.repeat(np.arange(len(X)), times)
    b = HMM(family, alpha=0.5).fit([X[i] for i in repeated], [y[i] for i in repeated])
    assert_allclose(a.transitions_, b.transitions_)
    assert_allclose(a.start_, b.start_)
    if family.name != "poisson" or family.alpha == 0.0:  # its mean of all rows is unweighted
        ll = [m.log_likelihood(X[:4], y[:4]) for m in (a, b)]
        assert_allclose(ll[0], ll[1], rtol=1e-6)


def test_the_crf_overtakes_the_hmm_with_more_data():
    """Where its independence fails, the HMM is ahead with little data, the CRF with much."""
    rng = np.random.default_rng(3)

    def draw(n):
        """A good column, and a weak one four times over, which counting trusts more; noise."""
        X, y = [], []
        for _ in range(n):
            codes = [int(rng.integers(2))]
            for _ in range(9):
                codes.append(codes[-1] if rng.random() < 0.7 else 1 - codes[-1])
            codes = np.array(codes)
            good, weak = (np.where(rng.random(10) < p, codes, 1 - codes) for p in (0.8, 0.65))
            noise = [rng.integers(0, 5, 10) for _ in range(8)]
            X.append(np.stack([good] + [weak] * 4 + noise, axis=1))
            y.append(codes)
        return X, y

    X_test, y_test = draw(300)
    gains = {}
    for n in (10, 300):
        scores = np.zeros((4, 2))
        for k in range(4):
            X, y = draw(n)
            hmm = HMM().fit(X, y)
            crf = hmm.to_crf(l2=1e-3).fit(hmm.statistics(X), y)
            scores[k] = hmm.score(X_test, y_test), crf.score(hmm.statistics(X_test), y_test)
        gains[n] = np.diff(scores.mean(axis=0))[0]
    assert gains[10] < -0.01
    assert gains[300] > 0.05


# ------------------------------------------------------------------------------- naive Bayes


def rows_of(family, n=90):
    rng = np.random.default_rng(5)
    codes = rng.permutation(np.arange(n) % 3)
    return observations(family.name, codes, rng), np.array(list("abc"))[codes]


PEERS = {
    "categorical": (Categorical(1.0), CategoricalNB(alpha=1.0)),
    "gaussian": (Gaussian(smoothing=0.0), GaussianNB(var_smoothing=0.0)),
    "multinomial": (Multinomial(1.0), MultinomialNB(alpha=1.0)),
}


@pytest.mark.parametrize("name", PEERS)
def test_naive_bayes_is_that_of_scikit_learn(name):
    family, peer = PEERS[name]
    X, y = rows_of(family)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours = NaiveBayes(family).fit(X, y, sample_weight=weight)
    peer.fit(X, y, sample_weight=weight)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=0.0, atol=1e-8)
    assert_array_equal(ours.predict(X), peer.predict(X))
    assert ours.score(X, y, weight) == pytest.approx(peer.score(X, y, weight), abs=1e-12)
    if name == "gaussian":
        joint = peer.predict_joint_log_proba(X)[np.arange(len(y)), np.searchsorted(list("abc"), y)]
        assert_allclose(ours.log_likelihood(X, y), joint, rtol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_naive_bayes_and_its_crf_agree(name):
    family = FAMILIES[name]
    X, y = rows_of(family)
    model = NaiveBayes(family, random_state=0).fit(X, y)
    prior = np.array([np.mean(y == c) for c in model.classes_])
    joint = densities(model, X) * prior
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), expected, rtol=0.0, atol=1e-10)
    crf = model.to_crf(l2=0.0)
    whole = model.statistics(X)[0]
    ones = [whole[i : i + 1] for i in range(len(y))]
    assert_allclose(np.concatenate(crf.predict_marginals(ones)), expected, rtol=0.0, atol=1e-10)
    before = crf.log_likelihood(ones, y[:, None]).sum()
    after = crf.fit(ones, y[:, None]).log_likelihood(ones, y[:, None]).sum()
    assert after >= before
    assert after > before + 1e-3 or name == "categorical, zeros"  # already the best, by chance
    assert_allclose(np.exp(model.log_likelihood(X, y)), joint[np.arange(90), np.searchsorted(
        model.classes_, y)], rtol=1e-9)  # fmt: skip
    drawn, labels = model.sample(3000)
    assert drawn.shape == (3000, X.shape[1])
    assert_allclose([np.mean(labels == c) for c in model.classes_], prior, atol=0.04)


def test_full_covariance_is_quadratic_discriminant_analysis():
    rng = np.random.default_rng(0)
    codes = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + 2.0 * codes[:, None]
    peer = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, codes)
    ours = NaiveBayes(Gaussian("full", smoothing=0.0)).fit(X, codes)
    expected = [np.cov(X[codes == k].T, bias=True) for k in (0, 1)]
    assert_allclose(ours.emission_.covariances, expected, rtol=1e-9)
    # scikit-learn's versions divide by n or by n − 1.
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=0.02)
    assert_allclose(ours.emission_.means, peer.means_, rtol=1e-9)


def test_sparse_counts_and_lists_of_symbols():
    import scipy.sparse as sp

    X, y = rows_of(FAMILIES["multinomial"])
    a, b = NaiveBayes("multinomial").fit(X, y), NaiveBayes("multinomial").fit(sp.csr_array(X), y)
    assert_array_equal(a.predict_proba(X), b.predict_proba(sp.csr_matrix(X)))
    rows = [["red", 3], ["blue", 3], ["red", 1]]
    assert NaiveBayes("categorical").fit(rows, [1, 0, 1]).predict([["blue", 3]]).tolist() == [0]


# ------------------------------------------------------------------------ scikit-learn, errors


def test_they_are_scikit_learn_estimators():
    X, y = labelled(FAMILIES["gaussian"])
    hmm = clone(HMM("gaussian", alpha=0.5))
    assert hmm.get_params() == {"emission": "gaussian", "alpha": 0.5, "random_state": None}
    assert repr(hmm) == "HMM(alpha=0.5, emission='gaussian')"
    with pytest.raises(NotFittedError, match="HMM instance is not fitted"):
        hmm.predict(X)
    assert cross_val_score(hmm, X, y, cv=3).min() > 0.3
    family = Gaussian("full")
    HMM(family).fit(X, y)
    assert not hasattr(family, "natural")  # the parameter stays as it was given
    assert repr(family) == "Gaussian(covariance='full', smoothing=1e-09)"
    X, y = rows_of(FAMILIES["gaussian"])
    assert cross_val_score(clone(NaiveBayes()), X, y, cv=3).mean() > 0.3
    assert is_classifier(NaiveBayes())


@pytest.mark.parametrize("name", ["categorical", "gaussian, full"])
def test_the_crf_of_an_hmm_can_be_saved(tmp_path, name):
    X, y = labelled(FAMILIES[name])
    hmm = HMM(FAMILIES[name]).fit(X, y)
    save(hmm.to_crf(), tmp_path / "model")
    T = hmm.statistics(X)
    assert load(tmp_path / "model").predict(T) == hmm.predict(X)


@pytest.mark.parametrize(
    ("model", "X", "y", "message"),
    [
        (HMM("gausian"), [["a"]], [["A"]], r"unknown emission 'gausian'; did you mean 'gaussian'"),
        (HMM(alpha=-1), [["a"]], [["A"]], r"alpha must be a number of at least 0"),
        (HMM(), [["a", "b"]], [["A"]], r"X\[0\] and y\[0\] must have the same length, got 2 and 1"),
        (HMM(), [["a", ["b", "c"]]], [["A", "B"]], r"X\[0\]\[1\] must have 1 columns, got 2"),
        (HMM(), [["a", None]], [["A", "B"]], r"X\[0\]\[1\] holds None"),
        (HMM(), ["ab"], [["A", "B"]], r"X\[0\] must be a list or array of symbols, got str"),
        (HMM(), [[["a", {}]]], [["A"]], r"X\[0\]\[0\] holds \{\}: symbols must be hashable"),
        (HMM("gaussian"), [np.ones(3)], [["A"] * 3], r"X\[0\] must be an array \[length, n_feat"),
        (HMM("gaussian"), [np.full((2, 1), np.nan)], [["A"] * 2], r"X\[0\]\[0\] has NaN"),
        (HMM(Gaussian(smoothing=0.0)), [np.ones((2, 1))], [["A"] * 2], r"do not spread.*smoothing"),
        (
            HMM("poisson"),
            [np.array([[1], [-2]])],
            [["A"] * 2],
            r"X\[0\]\[1\] must hold counts .*-2",
        ),
        (HMM("multinomial"), [np.array([[0.5]])], [["A"]], r"X\[0\]\[0\] must hold counts .*0.5"),
        (HMM(Multinomial(0.0)), [np.array([[0]])], [["A"]], r"has no counts above 0; smooth"),
    ],
)
def test_bad_input_is_refused(model, X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "emission_")


def test_more_bad_input_is_refused():
    X, y = labelled(FAMILIES["gaussian"])
    with pytest.raises(ValueError, match=r"label 'a' has no observation of positive weight"):
        HMM("gaussian").fit([X[0], X[0]], [["a"] * len(X[0]), ["b"] * len(X[0])],
                            sample_weight=[0, 1])  # fmt: skip
    hmm = HMM("gaussian").fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\] must have 2 columns, got 3"):
        hmm.predict([np.ones((2, 3))])
    with pytest.raises(UnsupportedError, match="ends is determined by the weights"):
        hmm.to_crf(ends=True)
    with pytest.raises(ValueError, match=r"y must have one label per row of X \(3\), got"):
        NaiveBayes().fit(np.ones((3, 1)), [1, 2])
    with pytest.raises(ValueError, match="must be probabilities whose rows sum to 1"):
        HMM.from_parameters([0, 1], [0.5, 0.6], np.eye(2), Poisson.of([[1], [2]]))
    with pytest.raises(ValueError, match="must have parameters for 2 labels, got 1"):
        HMM.from_parameters([0, 1], [0.5, 0.5], np.eye(2), Poisson.of([[1]]))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", [HMM, NaiveBayes])
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_counted_as_the_whole(name, kind, weighted):
    """Parts that know different symbols and labels, one without examples and one of a row."""
    X, y = labelled(FAMILIES[name])
    if kind is NaiveBayes:
        X, y = np.concatenate(X), np.concatenate([np.array(own) for own in y])
    weight = np.random.default_rng(1).random(len(y)) + 0.1 if weighted else None
    expected = kind(FAMILIES[name]).fit(X, y, sample_weight=weight)
    cuts = [0, 1, 1, 9, 23, len(y)]
    parts = [
        Given(X[a:b], y[a:b], None if weight is None else weight[a:b]) for a, b in pairwise(cuts)
    ]
    found = kind(FAMILIES[name])
    fit_counts(found, LocalCrew(), parts)
    assert_array_equal(found.classes_, expected.classes_)
    assert_allclose(found.emission_.natural, expected.emission_.natural, rtol=1e-6)
    assert_allclose(found.crf_.weights_, expected.crf_.weights_, rtol=1e-6)
    assert_allclose(found.log_likelihood(X, y), expected.log_likelihood(X, y), rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_part_of_empty_sequences_counts_nothing(family):
    X, y = labelled(family)
    found, expected = HMM(family), HMM(family).fit(X, y)
    fit_counts(found, LocalCrew(), [Given([X[0][:0]], [[]]), Given(X, y)])
    assert_array_equal(found.crf_.weights_, expected.crf_.weights_)


def test_parts_that_do_not_go_together_are_refused():
    parts = [Given([np.zeros((2, n))], [["a", "b"]]) for n in (2, 3)]
    for family in ("gaussian", "poisson", "multinomial"):
        with pytest.raises(ValueError, match=r"partitions do not go together: .*columns"):
            fit_counts(HMM(family), LocalCrew(), parts)
    with pytest.raises(ValueError, match="X is empty"):
        fit_counts(HMM(), LocalCrew(), [Given([], [])])
