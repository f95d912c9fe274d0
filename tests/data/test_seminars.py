"""Seminar announcements: a skip-chain beside the linear chain with the same attributes."""

import numpy as np
import pytest

from chordal.datasets import load_seminars
from chordal.experiments import Setup
from chordal.experiments._seminar_scores import f1, fields, inconsistent
from chordal.experiments._seminar_tokens import Lexicon, tokens
from chordal.experiments.ner_skip import L2, LINEAR, OURS, SKIP, labelled, splits

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.data


@pytest.fixture(autouse=True)
def files(require):
    for part in ("train", "test"):
        require(f"seminars/seminars_{part}.tsv.gz")


def test_splits_test_every_unseen_announcement_once_and_never_learn_from_it():
    seen, unseen = load_seminars("train"), load_seminars("test")
    tested = []
    for train, test in splits(seen, unseen):
        assert len(train.words) == 389
        own = {id(words) for words in test.words}
        assert not own & {id(words) for words in train.words}
        tested += [id(words) for words in test.words]
    assert sorted(tested) == sorted(id(words) for words in unseen.words)


@pytest.mark.slow
def test_equal_words_help_to_find_the_speaker():
    """In one of five splits; the experiment has all of them."""
    train, test = next(splits(load_seminars("train"), load_seminars("test")))
    lexicon = Lexicon(train)
    X, X_test = tokens(train, lexicon, train=True), tokens(test, lexicon, train=False)
    found, _ = labelled((train, X), (test, X_test), L2[OURS], Setup())
    gold = fields(test.y)
    contradicted = {name: inconsistent(test.words, gold, own)[-1] for name, own in found.items()}
    assert contradicted[SKIP] < contradicted[LINEAR]
    assert np.mean(f1(gold, found[SKIP])) > 90.6  # Sutton and McCallum's mean of all fields
