"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from chordal._registry import Registry

LONGEST = 30  # characters of names that stand behind an option


def names_in(package: str) -> list[str]:
    """What a package's folder holds, without importing it.

    >>> "lbfgs" in names_in("chordal.solvers")
    True
    """
    return Registry(package, object, package).names()


def choice(
    *flags: str, names: Callable[[], list[str]] | list[str], help: str, numbers: bool = False
) -> Any:
    """An option whose value is one of some names, or a number if allowed; shells complete it."""

    def known() -> list[str]:
        return names() if callable(names) else names

    def check(value: str | None) -> str | None:
        if value is not None and value not in known() and not (numbers and value.isdigit()):
            raise typer.BadParameter(f"must be one of {', '.join(known())}; got {value!r}")
        return value

    def complete(incomplete: str) -> list[str]:
        return [name for name in known() if name.startswith(incomplete)]

    metavar = None if callable(names) else "|".join(names)
    if metavar is not None and len(metavar) > LONGEST:  # it would not fit into a line
        metavar, help = "NAME", f"{help} One of: {', '.join(known())}."
    return typer.Option(*flags, callback=check, autocompletion=complete, metavar=metavar, help=help)


def _tasks() -> list[str]:
    from chordal.preprocessing import TASKS

    return list(TASKS)


def _separator(text: str | None) -> str | None:
    words = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ","}
    return None if text is None else words.get(text, text)


FORMAT_NAMES = names_in("chordal.formats")

Format = Annotated[
    str | None,
    choice(
        "--format", "-f", names=FORMAT_NAMES, help="Format of the data; default: by the file name."
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        callback=_separator,
        metavar="CHAR",
        help="Column separator: one character, tab or space; default: any blanks.",
    ),
]
Comment = Annotated[
    str | None, typer.Option(metavar="MARK", help="Start of comment lines, such as '#'.")
]
LabelColumn = Annotated[int, typer.Option(help="Number of the label column; -1 is the last.")]


def _encoding(name: str | None) -> str | None:
    import codecs

    try:
        found = None if name is None else codecs.lookup(name).name
        if name is not None:
            "".encode(name)  # some are not of text
    except LookupError:
        raise typer.BadParameter(
            f"unknown encoding {name!r}; known are latin-1, cp1252, …"
        ) from None
    return None if found == "utf-8" else found


Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        callback=_encoding,
        metavar="NAME",
        help="Encoding of the files; default utf-8.",
    ),
]
TemplateFile = Annotated[
    str | None,
    typer.Option(
        "--feature-template", "-t", metavar="FILE", help="Feature template (CRF++ or Wapiti)."
    ),
]
Task = Annotated[
    str | None,
    choice("--task", names=_tasks, help="Ready-made template: chunking, ner or pos."),
]
Dialect = Annotated[
    str, choice("--dialect", names=["crf++", "wapiti"], help="Dialect of the template.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", metavar="N", help="Number of threads, default 1; -1 uses all cores."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Progress as lines of text, in logs too.")]
# Parameters of the model: None, the default, leaves the model's or its solver's own default.
Solver = Annotated[
    str | None,
    choice("--solver", names=["auto", *names_in("chordal.solvers")], help="The optimiser."),
]
Objective = Annotated[
    str | None,
    choice(
        "--objective",
        names=["auto", *names_in("chordal.objectives")],
        help="The training objective.",
    ),
]
Pairs = Annotated[
    str | None,
    choice("--pairs", names=["seen", "all"], help="Which attribute-label pairs get a weight."),
]
MinFreq = Annotated[int | None, typer.Option(min=0, help="Drop pairs seen less often than this.")]
MaxIter = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of iterations; default: the solver's.")
]
Tol = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Stop when the objective falls by less than this fraction; default: the solver's.",
    ),
]
