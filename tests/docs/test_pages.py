"""The documents' examples run, each document's in order as one program, and their links lead on.

Pages that say `executed: true` at their top are run when the site is built (`make docs`), all
others here. Pages of the gallery quote the experiments, which have tests of their own.
"""

import importlib.util
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("docs/_build/", "docs/reference/api/", "docs/reference/commands/")
DOCUMENTS = [
    name
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not (name := path.relative_to(ROOT).as_posix()).startswith(MADE)
]
HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: What must hold after a document's program, where the program does not say so itself.
AFTER = {
    "README.md": "search.best_params_['l2'] in (0.1, 1.0, 10.0)",
    "docs/guide/learning.md": "crf.classes_.tolist() == [0, 1]",
    "docs/guide/features.md": "frame['predicted'].tolist() == ['O', 'LOC', 'PER'] and "
    "model.predict([['via', 'New', 'York']]) == [['O', 'LOC', 'LOC']]",
    "docs/guide/large_data.md": "data.n_examples == 3 and labels[0] == ['D', 'N', 'V']",
    "docs/guide/cluster.md": "search.best_params_['l2'] in (0.1, 1.0) and crf.score(X, y) == 1",
    "docs/guide/graphs.md": "skip.inference_.name == 'junction_tree'",
    "docs/guide/networks.md": "again.predict([['the', 'dog', 'sleeps']]) == [['D', 'N', 'V']]",
    "docs/guide/serving.md": "spans == [('PER', 'Ana'), ('LOC', 'New York')]",
    "docs/migration/crfsuite.md": "labelled == 'the\\tD\\ncat\\tN\\n\\n' "
    "and b'chordal' not in content and crf.predict_single([{'word': 'cat'}]) == ['N']",
}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def says(name):
    head = HEAD.match(text_of(name))
    return head[1] if head else ""


def program_of(name):
    blocks = FENCE.findall(text_of(name))
    return "\n".join(source for language, source in blocks if language == "python")


RUN = [
    name
    for name in DOCUMENTS
    if "executed: true" not in says(name)
    and not name.startswith("docs/gallery/")
    and program_of(name)
]


@pytest.mark.parametrize("name", RUN)
def test_the_examples_run(name, tmp_path):
    """In a process of their own: some replace other packages, some start workers."""
    for package in re.findall(r"\w+", says(name).partition("needs:")[2].partition("\n")[0]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    program = program_of(name)
    if name in AFTER:
        program += f"\nassert {AFTER[name]}"
    main = 'if __name__ == "__main__":\n    exec(compile(SOURCE, "page", "exec"))\n'
    path = tmp_path / "page.py"
    path.write_text(f"SOURCE = {program!r}\n{main}", encoding="utf-8")  # workers import this file
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path, env=settings
    )
    assert done.returncode == 0, done.stderr


def test_what_must_hold_is_of_pages_that_run():
    assert set(AFTER) <= set(RUN)


def test_executed_pages_have_something_to_run():
    for name in DOCUMENTS:
        if "executed: true" in says(name):
            assert any(language in ("python", "sh") for language, _ in FENCE.findall(text_of(name)))


def commands():
    for name in DOCUMENTS:
        for language, source in FENCE.findall(text_of(name)):
            if language in ("", "sh", "text"):
                for line in source.splitlines():
                    line = line.strip().removeprefix("$ ")
                    if re.match("chordal [a-z]", line):
                        yield pytest.param(line, id=f"{name}: {line}")


@pytest.mark.parametrize("line", [*commands()])
def test_commands_have_the_options_that_documents_give_them(line):
    import typer.main

    from chordal.cli._app import app

    words = shlex.split(line.partition("#")[0].split("&&")[0].partition(" > ")[0].rstrip("…"))
    if words[1].startswith("-"):
        return
    command = typer.main.get_command(app).commands[words[1]]
    known = {o for p in command.params for o in [*p.opts, *p.secondary_opts]} | {"--help", "-h"}
    given = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
    assert given <= known


def test_every_experiment_is_listed():
    from chordal.experiments import EXPERIMENTS

    text = text_of("docs/gallery/README.md")
    names = [name.replace("_", "-") for name in EXPERIMENTS]
    assert not {name for name in names if f"]({name}.md)" not in text}


def test_tables_and_counts_are_those_of_the_registries():
    script = runpy.run_path(str(ROOT / "docs/make_tables.py"))
    for name in DOCUMENTS:
        text = text_of(name)
        assert text == script["remade"](text), f"{name}: run `make tables`"
    marked = "".join(map(text_of, DOCUMENTS))
    assert set(re.findall(r"<!-- made:(\w+) -->", marked)) == set(script["MADE"])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", FENCE.sub("", text_of(name))):
        made = any(part in target for part in ("api/", "commands/"))
        if not target.startswith("http") and not made:
            assert ((ROOT / name).parent / target).exists(), target
