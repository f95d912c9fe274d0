"""``chordal tune``: regularization by held-out data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._data import Data, Reading, load_data
from chordal.cli._output import note, print_json, print_table
from chordal.cli.train import estimator, fit, store, training_data

if TYPE_CHECKING:
    from chordal import FeatureTemplate

Point = tuple[float, float]  # l1, l2


def command(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Labelled data.")],
    template: options.TemplateFile = None,
    task: options.Task = None,
    dialect: options.Dialect = "crf++",
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="Score on these data.")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=2, help="Without --validation: cross-validate so many times.")
    ] = 3,
    l1: Annotated[str, typer.Option(metavar="A,B,…", help="Values of l1; or low,high.")] = "0",
    l2: Annotated[
        str, typer.Option(metavar="A,B,…", help="Values of l2; or low,high with --n-iter.")
    ] = "0.1,1,10",
    n_iter: Annotated[
        int, typer.Option(min=0, metavar="N", help="Draw N points log-uniformly instead of all.")
    ] = 0,
    metric: Annotated[
        str,
        options.choice(
            "--metric",
            names=["chunk_f1", "chunk_precision", "chunk_recall", "accuracy", "zero_one_accuracy"],
            help="What is best.",
        ),
    ] = "chunk_f1",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="MODEL", help="Fit the best on all, and save it."),
    ] = None,
    solver: options.Solver = None,
    objective: options.Objective = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    pairs: options.Pairs = None,
    min_freq: options.MinFreq = None,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    label_column: options.LabelColumn = -1,
    jobs: options.Jobs = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of points and folds.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json: options.Json = False,
) -> None:
    """Choose l1 and l2 by cross-validation or by a validation file."""
    points = grid(l1, l2, n_iter, seed)
    reading = Reading(format, separator, comment, label_column)
    data, program = training_data(train, reading, template, task, dialect)
    held_out = None if validation is None else load_data(validation, reading, program)
    parts = list(splits(data, held_out, folds, seed))
    parameters: dict[str, Any] = {
        "solver": solver,
        "objective": objective,
        "max_iter": max_iter,
        "tol": tol,
        "pairs": pairs,
        "transitions": pairs,
        "min_freq": min_freq,
        "n_jobs": jobs,
        "verbose": 0 if quiet else 1,
    }
    results: list[dict[str, Any]] = []
    for k, point in enumerate(points, 1):
        scores = [score(program, point, parameters, metric, *split) for split in parts]
        mean = math.fsum(scores) / len(scores)
        results.append({"l1": point[0], "l2": point[1], metric: mean, "scores": scores})
        if not quiet:
            note(f"{k}/{len(points)}  l1={point[0]:g} l2={point[1]:g}  {metric} {mean:.4f}")
    best = max(results, key=lambda result: result[metric])  # the first, if several are
    if output is not None:
        final = estimator(program, l1=best["l1"], l2=best["l2"], **parameters)
        fit(final, data)
        store(final, output)
    if json:
        print_json({"results": results, "best": best, "model": output})
        return
    ranked = sorted(results, key=lambda result: -result[metric])
    rows = [[f"{r['l1']:g}", f"{r['l2']:g}", r[metric], *r["scores"]] for r in ranked]
    titles = ["validation"] if held_out is not None else [f"fold {k}" for k in range(1, folds + 1)]
    print_table(metric, ["l1", "l2", "mean", *titles], rows)
    print(f"best: --l1 {best['l1']:g} --l2 {best['l2']:g}")


def grid(l1: str, l2: str, n_iter: int, seed: int) -> list[Point]:
    """The points to try: all pairs of values, or some drawn between the least and the greatest.

    >>> grid("0", "0.1,1", 0, 0)
    [(0.0, 0.1), (0.0, 1.0)]
    >>> len(grid("0", "0.1,10", 5, 0))
    5
    """
    values = [_numbers("--l1", l1), _numbers("--l2", l2)]
    if not n_iter:
        return [(a, b) for a in values[0] for b in values[1]]
    import random

    source = random.Random(seed)

    def draw(given: list[float]) -> float:
        low, high = min(given), max(given)
        if low == high:
            return low
        if low <= 0:
            raise typer.BadParameter("with --n-iter, limits must be above 0 (or one value, 0)")
        return math.exp(source.uniform(math.log(low), math.log(high)))

    return [(draw(values[0]), draw(values[1])) for _ in range(n_iter)]


def _numbers(name: str, text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 <= value < math.inf for value in values):
        raise typer.BadParameter(
            f"{name} must be numbers of at least 0 as in 0.1,1,10; got {text!r}"
        )
    return values


def splits(data: Data, held_out: Data | None, folds: int, seed: int) -> Iterator[tuple[Data, Data]]:
    """Data to fit on and data to score on."""
    if held_out is not None:
        yield data, held_out
        return
    n = len(data.y)
    if n < folds:
        raise ValueError(f"{folds} folds need at least {folds} sequences, {data.path} has {n}")
    import random

    order = list(range(n))
    random.Random(seed).shuffle(order)
    for k in range(folds):
        apart = sorted(order[k::folds])
        inside = set(apart)
        yield data.part([i for i in range(n) if i not in inside]), data.part(apart)


def score(
    program: FeatureTemplate | None,
    point: Point,
    parameters: dict[str, Any],
    metric: str,
    fitted: Data,
    scored: Data,
) -> float:
    """The metric of a model fitted on one part and asked about the other."""
    from chordal import metrics

    crf = estimator(program, l1=point[0], l2=point[1], **parameters)
    fit(crf, fitted)
    name = {"accuracy": "token_accuracy"}.get(metric, metric)
    return float(metrics.sequence_counts(name, scored.y, crf.predict(scored.X)).value)
