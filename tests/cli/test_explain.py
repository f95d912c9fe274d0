"""chordal explain: one token, wrong tokens, and bad questions."""

import json

import pytest

from chordal import explain, load

from .conftest import SENTENCES, as_text


def test_one_token(chordal, refused, files):
    data = files / "explained.txt"
    data.write_text(as_text(SENTENCES))
    asked = ("explain", files / "model", data, "--sequence", 1, "--position", 2)
    (found,) = json.loads(chordal(*asked, "--json"))
    x = [list(row[:2]) for row in SENTENCES[1]]
    expected = explain(load(files / "model"), x, 2)
    assert found["label"] == expected.label
    assert found["log_odds"] == pytest.approx(expected.log_odds, abs=1e-9)
    text = chordal(*asked, "--rival", "O", "--odds", "conditional").decode()
    assert "sequence 1, ChainCRF, position 2: 'B-VP' against 'O'" in text
    assert "(column 0)" in text
    assert "from 'I-NP' at 1" in text
    assert "below 3, got 7" in refused("explain", files / "model", data, "--sequence", 7)
    assert "position from 0 to 4" in refused(*asked[:-1], 9)
    assert "needs --sequence" in refused("explain", files / "model", data, "--position", 1)


def test_wrong_tokens_against_their_true_labels(chordal, files):
    data = files / "wrong.txt"
    changed = [[list(row) for row in sentence] for sentence in SENTENCES]
    changed[2][1][2] = "O"
    data.write_text(as_text(changed))
    (found,) = json.loads(chordal("explain", files / "model", data, "--json"))
    assert (found["sequence"], found["at"]) == (2, 1)
    assert (found["label"], found["rival"]) == ("I-NP", "O")
    data.write_text(as_text(SENTENCES))
    assert chordal("explain", files / "model", data).decode() == "all predictions are right\n"
