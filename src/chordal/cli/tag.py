"""``chordal tag``: label sequences, as a filter."""

from __future__ import annotations

from typing import Annotated

import typer

from chordal._schemes import SCHEMES
from chordal.cli import _options as options
from chordal.cli._data import Reading
from chordal.cli._watching import level


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file.")],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="Data; - is stdin.")] = "-",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is stdout.")
    ] = "-",
    marginals: Annotated[
        bool, typer.Option("--marginals", "-m", help="Add the probability of each label.")
    ] = False,
    all_marginals: Annotated[
        bool, typer.Option("--all-marginals", help="Add the probabilities of all labels.")
    ] = False,
    k_best: Annotated[
        int, typer.Option("--k-best", "-k", min=1, help="The so many best labellings.")
    ] = 1,
    method: Annotated[
        str | None,
        options.choice(
            "--method",
            names=["map", "mpm"],
            help="The best labelling as a whole, or the best label of each token.",
        ),
    ] = None,
    constrain: Annotated[
        str | None,
        options.choice(
            "--constrain",
            names=["auto", *SCHEMES],
            help="Legal tags of a scheme only; auto: the scheme of the model's labels.",
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="INPUT is raw text, a line at a time: give entities, their places and "
            "probabilities as JSON Lines.",
        ),
    ] = False,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    encoding: options.Encoding = None,
    jobs: options.Jobs = None,
    verbose: options.Verbose = False,
) -> None:
    """Label data: lines are kept as they are, and a column is added.

    Sequences that arrive through a pipe are answered one by one. JSON Lines come back with the
    labels found, and with those that they had as gold_labels; for CRFsuite's items, labels are
    printed as `crfsuite tag` prints them.

    With --text, each line of text gives a line of JSON: {"text": …, "entities": [{"start", "end",
    "label", "probability", "text"}, …]}. Places count characters of the line. Sentences and tokens
    are found by the rules of chordal.formats.sentences and tokenize; the probability is that of
    exactly this entity. Where labels are of no scheme such as BIO, "tokens" stands for "entities".

    With --k-best, a sequence is repeated for each labelling, after a line "# rank probability".
    """
    from chordal.cli._labeller import Answers
    from chordal.cli._tagging import label_file

    if k_best > 1 and (marginals or all_marginals or method == "mpm"):
        raise typer.BadParameter("--k-best does not go with --marginals or --method mpm")
    if text and (k_best > 1 or marginals or all_marginals or method or format):
        raise typer.BadParameter("--text goes with --constrain and --encoding only")
    label_file(
        model,
        Reading(format, separator, comment, None, encoding),
        Answers(method, constrain, marginals or all_marginals, all_marginals, k_best, text=text),
        input=input,
        output=output,
        jobs=1 if jobs is None else jobs,
        verbose=level(False, verbose),
    )
