"""What a callback of `fit` sees of scores, and early stopping by a rule of one's own."""

import math

import pytest

from chordal import ChainCRF, Status

X = [[["a"], ["b"], ["a", "c"]], [["b"], ["c"]], [["a"]]] * 4
Y = [["A", "B", "B"], ["B", "A"], ["A"]] * 4


@pytest.mark.filterwarnings("ignore:solver")
@pytest.mark.parametrize("solver", ["lbfgs", "averaged_perceptron", "adam"])
def test_scores_so_far(solver):
    seen = []
    crf = ChainCRF(solver=solver, validation_interval=2, max_iter=7, tol=0.0, random_state=0)
    crf.fit(X, Y, validation_data=(X[:2], Y[:2]), callback=seen.append)
    validation = crf.fit_report_.validation
    for state in seen:
        so_far = tuple((k, s) for k, s in validation if k <= state.iteration)
        assert state.scores == so_far
        scored = state.iteration % 2 == 0
        assert math.isnan(state.score) != scored
        if scored:
            assert state.score == so_far[-1][1] == state.model().score(X[:2], Y[:2])
        if so_far:
            assert state.best_score == max(score for _, score in so_far)
        else:
            assert math.isnan(state.best_score)
    assert validation


def test_without_validation():
    seen = []
    ChainCRF().fit(X, Y, callback=seen.append)
    assert all(math.isnan(state.score) and state.scores == () for state in seen)


def test_stopping_by_a_rule_of_the_user():
    """Stop when the training score has been the same three times in a row."""
    scores = []

    def rule(state):
        scores.append(state.model().score(X, Y))
        return len(scores) >= 3 and len(set(scores[-3:])) == 1

    crf = ChainCRF(l2=0.01, tol=0.0).fit(X, Y, callback=rule)
    assert crf.fit_report_.status is Status.STOPPED
    assert crf.n_iter_ == len(scores)
    assert len(set(scores[-3:])) == 1
    assert all(len(set(scores[k - 3 : k])) > 1 for k in range(3, len(scores)))
    assert crf.score(X, Y) == scores[-1]
