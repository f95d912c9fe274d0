"""The command line: ``chordal train``, ``tag``, ``evaluate``, ``inspect``, ``tune`` and more.

One file is one command. Nothing heavy is imported before a command runs.
"""

from chordal.cli._main import main

__all__ = ["main"]
