"""``chordal serve``: serve models over HTTP."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import typer


def command(
    models: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL…", help="Model files, each with an optional name."),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 accepts all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name that requests may use."),
    ] = None,
    max_body: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="Maximum bytes of a request; more get 413.")
    ] = 1_000_000,
    max_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum tokens of a request; more get 413.")
    ] = 50_000,
    max_queue: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum waiting requests; more get 429.")
    ] = 1_000,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="SECONDS", help="Time limit of a request; then it gets 503."
        ),
    ] = 10.0,
    drain: Annotated[
        float,
        typer.Option(min=0.001, metavar="SECONDS", help="Time to finish requests when stopped."),
    ] = 10.0,
    poll: Annotated[
        float,
        typer.Option(min=0.001, metavar="SECONDS", help="Time between checks of the model files."),
    ] = 1.0,
    batch_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum tokens predicted in one call.")
    ] = 4_096,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of prediction threads.")
    ] = 1,
    access_log: Annotated[
        bool, typer.Option("--access-log/--no-access-log", help="Log a line per request.")
    ] = True,
) -> None:
    """Label text, tokens or rows over HTTP, as JSON.

    The server has no authentication and listens only on this machine, unless --host changes that. A
    model is named NAME, or as its file without the ending. A replaced model file is loaded at once,
    without losing a request. On this machine the server answers only to localhost, its address and
    the names of --allow-host. SIGTERM and Ctrl-C finish waiting requests; the exit code is then 0
    or 130.
    """
    named = names_of(models)
    from chordal.serve import Limits, app, hosts_at
    from chordal.serve.server import run

    start_log(access_log)
    limits = Limits(
        max_body=max_body,
        max_tokens=max_tokens,
        max_queue=max_queue,
        timeout=timeout,
        drain=drain,
        poll=poll,
        batch_tokens=batch_tokens,
        workers=workers,
    )
    run(app(named, limits, hosts_at(host, allow_host or ())), host, port)


def names_of(models: Sequence[str]) -> dict[str, str]:
    """Paths of models by their names.

    >>> names_of(["ner=a/v1.model", "b/pos.model"])
    {'ner': 'a/v1.model', 'pos': 'b/pos.model'}
    """
    out: dict[str, str] = {}
    for given in models:
        name, equals, path = given.partition("=")
        if not equals or os.path.exists(given):
            path, name = given, os.path.splitext(os.path.basename(given))[0]
        if name in out:
            raise typer.BadParameter(f"two models are called {name}; write NAME={path}")
        out[name] = path
    return out


def start_log(access: bool) -> None:
    """Lines on standard error, with the time."""
    import logging

    from chordal._shown import in_a_line, shown

    class Escaped(logging.Formatter):
        """Paths and errors about models may hold terminal escapes."""

        def formatMessage(self, record: logging.LogRecord) -> str:
            return in_a_line(super().formatMessage(record))

        def format(self, record: logging.LogRecord) -> str:  # and tracebacks, which have lines
            return shown(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Escaped("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("chordal.serve").setLevel(logging.INFO)
    if not access:
        logging.getLogger("chordal.serve.access").setLevel(logging.WARNING)
