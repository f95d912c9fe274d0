"""Seminar announcements: a skip-chain beside the linear chain with the same features."""

import pytest

from chordal.experiments import Setup
from chordal.experiments.ner_skip import NerSkip

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_equal_words_help_to_find_the_speaker(require):
    """Speaker 79.7 and 81.3; Sutton and McCallum, on another split: 77.3 and 80.4."""
    for part in ("train", "test"):
        require(f"seminars/seminars_{part}.tsv.gz")
    rows = {row.what: row for row in NerSkip().run(Setup()).rows}
    assert rows["what the skip-chain gains on speakers"].ours > 1.0
    assert rows["F1 of speakers, skip-chain"].verdict == "beaten"
