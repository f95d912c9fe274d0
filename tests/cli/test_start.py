"""Starting: what is imported, exit codes, one-line errors."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from chordal.cli import main
from chordal.cli._quick import plain_call
from chordal.objectives import OBJECTIVES
from chordal.solvers import SOLVERS

from .conftest import run

COMMANDS = ["train", "tag", "evaluate", "inspect", "tune", "convert", "infer", "info"]


def imported(*arguments, input=b""):
    """The top-level packages that a command has loaded when it ends."""
    code = (
        "import sys\nfrom chordal.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('LOADED', *{name.partition('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input=input,
        capture_output=True,
        check=True,
    )
    return set(done.stdout.decode().rpartition("LOADED")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *[[c, "-h"] for c in COMMANDS]])
def test_help_loads_nothing_heavy(arguments):
    loaded = imported(*arguments)
    assert "chordal" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "pandas"}


def test_tag_loads_neither_scipy_nor_sklearn(files):
    loaded = imported("tag", "-j", "1", files / "model", files / "train.txt")
    assert "numpy" in loaded
    assert not loaded & {"scipy", "sklearn", "rich", "matplotlib", "typer", "pydantic"}


@pytest.mark.parametrize(
    "words",
    [
        "m",
        "m -",
        "m text",
        "m text -o out",
        "--output - m text --jobs 2",
        "-j 3 m -j -1 text",
        "-o a -o b m",
    ],
)
def test_a_plain_call_means_what_typer_takes_it_for(monkeypatch, words):
    calls = []
    monkeypatch.setattr(
        "chordal.cli._tagging.label_file", lambda *args, **more: calls.append((args, more))
    )
    words = ["tag", *words.split()]
    assert plain_call(words) is not None
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    monkeypatch.setattr("chordal.cli._quick.plain_call", lambda words: None)
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    assert len(calls) == 2
    assert calls[0] == calls[1]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "m a b",
        "-m m",
        "--marginals m",
        "m -j",
        "m -j x",
        "m -o",
        "m -j2",
        "-h",
        "-- m",
        "m -o -x",
    ],
)
def test_other_calls_are_left_to_typer(words):
    assert plain_call(["tag", *words.split()]) is None
    assert plain_call(["train", "m", "x"]) is plain_call([]) is None


def test_help_and_version(chordal):
    text = chordal("--help").decode()
    assert all(f"\n  {command} " in text for command in COMMANDS)
    assert chordal() == chordal("--help")
    assert chordal("--version").startswith(b"chordal ")
    options = chordal("train", "--help").decode()
    together = " ".join(options.split())
    for option, text, registry in (
        ("--solver", "The optimiser.", SOLVERS),
        ("--objective", "The training objective.", OBJECTIVES),
    ):
        listed = ", ".join(["auto", *registry.names()])
        assert f"{option} NAME {text} One of: {listed}." in together
    assert "--pairs seen|all" in options


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "nonsense"),
        (["train", "--nonsense"], "--nonsense"),
        (["tag"], "MODEL"),
        (
            ["train", "a", "b", "--solver", "lbgfs"],
            f"must be one of auto, {', '.join(SOLVERS.names())}",
        ),
        (["train", "a", "b", "--l2", "1", "--c", "1"], "not both"),
        (["train", "a", "b", "--l2", "-1"], "--l2"),
        (["train", "a", "b", "-t", "t", "--task", "ner"], "not both"),
        (["train", "a", "b", "--task", "parsing"], "must be one of chunking, ner, pos"),
        (["train", "train.txt", "b"], "needs a template"),
        (["train", "a", "b", "-t", "t", "--n-iter-no-change", "2"], "--validation"),
        (["tune", "a", "-t", "t", "--l2", "1,x"], "--l2 must be numbers"),
        (["tag", "m", "--k-best", "2", "--marginals"], "--k-best"),
        (["convert", "a", "b", "--to-scheme", "bio"], "together"),
    ],
)
def test_wrong_usage(refused, files, arguments, words):
    message = refused(*arguments, code=2, cwd=files)
    assert words in message
    assert "--help" in message


def test_a_missing_file_is_named(refused, files):
    assert "nowhere: No such file" in refused("tag", "nowhere")
    assert "nowhere.txt: No such file" in refused("tag", files / "model", "nowhere.txt")
    assert "nowhere" in refused("train", "-t", "nowhere", files / "train.txt", "x")
    assert "nowhere.txt: No such file" in refused("train", "nowhere.txt", "x")
    assert "nowhere.txt: No such file" in refused("prepare", "nowhere.txt", "-o", "x")


def test_folders_are_no_files(chordal, refused, files, tmp_path):
    """Those of prepared data say what they are."""
    assert f"{tmp_path}: it is a folder" in refused("tag", files / "model", tmp_path)
    data = tmp_path / "data"
    chordal("prepare", "-t", files / "template", files / "train.txt", "-o", data)
    for command in ("tag", "explain"):
        assert f"{data}: it holds prepared data" in refused(command, files / "model", data)


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_where(place):
    words = ["tag", "nowhere"]
    done = run(*(["--debug", *words] if place == "before" else [*words, "--debug"]))
    assert done.returncode == 1
    assert b"Traceback" in done.stderr


@contextmanager
def started(*arguments):
    """A running process; its pipes are closed in the end, whatever happened to them before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "chordal", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()


def test_a_sentence_is_answered_when_it_is_complete(files):
    with started("tag", files / "model") as process:
        for _ in range(2):  # while the pipe stays open
            process.stdin.write(b"the DT\npound NN\n\n")
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(3)]
            assert lines == [b"the DT B-NP\n", b"pound NN I-NP\n", b"\n"]
        rest, _ = process.communicate(b"is VBZ")
        assert rest == b"is VBZ B-VP\n"
        assert process.returncode == 0


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no such signal")
def test_a_closed_pipe_is_quiet(files):
    with started("tag", files / "model") as process:
        process.stdout.close()
        try:
            for _ in range(200):
                process.stdin.write(b"the DT\npound NN\n\n" * 1000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr.read() == b""
        assert process.wait() in (0, -signal.SIGPIPE)


@pytest.mark.skipif(os.name == "nt", reason="signals are others")
def test_ctrl_c(files):
    with started("tag", files / "model") as process:
        process.stdin.write(b"the DT\n\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"the DT B-NP\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b"stopped\n"
