"""The examples with networks run, and show what they say they show."""

import importlib
import math
from itertools import pairwise, product
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # on a busy machine, several wait for each other most of the time
    yield importlib.import_module
    torch.set_num_threads(before)


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


def test_segmentation_by_a_network(example, capsys):
    found = example("segmentation_network").main()
    assert found["linear, pixels alone"] < found["linear, linked"] < found["network, linked"]
    assert found["network, pixels alone"] + 0.03 < found["network, linked"]
    assert f"{found['network, linked']:.3f}" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*does not define `arg_constraints`")  # of torch-struct
def test_moving_from_other_layers(example, capsys):
    """Where the other libraries are installed they agree; our side is checked by all labellings."""
    module = example("moving_layers")
    found = module.main()
    assert len(found) == 6
    assert all(math.isnan(apart) or apart < 1e-9 for apart in found.values())
    assert capsys.readouterr().out.count("\n") == 6
    crf, (emissions, tags, mask) = module.layer(), module.data()
    likelihood = module.as_pytorch_crf(crf)["log-likelihood"]
    log_z = module.as_torch_struct(crf)["log Z"]
    for b, length in enumerate(mask.sum(1).tolist()):
        scores = {}
        for path in product(range(4), repeat=length):
            total = crf.start_transitions[path[0]] + crf.end_transitions[path[-1]]
            total = total + sum(emissions[b, t, tag] for t, tag in enumerate(path))
            total = total + sum(crf.transitions[i, j] for i, j in pairwise(path))
            scores[path] = float(total.detach())
        every = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0)
        gold = scores[tuple(tags[b, :length].tolist())]
        assert float(likelihood[b].detach()) == pytest.approx(gold - float(every))
        if length > 1:
            assert float(log_z[b].detach()) == pytest.approx(float(every))


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
