"""train and tune: Ctrl-C, checkpoints, starts, weights of sequences, metadata."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from chordal import ChainCRF, FeatureTemplate, Status, load
from chordal._container import CHECKPOINT, read
from chordal.model_file import metadata_of

from .conftest import SENTENCES, TEMPLATE, as_text, run

ROWS = [[list(row[:2]) for row in s] for s in SENTENCES]
LABELS = [[row[2] for row in s] for s in SENTENCES]
ENDLESS = ["--tol", "0", "--max-iter", "1000000", "--l2", "0.001", "--jobs", "2"]


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """Random labels on random words: no solver is done with them soon."""
    source = random.Random(0)
    sentences = [
        [(f"w{source.randrange(300)}", f"t{source.randrange(20)}", f"B-{source.randrange(12)}")
         for _ in range(20)]
        for _ in range(1500)
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("long") / "long.txt"
    path.write_text(as_text(sentences))
    return path


def pressed(words, ready, again=b""):
    """Run a command, press Ctrl-C when `ready()`, and once more after a line of its errors."""
    command = [sys.executable, "-m", "chordal", *map(str, words)]
    pipe = subprocess.PIPE
    # A job in the background of a shell ignores SIGINT, and hands that down.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, **heard) as child:
        try:
            until = time.monotonic() + 60
            while not ready():
                assert child.poll() is None, child.stderr.read().decode()
                assert time.monotonic() < until
                time.sleep(0.02)
            child.send_signal(signal.SIGINT)
            said = b""
            if again:
                for line in child.stderr:
                    said += line
                    if again in line:
                        break
                time.sleep(0.3)
                child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    return child.returncode, out.decode(), (said + err).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_writes_the_model_so_far(files, long_file, tmp_path):
    model, checkpoint = tmp_path / "m", tmp_path / "c"
    words = ["train", "-t", files / "template", long_file, model, *ENDLESS]
    words += ["--checkpoint", checkpoint, "--checkpoint-interval", "3"]
    code, out, err = pressed(words, checkpoint.exists)
    assert code == 130
    assert "writing the model so far" in err
    assert f"the model so far is in {model}" in err
    assert "Traceback" not in err
    assert "Warning" not in err
    crf = load(model)
    assert crf.fit_report_.status is Status.INTERRUPTED
    assert crf.n_iter_ >= 3
    assert f"the same command resumes from {checkpoint}" in err
    assert crf.n_iter_ - 3 <= read(checkpoint, CHECKPOINT)[0]["iteration"] <= crf.n_iter_
    assert out == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_a_second_ctrl_c_writes_nothing(files, long_file, tmp_path):
    """The model goes to a pipe that nobody reads, so that its writing waits."""
    model, checkpoint = tmp_path / "m", tmp_path / "c"
    os.mkfifo(model)
    words = ["train", "-t", files / "template", long_file, model, *ENDLESS]
    words += ["--checkpoint", checkpoint, "--checkpoint-interval", "1"]
    code, _, err = pressed(words, checkpoint.exists, again=b"writing the model so far")
    assert code == 130
    assert err.endswith("stopped\n")
    assert "is in" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_in_a_search_keeps_it_and_it_goes_on(files, chordal, long_file, tmp_path):
    model, scores = tmp_path / "m", tmp_path / "scores"
    words = ["tune", "-t", files / "template", long_file, "--folds", "2", "-o", model, "-j", "2"]
    words += ["--max-iter", "8", "--l2", "1,10,100", "--resume", scores]

    def after_three_fits():
        return scores.exists() and len(scores.read_text().split("\n")) > 4

    code, out, err = pressed(words, after_three_fits)
    assert code == 130
    assert "Ctrl-C: 1 of 3 points are scored" in err
    assert "is in" in err
    assert "best: --l1 0 --l2 1\n" in out
    assert load(model).l2 in (1.0, 10.0)
    before = scores.read_text()
    with open(scores, "a") as file:
        file.write('{"l1": 0, "l2"')  # cut in the middle, as by a power failure
    found = json.loads(chordal(*words, "--json", "-q"))
    assert len(found["results"]) == 3
    assert scores.read_text().startswith(before)
    assert len(scores.read_text().splitlines()) == 7
    assert found["results"] == json.loads(chordal(*words[:-2], "--json", "-q"))["results"]


def test_scores_of_another_search_are_refused(refused, chordal, files, tmp_path):
    scores = tmp_path / "scores"
    words = ["tune", "-q", "-t", files / "template", files / "train.txt", "--l2", "1"]
    words += ["--resume", scores, "--folds"]
    chordal(*words, "2")
    assert "scores: holds scores of another search (splits)" in refused(*words, "3")
    scores.write_text("x\n")
    assert "not a file of --resume" in refused(*words, "2")


def test_a_checkpoint_is_gone_on_from(chordal, refused, files, tmp_path):
    model, checkpoint, template = tmp_path / "m", tmp_path / "c", files / "template"
    words = ["train", "-t", template, files / "train.txt", model]
    chordal(*words, "--max-iter", "9", "--tol", "0")
    whole = load(model).weights_
    words += ["--checkpoint", checkpoint, "--checkpoint-interval", "2"]
    done = run(*words, "--max-iter", "5", "--tol", "0")
    assert f"--max-iter allows more, and resumes from {checkpoint}".encode() in done.stderr
    done = run(*words, "--max-iter", "9", "--tol", "0")
    assert f"going on from {checkpoint}".encode() in done.stderr
    np.testing.assert_array_equal(load(model).weights_, whole)
    message = refused(*words, "-q", "--max-iter", "20", "--tol", "0", "--l2", "3")
    assert "c: it belongs to another fit, which differs in l2 (was 1.0, is 3.0)" in message
    checkpoint.unlink()
    chordal(*words)  # to the end
    assert load(model).fit_report_.status is Status.CONVERGED
    assert not checkpoint.exists()  # the run is over


@pytest.mark.parametrize("rule", [["--eta", "0.05"], ["--stopeps", "0.5", "--stopwin", "3"]])
def test_rules_of_other_tools_go_on_as_well(rule, chordal, files, tmp_path):
    model, checkpoint = tmp_path / "m", tmp_path / "c"
    words = ["train", "-t", files / "template", files / "train.txt", model, *rule]
    chordal(*words)
    whole = load(model)
    assert whole.fit_report_.status is Status.STOPPED
    words += ["--checkpoint", checkpoint, "--checkpoint-interval", "1"]
    chordal(*words, "--max-iter", str(whole.n_iter_ - 1))
    assert checkpoint.exists()
    chordal(*words)
    assert load(model).n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(load(model).weights_, whole.weights_)


def test_a_checkpoint_of_its_own(refused, files, tmp_path):
    words = ["train", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    message = refused(*words, "--checkpoint", tmp_path / "m", code=2)
    assert "--checkpoint must be another file than MODEL" in message
    message = refused(*words, "--checkpoint-minutes", "5", code=2)
    assert "--checkpoint-minutes needs --checkpoint FILE" in message


def test_a_start(chordal, refused, files, tmp_path):
    words = ["train", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    chordal(*words, "--warm-start", files / "model", "--max-iter", "1")
    begun, before = load(tmp_path / "m"), load(files / "model")
    assert begun.objective_ <= before.objective_ * (1 + 1e-9)
    assert begun.n_iter_ <= 1
    (tmp_path / "t").write_text("U0:%x[0,0]\nB\n")
    words[2] = tmp_path / "t"
    message = refused(*words, "--warm-start", files / "model")
    assert "was trained with another template" in message


def test_weights_of_sequences(chordal, refused, files, tmp_path):
    words = ["train", "-q", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    path = tmp_path / "weights.txt"
    path.write_text("1\n0.25\n3\n")
    chordal(*words, "--weights", path)
    crf = ChainCRF(feature_template=FeatureTemplate(TEMPLATE))
    crf.fit(ROWS, LABELS, sample_weight=[1, 0.25, 3])
    np.testing.assert_array_equal(load(tmp_path / "m").weights_, crf.weights_)
    for text, message in (
        ("1\n2\n", "weights.txt: there are 2 weights for 3 sequences"),
        ("1\nx\n2\n", "weights.txt: weight 2 must be a number, got 'x'"),
        ("1\n-1\n2\n", "weights.txt: weight 2 must be a number of at least 0"),
    ):
        path.write_text(text)
        assert message in refused(*words, "--weights", path)


def test_metadata(chordal, refused, files, tmp_path):
    words = ["train", "-q", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"language": "en", "sources": ["a", "b"]}))
    chordal(*words, "--metadata", "licence=CC BY 4.0", "--metadata", card)
    expected = {"licence": "CC BY 4.0", "language": "en", "sources": ["a", "b"]}
    assert metadata_of(tmp_path / "m") == expected
    assert json.loads(chordal("info", tmp_path / "m", "--json"))["metadata"] == expected
    text = chordal("info", tmp_path / "m").decode()
    assert "licence   CC BY 4.0" in text
    chordal("convert", tmp_path / "m", tmp_path / "copy")
    assert metadata_of(tmp_path / "copy") == expected
    assert "NAME=VALUE or a JSON file" in refused(*words, "--metadata", "nothing", code=2)
    card.write_text("[1]")
    assert "card.json: metadata must be a JSON object" in refused(*words, "--metadata", card)
