"""``chordal explain``: why tokens have their labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal._opening import open_model
from chordal.cli import _options as options
from chordal.cli._data import Data, Reading, load_data
from chordal.cli._models import check_reads, reader_of_text, template_of
from chordal.cli._output import print_json, say

if TYPE_CHECKING:
    from chordal import ChainCRF, Explanation


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Labelled data; - is stdin.")],
    sequence: Annotated[
        int | None, typer.Option("--sequence", "-s", min=0, help="Which sequence, from 0 on.")
    ] = None,
    position: Annotated[
        int | None,
        typer.Option("--position", "-p", help="Which token of it; by default the least sure one."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Explain this label.")] = None,
    rival: Annotated[str | None, typer.Option(help="Compare with this label.")] = None,
    odds: Annotated[
        str,
        options.choice(
            "--odds", names=["auto", "marginal", "conditional"], help="Which log-odds are split."
        ),
    ] = "auto",
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="How many wrong tokens.")] = 10,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    label_column: options.LabelColumn = -1,
    encoding: options.Encoding = None,
    json: options.Json = False,
) -> None:
    """Show what each attribute of a token adds to the log-odds of its label against another.

    Without --sequence, tokens with wrong predictions are explained: the predicted label against the
    true one.
    """
    if sequence is None and position is not None:
        raise ValueError("--position needs --sequence")
    crf = reader_of_text(open_model(model), model)
    reading = Reading(format, separator, comment, label_column, encoding)
    given = load_data(data, reading, template_of(crf))
    check_reads(crf, given.X)
    from chordal import explain

    known: dict[str | None, Any] = {str(name): name for name in crf.classes_.tolist()}
    mine, other = (known.get(name, name) for name in (label, rival))
    found: list[tuple[int, Explanation]] = []
    if sequence is not None:
        check_place(given, sequence, position)
        own = explain(crf, one(given, sequence), position, label=mine, rival=other, odds=odds)
        found.append((sequence, own))
    else:
        for i, t, gold in islice(wrong(crf, given), top):
            against = known.get(gold) if other is None else other
            own = explain(crf, one(given, i), t, label=mine, rival=against, odds=odds)
            found.append((i, own))
    words = [tokens_at(given, i)[own.at] for i, own in found]
    if json:
        pairs = zip(found, words, strict=True)
        print_json([{"sequence": i, "token": word, **own.to_dict()} for (i, own), word in pairs])
        return
    for (i, own), word in zip(found, words, strict=True):
        say(f"sequence {i}, token {word!r}: true label {given.y[i][own.at]!r}\n{own}\n")
    if not found:
        say("all predictions are right")


def check_place(given: Data, sequence: int, position: int | None) -> None:
    """Refuse a token that is not there."""
    if sequence >= given.n_sequences:
        raise ValueError(f"--sequence must be below {given.n_sequences}, got {sequence}")
    n = len(given.y[sequence])
    if not n:
        raise ValueError(f"sequence {sequence} has no tokens")
    if position is not None and not -n <= position < n:
        raise ValueError(
            f"--position must be from 0 to {n - 1} in sequence {sequence}, got {position}"
        )


def tokens_at(data: Data, i: int) -> list[str]:
    """The words of a sequence."""
    from chordal.text.words import words_of

    return words_of(one(data, i), len(data.y[i]))


def one(data: Data, i: int) -> Any:
    """A single sequence, as `explain` takes it."""
    X = data.part([i]).X
    return X[0] if isinstance(X, list) else X


def wrong(crf: ChainCRF, data: Data) -> Iterator[tuple[int, int, str]]:
    """Sequence, position and true label of each wrong prediction."""
    for i, (found, gold) in enumerate(zip(crf.predict(data.X), data.y, strict=True)):
        for t, (mine, true) in enumerate(zip(found, gold, strict=True)):
            if str(mine) != true:
                yield i, t, true
