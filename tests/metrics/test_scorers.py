"""Metrics by name, among scikit-learn's tools."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from chordal import ChainCRF, metrics

NAMES = [
    "token_accuracy", "hamming_accuracy", "zero_one_accuracy", "precision", "recall", "f1",
    "chunk_precision", "chunk_recall", "chunk_f1",
]  # fmt: skip


@pytest.fixture(scope="module")
def problem():
    """Words that tell their tag, but for one that needs the word before."""
    rng = np.random.default_rng(0)
    words = {"the": "O", "Paris": "B-LOC", "Ann": "B-PER", "Bay": "I-LOC"}
    X, y = [], []
    for _ in range(60):
        names = rng.choice(list(words), size=6)
        X.append([[f"w={name}"] if rng.random() < 0.8 else ["w=?"] for name in names])
        y.append([words[name] for name in names])
    return X, y


@pytest.mark.parametrize("name", NAMES)
def test_scorers_give_what_the_functions_give(problem, name):
    crf = ChainCRF().fit(*problem)
    function = getattr(metrics, name, None) or getattr(metrics, f"{name}_score")
    expected = function(problem[1], crf.predict(problem[0]))
    assert 0 < expected < 1
    scorer = getattr(metrics, f"{name}_scorer")
    assert scorer(crf, *problem) == expected
    assert metrics.make_sequence_scorer(name)(crf, *problem) == expected
    assert pickle.loads(pickle.dumps(scorer))(crf, *problem) == expected


def test_grid_search(problem):
    grid = {"l1": [0.0, 1e4]}
    scoring = {
        "chunk": metrics.chunk_f1_scorer,
        "strict": metrics.make_sequence_scorer("chunk_f1", scheme="bio"),
        "labels": metrics.make_sequence_scorer("f1", labels=["B-LOC"], average="macro"),
    }
    search = GridSearchCV(ChainCRF(), grid, scoring=scoring, refit="chunk", cv=3)
    search.fit(*problem)
    assert search.best_params_ == {"l1": 0.0}
    for name in scoring:
        scores = search.cv_results_[f"mean_test_{name}"]
        assert 0 <= scores[1] < scores[0] < 1


def test_cross_validation(problem):
    X, y = problem
    crf = ChainCRF().fit(X[20:], y[20:])
    first = cross_val_score(ChainCRF(), X, y, scoring=metrics.chunk_f1_scorer, cv=3)[0]
    assert first == metrics.chunk_f1(y[:20], crf.predict(X[:20]))


def test_scikit_learn_is_imported_when_asked_for():
    program = (
        "import sys\n"
        "from chordal import metrics\n"
        "metrics.chunk_f1([['B-X']], [['B-X']])\n"
        "assert 'sklearn' not in sys.modules\n"
        "metrics.chunk_f1_scorer\n"
        "assert 'sklearn' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_names():
    assert {f"{name}_scorer" for name in NAMES} <= set(dir(metrics))
    assert all(hasattr(metrics, name) for name in dir(metrics))
    with pytest.raises(AttributeError, match="has no attribute 'chunk_f2_scorer'"):
        metrics.chunk_f2_scorer  # noqa: B018
    with pytest.raises(ValueError, match=r"metric must be one of 'token_accuracy', .* got 'f2'"):
        metrics.make_sequence_scorer("f2")
    with pytest.raises(ValueError, match=r"metric must be one of 'token_accuracy', .* got 'f1'"):
        metrics.sequence_counts("f1", [["a"]], [["a"]])
