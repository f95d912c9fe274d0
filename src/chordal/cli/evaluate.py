"""``chordal evaluate``: score predicted labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._data import Reading
from chordal.cli._judged import Labels, predicted, read_columns
from chordal.cli._output import print_json, print_table, say

if TYPE_CHECKING:
    from chordal.metrics import BootstrapInterval, ChunkScores

METRICS = ("token_accuracy", "chunk_precision", "chunk_recall", "chunk_f1")


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Labelled data; - is stdin.")],
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Label the data with this model first."),
    ] = None,
    gold_column: Annotated[
        int | None,
        typer.Option(help="Column of the true labels; default -2, or -1 with --model."),
    ] = None,
    predicted_column: Annotated[int, typer.Option(help="Column of the predicted labels.")] = -1,
    scheme: Annotated[
        str,
        options.choice(
            "--scheme",
            names=["conlleval", "bio", "iobes", "bilou"],
            help="Tag scheme of the chunks.",
        ),
    ] = "conlleval",
    document_marks: Annotated[
        str | None,
        options.choice(
            "--document-marks",
            names=["skip", "count"],
            help="Whether -DOCSTART- lines count as tokens, as in conlleval.",
        ),
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Print a table by chunk type.")] = False,
    labels: Annotated[bool, typer.Option("--labels", help="Print a table by label.")] = False,
    confusion: Annotated[
        bool, typer.Option("--confusion", help="Print the confusion matrix of labels.")
    ] = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, metavar="N", help="Confidence intervals from N bootstrap samples.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap samples.")] = 0,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    encoding: options.Encoding = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Compare predicted with true labels; figures and text are those of conlleval.

    By default these are the last two columns of FILE, or the keys labels and gold_labels of JSON
    Lines, as `chordal tag` writes them. With --model, FILE has only true labels.
    """
    if bootstrap == 1:
        raise typer.BadParameter("--bootstrap must be at least 2, or 0 for none")
    from chordal.metrics import chunk_scores

    reading = Reading(format, separator, comment, encoding=encoding)
    if model is None:
        columns = (-2 if gold_column is None else gold_column, predicted_column)
        true, found = read_columns(file, reading, *columns, document_marks)
    else:
        true, found = predicted(
            model, file, reading, -1 if gold_column is None else gold_column, jobs
        )
    scores = chunk_scores(true, found, scheme=scheme)
    intervals = bootstrapped(true, found, scheme, bootstrap, seed) if bootstrap else {}
    if json:
        print_json(as_json(scores, true, found, labels, confusion, intervals))
        return
    if table:
        print_types(scores)
    if labels:
        print_labels(true, found)
    if not table and not labels:
        say(scores)
    if confusion:
        print_confusion(true, found)
    if intervals:
        rows = [
            [name.replace("_", " "), *map(_percent, value)] for name, value in intervals.items()
        ]
        head = ["", "%", "low 95%", "high 95%", "std. error"]
        print_table(f"bootstrap, {bootstrap} samples of the sequences", head, rows)


def bootstrapped(
    true: Labels, found: Labels, scheme: str, n: int, seed: int
) -> dict[str, BootstrapInterval]:
    """Value, limits and standard error of each metric."""
    from chordal import metrics

    out = {}
    for name in METRICS:
        options = {"scheme": scheme} if name.startswith("chunk") else {}
        counts = metrics.sequence_counts(name, true, found, **options)
        out[name] = metrics.bootstrap(counts, n=n, seed=seed)
    return out


def as_json(
    scores: ChunkScores,
    true: Labels,
    found: Labels,
    labels: bool,
    confusion: bool,
    intervals: dict[str, BootstrapInterval],
) -> dict[str, Any]:
    """Everything that was asked for."""
    from chordal import metrics

    out: dict[str, Any] = scores.to_dict()
    if labels:
        out["labels"] = metrics.classification_report(true, found).to_dict()
    if confusion:
        table = metrics.confusion_matrix(true, found)
        out["confusion"] = {"labels": table.labels, "counts": table.counts.tolist()}
    if intervals:
        out["bootstrap"] = {name: value._asdict() for name, value in intervals.items()}
    return out


def print_types(scores: ChunkScores) -> None:
    """Chunks per type, and of all types."""
    rows = [
        [name, *map(_percent, (s.precision, s.recall, s.f1)), s.true, s.found, s.correct]
        for name, s in [*scores.types.items(), ("all", scores.overall)]
    ]
    head = ["chunk", "precision", "recall", "F1", "true", "found", "correct"]
    print_table(f"{scores.n_tokens:,} tokens, accuracy {100 * scores.accuracy:.2f}%", head, rows)


def print_labels(true: Labels, found: Labels) -> None:
    """Tokens per label."""
    from chordal.metrics import classification_report

    report = classification_report(true, found)
    rows = [
        [str(label), *map(_percent, row[:3]), int(row[3])]
        for label, *row in zip(report.labels, *report.scores, strict=True)
    ]
    title = "tokens" if report.accuracy is None else f"tokens, accuracy {report.accuracy:.2%}"
    print_table(title, ["label", "precision", "recall", "F1", "true"], rows)


def print_confusion(true: Labels, found: Labels) -> None:
    """Rows are true labels, columns predicted ones."""
    from chordal.metrics import confusion_matrix

    table = confusion_matrix(true, found)
    rows = [
        [str(label), *counts]
        for label, counts in zip(table.labels, table.counts.tolist(), strict=True)
    ]
    print_table("true (down) taken for (across)", ["", *map(str, table.labels)], rows)


def _percent(share: float) -> float:
    return round(100 * float(share), 2)
