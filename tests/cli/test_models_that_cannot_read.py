"""Models and data that do not fit each other, and numbers that JSON has not: clear words."""

import json

import numpy as np
import pytest

from chordal import ChainCRF, save
from chordal.cli import main

ROWS = ChainCRF(max_iter=2).fit([np.ones((2, 3))], [["a", "b"]])
WORDS = ChainCRF(max_iter=2).fit([[{"w": "x"}, {"w": "y"}]], [["a", "b"]])
FILES = {"conll": "x a\ny b\n", "crfsuite": "a\tw=x\nb\tw=y\n"}
FILES["jsonl"] = json.dumps({"tokens": [{"w": "x"}, {"w": "y"}], "labels": ["a", "b"]}) + "\n"
COMMANDS = [["tag"], ["label", "-m"], ["evaluate", "--model"], ["explain"], ["explore"]]


def said(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code, capsys.readouterr()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("kind", FILES)
def test_a_model_of_rows_of_numbers(command, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(ROWS, "rows.model")
    (tmp_path / f"data.{kind}").write_text(FILES[kind])
    code, shown = said([*command, "rows.model", f"data.{kind}"], capsys)
    assert code == 1
    assert "rows.model: it reads rows of numbers, but files have tokens" in shown.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_model_of_attributes_and_columns(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(WORDS, "words.model")
    (tmp_path / "data.conll").write_text(FILES["conll"])
    code, shown = said([*command, "words.model", "data.conll"], capsys)
    assert code == 1
    assert "cannot read files of columns, because it was trained on attributes" in shown.err


def test_json_of_a_solver_without_a_gradient(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.crfsuite").write_text(FILES["crfsuite"] * 5)
    words = ["train", "data.crfsuite", "m", "--solver", "exponentiated_gradient"]
    _, shown = said([*words, "--json"], capsys)
    fact = json.loads(shown.out, parse_constant=pytest.fail)
    assert fact["gradient_norm"] is None
    _, shown = said(["info", "m", "--json"], capsys)
    json.loads(shown.out, parse_constant=pytest.fail)
    _, shown = said(["info", "m"], capsys)
    assert "nan" not in shown.out


def test_a_page_on_standard_output(tmp_path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    save(WORDS, "words.model")
    (tmp_path / "data.crfsuite").write_text(FILES["crfsuite"])
    with pytest.raises(SystemExit) as ended:
        main(["explore", "words.model", "data.crfsuite", "-o", "-"])
    shown = capsysbinary.readouterr()
    assert ended.value.code in (0, None)
    assert shown.out.startswith(b"<!doctype html>")
    assert not (tmp_path / "-").exists()


def test_a_page_that_cannot_be_written_is_noticed_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, shown = said(["explore", "none.model", "none.conll", "-o", "none/page.html"], capsys)
    assert code == 1
    assert "none/page.html: " in shown.err or "none: " in shown.err
