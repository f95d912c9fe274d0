"""The documents' Python runs, each document's in order as one program, and their links lead on.

Pages that say `executed: true` at their top are run when the site is built (`make docs`), all
others here. Pages of the gallery quote the experiments, which have tests of their own. Shell
commands are in `test_shell.py`, code of other tools in `test_migration.py`.
"""

import re
import runpy
import shlex
import subprocess
import sys

import pytest

from .pages import (
    DOCUMENTS,
    FENCE,
    ROOT,
    blocks,
    environment,
    is_executed,
    needs,
    skip_without,
    text_of,
)

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


def program_of(name):
    return "\n".join(
        block.source for block in blocks(name) if block.language == "python" and not block.words
    )


RUN = [
    name
    for name in DOCUMENTS
    if not is_executed(name) and not name.startswith("docs/gallery/") and program_of(name)
]


@pytest.mark.parametrize("name", RUN)
def test_the_examples_run(name, tmp_path):
    """In a process of their own: some replace other packages, some start workers."""
    skip_without(needs(name))
    program = program_of(name)
    if name in AFTER:
        program += f"\nassert {AFTER[name]}"
    main = 'if __name__ == "__main__":\n    exec(compile(SOURCE, "page", "exec"))\n'
    path = tmp_path / "page.py"
    path.write_text(f"SOURCE = {program!r}\n{main}", encoding="utf-8")  # workers import this file
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    for block in blocks(name):
        if "output" in block.words:
            assert block.source in done.stdout


def test_what_must_hold_is_of_pages_that_run():
    assert set(AFTER) <= set(RUN)


def test_executed_pages_have_something_to_run():
    for name in DOCUMENTS:
        if is_executed(name):
            assert any(block.language in ("python", "sh") for block in blocks(name))


def test_words_after_a_language_are_known():
    """A Python block with other words would not be run."""
    known = {("before",), ("output",), ()}
    for name in DOCUMENTS:
        for block in blocks(name):
            if block.language in ("python", "sh", "text") and not is_executed(name):
                assert block.words in known or block.words[0] == "from"


def test_lines_of_examples_are_theirs():
    """Blocks that say "from FILE" quote its lines."""
    quoted = {
        (block.words[1], line.strip())
        for name in DOCUMENTS
        for block in blocks(name)
        if block.words[:1] == ("from",)
        for line in block.source.splitlines()
    }
    assert quoted
    for path, line in quoted:
        assert line in text_of(path)


def commands():
    for name in DOCUMENTS:
        for block in blocks(name):
            if block.language == "sh":
                for line in block.source.replace("\\\n", " ").splitlines():
                    if re.match("chordal [a-z]", line.strip()):
                        yield pytest.param(line.strip(), id=f"{name}: {line.strip()}")


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
