"""The command line with files of NeuralCRF: networks of tokens label text, others say why not."""

import json
import os

import numpy as np
import pytest

from chordal.cli import main

from .conftest import SENTENCES, as_text

pytest.importorskip("torch")

WORDS = [[row[0] for row in sentence] for sentence in SENTENCES]
TAGS = [[row[2] for row in sentence] for sentence in SENTENCES]
BARE = as_text(SENTENCES, labels=False).encode()
FULL = as_text(SENTENCES).encode()


@pytest.fixture(scope="module")
def network():
    from chordal.torch import NeuralCRF

    settings = {"hidden": 16, "embedding": 8, "max_iter": 30, "learning_rate": 0.02}
    return NeuralCRF("bilstm", random_state=0, **settings).fit(WORDS, TAGS)


@pytest.fixture(scope="module")
def path(tmp_path_factory, network):
    from chordal import save

    path = tmp_path_factory.mktemp("networks") / "model"
    save(network, path, metadata={"licence": "CC0"})
    return path


@pytest.fixture
def chordal(tmp_path, capsys):
    """chordal("tag", …): a command in this process, which has PyTorch already; what it prints.

    INPUT among the arguments is a file with these bytes.
    """

    def command(*arguments, input=b"", code=0):
        data = tmp_path / "input.txt"
        data.write_bytes(input)
        words = [str(data if word is INPUT else word) for word in arguments]
        with pytest.raises(SystemExit) as end:
            main(words)
        printed = capsys.readouterr()
        assert end.value.code == code, printed.err
        return printed.err if code else printed.out

    return command


INPUT = object()


def test_labels_are_those_of_the_library(chordal, path, network, tmp_path):
    chordal("tag", path, INPUT, "-o", tmp_path / "out", input=BARE)
    out = (tmp_path / "out").read_text()
    found = [[line.split()[2] for line in s.split("\n")] for s in out.strip().split("\n\n")]
    assert found == network.predict(WORDS)
    line = json.dumps({"tokens": WORDS[0]}).encode()
    options = ("--format", "jsonl", "--marginals", "-o", tmp_path / "out")
    chordal("tag", path, INPUT, *options, input=line)
    record = json.loads((tmp_path / "out").read_text())
    assert record["labels"] == network.predict(WORDS[:1])[0]
    best = network.predict_marginals(WORDS[:1])[0].max(axis=1)
    assert record["marginals"] == pytest.approx(best.tolist(), abs=1e-6)


def test_other_ways_of_asking(chordal, path, network, tmp_path):
    out = tmp_path / "out"
    chordal("tag", path, INPUT, "-o", out, "--k-best", 2, input=BARE)
    assert out.read_bytes().count(b"# 1 ") == len(WORDS)
    chordal("tag", path, INPUT, "-o", out, "--text", input=b"the pound is .\n")
    entity = json.loads(out.read_text())["entities"][0]
    assert entity["text"] == "the pound"
    assert 0.0 < entity["probability"] <= 1.0
    chordal("label", "-m", path, "-l", INPUT, out, input=BARE)
    assert out.read_text().split() == [tag for own in network.predict(WORDS) for tag in own]


def test_evaluate(chordal, path, network):
    found = json.loads(chordal("evaluate", INPUT, "--model", path, "--json", input=FULL))
    assert found["accuracy"] == pytest.approx(network.score(WORDS, TAGS))


def test_explore(chordal, path, network, tmp_path):
    from chordal.explore import page

    out = tmp_path / "page.html"
    chordal("explore", path, INPUT, "-o", out, "--title", "words", input=FULL)
    assert out.read_text(encoding="utf-8") == page(network, WORDS, TAGS, title="words")


def test_info(chordal, path, network):
    facts = json.loads(chordal("info", path, "--json"))
    assert facts["labels"] == network.classes_.tolist()
    assert facts["metadata"] == {"licence": "CC0"}
    assert facts["sizes"]["inputs"] == f"{len({w for s in WORDS for w in s})} tokens"
    assert facts["parameters"]["network"] == "bilstm"
    assert facts["fit"]["solver"] == "adam"


def test_numbers_as_tokens(chordal, tmp_path):
    from chordal import save
    from chordal.torch import NeuralCRF

    ids = [[3, 5], [5, 3, 3]]
    model = NeuralCRF("mlp", embedding=4, hidden=4, max_iter=30, learning_rate=0.05, random_state=0)
    save(model.fit(ids, [["a", "b"], ["b", "a", "a"]]), tmp_path / "model")
    chordal("tag", tmp_path / "model", INPUT, "-o", tmp_path / "out", input=b"5\n3\n\n")
    assert (tmp_path / "out").read_text().split() == ["5", "b", "3", "a"]
    message = chordal("tag", tmp_path / "model", INPUT, code=1, input=b"x\n\n")
    assert "tokens are whole numbers, but the data have 'x'" in message


def test_networks_of_other_things_are_refused(chordal, tmp_path):
    from chordal import GridCRF, save
    from chordal.torch import NeuralCRF

    settings = {"hidden": 2, "max_iter": 1, "random_state": 0}
    rows = NeuralCRF("mlp", **settings).fit([np.zeros((2, 3))], [["a", "b"]])
    images = NeuralCRF("mlp", GridCRF(), **settings).fit(
        [np.zeros((2, 2, 1))], [np.eye(2, dtype=int)]
    )
    for model, what in ((rows, "arrays or images"), (images, "examples of a GridCRF")):
        save(model, tmp_path / "model")
        message = chordal("tag", tmp_path / "model", INPUT, code=1, input=BARE)
        assert f"its network reads {what}, but files have tokens" in message
        assert json.loads(chordal("info", tmp_path / "model", "--json"))["labels"]
    message = chordal("inspect", tmp_path / "model", code=1)
    assert "holds a NeuralCRF, not a ChainCRF" in message


def test_without_torch_the_message_says_what_is_missing(refused, path, tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(name='torch')\n")
    before = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{before}"}
    for command in (("tag", path), ("info", path)):
        message = refused(*command, env=environment)
        assert "needs PyTorch" in message
        assert 'pip install "chordal[torch]"' in message
