"""Shell commands of the pages run: those of a page in order, in a folder with small files.

Pages that say `executed: true` at their top are run when the site is built (`make docs`), all
others here.
"""

import re
import subprocess

import pytest

from .pages import DOCUMENTS, blocks, environment, is_executed, needs, skip_without
from .small_files import (
    write_chunks,
    write_entities,
    write_letters,
    write_parts,
    write_unlabelled_chunks,
)

#: The files that the commands of a page read.
FILES = {
    "README.md": write_chunks,
    "docs/guide/command_line.md": write_entities,
    "docs/guide/explore.md": write_letters,
    "docs/guide/large_data.md": write_parts,
    "docs/guide/serving.md": write_entities,
    "docs/migration/crfpp.md": write_chunks,
    "docs/migration/wapiti.md": write_unlabelled_chunks,
}
INSTALLS = "installs packages"
HOURS = "takes from minutes to hours"
SERVES = "serves until it is stopped; docs/tutorials/serve.md runs a server when the site is built"
#: Commands that are not run, and why.
NOT_RUN = {
    "README.md": {
        "pip install .": INSTALLS,
        "make demo": HOURS,
        "make test": HOURS,
    },
    "docs/start/install.md": {
        "pip install .": INSTALLS,
        "pip install chordal-0.1.0.tar.gz": INSTALLS,
        "pip install chordal-0.1.0-cp312-abi3-….whl": INSTALLS,
    },
    "docs/guide/experiments.md": {
        'pip install "chordal[experiments]"': INSTALLS,
        "chordal reproduce ocr ssvm --out report": HOURS,
        "chordal reproduce all --out report": HOURS,
    },
    "docs/guide/serving.md": {
        'pip install "chordal[serve]"': INSTALLS,
        "chordal serve ner.model": SERVES,
        "curl -s localhost:8000/tag -H 'content-type: application/json' "
        """-d '{"text": "Ana vive en Madrid.", "probabilities": true}'""": SERVES,
    },
    "docs/guide/cluster.md": {
        "python -m benchmarks.cluster --measure cluster.json && "
        "python -m benchmarks.cluster --page cluster.json docs/guide/cluster.md": HOURS,
    },
}
#: Pages for those who develop chordal itself: their commands are those of `.ci/run` and the
#: benchmarks.
DEVELOPMENT = {"CONTRIBUTING.md", "benchmarks/README.md"}


def command_of(line):
    """A line without its comment."""
    return re.sub(r"\s+# .*", "", line).strip()


def program_of(name):
    """The lines of a page that run."""
    skipped = NOT_RUN.get(name, {})
    lines = [
        line
        for block in blocks(name)
        if block.language == "sh" and not block.of_another_tool
        for line in block.source.splitlines()
        if command_of(line) not in skipped
    ]
    return "\n".join(lines)


RUN = [
    name
    for name in DOCUMENTS
    if not is_executed(name) and name not in DEVELOPMENT and program_of(name).strip()
]


@pytest.mark.parametrize("name", RUN)
def test_the_commands_run(name, tmp_path):
    skip_without(needs(name))
    if name in FILES:
        FILES[name](tmp_path)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", program_of(name)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_that_have_files_run():
    assert set(FILES) <= set(RUN)


def test_what_is_not_run_is_there():
    for name, skipped in NOT_RUN.items():
        lines = [
            command_of(line)
            for block in blocks(name)
            if block.language == "sh"
            for line in block.source.splitlines()
        ]
        assert set(skipped) <= set(lines), name
    for name in DEVELOPMENT:
        assert any(block.language == "sh" for block in blocks(name))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_are_in_blocks_that_say_so(name):
    """Blocks of output and drawings hold no commands and no Python, which would not be run."""
    code = re.compile(r"(\$ )?((chordal|python|pip|make|curl) \S|from \w+ import |import \w+$)")
    for block in blocks(name):
        if block.language in ("", "text"):
            wrong = [line for line in block.source.splitlines() if code.match(line.strip())]
            assert not wrong
