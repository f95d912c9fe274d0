"""Escape sequences in words, labels, models and file names do not reach the terminal."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import chordal.cli
from chordal import ChainCRF, save
from chordal._shown import shown
from chordal.cli._main import main

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
UNSEEN = [chr(k) for k in (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xD800)]


def harmless(text):
    return not set(text) & set(UNSEEN)


def test_every_control_character_is_written_out():
    for c in UNSEEN:
        assert shown(f"a{c}b") == f"a{ascii(c)[1:-1]}b"
    plain = "a\tb\nÀ café 日本 ✓ می‌شود"
    assert shown(plain) == plain


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    data = folder / f"d{EVIL}.txt"
    rows = f"w{EVIL} B-{EVIL}\nplain O\n\n" * 3
    data.write_text(rows + f"x B-{EVIL}\n\n", encoding="utf-8")
    X = [[[f"w{EVIL}"], ["plain"]], [["x"]]]
    crf = ChainCRF(l2=0.1, feature_template="U:%x[0,0]\n")
    crf.fit(X, [[f"B-{EVIL}", "O"], [f"I-{EVIL}"]])
    model = folder / f"m{EVIL}"
    save(crf, model, metadata={f"author{EVIL}": f"{EVIL}\nspoofed  yes"})
    return data, model


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "MODEL"],
        ["info", "MODEL"],
        ["evaluate", "DATA"],
        ["evaluate", "DATA", "--table", "--labels", "--confusion"],
        ["evaluate", "DATA", "--scheme", f"x{EVIL}"],
        ["info", "MISSING"],
        ["tag", "MISSING", "DATA"],
        ["tag", "DATA", "DATA"],
        ["train", "MISSING", "MODEL"],
        ["infer", "DATA"],
        ["convert", "DATA", "MISSING"],
        [f"nonsense{EVIL}"],
    ],
    ids=" ".join,
)
def test_what_commands_say(words, files, capfd):
    data, model = files
    places = {"DATA": str(data), "MODEL": str(model), "MISSING": f"{data}{EVIL}"}
    with pytest.raises(SystemExit):
        main([places.get(word, word) for word in words])
    said = "".join(capfd.readouterr())
    assert said
    assert harmless(said), ascii(said)
    assert "\nspoofed" not in said


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    "words", [["tag", "MODEL", "DATA"], ["label", "DATA", "-m", "MODEL"], ["convert", "DATA", "-"]]
)
def test_data_are_written_out_on_a_terminal_alone(words, files):
    """A pipe gets the bytes as they are."""
    places = dict(zip(("DATA", "MODEL"), map(str, files), strict=True))
    command = [sys.executable, "-m", "chordal", *(places.get(word, word) for word in words)]
    if words[0] == "convert":
        command += ["--to", "conll"]
    piped = subprocess.run(command, capture_output=True, timeout=120, check=True).stdout
    assert EVIL.encode() in piped
    ours, theirs = os.openpty()
    subprocess.run(command, stdout=theirs, stderr=subprocess.DEVNULL, timeout=120, check=True)
    os.close(theirs)
    seen = os.read(ours, 100_000).replace(b"\r\n", b"\n").decode()
    os.close(ours)
    assert harmless(seen), ascii(seen)
    assert seen == shown(piped.decode())


def test_a_process_that_is_asked_about_such_a_model(files):
    ran = subprocess.run(
        [sys.executable, "-m", "chordal", "info", files[1]], capture_output=True, timeout=120
    )
    assert ran.returncode == 0
    assert harmless(ran.stdout.decode())
    assert b"\\x1b[2J" in ran.stdout


def test_commands_print_through_one_function():
    """`say`, `note` and the like write escapes out; print would not."""
    folder = Path(chordal.cli.__file__).parent
    for path in sorted(folder.glob("*.py")):
        if path.name in ("_output.py", "_main.py"):
            continue
        calls = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
        ]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert "print" not in names, path.name


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "MODEL"],
        ["inspect", "MODEL", "--label", "NAME"],
        ["inspect", "MODEL", "--attribute", "NAME"],
        ["info", "MODEL"],
        ["evaluate", "DATA", "--model", "MODEL"],
        ["evaluate", "DATA", "--model", "MODEL", "--table", "--labels", "--confusion"],
        ["explain", "MODEL", "DATA", "-s", "0"],
        ["explore", "MODEL", "DATA", "-o", "PAGE"],
        ["train", "DATA", "NEW", "--checkpoint", "CHECKPOINT", "--max-iter", "1"],
    ],
    ids=" ".join,
)
def test_names_with_ends_of_lines_make_no_lines(words, tmp_path, capfd):
    """They would look like what the command itself says."""
    name = "x\nspoofed: 100.00%"
    crf = ChainCRF(l2=0.1).fit([[[name], ["b"]]] * 2, [[f"B-{name}", "O"]] * 2)
    save(crf, tmp_path / "m", metadata={name: name})
    record = {"tokens": [[name], ["b"]], "labels": [f"B-{name}", "O"]}
    (tmp_path / "d.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record) + "\n")
    places = {"MODEL": "m", "DATA": "d.jsonl", "PAGE": "page\nspoofed", "NEW": "new\nspoofed"}
    places = {key: str(tmp_path / value) for key, value in places.items()}
    places["NAME"] = f"B-{name}" if "--label" in words else name
    places["CHECKPOINT"] = str(tmp_path / "checkpoint\nspoofed")
    with pytest.raises(SystemExit) as ended:
        main([places.get(word, word) for word in words])
    assert not ended.value.code
    said = "".join(capfd.readouterr())
    assert "spoofed" in said
    assert not any(line.lstrip().startswith("spoofed") for line in said.splitlines()), said


LOGGED = """
import logging
from chordal.cli.serve import start_log
start_log(True)
log, text = logging.getLogger("chordal.serve"), "a\\x1b[2J\\nspoofed \\u202e"
log.error("ner: %s", text)
try:
    raise ValueError(text)
except ValueError:
    log.exception("where")
"""


def test_the_log_of_a_server():
    """Why a new file of a model is not in use may quote the file."""
    ran = subprocess.run([sys.executable, "-c", LOGGED], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stderr.splitlines()
    assert lines[0].endswith(r" ERROR ner: a\x1b[2J\nspoofed \u202e")
    assert "Traceback" in ran.stderr
    assert harmless(ran.stderr)


def test_tracebacks(files):
    data, _ = files
    ran = subprocess.run(
        [sys.executable, "-m", "chordal", "--debug", "inspect", data],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr
    assert harmless(ran.stderr)
