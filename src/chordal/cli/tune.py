"""``chordal tune``: choose the regularization on held-out data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from chordal._atomic import check_writable
from chordal.cli import _options as options
from chordal.cli._data import Data, Reading, load_data
from chordal.cli._fit import STOPPED, estimator, fit, say_stopped, store
from chordal.cli._output import note, print_json, print_table, say
from chordal.cli._search import Point, Scores, Search
from chordal.cli._watching import level
from chordal.cli.train import training_data
from chordal.progress import Progress


def command(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Labelled data.")],
    template: options.TemplateFile = None,
    task: options.Task = None,
    dialect: options.Dialect = "crf++",
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="Data to score on.")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=2, help="Number of cross-validation folds, without --validation.")
    ] = 3,
    l1: Annotated[
        str, typer.Option(metavar="A,B,…", help="Values of l1, or low,high with --n-iter.")
    ] = "0",
    l2: Annotated[
        str, typer.Option(metavar="A,B,…", help="Values of l2, or low,high with --n-iter.")
    ] = "0.1,1,10",
    n_iter: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Draw N points log-uniformly instead of all pairs."),
    ] = 0,
    metric: Annotated[
        str,
        options.choice(
            "--metric",
            names=["chunk_f1", "chunk_precision", "chunk_recall", "accuracy", "zero_one_accuracy"],
            help="Metric to maximise.",
        ),
    ] = "chunk_f1",
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="Fit the best setting on all data, and save it."
        ),
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
    encoding: options.Encoding = None,
    label_column: options.LabelColumn = -1,
    jobs: options.Jobs = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Save scores to this file, and reuse those in it."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of points and folds.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Choose l1 and l2 by cross-validation or by a validation file.

    Ctrl-C ends the search: the best so far is shown, and with -o its model is written. A second
    Ctrl-C writes nothing. With --resume, the same command continues.
    """
    points = grid(l1, l2, n_iter, seed)
    if output is not None:
        check_writable(output)  # before hours of search
    reading = Reading(format, separator, comment, label_column, encoding)
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
    }
    searched: dict[str, Any] = {
        **parameters,
        "metric": metric,
        "sequences": len(data.y),
        "tokens": data.n_tokens,
        "template": None if program is None else program.text,
        "splits": [folds, seed] if held_out is None else [held_out.n_tokens],
    }
    parameters |= {"n_jobs": jobs, "verbose": 0 if quiet else 1}
    shown = level(quiet, verbose)
    search = Search(parts, metric, Scores(resume, searched))
    with Progress("tune", len(points), "point", verbose=shown, pace=math.inf) as progress:
        for k, point in enumerate(points, 1):
            progress.update(k, *search.figures(), share=(k - 1) / len(points))
            mean = search.score(point, estimator(program, l1=point[0], l2=point[1], **parameters))
            if mean is None:
                break
            found = f"l1={point[0]:g} l2={point[1]:g}  {metric} {mean:.4f}"
            progress.say(f"tune  point {k} of {len(points)}  {found}")
    if search.stopped:
        note(f"Ctrl-C: {len(search.results)} of {len(points)} points are scored")
    stopped = search.stopped
    best = max(search.results, key=lambda result: result[metric], default=None)  # the first of some
    if output is not None and stopped:
        search.keep(output)
    elif output is not None and best is not None:
        final = estimator(program, l1=best["l1"], l2=best["l2"], **parameters)
        stopped = fit(final, data)
        if stopped:
            say_stopped(final)
        store(final, output)
        if stopped:
            note(f"the model so far is in {output}")
    if json:
        print_json({"results": search.results, "best": best, "model": output})
    elif best is not None:
        titles = [f"fold {k}" for k in range(1, folds + 1)] if held_out is None else ["validation"]
        show(search.results, metric, titles)
    if stopped:
        raise typer.Exit(STOPPED)


def show(results: list[dict[str, Any]], metric: str, titles: list[str]) -> None:
    """A table of the points, the best first."""
    ranked = sorted(results, key=lambda result: -result[metric])
    rows = [[f"{r['l1']:g}", f"{r['l2']:g}", r[metric], *r["scores"]] for r in ranked]
    print_table(metric, ["l1", "l2", "mean", *titles], rows)
    say(f"best: --l1 {ranked[0]['l1']:g} --l2 {ranked[0]['l2']:g}")


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
    if data.is_prepared:
        raise ValueError(
            f"{data.path} is prepared, which folds cannot be made of: give --validation FILE, or "
            "the files that it was made from"
        )
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
