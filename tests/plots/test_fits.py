"""Pictures of fits and scores: convergence, regularization, data, calibration."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import learning_curve

from chordal import ChainCRF, ChainCRFCV, CRFClassifier, regularization_path
from chordal.datasets import load_digit_dates
from chordal.plots import (
    ConvergenceDisplay,
    LearningCurveDisplay,
    RegularizationPathDisplay,
    ReliabilityDisplay,
)

from .conftest import drawn, is_inside, texts


def test_convergence():
    X, y = load_iris(return_X_y=True)
    fits = {s: CRFClassifier(solver=s, random_state=0).fit(X, y) for s in ("lbfgs", "sgd")}
    ax = ConvergenceDisplay.from_estimator(fits).ax_
    reports = {name: fit.fit_report_ for name, fit in fits.items()}
    best = min(min(r.history) for r in reports.values())
    for line, (name, report) in zip(ax.lines, reports.items(), strict=True):
        assert line.get_label() == name
        values = np.array(report.history) - best
        np.testing.assert_array_equal(line.get_ydata()[values > 0], values[values > 0])
        assert np.isnan(line.get_ydata()[values == 0]).all()
        assert line.get_xdata().tolist() == list(range(1, len(values) + 1))
    assert ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "objective − best")
    drawn(ax)
    drawn(ConvergenceDisplay.from_reports(reports["lbfgs"]).ax_)


def test_many_fits_have_their_own_colours_and_are_named_above_the_picture(data):
    crf = ChainCRF().fit(*data)
    reports = {f"a solver with a long name, {k}": crf.fit_report_ for k in range(9)}
    ax = ConvergenceDisplay.from_reports(reports).ax_
    drawn(ax)
    legend = ax.get_legend()
    assert is_inside(legend, ax)
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 1
    assert len({tuple(line.get_color()) for line in ax.lines}) == 9
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_a_fit_without_iterations_says_so():
    crf = ChainCRF().fit([[["a"]]], [["A"]])
    ax = ConvergenceDisplay.from_estimator(crf).ax_
    drawn(ax)
    assert texts(ax.texts) == ["no iteration is above the best value"]


def test_convergence_by_time(data):
    times = []
    crf = ChainCRF(max_iter=20).fit(*data, callback=lambda state: times.append(state.elapsed))
    report = crf.fit_report_
    assert len(report.times) == len(report.history)
    # A callback is told the time a moment after it was noted.
    np.testing.assert_allclose(report.times, times, atol=0.05)
    assert report.times == sorted(report.times)
    assert report.times[-1] <= report.elapsed
    display = ConvergenceDisplay.from_estimator(crf, x="time")
    assert display.ax_.lines[0].get_xdata().tolist() == report.times
    assert display.ax_.get_xlabel() == "time (s)"


def test_validation_scores(data):
    crf = ChainCRF(validation_interval=2, max_iter=9, tol=0.0)
    crf.fit(*data, validation_data=data, callback=lambda state: state.iteration >= 7)
    report = crf.fit_report_
    assert [k for k, _ in report.validation] == [2, 4, 6]
    display = ConvergenceDisplay.from_estimator(crf, what="validation", x="time")
    line = display.ax_.lines[0]
    assert line.get_xdata().tolist() == [report.times[k] for k in (1, 3, 5)]
    assert line.get_ydata().tolist() == [score for _, score in report.validation]
    assert display.ax_.get_yscale() == "linear"
    assert display.ax_.get_ylabel() == "validation score"
    drawn(display.ax_)


def test_the_gap(data):
    crf = ChainCRF("hinge", "block_frank_wolfe", tol=0.1, random_state=0).fit(*data)
    display = ConvergenceDisplay.from_estimator(crf, what="gap")
    shown = display.ax_.lines[0].get_ydata()
    given = np.array(crf.fit_report_.details["gap"])
    np.testing.assert_array_equal(shown[given > 0], given[given > 0])
    assert display.ax_.get_ylabel() == "gap"
    drawn(display.ax_)


def test_bad_convergence(data):
    crf = ChainCRF().fit(*data)
    with pytest.raises(ValueError, match="has no 'gap'; there are: 'objective', 'validation'"):
        ConvergenceDisplay.from_reports({"a": crf.fit_report_}, what="gap")
    with pytest.raises(ValueError, match="no validation scores: fit with validation_data"):
        ConvergenceDisplay.from_estimator(crf, what="validation")
    with pytest.raises(TypeError, match="must be a FitReport or a dict of them"):
        ConvergenceDisplay.from_reports(crf)
    with pytest.raises(ValueError, match="reports is empty"):
        ConvergenceDisplay.from_reports({})
    with pytest.raises(ValueError, match="x must be one of 'iteration', 'time'"):
        ConvergenceDisplay.from_estimator(crf, x="hours")
    crf.fit_report_.times.clear()
    with pytest.raises(ValueError, match="no times of its iterations: use x='iteration'"):
        ConvergenceDisplay.from_estimator(crf, x="time")


@pytest.fixture(scope="module")
def dates():
    return load_digit_dates(60, 40)


def test_a_path(dates):
    path = regularization_path(ChainCRF(), dates.X_train, dates.y_train, l1s=[10.0, 0.1, 1.0], cv=3)
    display = RegularizationPathDisplay.from_path(path)
    order = [1, 2, 0]
    line = display.ax_.lines[0]
    assert line.get_xdata().tolist() == [0.1, 1.0, 10.0]
    np.testing.assert_allclose(line.get_ydata(), path.scores[order].mean(axis=1))
    band = display.ax_.collections[0].get_paths()[0].vertices
    means, spread = path.scores.mean(axis=1), path.scores.std(axis=1)
    assert band[:, 1].max() == pytest.approx((means + spread).max())
    assert band[:, 1].min() == pytest.approx((means - spread).min())
    assert display.ax_.lines[1].get_xdata()[0] == path.best_value == display.best
    counts = next(ax for ax in display.figure_.axes if ax is not display.ax_)
    nonzero = [int((np.asarray(path.weights[k]) != 0).sum()) for k in order]
    assert counts.lines[0].get_ydata().tolist() == nonzero
    assert nonzero[0] > nonzero[-1]
    assert counts.get_ylabel() == "weights that are not zero"
    assert display.ax_.get_xlabel() == "l1 (strength of regularization)"
    assert display.ax_.get_xscale() == "log"
    drawn(display.ax_)


def test_the_path_of_a_choice(dates):
    model = ChainCRFCV(l2s=[1.0, 100.0], cv=3).fit(dates.X_train, dates.y_train)
    display = RegularizationPathDisplay.from_estimator(model)
    assert {display.parameter: display.best} == model.best_params_
    np.testing.assert_allclose(display.ax_.lines[0].get_ydata(), model.scores_.mean(axis=1))


def test_a_path_from_zero_and_without_scores():
    display = RegularizationPathDisplay("l2", [0.0, 0.1, 1.0], n_nonzero=np.array([5, 4, 3])).plot()
    assert display.best is None
    assert display.ax_.get_xscale() == "symlog"
    assert display.ax_.lines[0].get_ydata().tolist() == [5, 4, 3]
    drawn(display.ax_)


def test_bad_paths():
    with pytest.raises(ValueError, match="values is empty"):
        RegularizationPathDisplay("l2", [])
    with pytest.raises(ValueError, match="nothing to draw: give scores or n_nonzero"):
        RegularizationPathDisplay("l2", [1.0])
    with pytest.raises(ValueError, match=r"scores must be \[2, n_splits\], got shape \(1, 3\)"):
        RegularizationPathDisplay("l2", [1.0, 2.0], np.zeros((1, 3)))


def test_a_learning_curve(dates):
    X, y = dates.X_train, dates.y_train
    display = LearningCurveDisplay.from_estimator(ChainCRF(), X, y, train_sizes=[0.3, 1.0], cv=3)
    sizes, train, test = learning_curve(
        ChainCRF(), X, y, train_sizes=[0.3, 1.0], cv=3, shuffle=True, random_state=0
    )
    for line, scores in zip(display.ax_.lines, (train, test), strict=True):
        assert line.get_xdata().tolist() == sizes.tolist()
        np.testing.assert_allclose(line.get_ydata(), scores.mean(axis=1))
    assert texts(display.ax_.get_legend().get_texts()) == ["training data", "held-out data"]
    assert display.ax_.get_xlabel() == "training examples"
    drawn(display.ax_)


def test_a_learning_curve_of_entities():
    X = [[["Ana"], ["ran"]], [["Paul"], ["sat"]]] * 6
    y = [["B-PER", "O"], ["B-PER", "O"]] * 6
    display = LearningCurveDisplay.from_estimator(
        ChainCRF(), X, y, train_sizes=[4, 6], cv=2, scoring="chunk_f1"
    )
    assert display.train_sizes.tolist() == [4, 6]
    assert display.ax_.get_ylabel() == "chunk f1"
    np.testing.assert_allclose(display.test_scores[-1], 1.0)


def test_bad_learning_curves():
    with pytest.raises(ValueError, match="train_sizes is empty"):
        LearningCurveDisplay([], np.zeros((0, 1)), np.zeros((0, 1)))
    with pytest.raises(ValueError, match=r"test_scores must be \[2, n_folds\]"):
        LearningCurveDisplay([1, 2], np.zeros((2, 3)), np.zeros(2))


def test_reliability(crf, data):
    X, y = data
    display = ReliabilityDisplay.from_estimator(crf, X, y, n_bins=4)
    counts, said, right = [0] * 4, [0.0] * 4, [0] * 4
    for table, labels in zip(crf.predict_marginals(X), y, strict=True):
        for p, label in zip(table, labels, strict=True):
            b = min(3, int(4 * p.max()))
            counts[b] += 1
            said[b] += p.max()
            right[b] += crf.classes_[p.argmax()] == label
    assert display.counts.tolist() == counts
    for b in range(4):
        if counts[b]:
            assert display.confidence[b] == pytest.approx(said[b] / counts[b])
            assert display.accuracy[b] == pytest.approx(right[b] / counts[b])
    error = sum(abs(s - r) for s, r in zip(said, right, strict=True)) / sum(counts)
    assert display.error == pytest.approx(error)
    line = display.ax_.containers[-1].lines[0]
    some = np.array(counts) > 0
    np.testing.assert_allclose(line.get_xdata(), display.confidence[some])
    np.testing.assert_allclose(line.get_ydata(), display.accuracy[some])
    columns = [bar.get_height() for bar in display.ax_.containers[0]]
    np.testing.assert_allclose(columns, np.array(counts) / sum(counts))
    legend = texts(display.ax_.get_legend().get_texts())
    assert {"perfect calibration", f"calibration error {error:.3f}"} < set(legend)
    assert display.ax_.get_ylabel() == "share of right labels"
    drawn(display.ax_)


def test_reliability_of_one_label_and_of_unknown_ones():
    p = [np.array([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6], [0.9, 0.1]])]
    display = ReliabilityDisplay.from_predictions(
        [["b", "a", None, "new"]], p, ["a", "b"], label="a", n_bins=1
    )
    assert display.counts.tolist() == [3]
    assert display.confidence == pytest.approx([(0.2 + 0.7 + 0.9) / 3])
    assert display.accuracy == pytest.approx([1 / 3])
    assert display.ax_.get_ylabel() == "share that is a"


def test_intervals_of_reliability_are_wilsons():
    from scipy.stats import binomtest

    p = [np.array([[0.3, 0.7]] * 10)]
    display = ReliabilityDisplay.from_predictions([["b"] * 6 + ["a"] * 4], p, ["a", "b"], n_bins=1)
    bars = display.ax_.containers[-1].lines[2][0].get_segments()[0][:, 1]
    expected = binomtest(6, 10).proportion_ci(method="wilson")
    np.testing.assert_allclose(bars, [expected.low, expected.high], rtol=1e-9)


def test_images_and_classifiers_have_reliability_too():
    X, y = load_iris(return_X_y=True)
    display = ReliabilityDisplay.from_estimator(CRFClassifier().fit(X, y), X, y)
    assert display.counts.sum() == 150
    image = ReliabilityDisplay.from_predictions(
        [np.array([[0, 1], [1, 1]])], [np.full((2, 2, 2), 0.5)], [0, 1]
    )
    assert image.counts.sum() == 4


def test_bad_reliability():
    with pytest.raises(ValueError, match="y_true is empty"):
        ReliabilityDisplay.from_predictions([], [], ["a", "b"])
    with pytest.raises(ValueError, match="y_true has 1 labels, but marginals have 2 rows"):
        ReliabilityDisplay.from_predictions([["a"]], [[[0.5, 0.5]] * 2], ["a", "b"])
    with pytest.raises(ValueError, match="label must be one of the classes"):
        ReliabilityDisplay.from_predictions([["a"]], [[[0.5, 0.5]]], ["a", "b"], label="c")


def test_strengths_are_never_drawn_below_zero():
    low, high = (
        RegularizationPathDisplay("l1", [0.0, 0.1, 1.0], np.ones((3, 2))).plot().ax_.get_xlim()
    )
    assert -0.1 < low < 0.0
    assert high >= 1.0
    low, high = RegularizationPathDisplay("l2", [2.0], np.ones((1, 2))).plot().ax_.get_xlim()
    assert low < 1.0 < 4.0 < high


def test_the_legend_of_reliability_covers_no_point():
    marginals = np.array([[0.3, 0.7], [0.99, 0.01], [0.55, 0.45]])
    ax = ReliabilityDisplay.from_predictions(["b", "a", "a"], [marginals], ["a", "b"]).ax_
    drawn(ax)
    legend = ax.get_legend()
    assert is_inside(legend, ax)
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 1
    assert not any(line.get_clip_on() for line in ax.containers[1].lines[1])
