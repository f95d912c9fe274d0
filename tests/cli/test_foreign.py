"""Options of crf_learn and wapiti train mean in chordal train what they mean there."""

import json
from itertools import pairwise

import numpy as np
import pytest
import typer

from chordal import ChainCRF, FeatureTemplate, load
from chordal.cli._foreign import Given

from .conftest import SENTENCES, TEMPLATE

ROWS = [[list(row[:2]) for row in s] for s in SENTENCES]
LABELS = [[row[2] for row in s] for s in SENTENCES]


@pytest.fixture
def train(chordal, files, tmp_path):
    """train(options…): the model that these options give."""

    def command(*options, template=True):
        given = ["-t", files / "template"] if template else []
        chordal("train", "-q", *given, *options, files / "train.txt", tmp_path / "m")
        return load(tmp_path / "m")

    return command


def test_frequency_counts_attributes_as_in_crfpp(train):
    """An attribute that is seen twice with two labels is kept, with a weight for every label."""
    crf = train("-f", "2", "-c", "4")
    assert (crf.min_freq, crf.pairs, crf.l2) == (2, "all", 0.25)
    template = FeatureTemplate(TEMPLATE)
    counts = {}
    for sentence in ROWS:
        for line in TEMPLATE.splitlines()[:4]:
            name, (offset, column) = line[:3], eval(line[5:])
            for t in range(len(sentence)):
                k = t + offset
                if 0 <= k < len(sentence):
                    key = name + sentence[k][column]
                    counts[key] = counts.get(key, 0) + 1
    kept = {name for name, _, _ in crf.top_features(10**9)}
    assert {key for key in kept if key in counts} == {key for key in counts if counts[key] >= 2}
    same = ChainCRF(
        feature_template=template, l2=0.25, min_freq=2, pairs="all", transitions="all"
    ).fit(ROWS, LABELS)
    np.testing.assert_array_equal(crf.weights_, same.weights_)
    assert (train("--freq", "2", "--cost", "4").weights_ == crf.weights_).all()


def test_threads_and_iterations(train, files):
    """-t N and -p N are threads, which change nothing; -i and --maxiter are iterations."""
    crf = train("-i", "3", "-p", "2")
    assert crf.max_iter == 3
    assert (train("--maxiter", "3", "--nthread", "2").weights_ == crf.weights_).all()
    pattern = ["-p", files / "template", "-t", "2", "-i", "3", "--dialect", "crf++"]
    assert (train(*pattern, template=False).weights_ == crf.weights_).all()
    assert train("-p", files / "template", template=False).feature_template.dialect == "wapiti"
    found = train("--rho1", "0.5", "--rho2", "0.25")
    assert (found.l1, found.l2) == (0.5, 0.25)


def histories(**parameters):
    """The objective, and the share of right labels, after each iteration."""
    values, shares = [], []
    crf = ChainCRF(feature_template=FeatureTemplate(TEMPLATE), tol=0.0, max_iter=60, **parameters)

    def callback(state):
        values.append(state.value)
        shares.append(state.score)

    crf.set_params(validation_interval=1)
    crf.fit(ROWS, LABELS, validation_data=(ROWS, LABELS), callback=callback)
    return values, shares


@pytest.mark.parametrize("option", ["--eta", "-e"])
def test_eta_stops_as_crfpp_does(train, option):
    """Three times in a row, the objective changed by less than this share of what it was."""
    values, _ = histories(l2=1.0)
    falls = [1.0] + [abs(a - b) / a for a, b in pairwise(values)]
    eta = 0.01
    slow = [all(fall < eta for fall in falls[k - 3 : k]) for k in range(3, len(falls))]
    expected = slow.index(True) + 3
    assert 3 < expected < 60
    assert train("-c", "1", option, eta).n_iter_ == expected


@pytest.mark.parametrize(("epsilon", "window"), [(20.0, 3), (0.02, 4), (0.001, 30)])
def test_wapiti_stops_by_errors_or_the_objective(train, epsilon, window):
    values, shares = histories(l2=1.0)
    errors = [100 * (1 - share) for share in shares]
    for n in range(1, len(values) + 1):
        last = errors[max(n - window, 0) : n]
        if n >= window and max(last) - min(last) < epsilon:
            break
        if n > 5 and abs(values[n - 5] - values[n - 1]) / values[n - 5] < epsilon:
            break
    assert n < 60
    assert train("-w", window, "-e", epsilon).n_iter_ == n
    assert train("--stopwin", window, "--stopeps", epsilon).n_iter_ == n


def test_a_stop_by_errors_of_other_data(chordal, files, tmp_path):
    """With -d, Wapiti looks at the errors there."""
    (tmp_path / "devel.txt").write_text("He PRP O\n\n")  # always wrong: steady at once
    words = ["train", "-t", files / "template", files / "train.txt", tmp_path / "m", "--json"]
    found = json.loads(chordal(*words, "-d", tmp_path / "devel.txt", "-w", "3", "-e", "0.5"))
    assert (found["iterations"], found["status"]) == (3, "stopped")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", "0.1"], "-e is --eta of CRF++ or --stopeps of Wapiti"),
        (["-e", "0.1", "-w", "3", "-c", "1"], "-e is --eta of CRF++ or --stopeps of Wapiti"),
        (["--eta", "0.1", "-w", "3"], "give --eta (CRF++) or --stopeps"),
        (["-f", "2", "--pairs", "seen"], "-f (CRF++) implies --pairs all"),
        (["-f", "2", "--min-freq", "3"], "--min-freq was given twice"),
        (["--nthread", "2", "-j", "2"], "--jobs was given twice"),
        (["-p", "template"], "--feature-template or --pattern, not both"),
        (["-f", "nonsense"], "must be one of arrow, conll"),
        (["-c", "nonsense"], "'-c'"),
    ],
)
def test_what_is_ambiguous_is_refused(refused, files, tmp_path, options, message):
    words = ["train", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    assert message in refused(*words, *options, code=2)


def test_a_file_with_the_name_of_a_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "4").write_text("B\n")
    given = Given("4", *[None] * 15)
    with pytest.raises(typer.BadParameter, match="-t 4 may be a file or threads"):
        given.ours()
    assert Given("./4", *[None] * 15).ours().template == "./4"


def test_label_is_wapiti_label(chordal, refused, files, tmp_path):
    bare = "\n\n".join("\n".join(f"{r[0]} {r[1]}" for r in s) for s in SENTENCES) + "\n\n"
    (tmp_path / "in.txt").write_text(bare)
    words = ["label", "-m", files / "model"]
    assert chordal(*words, tmp_path / "in.txt") == chordal(
        "tag", files / "model", input=bare.encode()
    )
    assert chordal(*words, tmp_path / "in.txt", tmp_path / "out.txt") == b""
    assert (tmp_path / "out.txt").read_bytes() == chordal(*words, input=bare.encode())
    only = chordal(*words, "-c", "-l", files / "train.txt").decode()
    assert [block.split() for block in only.strip().split("\n\n")] == LABELS
    for option, same in (("-p", ["--method", "mpm"]), ("-n2", ["-k", "2"])):
        expected = chordal("tag", files / "model", *same, tmp_path / "in.txt")
        assert chordal(*words, option, tmp_path / "in.txt") == expected
    assert "--nbest does not go with" in refused(*words, "-n", "2", "-l", code=2)
