"""Seminar announcements: a skip-chain beside the linear chain with the same attributes."""

import pytest

from chordal.datasets import load_seminars
from chordal.experiments import Setup
from chordal.experiments.ner_skip import NerSkip, splits

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
    """Speakers 83.4 and 85.4; Sutton and McCallum, on other splits: 77.3 and 80.4."""
    rows = {row.what: row for row in NerSkip().run(Setup()).rows}
    assert rows["what the skip-chain gains on speakers"].ours > 1.0
    assert rows["F1 of speakers, skip-chain"].verdict == "beaten"
    assert rows["mean F1 of all fields, skip-chain"].verdict == "beaten"
