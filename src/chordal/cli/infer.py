"""``chordal infer``: questions about a model in the format of UAI, libDAI or toulbar2."""

from __future__ import annotations

from inspect import signature
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._fit import STOPPED
from chordal.cli._output import note, print_json
from chordal.cli._watching import level, watched

if TYPE_CHECKING:
    from chordal.inference import Convergence, Inference
    from chordal.potentials import Potentials

#: What an exact method gets of the time that is given; an approximation gets the rest.
EXACT_SHARE = 0.7
#: Seconds to find out how much memory an exact answer would need.
PLANNING = 3.0
#: What each task asks of an inference method.
QUESTIONS = {"PR": "log_partition", "MAR": "marginals", "MAP": "map"}
#: Seconds of a search that has a limit of its own, where none is given.
SECONDS = 20.0
#: Memory of exact best labels, where a time limit is given: what takes about a second.
QUICK_MEMORY = 1e8


def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A .uai, .fg, .wcsp or .cfn file; - is stdin.")
    ],
    task: Annotated[
        str,
        options.choice(
            "--task",
            "-t",
            names=list(QUESTIONS),
            help="Partition function, marginals or the best labelling.",
        ),
    ],
    evidence: Annotated[
        str | None,
        typer.Option("--evidence", "-e", metavar="FILE", help="Observed labels (.evid)."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Number of the evidence sample, if there are several."
        ),
    ] = None,
    method: Annotated[
        str | None,
        options.choice(
            "--method",
            "-m",
            names=options.names_in("chordal.inference"),
            help="Default: an exact method if affordable, else an approximation; for best "
            "labellings the best that several methods find in 20 seconds (portfolio).",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="A parameter of the method, such as max_iter=50; may be repeated.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds for the answer; default: no limit, or 20 for method portfolio.",
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory for the answer, such as 500M or 2G; default: half of the free memory.",
        ),
    ] = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Compute log10 Z, the marginals or the best labelling of a graphical model.

    The answer is printed in the UAI result format; standard error tells how it was found. Ctrl-C
    ends the search for the best labelling and prints the best so far. The exit code is then 130.
    """
    from chordal.formats.uai import condition_on, read_model
    from chordal.inference import TimeLimitError
    from chordal.inference import time_limit as within

    started, shown = perf_counter(), level(False, verbose)
    potentials = read_model(model)
    observed = _observed(evidence, sample)
    asked = condition_on(potentials, observed)
    settings = {**_settings(method, option), **_limits(time_limit, memory_limit)}
    inference = _method(method, settings, asked, QUESTIONS[task])
    try:
        with within(time_limit if method else EXACT_SHARE * time_limit if time_limit else None):
            answer = _answered(inference, task, asked, potentials, observed, shown)
    except TimeLimitError:
        if method is not None:
            raise
        inference = _approximation(inference, asked, QUESTIONS[task], time_limit or 0.0)
        answer = _answered(inference, task, asked, potentials, observed, shown)
    facts = {**dict.fromkeys(("log10_partition", "marginals", "labels")), **answer}
    facts["seconds"] = round(perf_counter() - started, 3)
    if json:
        print_json(facts)
    else:
        _say(task, facts)
    if facts["status"] == "interrupted":
        raise typer.Exit(STOPPED)


def _say(task: str, facts: dict[str, Any]) -> None:
    """The answer, and how it was found."""
    _print_result(task, facts)
    exact = "exact" if facts["exact"] else "an approximation"
    status = facts["status"]
    if facts["iterations"] is not None and status != "converged":
        status += f", not converged in {facts['iterations']} iterations"
    by = f", labels by {facts['found_by']}" if facts.get("found_by") else ""
    note(f"{facts['method']}{by}, {exact}; {status}; {facts['seconds']} s")


def _observed(path: str | None, sample: int | None) -> dict[int, int]:
    """The evidence: none without a file, else that of the sample."""
    from chordal.formats.uai import read_evidence

    if path is None:
        if sample is not None:
            raise typer.BadParameter("--sample needs --evidence")
        return {}
    samples = read_evidence(path)
    if sample is None and len(samples) > 1:
        raise ValueError(f"{path} has {len(samples)} samples; choose one with --sample")
    if (sample or 1) > len(samples):
        raise ValueError(f"{path} has {len(samples)} samples, there is no sample {sample}")
    return samples[(sample or 1) - 1]


def _settings(method: str | None, given: list[str] | None) -> dict[str, Any]:
    """The parameters of the method that were given, as numbers or words."""
    from chordal.inference import INFERENCE

    if not given:
        return {}
    if method is None:
        raise typer.BadParameter("--option needs --method")
    known = {*signature(INFERENCE.get(method)).parameters} - {"time_limit", "memory_limit"}
    settings: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--option must be NAME=VALUE, got {text!r}")
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise typer.BadParameter(f"--method {method} has no option {name!r}; it has: {listed}")
        settings[name] = _value(value)
    return settings


def _value(text: str) -> object:
    if text in ("None", "none"):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _limits(seconds: float | None, size: str | None) -> dict[str, Any]:
    from chordal._memory import parse_size
    from chordal._validate import check_number

    limits: dict[str, Any] = {}
    if seconds is not None:
        check_number("--time-limit", seconds, strict=True)
        limits["time_limit"] = seconds
    if size is not None:
        try:
            limits["memory_limit"] = parse_size(size)
        except ValueError as error:
            raise typer.BadParameter(f"--memory-limit: {error}") from None
    return limits


def _method(
    name: str | None, settings: dict[str, Any], asked: Potentials, question: str
) -> Inference:
    """The method of this name, or the one that the model suggests."""
    from chordal._errors import UnsupportedError
    from chordal.inference import INFERENCE, Pace, choose

    seconds, memory = settings.get("time_limit"), settings.get("memory_limit")
    if name is None:
        # With little time, a search that has an answer at any moment is better than none.
        pace = Pace.MINUTES if seconds is None or question != "map" else Pace.SECONDS
        quick = min(memory or QUICK_MEMORY, QUICK_MEMORY)
        inference = choose(asked, question, pace, quick if pace is Pace.SECONDS else memory)
        inference.memory_limit = memory
        if seconds is not None or inference.time_limit is not None:
            inference.time_limit = seconds or SECONDS
        if seconds is None:  # it takes some
            _say_why_not_exact(inference, asked, question)
    else:
        inference = INFERENCE.resolve(name, **settings)
        if seconds is None and inference.time_limit is not None:
            inference.time_limit = SECONDS
    inference.require(question, asked.structure)
    refusal = inference.refusal_of(asked)
    if refusal is not None:
        raise UnsupportedError(refusal)
    return inference


def _approximation(late: Inference, asked: Potentials, question: str, seconds: float) -> Inference:
    """What is used for the rest of the time where an exact method took too long."""
    from chordal.inference import INFERENCE, TimeLimitError

    kinds = [cls for cls in INFERENCE.classes() if cls.anytime and question in cls.quality]
    ranked = sorted(kinds, key=lambda cls: (-cls.quality[question], cls.__module__))
    for method in (cls() for cls in ranked):
        if method.fits(question, asked.structure):
            method.time_limit = (1.0 - EXACT_SHARE) * seconds
            method.memory_limit = late.memory_limit
            note(f"{late.name} was not ready in {EXACT_SHARE * seconds:g} s: {method.name} is used")
            return method
    raise TimeLimitError(
        f"inference {late.name!r} did not finish in {seconds:g} seconds; raise --time-limit"
    )


def _say_why_not_exact(inference: Inference, asked: Potentials, question: str) -> None:
    """How much memory an exact answer would need, where that is why it is an approximation."""
    from chordal._limits import TimeLimitError, time_limit
    from chordal._memory import size_of
    from chordal.inference.elimination import EliminationInference

    if inference.exact_on(asked.structure):
        return
    exact = EliminationInference(memory_limit=inference.memory_limit)
    if question not in exact.answers or exact.fits(question, asked.structure):
        return
    limit = size_of(exact.memory_budget)
    try:
        with time_limit(PLANNING):
            size = exact.tree_size(asked.structure, question)
        needed = ("" if size.complete else "at least ") + size_of(size.bytes)
    except TimeLimitError:
        needed = f"more than {limit}"
    note(
        f"an exact answer would need {needed} of memory, and the limit is {limit} "
        f"(--memory-limit): {inference.name} is used"
    )


def _partition(
    inference: Inference, asked: Potentials, whole: Potentials, observed: dict[int, int]
) -> dict[str, Any]:
    ended = None
    if inference.exact_on(asked.structure) or "marginals" not in inference.answers:
        log_partition = float(inference.log_partition(asked)[0])
    else:  # which also tell how it ended
        found = inference.marginals(asked)
        log_partition, ended = float(found.log_partition[0]), found.convergence
    facts = _facts(inference, asked, ended)
    if log_partition == -float("inf"):
        return {**facts, "status": "infeasible"}
    return {"log10_partition": _log10(log_partition), **facts}


def _marginals(
    inference: Inference, asked: Potentials, whole: Potentials, observed: dict[int, int]
) -> dict[str, Any]:
    import numpy as np

    found = inference.marginals(asked)
    counts = whole.structure.label_counts
    rows = np.split(found.parts.unary, asked.structure.state_offsets[1:-1])
    for variable, label in observed.items():
        rows[variable] = (np.arange(counts[variable]) == label).astype(float)
    log_partition = float(found.log_partition[0])
    return {
        "log10_partition": None if np.isnan(log_partition) else _log10(log_partition),
        "marginals": [row.tolist() for row in rows],
        **_facts(inference, asked, found.convergence),
    }


def _best(
    inference: Inference, asked: Potentials, whole: Potentials, observed: dict[int, int]
) -> dict[str, Any]:
    found = inference.map(asked)
    score = float(found.score[0])
    if score == -float("inf"):
        raise ValueError(
            f"inference {inference.name!r} found no labelling with a probability above 0; "
            "try an exact method"
        )
    labels = found.labels.copy()
    for variable, label in observed.items():
        labels[variable] = label
    bound = score if found.bound is None else float(found.bound[0])
    facts = _facts(inference, asked, found.convergence)
    # What a bound proves is exact, whatever the method promises.
    facts["exact"] |= bound - score <= 1e-9 * max(1.0, abs(score))
    facts["found_by"] = None if found.found_by is None else found.found_by[0]
    facts["log10_score"] = _log10(score)
    facts["log10_bound"] = None if bound == float("inf") else _log10(bound)
    return {"labels": labels.tolist(), **facts}


def _answered(
    inference: Inference,
    task: str,
    asked: Potentials,
    whole: Potentials,
    observed: dict[int, int],
    verbose: int,
) -> dict[str, Any]:
    """The answer, with progress while it is sought."""
    with watched(inference, f"infer {task}", verbose):
        return ANSWERS[task](inference, asked, whole, observed)


ANSWERS = {"PR": _partition, "MAR": _marginals, "MAP": _best}


def _facts(inference: Inference, asked: Potentials, ended: Convergence | None) -> dict[str, Any]:
    """How the answer was found."""
    return {
        "method": inference.name,
        "exact": inference.exact_on(asked.structure),
        "status": "converged" if ended is None else ended.status.name.lower(),
        "iterations": None if ended is None else ended.n_iter,
    }


def _log10(value: float) -> float:
    from math import log

    return value / log(10.0)


def _print_result(task: str, facts: dict[str, Any]) -> None:
    from chordal.formats.uai import write_map, write_mar, write_pr

    if task == "MAP":
        write_map(facts["labels"], "-")
    elif task == "MAR":
        write_mar(facts["marginals"], "-")
    else:
        value = facts["log10_partition"]
        write_pr(-float("inf") if value is None else value, "-")
