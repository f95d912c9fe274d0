"""``chordal train``: a model from a file of labelled sequences."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._data import Data, Reading, load_data, make_template, read_template
from chordal.cli._models import file_size, report, sizes
from chordal.cli._output import note, print_facts, print_json

if TYPE_CHECKING:
    from chordal import ChainCRF, FeatureTemplate


def command(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Labelled data; - is stdin.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model file to write.")],
    template: options.TemplateFile = None,
    task: options.Task = None,
    dialect: options.Dialect = "crf++",
    l1: Annotated[float | None, typer.Option(min=0.0, help="L1 regularization.")] = None,
    l2: Annotated[
        float | None, typer.Option(min=0.0, help="L2 regularization (l2/2 ‖w‖²); 1 by default.")
    ] = None,
    c: Annotated[float | None, typer.Option("--c", "-c", help="CRF++'s: l2 is 1/c.")] = None,
    solver: options.Solver = None,
    objective: options.Objective = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    pairs: options.Pairs = None,
    min_freq: options.MinFreq = None,
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="Data to score while training.")
    ] = None,
    n_iter_no_change: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this many validation scores without a better one."),
    ] = None,
    format: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    label_column: options.LabelColumn = -1,
    compact: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="SIZE", help="Drop weights of this size or less."),
    ] = None,
    dtype: Annotated[
        str,
        options.choice(
            "--dtype", names=["float64", "float32", "float16"], help="Numbers in the model file."
        ),
    ] = "float64",
    jobs: options.Jobs = None,
    seed: Annotated[int | None, typer.Option(help="Seed of what is random.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    json: options.Json = False,
) -> None:
    """Learn a model from labelled data.

    Files of columns (CoNLL, CRF++, Wapiti) need a template (-t) or a --task; CRFsuite's items and
    JSON Lines with attributes are taken as they are.
    """
    begin = time.perf_counter()
    if template is not None and task is not None:
        raise typer.BadParameter("give --feature-template or --task, not both")
    if n_iter_no_change is not None and validation is None:
        raise typer.BadParameter("--n-iter-no-change needs --validation FILE")
    l2 = l2_of(l2, c)
    reading = Reading(format, separator, comment, label_column)
    data, program = training_data(train, reading, template, task, dialect)
    held_out = None if validation is None else load_data(validation, reading, program)
    crf = estimator(
        program,
        l1=l1,
        l2=l2,
        solver=solver,
        objective=objective,
        max_iter=max_iter,
        tol=tol,
        pairs=pairs,
        transitions=pairs,
        min_freq=min_freq,
        n_iter_no_change=n_iter_no_change,
        random_state=seed,
        n_jobs=jobs,
        verbose=0 if quiet else 1,
    )
    fit(crf, data, held_out)
    compacted = None
    if compact is not None or dtype != "float64":
        measured = held_out or data
        crf = crf.compact(compact or 0.0, dtype, measured.X, measured.y)
        compacted = str(crf.compact_report_)
    store(crf, model)
    summary = {
        "sequences": len(data.y),
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
            print(compacted)


def training_data(
    path: str, reading: Reading, template: str | None, task: str | None, dialect: str
) -> tuple[Data, FeatureTemplate | None]:
    """The data, and the template that they are to be read by."""
    program = None if template is None else read_template(template, dialect)
    if program is None and task is None and reading.name(path) in ("conll", "conllu"):
        raise typer.BadParameter(
            "a file of columns needs a template: give -t FILE, or --task chunking, ner or pos"
        )
    if program is not None:
        data = load_data(path, reading, program)
        check_columns(program, data)
        return data, program
    if task is None:
        return load_data(path, reading, None), None
    from chordal.text import FeatureTemplate

    data = load_data(path, reading, FeatureTemplate("B"))  # any: it asks for columns
    return data, make_template(None, task, dialect, data.X.n_columns)


def check_columns(template: FeatureTemplate, data: Data) -> None:
    """Refuse a template that names a column that the data do not have."""
    n = data.X.n_columns
    if template.n_columns > n:
        raise ValueError(
            f"the template asks for column {template.n_columns - 1}, but {data.path} has {n} "
            "beside the labels (columns are counted from 0)"
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


def estimator(template: FeatureTemplate | None, **parameters: Any) -> ChainCRF:
    """A model to be fitted; parameters that are None keep the model's own defaults."""
    from chordal import ChainCRF

    given = {name: value for name, value in parameters.items() if value is not None}
    return ChainCRF(feature_template=template, **given)


def fit(crf: ChainCRF, data: Data, held_out: Data | None = None) -> None:
    """Fit, and say so if the iterations ran out."""
    pair = None if held_out is None else (held_out.X, held_out.y)
    with warnings.catch_warnings():
        # The same is said below, in the words of the command line.
        warnings.filterwarnings("ignore", message="solver .* did not converge")
        crf.fit(data.X, data.y, sample_weight=data.weight, validation_data=pair)
    if crf.verbose and crf.fit_report_.status.name == "MAX_ITERATIONS":
        note(f"warning: not converged after {crf.n_iter_} iterations; --max-iter allows more")


def store(crf: ChainCRF, path: str) -> None:
    """Save a model without what belongs to this run alone."""
    from chordal import save

    crf.set_params(n_jobs=None, verbose=0)
    save(crf, path)


def validation_scores(crf: ChainCRF, data: Data) -> dict[str, float]:
    """How well held-out data are labelled."""
    from chordal.metrics import chunk_f1, token_accuracy

    found = crf.predict(data.X)
    return {
        "validation_accuracy": token_accuracy(data.y, found),
        "validation_chunk_f1": chunk_f1(data.y, found),
    }
