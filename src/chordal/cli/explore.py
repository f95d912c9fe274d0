"""``chordal explore``: a page to browse a data set under a model."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from chordal._errors import FormatError
from chordal.cli import _options as options
from chordal.cli._data import Reading
from chordal.cli._output import note


def _image_shape(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[1-9]\d{0,4}x[1-9]\d{0,4}", text):
        raise typer.BadParameter(f"must be HEIGHTxWIDTH, such as 16x8; got {text!r}")
    return text


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Labelled data, or arrays in an npz file.")
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
) -> None:
    """Write one HTML page to browse a data set under a model; see docs/explore.md.

    The page holds all it needs: open it in a browser, without server or network. It has scores by
    label, confusions that lead to their examples, filters and orders, and of each example the
    lattice, the best labellings and why each label was chosen.

    DATA is read as `chordal evaluate --model` reads it. An npz file holds X and y: rows of numbers
    with `lengths` of sequences or `shapes` of images, or images [n, height, width, channels].
    """
    from chordal._atomic import atomic_write
    from chordal.explore import page

    reading = Reading(format, separator, comment, None if no_labels else gold_column, encoding)
    estimator, X, y, tokens = opened(model, data, reading, jobs)
    extra = {} if max_attributes is None else {"max_attributes": max_attributes}
    shape = tuple(map(int, image_shape.split("x"))) if image_shape else None
    with progress() as watch:
        html = page(
            estimator,
            X,
            None if no_labels else y,
            title=f"{Path(model).name} on {Path(data).name}" if title is None else title,
            tokens=tokens,
            image_shape=shape,  # type: ignore[arg-type]
            k_best=k_best,
            watch=watch,
            **extra,
        )
    with atomic_write(output) as file:
        file.write(html.encode())
    note(f"{len(X):,} examples in {output} ({len(html) / 1e6:.1f} MB): open it in a browser")


def opened(
    model: str, path: str, reading: Reading, jobs: int | None
) -> tuple[Any, Any, Any, list[list[str]] | None]:
    """The model, examples, labels if there are any, and words if the model does not tell them."""
    if path.endswith(".npz"):
        from chordal import ChainCRF
        from chordal._opening import kind_of, open_model
        from chordal.cli._arrays import load_arrays
        from chordal.features import ArrayInput
        from chordal.model_file import load

        estimator: Any = load(model) if kind_of(model) == "chordal" else open_model(model)
        estimator.set_params(n_jobs=jobs)
        if isinstance(estimator, ChainCRF) and not isinstance(estimator.input_, ArrayInput):
            raise FormatError(path, "it holds arrays, and the model reads attributes or columns")
        return (estimator, *load_arrays(path), None)
    from chordal.cli._judged import open_both
    from chordal.cli._token_model import TokenModel

    tagger, data = open_both(model, path, reading, jobs)
    if isinstance(tagger, TokenModel):
        tokens = tagger.tokens(data.X)
        return tagger.model, tokens, data.y, [[str(own) for own in x] for x in tokens]
    return tagger, data.X, data.y, None


@contextmanager
def progress() -> Iterator[Callable[[int, int], None]]:
    """What shows how many examples are done, in a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    line = Progress(
        "explore", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with line:
        task = line.add_task("")
        yield lambda done, total: line.update(task, completed=done, total=total)
