"""Messages name options on the command line, and parameters in Python."""

import re

import pytest

from chordal import ChainCRF
from chordal.cli._words import in_options

from .conftest import SENTENCES, as_text, run

PARAMETER = re.compile(r"\b(max_iter|min_freq|n_jobs|random_state|allowed_\w+)\b|\w=(None|')")
TRAIN = as_text(SENTENCES)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (TRAIN + "# a comment of words\n" + TRAIN, [], "give --comment '#'"),
        (TRAIN.replace(" ", "\t").replace("pound", "a pound"), [], "give --separator tab"),
        (TRAIN, ["--solver", "newton_cg", "--l1", "0.5"], "--l1 > 0"),
        (TRAIN, ["--solver", "averaged_perceptron", "--objective", "hinge"], "averaged_perceptron"),
    ],
)
def test_errors_of_training(refused, files, tmp_path, text, options, words):
    (tmp_path / "train.txt").write_text(text)
    model = tmp_path / "m"
    message = refused("train", "-t", files / "template", tmp_path / "train.txt", model, *options)
    assert words in message
    assert not PARAMETER.search(message), message


def test_errors_of_conversion(refused):
    words = ["convert", "-", "-", "--from-scheme", "bio", "--to-scheme", "iobes"]
    message = refused(*words, input=b"a I-X\n\n")
    assert "convert with --lenient" in message
    assert "strict" not in message
    assert "give --no-labels" in refused("convert", "-", "-", input=b"a\nb\n\n")


def test_warnings(files, tmp_path):
    """What does not converge says which option allows more, in one line."""
    words = ["train", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    done = run(*words, "--max-iter", "2")
    assert done.stderr == (b"warning: not converged after 2 iterations; --max-iter allows more\n")


def test_python_has_parameters():
    crf = ChainCRF(min_freq=-1)
    with pytest.raises(ValueError, match="min_freq must be") as caught:
        crf.fit([[["a"]]], [["A"]])
    assert in_options(str(caught.value)).startswith("--min-freq must be")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("data/max_iter.txt: no such file", "data/max_iter.txt: no such file"),
        ("l2: no such file", "l2: no such file"),
        ("increase max_iter, or set tol=0.1", "increase --max-iter, or set --tol 0.1"),
        ("the solver is slow", "the solver is slow"),
    ],
)
def test_only_parameters_are_renamed(message, expected):
    assert in_options(message) == expected
