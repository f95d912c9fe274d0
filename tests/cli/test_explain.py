"""chordal explain: one token, wrong tokens, and bad questions."""

import json

import pytest

from chordal import ChainCRF, explain, load, save

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
    assert found["token"] == SENTENCES[1][2][0]
    assert text.startswith(f"sequence 1, token {found['token']!r}: true label 'B-VP'\n")
    assert "\nChainCRF, position 2: 'B-VP' against 'O'\n" in text
    assert "(column 0)" in text
    assert "from 'I-NP' at 1" in text
    assert "below 3, got 7" in refused("explain", files / "model", data, "--sequence", 7)
    assert "--position must be from 0 to 4 in sequence 1, got 9" in refused(*asked[:-1], 9)
    assert "needs --sequence" in refused("explain", files / "model", data, "--position", 1)


def test_labels_that_are_numbers_have_the_names_that_files_give_them(chordal, tmp_path):
    X = [["w=a"], ["w=b"]]
    save(ChainCRF().fit([X], [[0, 1]]), tmp_path / "model")
    data = tmp_path / "data.crfsuite"
    data.write_text("1\tw=a\n1\tw=b\n")
    asked = ("explain", tmp_path / "model", data, "--json")
    for options in ((), ("--sequence", 0, "--position", 0, "--label", "0", "--rival", "1")):
        (found,) = json.loads(chordal(*asked, *options))
        assert (found["token"], found["label"], found["rival"]) == ("a", 0, 1)


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


def test_a_sequence_without_tokens(refused, tmp_path):
    save(ChainCRF().fit([[["a"], ["b"]]], [["X", "Y"]]), tmp_path / "model")
    data = tmp_path / "data.jsonl"
    data.write_text('{"tokens": ["a"], "labels": ["X"]}\n{"tokens": [], "labels": []}\n')
    asked = ("explain", tmp_path / "model", data, "--sequence", 1)
    assert "sequence 1 has no tokens" in refused(*asked)
    assert "sequence 1 has no tokens" in refused(*asked, "--position", 0)
