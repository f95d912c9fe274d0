"""The entry point: which command, and how errors become messages and exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import warnings
from types import TracebackType
from typing import TextIO

from chordal._shown import in_a_line, shown
from chordal.cli import _signals
from chordal.cli._quick import quick_tag
from chordal.cli._words import in_options

# 0 good, 1 wrong data or model, 2 wrong usage, 130 stopped by Ctrl-C, 143 by SIGTERM.
WRONG, USAGE, STOPPED, TERMINATED = 1, 2, 130, 143


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
        if debug:
            sys.excepthook = _trace
        else:
            warnings.showwarning = _warn
    sys.exit(_run(words, debug))


def _prepare_process() -> None:
    if hasattr(signal, "SIGPIPE"):  # `chordal tag … | head` ends quietly, as other filters do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    _signals.listen()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _stopped() -> int:
    _say("stopped")
    return TERMINATED if signal.SIGTERM in _signals.received else STOPPED


def _run(words: list[str], debug: bool) -> int:
    try:
        code = _command(words)
        sys.stdout.flush()
        return _stopped() if code == STOPPED else code
    except KeyboardInterrupt:
        return _stopped()
    except BrokenPipeError:  # where there is no SIGPIPE
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        if _signals.received:  # Python has made another error of it
            return _stopped()
        usage = _usage(error)
        _say(f"error: {usage or describe(error)}")
        return USAGE if usage else WRONG


def _command(words: list[str]) -> int:
    """Run the command that the words say; its exit code."""
    if quick_tag(words):
        return 0
    import typer

    from chordal.cli._app import app

    try:
        code: object = app(words, prog_name="chordal", standalone_mode=False)
    except typer.Abort:
        return STOPPED
    return code if isinstance(code, int) else 0  # STOPPED is Typer's own answer to Ctrl-C


def _usage(error: Exception) -> str:
    """The message of an error of Typer's about how a command is called, or nothing."""
    typer = sys.modules.get("typer")
    # Newer versions of Typer hold a Click of their own; the base class is reached through Typer.
    if typer is None or not isinstance(error, typer.BadParameter.__mro__[1]):
        return ""
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())
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
        return in_options(" ".join(str(error).split("\n")))
    return f"internal, {type(error).__name__}: {error}; --debug shows where"


def _trace(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write a traceback, whose words and names may hold terminal escapes."""
    sys.stderr.write(shown("".join(traceback.format_exception(kind, error, trace))))


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _say(f"warning: {in_options(' '.join(str(message).split()))}")


def _say(line: str) -> None:
    print(in_a_line(line), file=sys.stderr, flush=True)
