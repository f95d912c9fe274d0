"""The entry point: which command, and how errors become messages and exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Annotated, Any

import typer

from chordal.cli import convert, evaluate, info, inspect, reproduce, tag, train, tune

# 0 good, 1 wrong data or model, 2 wrong usage, 130 stopped by Ctrl-C.
WRONG, USAGE, STOPPED = 1, 2, 130

app = typer.Typer(
    name="chordal",
    help="Label sequences with conditional random fields.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (train, tag, evaluate, inspect, tune, convert, info, reproduce):
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
        bool, typer.Option("--debug", help="Show where an error came from (in any place).")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit.

    >>> main(["--nonsense"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words[: words.index("--") if "--" in words else None]
    if debug:
        words.remove("--debug")
    if arguments is None:
        _prepare_process()
    sys.exit(_run(words, debug))


def _prepare_process() -> None:
    if hasattr(signal, "SIGPIPE"):  # `chordal tag … | head` ends quietly, as other filters do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _run(words: list[str], debug: bool) -> int:
    try:
        code: Any = app(words, prog_name="chordal", standalone_mode=False)
        sys.stdout.flush()
        if code == STOPPED:  # Typer's own answer to Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        _say("stopped")
        return STOPPED
    except BrokenPipeError:  # where there is no SIGPIPE
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        usage = _usage(error)
        _say(f"error: {usage or describe(error)}")
        return USAGE if usage else WRONG


def _usage(error: Exception) -> str:
    """The message of an error of Typer's about how a command is called, or nothing."""
    # Newer versions of Typer hold a Click of their own; the base class is reached through Typer.
    if not isinstance(error, typer.BadParameter.__mro__[1]):
        return ""
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    where = f"{context.command_path} --help" if context is not None else "chordal --help"
    return f"{message.rstrip('.')}; see {where}"


def describe(error: Exception) -> str:
    """One line about an error.

    >>> describe(FileNotFoundError(2, "No such file or directory", "train.txt"))
    'train.txt: No such file or directory'
    >>> describe(KeyError("x"))
    "internal, KeyError: 'x'; --debug shows where"
    """
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, (ValueError, OSError, ImportError, EOFError)):
        return " ".join(str(error).split("\n"))
    return f"internal, {type(error).__name__}: {error}; --debug shows where"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
