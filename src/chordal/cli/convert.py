"""``chordal convert``: data files and models from one format to another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal._opening import kind_of, open_model, tool
from chordal._schemes import SCHEMES
from chordal.cli import _options as options
from chordal.cli._data import Reading
from chordal.cli._output import note, print_json

if TYPE_CHECKING:
    from chordal.formats import Record

# Tools whose models are written: a function of chordal.compat, and its module.
WRITERS = {
    "crfsuite": ("write_crfsuite", "crfsuite_model"),
    "wapiti": ("write_wapiti", "wapiti_model"),
}
MODELS = ["chordal", *WRITERS]


def command(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Data file or model; - is stdin.")
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The file to write.")],
    from_: Annotated[
        str | None,
        options.choice(
            "--from",
            "-f",
            names=options.FORMAT_NAMES,
            help="Format of SOURCE; default: by its name.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        options.choice(
            "--to",
            "-t",
            names=sorted({*options.FORMAT_NAMES, *MODELS}),
            help="Format of TARGET (data or model); default: by its name.",
        ),
    ] = None,
    from_scheme: Annotated[
        str | None,
        options.choice("--from-scheme", names=list(SCHEMES), help="Tag scheme of SOURCE."),
    ] = None,
    to_scheme: Annotated[
        str | None,
        options.choice("--to-scheme", names=list(SCHEMES), help="Tag scheme of TARGET."),
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Repair illegal labels as conlleval does.")
    ] = False,
    separator: options.Separator = None,
    comment: options.Comment = None,
    encoding: options.Encoding = None,
    label_column: options.LabelColumn = -1,
    no_labels: Annotated[
        bool, typer.Option("--no-labels", help="SOURCE has no label column.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Convert data between formats and tag schemes, or models between tools.

    Models of CRFsuite, CRF++ (text) and Wapiti are detected by their first bytes and become chordal
    models. A chordal model becomes another tool's if TARGET ends in its name (x.crfsuite), or with
    --to. --encoding is that of SOURCE; TARGET is UTF-8.
    """
    if (from_scheme is None) != (to_scheme is None):
        raise typer.BadParameter("give --from-scheme and --to-scheme together")
    kind = kind_of(source)
    if kind is not None:
        facts = convert_model(source, target, kind, to)
    else:
        label = None if no_labels else label_column
        reading = Reading(from_, separator, comment, label, encoding)
        reader = reading.format_for(source)
        if to == "chordal":
            raise ValueError(
                f"{source}: not a model, and data cannot become one; see chordal train"
            )
        # Cells that one separator keeps apart may hold what another would not.
        writer = Reading(to, separator, comment, label).format_for(target)
        records = reader.read(reading.place(source))
        if from_scheme is not None and to_scheme is not None:
            records = in_scheme(records, from_scheme, to_scheme, not lenient)
        facts = {"sequences": writer.write(records, target), "to": writer.name}
    if json and target != "-":
        print_json(facts)
    elif target != "-":
        note(", ".join(f"{name}: {value}" for name, value in facts.items()))


def convert_model(source: str, target: str, kind: str, to: str | None) -> dict[str, Any]:
    """A model file of another kind."""
    from chordal import save
    from chordal.model_file import metadata_of

    crf = open_model(source)
    ending = os.path.splitext(target)[1].lower().removeprefix(".")
    wanted = to or (ending if ending in WRITERS else "chordal")
    if wanted not in MODELS:
        raise ValueError(f"{source} is a model; --to must be one of {', '.join(MODELS)}")
    if wanted in WRITERS:
        tool(*WRITERS[wanted])(crf, target)
    else:
        save(crf, target, metadata=metadata_of(source) if kind == "chordal" else None)
    return {"from": kind, "to": wanted, "weights": crf.layout_.n_weights}


def in_scheme(
    records: Iterator[Record], source: str, target: str, strict: bool
) -> Iterator[Record]:
    """The records with their labels written in another scheme."""
    from chordal.formats import convert_scheme

    for n, record in enumerate(records, 1):
        if record.labels is None:
            raise ValueError(f"sequence {n} has no labels to convert")
        try:
            labels = convert_scheme(record.labels, source, target, strict=strict)
        except ValueError as error:
            raise ValueError(f"sequence {n}: {error}") from None
        yield record._replace(labels=labels)
