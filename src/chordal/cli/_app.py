"""The commands, as Typer knows them."""

from __future__ import annotations

from typing import Annotated

import typer

from chordal.cli import (
    convert,
    evaluate,
    explain,
    explore,
    infer,
    info,
    inspect,
    label,
    prepare,
    reproduce,
    serve,
    tag,
    train,
    tune,
)

app = typer.Typer(
    name="chordal",
    help="Label sequences with conditional random fields.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    train,
    prepare,
    tag,
    label,
    serve,
    evaluate,
    explore,
    inspect,
    explain,
    tune,
    infer,
    convert,
    reproduce,
    info,
):
    app.command(module.__name__.rpartition(".")[2])(module.command)


def _version(wanted: bool) -> None:
    if wanted:
        import chordal

        typer.echo(f"chordal {chordal.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error (allowed in any position)."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
