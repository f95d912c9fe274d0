"""A program in a pseudo-terminal: what it shows there, and what it prints."""

import os
import struct
import subprocess
import sys
from typing import NamedTuple


class Shown(NamedTuple):
    error: str  # standard error, as a terminal received it
    output: str
    code: int

    @property
    def frames(self):
        """States of the live line."""
        return [own.rstrip() for own in self.error.replace("\n", "\r").split("\r") if own.strip()]


def in_terminal(command, width=100, output_too=False, timeout=120, **options):
    """Run a program whose standard error (with `output_too` both) is a terminal."""
    import fcntl
    import pty
    import tempfile
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, width, 0, 0))
    with tempfile.TemporaryFile() as file:  # not a pipe, which could fill
        child = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stderr=theirs,
            stdout=theirs if output_too else file,
            env={**os.environ, "TERM": "xterm", "PYTHONUNBUFFERED": "1"},
            **options,
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        code = child.wait(timeout)
        file.seek(0)
        return Shown(shown.decode(), file.read().decode(), code)


def chordal(*words, **options):
    return in_terminal([sys.executable, "-m", "chordal", *words], **options)
