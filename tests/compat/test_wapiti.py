"""Wapiti's models written, and blocks of text labelled, against what Wapiti itself prints.

The recorded figures are what `wapiti label` (1.5.0) prints for BLOCK with data/wapiti.txt.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from chordal import ChainCRF, FeatureTemplate, UnsupportedError, load, save
from chordal.compat.crfpp_model import read_crfpp
from chordal.compat.wapiti import Model
from chordal.compat.wapiti_model import parse_wapiti, read_wapiti, write_wapiti

DATA = Path(__file__).parent / "data"

# Empty lines, more columns than asked for, spaces before a line, ends of lines of Windows.
BLOCK = """Le D
noir A
été N


chat\tN   extra columns
\x20 \t
  dort V
Le D x
Été N
# X
Un D\r
chat N\r
\r
L' D"""

OPTIONS = {
    (): {},
    ("-l",): {"labels_only": True},
    ("-s",): {"scores": True},
    ("-p", "-l"): {"posteriors": True, "labels_only": True},
    ("-p", "-s"): {"posteriors": True, "scores": True},
    ("-n", "3"): {"n_best": 3},
    ("-n", "3", "-s"): {"n_best": 3, "scores": True},
    ("-n", "3", "-s", "-p"): {"n_best": 3, "scores": True, "posteriors": True},
}


@pytest.fixture(scope="module")
def model():
    return Model(DATA / "wapiti.txt")


def test_a_block_of_text(model):
    assert model.label(BLOCK) == (
        "Le D\tB\nnoir A\tI\nété N\tI\n\nchat\tN   extra columns\tI\n\n  dort V\tO\nLe D x\tB\n"
        "Été N\tI\n# X\tO\nUn D\r\tB\nchat N\r\tI\n\nL' D\tB\n\n"
    )
    assert model.label(BLOCK, labels_only=True) == "B\nI\nI\n\nI\n\nO\nB\nI\nO\nB\nI\n\nB\n\n"


def test_posteriors(model):
    assert model.label(BLOCK, scores=True, posteriors=True) == (
        "# 0 0.294766\nLe D\tB\tB/0.935528\nnoir A\tI\tI/0.896760\nété N\tI\tI/0.351354\n\n"
        "# 0 0.483414\nchat\tN   extra columns\tI\tI/0.483414\n\n"
        "# 0 0.333630\n  dort V\tO\tO/0.921285\nLe D x\tB\tB/0.930811\nÉté N\tI\tI/0.886803\n"
        "# X\tO\tO/0.483884\nUn D\r\tB\tB/0.949316\nchat N\r\tI\tI/0.955060\n\n"
        "# 0 0.507684\nL' D\tB\tB/0.507684\n\n"
    )


def test_scores_add_up(model):
    """By the model's own log-likelihood, a road that knows no scores."""
    text = "Le D\nnoir A\nété N\n"
    blocks = model.label(text, n_best=27, scores=True).strip("\n").split("\n\n")
    assert len(blocks) == len(set(blocks)) == 27
    scores, chances = [], []
    for rank, block in enumerate(blocks):
        head, *lines = block.split("\n")
        score = float(head.removeprefix(f"# {rank} "))
        local = [float(line.rsplit("/", 1)[1]) for line in lines]
        assert sum(local) == pytest.approx(score, abs=2e-6)
        labels = [line.split("\t")[1] for line in lines]
        rows = [line.split() for line in text.splitlines()]
        scores.append(score)
        chances.append(model.crf.log_likelihood([rows], [labels])[0])
    assert scores == sorted(scores, reverse=True)
    differences = np.subtract(scores, chances)  # log Z, of every one of them
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=2e-6)


def test_n_best_of_posteriors(model):
    """All labellings of one sequence, by brute force."""
    rows = [["Le", "D"], ["noir", "A"], ["été", "N"]]
    table = model.crf.predict_marginals([rows])[0]
    every = sorted(float(np.prod(c)) for c in np.stack(np.meshgrid(*table), -1).reshape(-1, 3))
    text = model.label("Le D\nnoir A\nété N", n_best=30, scores=True, posteriors=True)
    found = [float(line.split()[2]) for line in text.splitlines() if line.startswith("# ")]
    np.testing.assert_allclose(found, every[::-1], rtol=0, atol=1e-6)


def test_nothing_to_label(model):
    for text in ("", "\n\n", " \t\n"):
        for options in OPTIONS.values():
            assert model.label(text, **options) == ""


def test_misuse(model):
    with pytest.raises(
        ValueError, match="line 4 must have 2 columns for the model's patterns, got 1"
    ):
        model.label("Le D\n\nUn D\nchat\n")
    with pytest.raises(ValueError, match="n_best must be"):
        model.label("Le D", n_best=0)
    other = Model((DATA / "wapiti.txt").read_bytes())
    with other:
        assert other.label("Le D", labels_only=True) == "B\n\n"
    with pytest.raises(ValueError, match="the model is closed"):
        other.label("Le D")


def test_many_threads_on_one_model(model):
    """Each has its own text; a model that closes lets those at work finish."""
    words = [line.split()[:2] for line in BLOCK.split("\n") if line.strip()]
    draw = np.random.default_rng(0)
    texts = [
        "\n".join(" ".join(words[k]) for k in draw.integers(len(words), size=n))
        for n in draw.integers(1, 30, size=60)
    ]
    options = [list(OPTIONS.values())[k % len(OPTIONS)] for k in range(len(texts))]
    alone = [model.label(text, **o) for text, o in zip(texts, options, strict=True)]
    shared = Model(DATA / "wapiti.txt")
    start = threading.Barrier(8)

    def work(seed):
        start.wait()
        order = np.random.default_rng(seed).permutation(len(texts))
        return all(shared.label(texts[k], **options[k]) == alone[k] for k in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


# ----------------------------------------------------------------------------------------- writing

TRAIN = [
    [["Le", "D", "B"], ["chat", "N", "I"], ["noir", "A", "I"], ["dort", "V", "O"]],
    [["été", "N", "B"], ["dort", "V", "O"]],
    [["Un", "D", "B"], ["chat", "N", "I"]],
    [["L'", "D", "B"], ["Été", "N", "I"], ["noir", "A", "O"], ["dort", "V", "O"]],
]
X, Y = [[row[:2] for row in x] for x in TRAIN], [[row[2] for row in x] for x in TRAIN]
TEMPLATES = {
    "all kinds": r"""*
u:w=%X[0,0]
u:s=%m[ 0 ,00,".?.?$"]
U:l=%x[@-1,1]
# a comment
*:c=%t[+1,0, "^\u\"?" ]

b:p=%x[-1,1]
b
b
""",
    "lines that count twice": "U:%x[0,0]\nU:%x[0,0]\nB:t\nB:t\nB:t\n*:%x[0,1]\n*:%x[0,1]",
    "no transitions": "u:%x[0,0]/%x[-5,1]/%x[2,0]",
    "pairs alone": "b:%x[0,0]\nb",
}


def trained(template, dialect="wapiti", **parameters):
    parameters = {"l2": 0.1, "pairs": "all", **parameters}
    return ChainCRF(feature_template=FeatureTemplate(template, dialect), **parameters).fit(X, Y)


def assert_same(one, other, rows):
    assert one.predict(rows) == other.predict(rows)
    for a, b in zip(one.predict_marginals(rows), other.predict_marginals(rows), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_written_model_reads_the_same(template, tmp_path):
    crf = trained(template)
    write_wapiti(crf, tmp_path / "model")
    again = read_wapiti(tmp_path / "model")
    assert_same(crf, again, X)
    save(crf, tmp_path / "own")
    write_wapiti(load(tmp_path / "own"), tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "model").read_bytes()
    write_wapiti(again, tmp_path / "third")
    assert_same(crf, read_wapiti(tmp_path / "third"), X)


def test_the_parts_of_a_written_model(tmp_path):
    write_wapiti(trained(TEMPLATES["all kinds"]), tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    parsed = parse_wapiti(content)
    assert parsed.lines == [
        "*",
        "u:w=%X[0,0]",
        'u:s=%m[0,0,".?.?$"]',
        "u:l=%x[@-1,1]",
        r'*:c=%t[1,0,"^\u\"?"]',
        "b:p=%x[-1,1]",
        "b",
        "b",
    ]
    assert b"#rdr#8/1/0\n" in content
    assert parsed.labels == ["B", "I", "O"]
    assert {name[:1] for name in parsed.names} == {b"u", b"b", b"*"}
    assert len(parsed.weights) == np.count_nonzero(parsed.weights)
    assert (np.diff(parsed.ids) > 0).all()


def test_a_template_of_crfpp_that_means_the_same(tmp_path):
    crf = trained("U0:%x[0,0]/%x[0,1]\nB\nB1:%x[0,1]", "crf++")
    write_wapiti(crf, tmp_path / "model")
    assert_same(crf, read_wapiti(tmp_path / "model"), X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChainCRF().fit([[["a"]]], [["A"]]), "features of its own: .*feature_template"),
        (lambda: trained("u:%s[0,0]"), "shapes: %s\\[0,0\\] in the line 'u:%s"),
        (lambda: trained("U:%x[-1,0]", "crf++"), 'in CRF\\+\\+\'s meaning .*"wapiti"'),
        (lambda: trained("U:%X[0,0]", "crf++"), "in CRF\\+\\+'s meaning"),
        (lambda: read_crfpp(DATA / "crfpp.txt"), "in CRF\\+\\+'s meaning"),
        (lambda: trained("u:%x[0,0]", fit_intercept=True), "the weights of fit_intercept=True"),
        (lambda: trained("u:%x[0,0]", ends=True), "the weights of ends=True"),
        (lambda: trained("u:%x[0,0]\nU:%x[0,0]"), "the case of their first letter"),
        (lambda: trained("u:%x[0,0]", l1=1e6), "a model without weights"),
    ],
)
def test_what_wapiti_does_not_know_is_refused(make, message, tmp_path):
    with pytest.raises(UnsupportedError, match=f"a Wapiti model cannot hold .*{message}"):
        write_wapiti(make(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("labels", [["", "B"], [1, 2], ["a\0b", "B"]])
def test_labels_that_wapiti_does_not_know(labels, tmp_path):
    template = FeatureTemplate("u:%x[0,0]", "wapiti")
    crf = ChainCRF(feature_template=template).fit([[["a"], ["b"]]], [labels])
    with pytest.raises(UnsupportedError, match=r"the label .*: it must be a str, neither"):
        write_wapiti(crf, tmp_path / "model")


# --------------------------------------------------------------------------------- Wapiti itself


def same_numbers(text, other):
    """Equal up to the last printed decimal; `peer` has made \\r the end of a line."""
    text, other = text.replace("\r", "\n"), other.replace("\r", "\n")
    assert len(text.split("\n")) == len(other.split("\n"))
    for a, b in zip(text.split("\n"), other.split("\n"), strict=True):
        if a == b:
            continue
        a, b = (line.replace("# ", "# /").replace(" ", "/").rsplit("/", 1) for line in (a, b))
        assert a[0] == b[0]
        assert float(a[1]) == pytest.approx(float(b[1]), abs=2e-6)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_real_wapiti_labels_a_block_alike(peer, model, options):
    printed = peer("wapiti", "label", "-m", DATA / "wapiti.txt", *options, text=BLOCK)
    same_numbers(printed, model.label(BLOCK, **OPTIONS[options]))


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_the_real_wapiti_reads_what_is_written(peer, template, tmp_path):
    crf = trained(template)
    write_wapiti(crf, tmp_path / "model")
    text = "\n\n".join("\n".join(" ".join(row) for row in x) for x in X) + "\n"
    options = ["label", "-m", tmp_path / "model", "-l"]
    printed = peer("wapiti", *options, text=text)
    assert [block.split("\n") for block in printed.strip("\n").split("\n\n")] == crf.predict(X)
    printed = peer("wapiti", *options, "-s", "-p", text=text)
    blocks = [block.split("\n")[1:] for block in printed.strip("\n").split("\n\n")]
    for lines, table in zip(blocks, crf.predict_marginals(X), strict=True):
        theirs = [float(line.rsplit("/", 1)[1]) for line in lines]
        np.testing.assert_allclose(table.max(axis=1), theirs, rtol=0, atol=6e-7)
    same_numbers(
        printed,
        Model(tmp_path / "model").label(text, labels_only=True, scores=True, posteriors=True),
    )
