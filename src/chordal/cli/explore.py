"""``chordal explore``: a page to browse a data set under a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._data import Reading
from chordal.cli._output import note
from chordal.cli._watching import level


def _image_shape(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[1-9]\d{0,4}x[1-9]\d{0,4}", text):
        raise typer.BadParameter(f"must be HEIGHTxWIDTH, such as 16x8; got {text!r}")
    return text


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file.")],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Labelled text, graphs in JSON Lines, or arrays in npz."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = "explore.html",
    title: Annotated[
        str | None, typer.Option(help="Heading of the page; by default model and data.")
    ] = None,
    gold_column: Annotated[int, typer.Option(help="The true labels.")] = -1,
    no_labels: Annotated[
        bool, typer.Option("--no-labels", help="The data have no labels: see what to label next.")
    ] = False,
    k_best: Annotated[
        int, typer.Option("--k-best", "-k", min=1, max=100, help="Labellings per example.")
    ] = 3,
    image_shape: Annotated[
        str | None,
        typer.Option(
            callback=_image_shape,
            metavar="HEIGHTxWIDTH",
            help="Rows of numbers are images of this size, such as 16x8.",
        ),
    ] = None,
    max_attributes: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Attributes that explanations may keep; 4 million by default."
        ),
    ] = None,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    encoding: options.Encoding = None,
    jobs: options.Jobs = None,
    verbose: options.Verbose = False,
) -> None:
    """Write one HTML page to browse a data set under a model; see docs/guide/explore.md.

    The page holds all it needs: open it in a browser, without server or network. It has scores by
    label, confusions that lead to their examples, filters and orders. Of each example it shows
    probabilities, the best labellings and why each label was chosen.

    Text is read as `chordal evaluate --model` reads it. Graphs are lines of JSON with nodes, edges
    and labels. An npz file holds X and y: rows of numbers with `lengths` of sequences or `shapes`
    of images, or images [n, height, width, channels]; for classifiers, rows alone.
    """
    from chordal._atomic import check_writable
    from chordal.cli._explored import opened
    from chordal.explore import page
    from chordal.formats import open_target

    if output != "-":
        check_writable(output)
    reading = Reading(format, separator, comment, None if no_labels else gold_column, encoding)
    found = opened(model, data, reading, jobs)
    extra: dict[str, Any] = {} if max_attributes is None else {"max_attributes": max_attributes}
    shape = tuple(map(int, image_shape.split("x"))) if image_shape else None
    html = page(
        found.model,
        found.X,
        None if no_labels else found.y,
        title=f"{Path(model).name} on {Path(data).name}" if title is None else title,
        tokens=found.tokens,
        positions=found.positions,
        image_shape=shape,  # type: ignore[arg-type]
        k_best=k_best,
        verbose=level(False, verbose),
        **extra,
    )
    with open_target(output) as file:
        file.write(html.encode())
    if output == "-":
        return
    n = f"{len(found.X):,} example{'s' * (len(found.X) != 1)}"
    note(f"{n} in {output} ({len(html) / 1e6:.1f} MB): open it in a browser")
