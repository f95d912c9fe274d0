"""``chordal label``: ``wapiti label``, word for word; ``chordal tag`` does more."""

from __future__ import annotations

from typing import Annotated

import typer

from chordal.cli._data import Reading


def command(
    model: Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="The model file.")],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="Data; - is stdin.")] = "-",
    output: Annotated[
        str, typer.Argument(metavar="OUTPUT", help="Output file; - is stdout.")
    ] = "-",
    label: Annotated[
        bool, typer.Option("--label", "-l", help="Write only the labels, one per line.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", "-c", help="INPUT has labels in its last column.")
    ] = False,
    post: Annotated[
        bool,
        typer.Option(
            "--post", "-p", help="Take the most probable label of each token (tag --method mpm)."
        ),
    ] = False,
    nbest: Annotated[
        int, typer.Option("--nbest", "-n", min=1, help="Write the N best labellings.")
    ] = 1,
) -> None:
    """Label a file of columns with the options of `wapiti label`.

    It also reads models of CRF++ and CRFsuite. `chordal tag` has more formats and answers, and
    reads labelled data without --check; `chordal evaluate` counts errors.
    """
    from chordal.cli._labeller import Answers
    from chordal.cli._tagging import label_file

    if nbest > 1 and (label or post):
        raise typer.BadParameter("--nbest does not go with --label or --post")
    answers = Answers("mpm" if post else None, k_best=nbest, only=label)
    reading = Reading("conll", label=None)
    label_file(model, reading, answers, input=input, output=output, jobs=1, verbose=1)
