"""``chordal reproduce``: run published experiments again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chordal.cli import _options as options
from chordal.cli._output import note, print_json, print_table, say
from chordal.cli._watching import level
from chordal.progress import Progress

if TYPE_CHECKING:
    from chordal.experiments import Experiment, Finished


def _names() -> list[str]:
    """The experiments as users write them."""
    return [name.replace("_", "-") for name in options.names_in("chordal.experiments")]


def _complete(incomplete: str) -> list[str]:
    return [name for name in ["all", *_names()] if name.startswith(incomplete)]


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", autocompletion=_complete, help="Names of experiments, or all."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the report: index.html, results.json.")
    ] = Path("report"),
    quick: Annotated[bool, typer.Option("--quick", help="Use less data and fewer steps.")] = False,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Number of threads.")] = 2,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Run published experiments again, and compare each published figure with ours.

    Without names, list the experiments.
    """
    if not names:
        _list()
        return
    chosen = _chosen(names)
    from chordal.estimators import whole_fits
    from chordal.experiments import EXPERIMENTS, Setup, reproduce, results

    made = [(name, EXPERIMENTS.get(name.replace("-", "_"))()) for name in chosen]
    live = Progress(
        "reproduce", len(made), "experiment", verbose=level(False, verbose), pace=0.0, ticks=True
    )
    with warnings.catch_warnings(), whole_fits(), live:
        progress = _Shown(live)
        # Experiments say themselves how many passes they make.
        warnings.filterwarnings("ignore", message="solver .* did not converge")
        setup = Setup(quick=quick, say=progress.say, n_jobs=jobs)
        done = reproduce(made, out, setup, progress.started, progress.ended)
    if json:
        print_json(results(done, setup))
    else:
        _summarise(done)
        say(f"the report is in {out / 'index.html'}")
    missing = [finished.name for finished in done if finished.outcome is None]
    if missing:
        note(f"not run: {', '.join(missing)}")
        raise typer.Exit(1)


def _list() -> None:
    from chordal.experiments import EXPERIMENTS

    rows = [[name, EXPERIMENTS.get(name.replace("-", "_")).title] for name in _names()]
    print_table("experiments", ["name", "what"], rows)


def _chosen(names: list[str]) -> list[str]:
    known = _names()
    for name in names:
        if name not in (*known, "all"):
            raise typer.BadParameter(f"must be all, {', '.join(known)}; got {name!r}")
    return known if "all" in names else list(dict.fromkeys(names))


def _summarise(done: list[Finished]) -> None:
    rows: list[list[Any]] = []
    for finished in done:
        if finished.outcome is None:
            rows.append([finished.name, finished.problem, "", "", "not run"])
            continue
        for k, row in enumerate(finished.outcome.rows):
            name = finished.name if k == 0 else ""
            rows.append([name, row.what, row.shown(row.published), row.ours_shown, row.verdict])
    print_table("figures", ["experiment", "what", "published", "ours", "verdict"], rows)


class _Shown:
    """The experiment that runs, its stage, and how many there are."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.name, self.n_ended = progress, "", 0

    def started(self, name: str, experiment: Experiment) -> None:
        """An experiment begins."""
        self.name = name
        self.say("")

    def say(self, stage: str) -> None:
        """It has come to a stage."""
        total = self.progress.total or 1
        text = f"{self.name}: {stage}" if stage else self.name
        self.progress.update(self.n_ended + 1, text, share=self.n_ended / total)

    def ended(self, finished: Finished) -> None:
        """It is over."""
        self.n_ended += 1
        self.progress.say(f"reproduce  {finished.name}  {finished.seconds:.0f} s")
