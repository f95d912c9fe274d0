"""A model's file: one that the user names, or a temporary one of our own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any


class FileResource:
    """A file that belongs to an object.

    Without a name of the user's own it is a temporary one, deleted with the object (unless
    `keep_tempfiles`), and its content travels with pickles.
    """

    def __init__(
        self,
        filename: str | None = None,
        keep_tempfiles: bool = False,
        suffix: str = "",
        prefix: str = "",
    ) -> None:
        self.name = filename
        self.auto = filename is None
        self.keep_tempfiles = keep_tempfiles
        self.suffix, self.prefix = suffix, prefix

    def ensure_name(self) -> str:
        """The file's name; a temporary file is made if there is none."""
        if self.name is None:
            handle, self.name = tempfile.mkstemp(self.suffix, self.prefix)
            os.close(handle)
        return self.name

    def refresh(self) -> str:
        """Forget the old temporary file, and make a new one."""
        self.cleanup()
        return self.ensure_name()

    def cleanup(self) -> None:
        """Delete the temporary file."""
        if self.auto and self.name is not None and not self.keep_tempfiles:
            with contextlib.suppress(OSError):
                os.unlink(self.name)
        if self.auto:
            self.name = None

    def __del__(self) -> None:
        # At the end of the interpreter even os may be gone.
        with contextlib.suppress(Exception):
            self.cleanup()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self.auto and self.name is not None:
            with open(self.name, "rb") as file:
                state["content"] = file.read()
            state["name"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("content", None)
        self.__dict__.update(state)
        if content is not None:
            with open(self.ensure_name(), "wb") as file:
                file.write(content)
