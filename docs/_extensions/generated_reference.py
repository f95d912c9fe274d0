"""Writes the pages of the reference: one for each package, class and command, from the code.

They are made when a build begins, in `reference/api` and `reference/commands`, and are not in git.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import public_names

if TYPE_CHECKING:  # tests make the pages without Sphinx
    from sphinx.application import Sphinx

#: Base classes whose own members are described elsewhere.
FOREIGN = "Exception,BaseException,Warning,UserWarning,RuntimeWarning,ValueError,tuple,dict,list,"
FOREIGN += "Enum,IntEnum,str,int,Module,Generic,Protocol,ABC,object,BaseEstimator,TransformerMixin,"
FOREIGN += "_MetadataRequester,_SetOutputMixin"
#: Methods that scikit-learn adds to a class when it is asked for them.
ADDED = "set_fit_request,set_predict_request,set_score_request,set_transform_request"
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.*)")
LISTED_FIRST = ["chordal", "chordal.inference", "chordal.objectives", "chordal.solvers"]


def write_pages(app: Sphinx) -> None:
    """Write what differs, and remove what is no longer made."""
    folder = Path(app.srcdir) / "reference"
    pages = {**api_pages(), **command_pages()}
    for old in [*folder.glob("api/*"), *folder.glob("commands/*")]:
        if old.relative_to(folder).as_posix() not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def api_pages() -> dict[str, str]:
    """Pages of packages and classes, by file name."""
    objects = public_names.objects()
    groups: dict[str, dict[str, object]] = {}
    for path, value in objects.items():
        groups.setdefault(public_names.home(path), {})[path] = value
    pages = {f"api/{name}.rst": package_page(name, own) for name, own in groups.items()}
    for path, value in objects.items():
        if inspect.isclass(value):
            pages[f"api/{path}.rst"] = class_page(path, value)
    order = sorted(groups, key=lambda n: (n not in LISTED_FIRST, n))
    pages["api/index.rst"] = index_page(order)
    return pages


def index_page(packages: list[str]) -> str:
    """All packages, with their first lines."""
    rows = [(f":doc:`{p} <{p}>`", first_line(importlib.import_module(p))) for p in packages]
    rows += [(f"``{name}``", "Not installed where this site was built.") for name in absent()]
    contents = "".join(f"   {name}\n" for name in packages)
    return (
        heading("Python")
        + "Every public name, from the docstrings.\n\n"
        + list_table(rows)
        + f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{contents}"
    )


def absent() -> list[str]:
    """Packages that are left out."""
    return public_names.absent()


def package_page(name: str, objects: dict[str, object]) -> str:
    """A package: its classes as a table of links, its functions and constants in full."""
    classes = {p: v for p, v in objects.items() if inspect.isclass(v)}
    parts = [heading(name), f".. automodule:: {name}\n   :no-members:\n\n"]
    if classes:
        rows = [(f":py:class:`~{path}`", first_line(value)) for path, value in classes.items()]
        parts.append(list_table(rows))
    for path, value in objects.items():
        if inspect.isclass(value):
            continue
        if inspect.isroutine(value):
            parts.append(f".. autofunction:: {path}\n\n")
        else:
            parts.append(f".. py:data:: {path}\n\n   {comment_on(path, value)}\n\n")
    if classes:
        entries = "".join(f"   {path}\n" for path in classes)
        parts.append(f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{entries}")
    return "".join(parts)


def comment_on(path: str, value: object) -> str:
    """What the comment `#:` above a constant or an alias says of it, wherever it is defined."""
    module, _, name = path.rpartition(".")
    folder = Path(importlib.import_module(module).__file__).parent
    for file in sorted(folder.rglob("*.py")) if folder.name != "chordal" else []:
        text = file.read_text(encoding="utf-8")
        found = re.search(rf"((?:^#: .*\n)+){name}\b", text, re.MULTILINE)
        if found:
            return " ".join(line[3:] for line in found[1].splitlines())
    kind = type(value).__name__
    if kind == "Registry":
        return f"What can be chosen by name: {', '.join(f'``{n}``' for n in value)}."
    return f"A value of type ``{kind}``." if kind in ("dict", "tuple", "str") else "An alias."


def class_page(path: str, cls: type) -> str:
    """A class with its members."""
    kind = "autoexception" if issubclass(cls, BaseException) else "autoclass"
    return (
        f"{heading(path.rpartition('.')[2])}.. {kind}:: {path}\n"
        f"   :members:\n   :inherited-members: {FOREIGN}\n   :show-inheritance:\n"
        f"   :exclude-members: {ADDED}\n"
    )


def list_fields(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Lines "name : what it is" of a docstring without sections become a list."""
    if any(line.startswith("---") for line in lines) or sum(map(bool, map(ENTRY.match, lines))) < 2:
        return
    made: list[str] = []
    for line in lines:
        entry = ENTRY.match(line)
        first = not any(old.startswith("- ") for old in made)
        made += [""] * bool(entry and first)
        made.append(f"- **{entry[1]}**: {entry[2]}" if entry else line and f"  {line.strip()}")
        if not entry and first:
            made[-1] = line
    lines[:] = made


def plain_types(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Types of parameters are words, not names to look up: "labels" is no attribute of a class.

    Nor is the first of two attributes that share a line the type of the second.
    """
    for k, line in enumerate(lines):
        both = re.match(r"(\s*:(?:ivar|vartype) )(\w+(?:, \w+)+):(.*)$", line)
        if both:
            lines[k] = line = f"{both[1]}{both[2].replace(', ', ',')}:{both[3]}"
        found = re.match(r"(\s*:(?:var)?type [^:]+: )([^*`]+)$", line)
        if found:
            lines[k] = f"{found[1]}*{found[2].strip()}*"


def command_pages() -> dict[str, str]:
    """A page for each command of `chordal`, and their list."""
    import typer.main

    from chordal.cli._app import app

    group: Any = typer.main.get_command(app)
    rows, pages = [], {}
    for name, command in group.commands.items():
        title = f"chordal {name}"
        pages[f"commands/{name}.md"] = command_page(title, command)
        rows.append(f"| [`{title}`]({name}.md) | {first_sentence(command.help)} |")
    contents = "\n".join(group.commands)
    pages["commands/index.md"] = (
        "# Commands\n\n"
        "Made from the code; `chordal COMMAND --help` prints the same. "
        "[The command line](/guide/command_line.md) shows them at work.\n\n"
        "| command | what it does |\n| --- | --- |\n"
        + "\n".join(rows)
        + "\n\nExit codes: 0 good, 1 wrong data or model, 2 wrong usage, "
        + "130 stopped by Ctrl-C, 143 by SIGTERM.\n\n"
        + f"```{{toctree}}\n:hidden:\n\n{contents}\n```\n"
    )
    return pages


def command_page(title: str, command: Any) -> str:
    """Usage, arguments and options of one command."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([title, *["[OPTIONS]"] * bool(options), *map(argument_name, arguments)])
    parts = [f"# {title}\n", f"```text\n{usage}\n```\n", prose(command.help) + "\n"]
    if arguments:
        rows = "".join(f"| `{argument_name(p)}` | {cell(p.help)} |\n" for p in arguments)
        parts.append(f"## Arguments\n\n| argument | |\n| --- | --- |\n{rows}")
    if options:
        rows = "".join(
            f"| {option_names(p)} | {cell(p.help)}{default_of(p)} |\n"
            for p in options
            if not getattr(p, "hidden", False)
        )
        parts.append(f"## Options\n\n| option | |\n| --- | --- |\n{rows}")
    return "\n".join(parts)


def argument_name(parameter: Any) -> str:
    """An argument as it stands in the line of usage."""
    name = parameter.metavar or parameter.name.upper()
    name = name if parameter.nargs == 1 or name.endswith("…") else f"{name}…"
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def option_names(parameter: Any) -> str:
    """All names of an option, and what it takes."""
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if getattr(parameter, "is_flag", False) or parameter.secondary_opts:
        return names
    return f"{names} {escaped(parameter.metavar or kind_of(parameter))}"


def kind_of(parameter: Any) -> str:
    """The type of an option's value; Typer's versions keep it in different places."""
    known = getattr(parameter, "type", None)
    name = known.name if known is not None else parameter.type_descriptor.annotation.__name__
    return {"str": "TEXT", "int": "NUMBER", "integer": "NUMBER", "float": "NUMBER"}.get(
        name, name.upper()
    )


def default_of(parameter: Any) -> str:
    """The default, where it says something."""
    value = parameter.default
    if value is None or value is False or value == () or value == [] or callable(value):
        return ""
    return f" Default: `{value}`."


def prose(text: str | None) -> str:
    """A docstring of a command as Markdown."""
    return escaped(inspect.cleandoc(text or "").replace("\b\n", ""))


def cell(text: str | None) -> str:
    """Text in one cell of a table."""
    return escaped(" ".join((text or "").split()))


def escaped(text: str) -> str:
    """Text whose letters are no marks of Markdown; options are code, so that "--" stays "--"."""
    parts = text.split("`")
    for k in range(0, len(parts), 2):  # those that are not code already
        plain = re.sub(r"([\\|*_<>$\[\]])", r"\\\1", parts[k])
        parts[k] = re.sub(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", r"`\1`", plain)
    return "`".join(parts)


def first_sentence(text: str | None) -> str:
    """The first line of a command's help."""
    return escaped((text or "").strip().partition("\n")[0])


def first_line(thing: object) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].split())


def heading(title: str) -> str:
    """A title of reStructuredText."""
    return f"{title}\n{'=' * len(title)}\n\n"


def list_table(rows: list[tuple[str, str]]) -> str:
    """A table of two columns."""

    def lines() -> Iterator[str]:
        for left, right in rows:
            yield f"   * - {left}\n     - {right}\n"

    return f".. list-table::\n   :widths: 35 65\n\n{''.join(lines())}\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", list_fields, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", plain_types, priority=600)  # after it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
