"""Progress: the same words in terminals, notebooks and logs; nothing where nobody asked."""

import io
import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest

from chordal import ChainCRF, progress, regularization_path
from chordal.progress import Progress

from .terminal import chordal, in_terminal

needs_terminals = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pseudo-terminals"
)
TIMES = r"\d+:\d\d"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("progress")
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(400):
        words = rng.integers(50, size=10)
        lines += [f"w{w} {'B-X' if w % 3 == 0 else 'O'}" for w in words] + [""]
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    (folder / "many.txt").write_text(30 * ("\n".join(lines) + "\n"))
    (folder / "template").write_text("U0:%x[0,0]\nU1:%x[-1,0]\nB\n")
    (folder / "model.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n 1.0 2.0 3.0 0.5\n")
    train = ("train", "-q", "-t", "template", "train.txt", "m")
    subprocess.run([sys.executable, "-m", "chordal", *train], check=True, cwd=folder)
    return folder


COMMANDS = {
    "train": (["train", "-t", "template", "train.txt", "new"], r"fit  (starting|iteration +\d+)"),
    "prepare": (
        ["prepare", "-t", "template", *["train.txt"] * 300, "-o", "data"],  # longer than a frame
        r"prepare +[\d,]+ tokens  \[=+ *\]  [\d,]+ tokens/s",
    ),
    "tune": (
        ["tune", "-t", "template", "train.txt", "--l2", "0.1,1", "--folds", "2"],
        r"tune  point 2 of 2  \[=+ *\]  best chunk_f1 [\d.]+ at l1=0 l2=\S+",
    ),
    "infer": (["infer", "--task", "MAP", "model.uai"], r"infer MAP"),
    "tag": (["tag", "m", "train.txt", "-o", "tagged"], r"tag +\d+ of \d+ kB"),
    "explore": (
        ["explore", "m", "many.txt", "-o", "page"],
        r"explore +[\d,]+ of 12,000 examples  \[=+ *\]  [\d,]+ examples/s",
    ),
    "reproduce": (
        ["reproduce", "toussaint", "--quick", "--out", "report"],
        r"reproduce  experiment 1 of 1 .*toussaint: ",
    ),
}


WRITTEN = ("new", "data", "page", "report")


@needs_terminals
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_in_a_terminal_say_what_is_done_and_how_long(files, tmp_path, name):
    words, expected = COMMANDS[name]
    words = [str(tmp_path / word) if word in WRITTEN else word for word in words]
    shown = chordal(*words, cwd=files, width=120)
    assert shown.code == 0, shown.error
    live = [frame for frame in shown.frames if re.search(expected, frame)]
    assert live, shown.frames
    assert any(re.search(rf" {TIMES}( |$)", frame) for frame in live)
    assert all(len(frame) < 120 for frame in shown.frames if "open it in a browser" not in frame)
    assert "\x1b" not in shown.error  # nothing that a plain terminal would not know


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_silent_in_a_pipe(files, tmp_path, name):
    words, _ = COMMANDS[name]
    words = [str(tmp_path / word) if word in WRITTEN else word for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "chordal", *words], cwd=files, capture_output=True, text=True
    )
    assert done.returncode == 0
    # infer says how its answer was found, and explore what it wrote
    result = {"infer": "; ", "explore": "open it in a browser"}.get(name)
    said = [line for line in done.stderr.splitlines() if result is None or result not in line]
    assert said == []


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_write_lines_into_a_log_on_request(files, tmp_path, name):
    words, _ = COMMANDS[name]
    words = [str(tmp_path / word) if word in WRITTEN else word for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "chordal", *words, "--verbose"],
        cwd=files,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    start = {"train": "iteration", "infer": "infer MAP"}.get(name, name)
    lines = [line for line in done.stderr.splitlines() if line.startswith(start)]
    assert lines, done.stderr
    assert "\r" not in done.stderr
    assert name == "tune" or any(re.search(r"\d s\b", line) for line in lines)


@needs_terminals
def test_tag_writes_no_line_among_its_output(files):
    shown = chordal("tag", "m", "train.txt", cwd=files, output_too=True)
    assert "kB" not in shown.error
    assert shown.error.count("\n") == 400 * 11


PARTS = """
import sys
from chordal import ChainCRF
X = [[["a"], ["b"]], [["b"]]] * 50
y = [["A", "B"], ["B"]] * 50
crf = ChainCRF(verbose=int(sys.argv[2]))
data = crf.prepare(sys.argv[1], iter([(X, y)] * 3))
crf.set_params(verbose=0).fit(data)
crf.set_params(verbose=int(sys.argv[2])).predict(data)
crf.score(data)
"""


@needs_terminals
def test_parts_of_data_sets(tmp_path):
    shown = in_terminal([sys.executable, "-c", PARTS, tmp_path / "data", "1"])
    assert shown.code == 0, shown.error
    assert any(re.match(r"prepare +[\d,]+ variables", frame) for frame in shown.frames)
    assert any(frame.startswith("predict  starting") for frame in shown.frames)
    assert any(frame.startswith("score  starting") for frame in shown.frames)
    quiet = subprocess.run(
        [sys.executable, "-c", PARTS, str(tmp_path / "more"), "1"], capture_output=True, text=True
    )
    assert (quiet.stdout, quiet.stderr, quiet.returncode) == ("", "", 0)
    log = subprocess.run(
        [sys.executable, "-c", PARTS, str(tmp_path / "third"), "2"], capture_output=True, text=True
    )
    lines = log.stderr.splitlines()
    assert any(re.match(r"prepare +150 variables  [\d,]+ variables/s  0.\d s$", li) for li in lines)
    assert any(re.match(r"predict  part 1 of 1  .* s$", line) for line in lines), lines


class FakeScreen:
    def __init__(self, width=100):
        self.lines, self._width = [], width

    def show(self, line):
        self.lines.append(line)

    def clear(self):
        self.lines.append(None)

    def width(self):
        return self._width


@pytest.fixture
def fake(monkeypatch):
    shown = FakeScreen()
    monkeypatch.setattr(progress, "screen", lambda: shown)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    return shown


@pytest.fixture
def now(monkeypatch):
    """A clock that tests set."""
    clock = types.SimpleNamespace(time=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.time)
    return clock


def test_a_line_and_the_time_that_is_left(fake, now):
    with Progress("read", 200, "tokens", measure=True) as bar:
        now.time = 10.0
        bar.update(50, "speed 5")
        assert bar.left == pytest.approx(30.0)  # a quarter took ten seconds
    assert fake.lines == [
        "read    0 of 200 tokens   0:00",
        "read   50 of 200 tokens  [===         ]  speed 5   0:10   0:30 left",
        None,
    ]


def test_a_guess_needs_some_time_and_a_limit_is_none(fake, now):
    with Progress("search", 10, "point") as bar:
        now.time = 0.2
        bar.update(5)
        assert bar.left is None
        bar.update(5, left=3700.0)
        assert fake.lines[-1].endswith("1:01:40 left")


def test_what_matters_least_goes_first(fake):
    fake._width = 40
    with Progress("read", 4, "part") as bar:
        bar.update(1, "most important", "x" * 30)
    assert fake.lines[1].startswith("read  part 1 of 4  ")
    assert "x" not in fake.lines[1]
    assert "[" not in fake.lines[1]
    assert len(fake.lines[1]) < 40


def test_tasks_within_a_task_share_its_line(fake):
    with Progress("tune", 3, "point") as outer:
        outer.update(2, "best 0.9")
        with Progress("fit", None, "iteration") as inner:
            inner.update(7, "objective 3")
            assert fake.lines[-1].startswith("tune  point 2 of 3  fit  iteration    7  objective 3")
            outer.update(2, "best 1.0")  # does not take the line away
            assert fake.lines[-1].startswith("tune  point 2 of 3  fit")
        assert fake.lines[-1].startswith("tune  point 2 of 3  [")
        assert "best 1.0" in fake.lines[-1]
    assert fake.lines[-1] is None


def test_a_line_that_stays_stands_above(fake, capsys):
    with Progress("tune", 3, "point") as bar:
        bar.update(1)
        bar.say("one is done")
        assert fake.lines[-2] is None
        assert fake.lines[-1].startswith("tune  point 1 of 3")
    assert capsys.readouterr().err == "one is done\n"


def test_an_error_takes_the_line_away(fake):
    with pytest.raises(KeyboardInterrupt), Progress("fit"):
        raise KeyboardInterrupt
    assert fake.lines[-1] is None
    assert progress._open == []


def test_nothing_without_a_terminal_and_lines_on_request(capsys):
    for verbose in (0, 1):
        with Progress("sum", 2, "part", verbose=verbose) as bar:
            bar.update(1)
            bar.say("nothing")
    assert capsys.readouterr().err == ""
    with Progress("sum", 3, "part", verbose=2) as bar:  # five seconds between lines
        for k in range(3):
            bar.update(k + 1, f"total {k}")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[:3] for line in lines] == [
        ["sum", "part 1 of 3", "total 0"],
        ["sum", "part 3 of 3", "total 2"],
    ]


@pytest.mark.parametrize("stream", [None, "closed"])
def test_programs_without_standard_error(monkeypatch, stream):
    if stream:
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("fit") as bar:
        bar.update(1)


def test_notebooks_update_one_output(monkeypatch):
    pytest.importorskip("IPython")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        publisher = CapturingDisplayPublisher(parent=shell)
        monkeypatch.setattr(shell, "display_pub", publisher)
        monkeypatch.setattr(progress, "_screens", {})
        monkeypatch.setattr(progress, "_PAUSE", 0.0)
        assert progress.screen() is None  # IPython in a terminal has no kernel
        shell.kernel = object()
        X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
        crf = ChainCRF(verbose=1).fit(X, y)
    finally:
        InteractiveShell.clear_instance()
    first, *rest = publisher.outputs
    texts = [own["data"]["text/plain"] for own in publisher.outputs]
    assert not first.get("update")
    assert all(own["update"] for own in rest)
    assert len({own["transient"]["display_id"] for own in publisher.outputs}) == 1
    assert texts[0].startswith("fit  starting")
    assert re.match(rf"fit  iteration +{crf.n_iter_}  .*objective .* {TIMES}", texts[-2])
    assert texts[-1] == ""


def test_paths_and_folds_are_shown(fake):
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["A", "B"], ["B", "A"]] * 4
    regularization_path(ChainCRF(verbose=1), X, y, l2s=[1.0, 10.0], cv=2)
    lines = [line for line in fake.lines if line]
    assert any(line.startswith("path  value 1 of 2  [") and "l2=10" in line for line in lines)
    heads = "cross-validate  fold 2 of 2  path  value 2 of 2  fit  iteration"
    assert any(line.startswith(heads) for line in lines)
    regularization_path(ChainCRF(), X, y, l2s=[1.0])
    assert len([line for line in fake.lines if line]) == len(lines)


def test_importing_it_is_cheap():
    code = "import sys, chordal.progress; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    loaded = set(done.stdout.split())
    assert "chordal.progress" in loaded
    assert not loaded & {"rich", "IPython", "numpy"}
