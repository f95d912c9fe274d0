"""Training on the command line: templates, starting weights, checkpoints and Ctrl-C."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from chordal._errors import FormatError
from chordal._opening import open_model
from chordal.cli import _signals
from chordal.cli._data import Data, Reading
from chordal.cli._output import note

if TYPE_CHECKING:
    from chordal import ChainCRF, Checkpoint, FeatureTemplate
    from chordal.solvers import Iteration

STOPPED = 130  # the exit code after Ctrl-C


def estimator(template: FeatureTemplate | None, **parameters: Any) -> ChainCRF:
    """A model to be fitted; parameters that are None keep the model's own defaults."""
    from chordal import ChainCRF

    given = {name: value for name, value in parameters.items() if value is not None}
    return ChainCRF(feature_template=template, **given)


def check_template(
    paths: Iterable[str], reading: Reading, template: str | None, task: str | None
) -> None:
    """Refuse files of columns without a template; one that does not exist is named first."""
    if template is not None and task is not None:
        raise typer.BadParameter("give --feature-template or --task, not both")
    if template is not None or task is not None:
        return
    for path in paths:
        if reading.name(path) in ("conll", "conllu"):
            if path != "-":
                os.stat(path)
            raise typer.BadParameter(
                "a file of columns needs a template: give -t FILE, or --task chunking, ner or pos"
            )


def started(crf: ChainCRF, path: str) -> ChainCRF:
    """A model with the parameters of one and the weights of another, which it starts from."""
    known = open_model(path)
    template, given = known.columns_template(), crf.columns_template()
    if (template is None) != (given is None) or (
        template is not None and given is not None and template.text != given.text
    ):
        raise ValueError(
            f"{path} was trained with another template: use the same one to start from it"
        )
    parameters = crf.get_params(deep=False)
    return known.set_params(**{**parameters, "warm_start": True})


def fit(
    crf: ChainCRF,
    data: Data,
    held_out: Data | None = None,
    callback: Callable[[Iteration], bool | None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> bool:
    """Fit, and warn if the iterations ran out; returns whether Ctrl-C ended it."""
    pair = None if held_out is None else held_out.validation
    with warnings.catch_warnings():
        # The same is said here, in the words of the command line.
        warnings.filterwarnings("ignore", message="solver .* did not converge")
        warnings.filterwarnings("ignore", message="Ctrl-C ended the fit")
        y = None if data.is_prepared else data.y
        options: dict[str, Any] = {"validation_data": pair, "callback": callback}
        _signals.check()
        crf.fit(data.X, y, sample_weight=data.weight, **options, checkpoint=checkpoint)
    status = crf.fit_report_.status.name
    if crf.verbose and status == "MAX_ITERATIONS":
        more = "" if checkpoint is None else f", and resumes from {checkpoint.path}"
        note(f"warning: not converged after {crf.n_iter_} iterations; --max-iter allows more{more}")
    return status == "INTERRUPTED"


def without_run(crf: Any) -> Any:
    """A model without what belongs to this run alone."""
    return crf.set_params(n_jobs=None, verbose=0, warm_start=False)


def checkpoint_of(
    path: str | None, interval: int | None, minutes: float | None, model: str
) -> Checkpoint | None:
    """Where and how often a fit keeps its state, as options say it."""
    if path is None:
        if interval is not None or minutes is not None:
            name = "--checkpoint-interval" if minutes is None else "--checkpoint-minutes"
            raise typer.BadParameter(f"{name} needs --checkpoint FILE")
        return None
    from chordal import Checkpoint

    if os.path.abspath(path) == os.path.abspath(model):
        raise typer.BadParameter("--checkpoint must be another file than MODEL")
    return Checkpoint(path, interval, minutes)


def store(crf: ChainCRF, path: str, metadata: dict[str, object] | None = None) -> None:
    """Save a model without what belongs to this run alone."""
    from chordal import save

    save(without_run(crf), path, metadata=metadata)


def say_stopped(crf: ChainCRF) -> None:
    """What happens next after Ctrl-C or SIGTERM."""
    note(
        f"stopped after {crf.n_iter_} iterations: writing the model so far "
        "(Ctrl-C again: nothing is written)"
    )


def read_weights(path: str, n: int) -> list[float]:
    """A file of one weight per sequence."""
    with open(path, encoding="utf-8-sig") as file:
        lines = file.read().split()
    weights = []
    for k, word in enumerate(lines, 1):
        try:
            weights.append(float(word))
        except ValueError:
            raise FormatError(path, f"weight {k} must be a number, got {word!r}") from None
        if not 0 <= weights[-1] < float("inf"):
            raise FormatError(path, f"weight {k} must be a number of at least 0, got {word}")
    if len(weights) != n:
        raise FormatError(path, f"there are {len(weights)} weights for {n} sequences")
    return weights


def read_metadata(words: Sequence[str]) -> dict[str, object]:
    """Metadata from words "name=value", and from files that hold a JSON object.

    >>> read_metadata(["licence=CC0", "data=CoNLL-2000"])
    {'licence': 'CC0', 'data': 'CoNLL-2000'}
    """
    out: dict[str, object] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if sign and not os.path.exists(word):
            out[name] = value
            continue
        if not os.path.exists(word):
            raise typer.BadParameter(f"--metadata must be NAME=VALUE or a JSON file, got {word!r}")
        with open(word, encoding="utf-8-sig") as file:
            try:
                found = json.load(file)
            except ValueError as error:
                raise FormatError(word, f"not JSON: {error}") from None
        if not isinstance(found, dict):
            raise FormatError(word, "metadata must be a JSON object: names and values")
        out |= found
    return out
