"""The examples with networks run, and show what they say they show."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_token_classification(example, capsys):
    found = example("token_classification").main()
    assert found["CRF"]["broken"] == 0.0 < found["softmax"]["broken"]
    assert found["CRF"]["f1"] > found["softmax"]["f1"] + 0.1
    assert f"{found['CRF']['f1']:.3f}" in capsys.readouterr().out


def test_the_collator_pads_as_hugging_face_does(example):
    module = example("token_classification")
    batch = module.collate(module.make_sentences(5, 0))
    off = batch["attention_mask"] == 0
    assert off.any()
    assert (batch["labels"][off] == -100).all()
    assert (batch["labels"][~off] >= 0).all()
    assert (batch["input_ids"][off] == 0).all()


def test_ocr_with_a_cnn(example, capsys):
    words = {name: score[1] for name, score in example("ocr_cnn").main().items()}
    assert words["network alone"] < words["joint"]
    assert words["network alone"] + 0.2 < words["two_stage"] < words["two_stage_joint"]
    assert f"{words['joint']:.3f}" in capsys.readouterr().out


@pytest.mark.data
@pytest.mark.slow
def test_the_real_letters(example, monkeypatch):
    """A part of them: the whole takes minutes."""
    module = example("ocr_cnn")
    try:
        (X, y), (X_test, y_test) = module.letters()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    part = (X[:600], y[:600]), (X_test[:100], y_test[:100])
    monkeypatch.setattr(module, "letters", lambda: part)
    found = module.main("letters", passes=6)
    assert found["two_stage_joint"][0] > found["network alone"][0] > 0.6
