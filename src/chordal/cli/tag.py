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
        str, typer.Option("--output", "-o", metavar="FILE", help="Output file; - is stdout.")
    ] = "-",
    marginals: Annotated[
        bool, typer.Option("--marginals", "-m", help="Add the probability of each label.")
    ] = False,
    all_marginals: Annotated[
        bool, typer.Option("--all-marginals", help="Add the probabilities of all labels.")
    ] = False,
    k_best: Annotated[
        int, typer.Option("--k-best", "-k", min=1, help="Write the N best labellings.")
    ] = 1,
    method: Annotated[
        str | None,
        options.choice(
            "--method",
            names=["map", "mpm"],
            help="map: the best labelling; mpm: the most probable label of each token.",
        ),
    ] = None,
    constrain: Annotated[
        str | None,
        options.choice(
            "--constrain",
            names=["auto", *SCHEMES],
            help="Allow only legal tags of a scheme; auto: that of the model's labels.",
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="INPUT is raw text, line by line: write entities, their offsets and "
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
    """Label data: copy the lines and add a column of labels.

    Sequences from a pipe are answered one by one. JSON Lines get the predicted labels; labels that
    they had become gold_labels. Tables of Parquet and Arrow are written as such, with the
    predicted labels. For CRFsuite's items, only labels are printed, as `crfsuite tag` does.

    With --text, each line of text gives a line of JSON: {"text": …, "entities": [{"start", "end",
    "label", "probability", "text"}, …]}. Offsets count characters of the line. Sentences and tokens
    are found by the rules of chordal.formats.sentences and tokenize. The probability is that of
    exactly this entity. If the labels follow no scheme such as BIO, the key is "tokens" instead of
    "entities".

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
