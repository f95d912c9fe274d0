"""Files of NeuralCRF: one safe file, and hostile ones are refused before they do harm."""

import json

import numpy as np
import pytest

import chordal
from chordal import ModelFileError
from chordal._container import read, write
from chordal.torch import NeuralCRF

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
Y = [RNG.integers(2, size=n).tolist() for n in (3, 5, 1, 4)]
DENSE = [np.eye(2)[s] for s in Y]
IMAGES = [np.array([np.full((5, 3), v) for v in s], dtype=float) for s in Y]
TOKENS = [["ab"[v] for v in s] for s in Y]
CASES = [
    (network, X)
    for network in ("mlp", "cnn", "bilstm")
    for X in (DENSE, IMAGES, TOKENS)
]  # fmt: skip


def small(network="mlp", **settings):
    sizes = {"hidden": 4, "embedding": 3, "channels": 2, "max_iter": 2, "random_state": 0}
    return NeuralCRF(network, **{**sizes, **settings})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


@pytest.mark.parametrize(("network", "X"), CASES)
def test_there_and_back(network, X, path):
    model = small(network, dropout=0.5).fit(X, Y)
    chordal.save(model, path, metadata={"licence": "CC0"})
    torch.manual_seed(1)
    before = torch.rand(1)
    torch.manual_seed(1)
    loaded = chordal.load(path, NeuralCRF)
    assert torch.rand(1) == before
    assert loaded.get_params() == model.get_params()
    for a, b in zip(model.predict_marginals(X), loaded.predict_marginals(X), strict=True):
        assert (a == b).all()
    assert loaded.predict(X) == model.predict(X)
    assert loaded.fit_report_.history == model.fit_report_.history
    assert loaded.set_params(warm_start=True).fit(X, Y).n_iter_ == 2


def test_it_is_safetensors_with_names_in_its_header(path):
    chordal.save(small().fit(DENSE, Y), path)
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    facts = json.loads(header["__metadata__"]["model"])
    assert facts["class"] == "NeuralCRF"
    assert facts["parameters"]["network"] == "mlp"
    assert header["weights"]["dtype"] == "F32"
    assert b"torch" not in raw


def test_a_module_of_ones_own_is_given_again(path):
    own = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    model = small(own).fit(DENSE, Y)
    chordal.save(model, path)
    with pytest.raises(
        ModelFileError, match=r"a file contains no code: .* load\(path, network=…\)"
    ):
        chordal.load(path)
    with pytest.raises(ModelFileError, match="the network has 6 weights, but the file 22"):
        chordal.load(path, network=torch.nn.Linear(2, 2))
    loaded = chordal.load(path, network=own)
    assert (loaded.predict_marginals(DENSE)[1] == model.predict_marginals(DENSE)[1]).all()
    factory = small(lambda n_in, n_out: torch.nn.Linear(n_in, n_out)).fit(DENSE, Y)
    chordal.save(factory, path)
    again = chordal.load(path, network=torch.nn.Linear)
    assert again.predict(DENSE) == factory.predict(DENSE)


def test_a_network_is_not_given_to_a_file_that_names_one(path):
    chordal.save(small().fit(DENSE, Y), path)
    with pytest.raises(ModelFileError, match="network was given, but the NeuralCRF does not"):
        chordal.load(path, network="cnn")


def changed(facts, keys, value):
    *outer, last = keys
    for key in outer:
        facts = facts[key]
    facts[last] = value


HOSTILE = [
    (("parameters", "hidden"), 1_000_000, "weights, but the file"),
    (("parameters", "hidden"), 10**12, "hidden must be at most"),
    (("parameters", "hidden"), -1, "hidden must be an integer of at least 1"),
    (("parameters", "hidden"), "4", "hidden must be an integer"),
    (("parameters", "n_layers"), 10**9, "n_layers must be at most 100"),
    (("parameters", "network"), "os.system", "network must be one of"),
    (("parameters", "network"), None, "network must be one of"),
    (("parameters", "device"), "no such", "device must be one that PyTorch knows"),
    (("parameters", "more"), 1, "unexpected keyword"),
    (("inputs", "shape"), [10**7], "weights, but the file"),
    (("inputs", "shape"), [10**9], "the shape of inputs must be"),
    (("inputs", "shape"), [2.5], "the shape of inputs must be"),
    (("inputs", "shape"), [-2], "the shape of inputs must be"),
    (("inputs", "shape"), "2", "the shape of inputs must be"),
    (("inputs",), None, "not a valid model"),
    (("crf", "labels", "labels"), [0, 0], "a label occurs twice"),
    (("crf", "labels", "labels"), list(range(1000)), "needs tables of 1000 × 1000 scores"),
    (("crf", "templates"), [], "not a valid model"),
    (("crf",), None, "not a valid model"),
    (("parameters", "crf"), {"class": "os.system", "parameters": {}}, "class of crf must be one"),
    (("parameters", "crf"), {"class": "TemplateCRF", "parameters": {}}, "not a valid model"),
    (("parameters", "crf"), 3, "crf must be a ChainCRF, GridCRF or GraphCRF"),
    (("reports",), [{"status": "GONE"}], "not a valid model"),
    (("objective",), "x", "not a valid model"),
    (("class",), "Estimator", "its class must be one of"),
]


@pytest.mark.parametrize(("keys", "value", "message"), HOSTILE)
def test_hostile_facts(keys, value, message, path):
    chordal.save(small().fit(DENSE, Y), path)
    facts, arrays = read(path)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    changed(facts, keys, value)
    write(path, facts, arrays)
    with pytest.raises(ModelFileError, match=message):
        chordal.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["a"]', "belongs to tokens"),
        ("[null]", "vocabulary must be a list"),
        ("{}", "vocabulary must be a list"),
        ("[" * 100_000, "vocabulary must be a list"),
        ("", "not a valid model"),
        ("\udcff", "not a valid model"),
    ],
)
def test_hostile_tokens(text, message, path):
    chordal.save(small().fit(DENSE, Y), path)
    facts, arrays = read(path)
    content = text.encode(errors="surrogateescape")
    write(path, facts, {**arrays, "tokens": np.frombuffer(content, dtype=np.uint8)})
    with pytest.raises(ModelFileError, match=message):
        chordal.load(path)


def test_tokens_of_older_files_are_facts(path):
    X = [["the", "cat"], ["dog"]]
    model = small().fit(X, [["D", "N"], ["N"]])
    chordal.save(model, path)
    facts, arrays = read(path)
    facts["inputs"]["tokens"] = json.loads(arrays["tokens"].tobytes())
    write(path, facts, {name: own for name, own in arrays.items() if name != "tokens"})
    assert chordal.load(path).predict(X) == model.predict(X)


def test_a_vocabulary_longer_than_a_header_may_be(path):
    X = [["a" * 9_000_000, "b"]]
    model = small().fit(X, [["D", "N"]])
    chordal.save(model, path)
    assert chordal.load(path).predict(X) == model.predict(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_hostile_weights(value, path):
    chordal.save(small().fit(DENSE, Y), path)
    facts, arrays = read(path)
    weights = np.array(arrays["weights"], dtype=np.float64)
    weights[3] = value
    others = {name: np.array(array) for name, array in arrays.items()}
    with np.errstate(invalid="ignore"):
        write(path, facts, {**others, "weights": weights})
    with pytest.raises(ModelFileError, match="weights must be numbers of magnitude up to"):
        chordal.load(path)
    write(path, facts, {**others, "weights": np.zeros(3)})
    with pytest.raises(ModelFileError, match=r"the network has \d+ weights, but the file 3"):
        chordal.load(path)
