"""Seminar announcements: a skip-chain beside the linear chain with the same attributes."""

import numpy as np
import pytest

from chordal.experiments import Setup
from chordal.experiments._seminar_models import LINEAR, SKIP, Text, first_stage, labelled
from chordal.experiments._seminar_scores import f1, fields, inconsistent
from chordal.experiments._seminar_tokens import Lexicon, tokens
from chordal.experiments.ner_skip import announcements, folds, taken

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.data


@pytest.fixture(autouse=True)
def files(require):
    for part in ("train", "test"):
        require(f"seminars/seminars_{part}.tsv.gz")


def test_folds_test_every_announcement_once_and_never_learn_from_it():
    both, n_seen = announcements()
    assert (len(both.words), n_seen) == (486, 301)
    tested = []
    for train, test in folds(486):
        assert len(train) in (388, 389)
        assert not set(train.tolist()) & set(test.tolist())
        tested += test.tolist()
    assert sorted(tested) == list(range(486))


def test_scores_to_learn_from_are_those_of_a_chain_that_has_not_seen_the_text():
    data = taken(announcements()[0], range(20))
    X, y = tokens(data, Lexicon(data), train=True), fields(data.y)
    chain, scores = first_stage(X, y, Setup())

    def right(of_text):
        best = [chain.classes_[own.argmax(axis=1)] for own in of_text]
        return np.mean(np.concatenate(best) == np.concatenate([np.array(tags) for tags in y]))

    assert right(scores) < right(chain.node_scores(X))
    assert [own.shape for own in scores] == [own.shape for own in chain.node_scores(X)]


@pytest.mark.slow
def test_equal_words_help_to_find_the_speaker():
    """In one of five folds, from half of its texts; the experiment has all of them."""
    both, _ = announcements()
    _, (train, test), *_ = folds(len(both.words))
    train, test = taken(both, train[::2]), taken(both, test)
    lexicon = Lexicon(train)
    texts = [
        [Text(words, rows) for words, rows in zip(data.words, X, strict=True)]
        for data, X in (
            (train, tokens(train, lexicon, train=True)),
            (test, tokens(test, lexicon, train=False)),
        )
    ]
    found, _ = labelled(texts[0], fields(train.y), texts[1], Setup())
    gold = fields(test.y)
    contradicted = {name: inconsistent(test.words, gold, own)[-1] for name, own in found.items()}
    assert contradicted[SKIP] < contradicted[LINEAR]
    assert f1(gold, found[SKIP])[-1] > f1(gold, found[LINEAR])[-1]
    assert np.mean(f1(gold, found[SKIP])) > 90.6  # Sutton and McCallum's mean of all fields
