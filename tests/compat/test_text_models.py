"""Text models of CRF++ and Wapiti, against what the tools themselves say.

data/crfpp.txt and data/wapiti.txt were trained by the tools on the four sentences of TRAIN. The
recorded figures below are what `crf_test -v2` (CRF++ 0.59) and `wapiti label -s -p` print for TEST.
"""

import gzip
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chordal import UnsupportedError, load, save
from chordal.compat.crfpp_model import parse_crfpp, read_crfpp
from chordal.compat.wapiti_model import parse_wapiti, read_wapiti

DATA = Path(__file__).parent / "data"

TRAIN = [
    [["Le", "D", "B"], ["chat", "N", "I"], ["noir", "A", "I"], ["dort", "V", "O"]],
    [["été", "N", "B"], ["dort", "V", "O"]],
    [["Un", "D", "B"], ["chat", "N", "I"]],
    [["L'", "D", "B"], ["Été", "N", "I"], ["noir", "A", "O"], ["dort", "V", "O"]],
]
TEST = [
    [["Le", "D"], ["noir", "A"], ["été", "N"]],
    [["chat", "N"]],
    [["dort", "V"], ["Le", "D"], ["Été", "N"], ["#", "X"]],
]

CRFPP_TEMPLATE = """U00:%x[-1,0]
U01:%x[0,1]
U01:%x[0,1]
U02:%x[0,0]/%x[1,1]
U
B
B01:%x[-1,1]/%x[0,1]
"""
WAPITI_TEMPLATE = r"""*
u:w=%X[0,0]
u:s=%m[ 0,0,".?.?$"]
U:l=%x[@-1,1]
*:c=%t[0,0,"^\u"]
b:p=%x[-1,1]
b
"""


@pytest.fixture(scope="module")
def crfpp():
    return (DATA / "crfpp.txt").read_bytes()


@pytest.fixture(scope="module")
def wapiti():
    return (DATA / "wapiti.txt").read_bytes()


def test_crfpp_agrees_with_crf_test(crfpp):
    model = read_crfpp(DATA / "crfpp.txt")
    assert model.classes_.tolist() == ["B", "I", "O"]
    assert model.predict(TEST) == [["B", "I", "I"], ["B"], ["O", "B", "I", "O"]]
    expected = [
        [0.908240, 0.043024, 0.048736],
        [0.093439, 0.593643, 0.312918],
        [0.247252, 0.606570, 0.146178],
        [0.501089, 0.433118, 0.065792],
        [0.172239, 0.053934, 0.773827],
        [0.875875, 0.063030, 0.061094],
        [0.087850, 0.872523, 0.039626],
        [0.207617, 0.211432, 0.580951],
    ]
    ours = np.concatenate(model.predict_marginals(TEST))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=6e-7)  # six decimals are printed
    chances = [best[0][1] for best in model.k_best(TEST, 1)]
    np.testing.assert_allclose(np.exp(chances), [0.342212, 0.501089, 0.364814], rtol=0, atol=6e-7)


def test_the_cost_factor_multiplies_the_weights(crfpp):
    """`crf_test -c 0.5` says the same."""
    model = read_crfpp(crfpp.replace(b"cost-factor: 1\n", b"cost-factor: 0.5\n"))
    expected = [
        [0.683197, 0.152426, 0.164377],
        [0.187729, 0.455807, 0.356464],
        [0.297067, 0.474332, 0.228601],
    ]
    np.testing.assert_allclose(model.predict_marginals(TEST)[0], expected, rtol=0, atol=6e-7)


def test_wapiti_agrees_with_wapiti_label():
    model = read_wapiti(DATA / "wapiti.txt")
    assert model.predict(TEST) == [["B", "I", "I"], ["I"], ["O", "B", "I", "I"]]
    expected = [[0.935528, 0.896760, 0.351354], [0.483414]]
    expected += [[0.921315, 0.931120, 0.887114, 0.487032]]
    for ours, theirs in zip(model.predict_marginals(TEST), expected, strict=True):
        np.testing.assert_allclose(ours.max(axis=1), theirs, rtol=0, atol=6e-7)


@pytest.mark.parametrize(("read", "name"), [(read_crfpp, "crfpp"), (read_wapiti, "wapiti")])
def test_the_model_is_a_fitted_one(read, name, tmp_path):
    model = read(DATA / f"{name}.txt", n_jobs=2)
    assert model.n_jobs == 2
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict(TEST) == model.predict(TEST)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for ours, theirs in zip(
        loaded.predict_marginals(TEST), model.predict_marginals(TEST), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert len(model.top_features(3)) == len(model.top_transitions(3)) == 3
    X, y = [[row[:2] for row in x] for x in TRAIN], [[row[2] for row in x] for x in TRAIN]
    model.set_params(warm_start=True, max_iter=300, l2=1e-3).fit(X, y)
    assert model.score(X, y) >= 11 / 12


def test_weights_have_their_names(crfpp, wapiti):
    model = parse_crfpp(crfpp)
    first = crfpp.split(b"\n\n")[4].split(b"\n")
    state, pairs = model.placed()
    for k, (observation, label) in enumerate(zip(*state[:2], strict=True)):
        start = int(model.blocks.starts[observation])
        assert state[2][k] == float(first[start + label])
    assert {model.names[k] for k in pairs[0]} >= {b"B", b"B01:D/N"}
    model = parse_wapiti(wapiti)
    state, pairs = model.placed()
    # "*" has numbers 0 to 2 for labels and 3 to 11 for pairs: 4 is from B to I
    assert (model.names[pairs[0][0]], pairs[1][0], pairs[2][0]) == (b"*", 0, 1)
    assert pairs[3][0] == float.fromhex("0x1.116027fbaca14p-1")
    # counted by hand: 129 to 131 are those of the last observation
    assert (model.names[state[0][-1]].decode(), state[1][-1]) == ("u:w=Été", 1)


@pytest.mark.parametrize("cell", ["\u2028", "\x85", "a b", "日本"])
def test_odd_characters_in_names(cell):
    text = (
        "version: 100\ncost-factor: 1\nmaxid: 2\nxsize: 1\n\nA\nB\n\nU0:%x[0,0]\n\n"
        f"0 U0:{cell}\n\n-1.5\n1.5\n"
    )
    assert read_crfpp(text.encode()).predict([[[cell], ["?"]]]) == [["B", "A"]]


CRFPP_DAMAGE = [
    (lambda c: b"", 'must begin with "version: ", got '),
    (lambda c: b"d\0\0\0\0", "the text model that crf_learn -t writes"),
    (lambda c: c.replace(b"version: 100", b"version: 200"), "version must be 100 to 199, got 200"),
    (lambda c: c.replace(b"maxid: ", b"maxid: x"), "header must hold numbers"),
    (lambda c: c.replace(b"maxid: ", b"maxid: 9"), r"must have 9\d+ weights, got \d+"),
    (lambda c: c.replace(b"maxid", b"maximum"), "must have a number maxid, got None"),
    (lambda c: c.replace(b"cost-factor: 1", b"cost-factor: nan"), "cost-factor, got nan"),
    (lambda c: c[:200], "cut off: it must have 5 parts"),
    (lambda c: c[:-30], r"weights, got \d+"),
    (lambda c: c.replace(b"\n\nU00", b"\n\nV00", 1), "template must begin with U or B"),
    (lambda c: c.replace(b" U01:N", b""), "a number and a name"),
    (lambda c: c.replace(b" U01:N", b"99999999999999999999 U01:N"), "64 bits|no observation|over"),
    (lambda c: c.replace(b"\nB\nI\n", b"\nB\nB\n"), "'B' twice"),
    (lambda c: c.replace(b"\nB\nI\n", b"\nB\n\xff\n"), "labels must be UTF-8"),
    (lambda c: c[:-20] + b"nan\n", "weights"),
    (lambda c: c.rstrip()[:-3] + b"abc\n", "weights must be numbers"),
    (lambda c: re.sub(rb"\n\d+ U01:N", b"\n0 U01:N", c), "overlap|no observation"),
]


@pytest.mark.parametrize(("damage", "message"), CRFPP_DAMAGE)
def test_a_damaged_crfpp_model_is_refused(crfpp, damage, message):
    with pytest.raises(ValueError, match=f"not a sound text model of CRF.*({message})"):
        read_crfpp(damage(crfpp))


def test_a_template_with_white_space_at_its_ends_is_refused(crfpp):
    with pytest.raises(UnsupportedError, match="white space"):
        read_crfpp(crfpp.replace(b"U00:%x[-1,0]\n", b"U00:%x[-1,0]\r\n"))


WAPITI_DAMAGE = [
    (lambda c: b"", "expected a line #mdl# at byte 0"),
    (lambda c: c[5:], "expected a line #mdl#"),
    (lambda c: c.replace(b"#mdl#2#27", b"#mdl#2#99999999"), "asks for 99999999 entries"),
    (lambda c: c.replace(b"#mdl#2#27", b"#mdl#2#26"), "must have 26 weights, got 27"),
    (lambda c: c.replace(b"#rdr#7", b"#rdr#8"), "entry 7 of the patterns is damaged"),
    (lambda c: c.replace(b"#qrk#3", b"#qrk#4"), "entry 3 of the labels is damaged"),
    (lambda c: c.replace(b"#qrk#3", b"#qrk#2"), "line #qrk# of the observations"),
    (lambda c: c.replace(b"1:b,\n#", b"1:v,\n#"), "patterns must begin with u, b or"),
    (lambda c: c.replace(b"5:u:l=V,", b"5:x:l=V,"), "observations must begin with u, b or"),
    (lambda c: c.replace(b"5:u:l=V,", b"6:u:l=V,"), "entry 3 of the observations is damaged"),
    (lambda c: c.replace(b"5:u:l=V,", b"99999999999:u:l=V,"), "entry 3 of the observations"),
    (lambda c: c.replace(b"1:I,", b"1:B,"), "'B' twice"),
    (lambda c: c.replace(b"\n130=", b"\n13000="), "weight 13000 belongs to no observation"),
    (lambda c: c.replace(b"\n6=", b"\n4="), "weight 4 must be given once"),
    (lambda c: c.replace(b"\n6=", b"\n-6="), "belongs to no observation"),
    (lambda c: c.replace(b"\n4=0x1", b"\n4=nan "), "number"),
    (lambda c: c.replace(b"\n4=0x1.116027fbaca14p-1", b"\n4=inf"), "must be numbers up to"),
    (lambda c: c.replace(b"p-4\n", b"p-4 4=1\n"), "weights"),
    (lambda c: c[:-30], "weights"),
]


@pytest.mark.parametrize(("damage", "message"), WAPITI_DAMAGE)
def test_a_damaged_wapiti_model_is_refused(wapiti, damage, message):
    assert damage(wapiti) != wapiti
    with pytest.raises(ValueError, match=f"not a sound text model of Wapiti: .*{message}"):
        read_wapiti(damage(wapiti))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda c: c.replace(b"#mdl#2#", b"#mdl#1#"), "maximum-entropy Markov model"),
        (lambda c: b"#mdl#2#0\n#rdr#0/0/0\n#qrk#1\n1:B,\n#qrk#1\n2:ux,\n", "without patterns"),
    ],
)
def test_other_kinds_of_wapiti_models_are_refused(wapiti, damage, message):
    with pytest.raises(UnsupportedError, match=message):
        read_wapiti(damage(wapiti))


def test_the_older_header_of_wapiti(wapiti):
    old = wapiti.replace(b"#mdl#2#27", b"#mdl#27").replace(b"#rdr#7/1/0", b"#rdr#7/1")
    assert read_wapiti(old).predict(TEST) == read_wapiti(wapiti).predict(TEST)


@pytest.mark.parametrize("name", ["crfpp", "wapiti"])
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_flipped_bits(name, data):
    """Any file gives a working model or a ValueError."""
    content = bytearray((DATA / f"{name}.txt").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    end = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    try:
        model = (read_crfpp if name == "crfpp" else read_wapiti)(bytes(content[:end]))
        marginals = model.predict_marginals([[["Le", "D", "", ""], ["été", "N", "", ""]]])
    except ValueError:
        return
    np.testing.assert_allclose(marginals[0].sum(axis=1), 1.0, rtol=0, atol=1e-5)


def lines_of(sequences):
    return "\n\n".join("\n".join(" ".join(row) for row in x) for x in sequences) + "\n\n"


def columns_printed(text):
    """Sequences of rows, without the lines that tell a sequence's probability."""
    blocks = re.split("\n\n+", text.strip("\n"))
    return [
        [re.split("[\t ]", line) for line in block.split("\n") if not re.match("# [0-9]", line)]
        for block in blocks
    ]


def assert_crfpp_agrees(peer, model_file, text_model, X):
    model = read_crfpp(text_model)
    printed = columns_printed(peer("crf_test", "-v2", "-m", model_file, text=lines_of(X)))
    n = len(model.classes_)
    assert [[row[-n - 1].rsplit("/", 1)[0] for row in rows] for rows in printed] == model.predict(X)
    for rows, ours in zip(printed, model.predict_marginals(X), strict=True):
        cells = [dict(cell.rsplit("/", 1) for cell in row[-n:]) for row in rows]
        theirs = [[float(cell[c]) for c in model.classes_] for cell in cells]
        # CRF++ prints six decimals, and adds weights in single precision
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1.5e-6)


def assert_wapiti_agrees(peer, model_file, X):
    model = read_wapiti(model_file)
    tags = columns_printed(peer("wapiti", "label", "-m", model_file, text=lines_of(X)))
    assert [[row[-1] for row in rows] for rows in tags] == model.predict(X)
    scored = columns_printed(
        peer("wapiti", "label", "-m", model_file, "-p", "-s", text=lines_of(X))
    )
    for rows, ours in zip(scored, model.predict_marginals(X), strict=True):
        theirs = [float(row[-1].rsplit("/", 1)[1]) for row in rows]
        np.testing.assert_allclose(ours.max(axis=1), theirs, rtol=0, atol=6e-7)


@pytest.mark.parametrize("options", [["-c", "3"], ["-a", "CRF-L1"], ["-f", "2"]])
def test_the_real_crfpp_agrees(peer, tmp_path, options):
    (tmp_path / "template").write_text(CRFPP_TEMPLATE)
    (tmp_path / "train").write_text(lines_of(TRAIN))
    model = tmp_path / "model"
    peer("crf_learn", "-t", *options, tmp_path / "template", tmp_path / "train", model)
    X = [[row[:2] for row in x] for x in TRAIN] + TEST
    assert_crfpp_agrees(peer, model, tmp_path / "model.txt", X)


@pytest.mark.parametrize("options", [[], ["-1", "0", "-2", "1"], ["--type", "maxent"], ["-c"]])
def test_the_real_wapiti_agrees(peer, tmp_path, options):
    (tmp_path / "pattern").write_text(WAPITI_TEMPLATE)
    (tmp_path / "train").write_text(lines_of(TRAIN))
    model = tmp_path / "model"
    peer("wapiti", "train", *options, "-p", tmp_path / "pattern", tmp_path / "train", model)
    assert_wapiti_agrees(peer, model, [[row[:2] for row in x] for x in TRAIN] + TEST)


@pytest.fixture(scope="module")
def conll():
    """Sentences of CoNLL-2000: a few to train on, and all of the test set."""
    folder = os.environ.get("CHORDAL_DATA")
    if not folder:
        pytest.skip("CHORDAL_DATA names no folder with data sets")
    parts = []
    for name in ("train", "test"):
        with gzip.open(Path(folder) / "conll2000" / f"{name}.txt.gz", "rt") as file:
            parts.append(columns_printed(file.read()))
    return parts[0][:400], [[row[:2] for row in rows] for rows in parts[1]]


CHUNKING = "".join(
    [f"U0{k}:%x[{k - 2},0]\n" for k in range(5)]
    + [f"U1{k}:%x[{k - 2},1]\n" for k in range(5)]
    + [f"U2{k}:%x[{k - 1},1]/%x[{k},1]\n" for k in range(2)]
    + ["B\n", "B1:%x[0,1]\n"]
)


@pytest.mark.data
@pytest.mark.slow
def test_crfpp_on_conll2000(peer, tmp_path, conll):
    (tmp_path / "template").write_text(CHUNKING)
    (tmp_path / "train").write_text(lines_of(conll[0]))
    model = tmp_path / "model"
    peer("crf_learn", "-t", "-m", "20", tmp_path / "template", tmp_path / "train", model)
    assert_crfpp_agrees(peer, model, tmp_path / "model.txt", conll[1])


@pytest.mark.data
@pytest.mark.slow
def test_wapiti_on_conll2000(peer, tmp_path, conll):
    affixes = ['*:p=%m[0,0,"^.?.?"]', '*:s=%m[0,0,".?.?.?$"]', r'u:c=%t[0,0,"^\u\l*$"]']
    (tmp_path / "pattern").write_text(CHUNKING + "\n".join(affixes))
    (tmp_path / "train").write_text(lines_of(conll[0]))
    model = tmp_path / "model"
    peer("wapiti", "train", "-i", "20", "-p", tmp_path / "pattern", tmp_path / "train", model)
    assert_wapiti_agrees(peer, model, conll[1])
