"""Every public name and every command is in the reference."""

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import chordal

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_extensions"


@pytest.fixture(scope="module")
def extensions():
    sys.path.insert(0, str(EXTENSIONS))
    yield importlib.import_module("public_names"), importlib.import_module("generated_reference")
    sys.path.remove(str(EXTENSIONS))


@pytest.fixture(scope="module")
def pages(extensions):
    return extensions[1].api_pages()


def packages():
    names = [m.name for m in pkgutil.iter_modules(chordal.__path__) if m.name[0] != "_"]
    return ["chordal", *(f"chordal.{name}" for name in names)]


@pytest.mark.parametrize("name", packages())
def test_every_name_of_a_package_has_its_place(name, extensions, pages):
    if name in extensions[0].absent():
        pytest.skip("an extra that is not installed")
    package = importlib.import_module(name)
    documented = set(
        re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    )
    objects = extensions[0].objects()
    assert documented == {*objects, *{extensions[0].home(path) for path in objects}}
    places = {id(value): path for path, value in objects.items()}
    for public in getattr(package, "__all__", []):
        value = getattr(package, public)
        if public.startswith("__") or inspect.ismodule(value):
            continue
        assert f"{name}.{public}" in documented or places.get(id(value)) in documented, public


def test_classes_chosen_by_name_are_there(extensions):
    from chordal.inference import INFERENCE
    from chordal.objectives import OBJECTIVES
    from chordal.solvers import SOLVERS

    known = {id(value) for value in extensions[0].objects().values()}
    for registry in (INFERENCE, OBJECTIVES, SOLVERS):
        assert all(id(cls) in known for cls in registry.classes())


def test_every_page_is_listed(pages):
    listed = set()
    for page in pages.values():
        contents = page.partition(".. toctree::")[2]
        listed |= {f"api/{line.strip()}.rst" for line in contents.splitlines() if line[:1] == " "}
    assert {*pages} - listed == {"api/index.rst"}


def test_commands_and_their_options(extensions):
    import typer.main

    from chordal.cli._app import app

    made = extensions[1].command_pages()
    commands = typer.main.get_command(app).commands
    assert {*made} == {"commands/index.md", *(f"commands/{name}.md" for name in commands)}
    for name, command in commands.items():
        for parameter in command.params:
            if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False):
                for option in parameter.opts:
                    assert f"`{option}`" in made[f"commands/{name}.md"]


def test_options_in_help_texts_are_code(extensions):
    escaped = extensions[1].escaped
    assert escaped("a_b|c: --k-best (-t)") == r"a\_b\|c: `--k-best` (`-t`)"
    assert escaped("see `chordal label -m a_b`, CRF-like, -1") == (
        "see `chordal label -m a_b`, CRF-like, -1"
    )


def test_no_cell_is_wider_than_a_page(extensions):
    for name, page in extensions[1].command_pages().items():
        for row in page.splitlines():
            if row.startswith("| `-"):
                longest = max(map(len, re.split(r"[\s|]|\\", row)))
                option = row.split(" | ")[0]
                assert max(longest, len(option)) <= 90, (name, option)
