"""``chordal train``: a model from a file of labelled sequences."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from chordal._atomic import check_writable
from chordal.cli import _foreign as foreign
from chordal.cli import _options as options
from chordal.cli._data import Data, Reading, load_data, make_template, read_template
from chordal.cli._fit import (
    STOPPED,
    check_template,
    checkpoint_of,
    estimator,
    fit,
    read_metadata,
    read_weights,
    say_stopped,
    started,
    store,
)
from chordal.cli._models import file_size, report, sizes
from chordal.cli._output import note, print_facts, print_json, say
from chordal.cli._watching import level

if TYPE_CHECKING:
    from chordal import ChainCRF, FeatureTemplate


def command(
    train: Annotated[
        str,
        typer.Argument(metavar="TRAIN", help="Labelled data, or a prepared data set; - is stdin."),
    ],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file to write.")],
    template: options.TemplateFile = None,
    task: options.Task = None,
    dialect: Annotated[
        str | None,
        options.choice("--dialect", names=["crf++", "wapiti"], help="Dialect of the template."),
    ] = None,
    l1: Annotated[
        float | None, typer.Option("--l1", "--rho1", min=0.0, help="L1 regularization; default 0.")
    ] = None,
    l2: Annotated[
        float | None,
        typer.Option("--l2", "--rho2", min=0.0, help="L2 regularization (l2/2 ‖w‖²); default 1."),
    ] = None,
    c: Annotated[
        float | None, typer.Option("--c", "-c", "--cost", help="CRF++: l2 is 1/c.")
    ] = None,
    solver: options.Solver = None,
    objective: options.Objective = None,
    max_iter: Annotated[
        int | None,
        typer.Option(
            "--max-iter",
            "--maxiter",
            min=1,
            help="Maximum number of iterations; default: the solver's.",
        ),
    ] = None,
    tol: options.Tol = None,
    pairs: options.Pairs = None,
    min_freq: options.MinFreq = None,
    validation: Annotated[
        str | None,
        typer.Option(
            "--validation",
            "--devel",
            "-d",
            metavar="FILE",
            help="Data to score while training; also a folder of `chordal prepare`.",
        ),
    ] = None,
    n_iter_no_change: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this many validation scores without improvement."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weights of sequences: one number per line."),
    ] = None,
    warm_start: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Start from the weights of this model.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Save the state of training to this file; if it exists, resume from it. The model "
            "is bit for bit the same, even if training is killed and restarted.",
        ),
    ] = None,
    checkpoint_interval: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Write the checkpoint every K iterations; default 10."
        ),
    ] = None,
    checkpoint_minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="M", help="Write the checkpoint every M minutes, or K iterations."
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE|FILE",
            help="Metadata to store in the model, or a JSON file; may be repeated.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        options.choice(
            "--format",
            "-f",
            names=options.FORMAT_NAMES,
            help="Format of the data; default: by the file name. (-f N: see --freq.)",
            numbers=True,
        ),
    ] = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    encoding: options.Encoding = None,
    label_column: options.LabelColumn = -1,
    compact: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="SIZE", help="Drop weights of this size or less."),
    ] = None,
    dtype: Annotated[
        str,
        options.choice(
            "--dtype",
            names=["float64", "float32", "float16"],
            help="Number type in the model file.",
        ),
    ] = "float64",
    jobs: options.Jobs = None,
    freq: foreign.Freq = None,
    pattern: foreign.Pattern = None,
    nthread: foreign.NThread = None,
    iterations: foreign.Iterations = None,
    eta: foreign.Eta = None,
    stopeps: foreign.StopEps = None,
    stopwin: foreign.StopWin = None,
    epsilon: foreign.Epsilon = None,
    seed: Annotated[int | None, typer.Option(help="Seed of random choices.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Train a model on labelled data.

    Files of columns (CoNLL, CRF++, Wapiti) need a template (-t) or a --task. CRFsuite's items and
    JSON Lines with attributes need neither.

    Ctrl-C writes the current model; a second Ctrl-C writes nothing. With --checkpoint, the same
    command resumes after Ctrl-C, a signal or a power failure.

    Options of crf_learn keep their meaning: -c, -f N, -p N, --eta. So do those of wapiti train: -p
    FILE, -t N, -i, -d, --rho1, --rho2, --stopeps, -w. The option -e is --eta or --stopeps,
    depending on the others.
    """
    begin = time.perf_counter()
    asked = foreign.Given(
        template, pattern, dialect, format, min_freq, freq, pairs, max_iter, iterations, jobs,
        nthread, c, eta, stopeps, stopwin, epsilon,
    ).ours()  # fmt: skip
    rule = asked.rule()
    if n_iter_no_change is not None and validation is None:
        raise typer.BadParameter("--n-iter-no-change needs --validation FILE")
    kept = checkpoint_of(checkpoint, checkpoint_interval, checkpoint_minutes, model)
    about = read_metadata(metadata or [])
    for path in (model, *([] if kept is None else [kept.path])):
        check_writable(path)  # before hours of training
    l2 = l2_of(l2, c)
    reading = Reading(asked.format, separator, comment, label_column, encoding)
    data, program = training_data(train, reading, asked.template, task, asked.dialect or "crf++")
    if weights is not None:
        data = data.weighted(read_weights(weights, data.n_sequences))
    held_out = None if validation is None else validation_from(validation, reading, program)
    by_scores = rule is not None and rule.needs_scores
    crf = estimator(
        program,
        l1=l1,
        l2=l2,
        solver=solver,
        objective=objective,
        max_iter=asked.max_iter,
        tol=0.0 if rule is not None and tol is None else tol,
        pairs=asked.pairs,
        transitions=asked.pairs,
        min_freq=asked.min_freq,
        n_iter_no_change=n_iter_no_change,
        validation_interval=1 if by_scores else None,
        random_state=seed,
        n_jobs=asked.jobs,
        verbose=level(quiet, verbose),
    )
    if checkpoint is not None and os.path.exists(checkpoint) and not quiet:
        note(f"going on from {checkpoint}")
    if warm_start is not None:
        crf = started(crf, warm_start)
    if by_scores and held_out is None and data.is_prepared:
        raise typer.BadParameter("this rule to stop needs --validation FILE with prepared data")
    scored = held_out if held_out is not None or not by_scores else data
    stopped = fit(crf, data, scored, rule, kept)
    over = crf.fit_report_.status.name not in ("INTERRUPTED", "MAX_ITERATIONS")
    if stopped:
        say_stopped(crf)
    compacted = None
    if compact is not None or dtype != "float64":
        measured = next((own for own in (held_out, data) if own and not own.is_prepared), None)
        pair = () if measured is None else (measured.X, measured.y)
        crf = crf.compact(compact or 0.0, dtype, *pair)
        compacted = str(crf.compact_report_)
    store(crf, model, about)
    if stopped:
        note(f"the model so far is in {model}")
        if checkpoint is not None and os.path.exists(checkpoint):
            note(f"the same command resumes from {checkpoint}")
        raise typer.Exit(STOPPED)
    if checkpoint is not None and over and os.path.exists(checkpoint):
        os.remove(checkpoint)
    summary = {
        "sequences": data.n_sequences,
        "tokens": data.n_tokens,
        **sizes(crf),
        **(report(crf) or {}),
        **({} if held_out is None else validation_scores(crf, held_out)),
        "total_seconds": time.perf_counter() - begin,
        "model": model,
        "bytes": file_size(model),
    }
    if json:
        print_json({**summary, "compact": compacted})
    elif not quiet:
        print_facts(summary)
        if compacted:
            say(compacted)


def training_data(
    path: str, reading: Reading, template: str | None, task: str | None, dialect: str
) -> tuple[Data, FeatureTemplate | None]:
    """The data, and the template that they are to be read by."""
    if os.path.isdir(path):
        return prepared_data(path, template, task)
    check_template([path], reading, template, task)
    program = None if template is None else read_template(template, dialect, reading.encoding)
    if program is not None:
        data = load_data(path, reading, program)
        check_columns(program, data)
        return data, program
    if task is None:
        return load_data(path, reading, None), None
    from chordal.text import FeatureTemplate

    data = load_data(path, reading, FeatureTemplate("B"))  # any: it asks for columns
    return data, make_template(None, task, dialect, data.X.n_columns)


def prepared_data(
    path: str, template: str | None, task: str | None
) -> tuple[Data, FeatureTemplate | None]:
    """A prepared data set, and the template that it was read by."""
    from chordal.prepared import Dataset
    from chordal.text import FeatureTemplate

    if template is not None or task is not None:
        raise typer.BadParameter(f"{path} is prepared: give its template to `chordal prepare`")
    data = Dataset(path)
    rows = data.facts["templates"][0]["rows"]
    program = None
    if rows["kind"] == "template":
        program = FeatureTemplate(rows["template"], rows["dialect"])
    return Data(path, data, []), program


def validation_from(path: str, reading: Reading, template: FeatureTemplate | None) -> Data:
    """Data to score, from a file or prepared."""
    if not os.path.isdir(path):
        return load_data(path, reading, template)
    from chordal.prepared import Dataset

    return Data(path, Dataset(path), [])


def check_columns(template: FeatureTemplate, data: Data) -> None:
    """Raise an error for a template that uses a column that the data do not have."""
    n = data.X.n_columns
    if template.n_columns > n:
        raise ValueError(
            f"the template uses column {template.n_columns - 1}, but {data.path} has {n} "
            "besides the labels (columns are counted from 0)"
        )


def l2_of(l2: float | None, c: float | None) -> float | None:
    """The L2 regularization, from --l2 or from CRF++'s --c; None if neither is given."""
    if c is None:
        return l2
    if l2 is not None:
        raise typer.BadParameter("give --l2 or --c (l2 = 1/c), not both")
    if not 0 < c < float("inf"):
        raise typer.BadParameter(f"--c must be above 0, got {c}")
    return 1.0 / c


def validation_scores(crf: ChainCRF, data: Data) -> dict[str, float]:
    """How well held-out data are labelled."""
    if data.is_prepared:
        return {"validation_accuracy": crf.score(data.X)}
    from chordal.metrics import chunk_f1, token_accuracy

    found = crf.predict(data.X)
    return {
        "validation_accuracy": token_accuracy(data.y, found),
        "validation_chunk_f1": chunk_f1(data.y, found),
    }
