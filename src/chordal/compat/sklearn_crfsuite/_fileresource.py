"""A model's file: one that the user names, or a temporary one of our own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

CONTENT = "__FILE_RESOURCE_DATA__"  # sklearn-crfsuite's key in pickles
_FIELDS = ("name", "auto", "keep_tempfiles", "suffix", "prefix")


class FileResource:
    """A file that belongs to an object.

    If the user gives no name, it is a temporary file. It is deleted with the object, unless
    `keep_tempfiles` is set, and a pickle of the object holds its content. sklearn-crfsuite's class
    of the same name reads and writes the same pickles.
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

    @property
    def filename(self) -> str | None:
        """The name that the user gave."""
        return None if self.auto else self.name

    def ensure_name(self) -> str:
        """The file's name; a temporary file is created if it has no name."""
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
                state[CONTENT] = file.read()
            state["name"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle; a temporary file is made anew."""
        self.auto, self.name = False, None  # until the state is checked, there is nothing to delete
        missing = [key for key in _FIELDS if key not in state]
        if missing:
            raise ValueError(
                f"this pickle of a model's file lacks {', '.join(missing)}, it has "
                f"{sorted(map(str, state))}; pickles of Python 2 need encoding='latin1'"
            )
        content = state.get(CONTENT)
        if isinstance(content, str):  # Python 2 knew no bytes; encoding="latin1" keeps them
            content = content.encode("latin-1")
        if content is not None and not isinstance(content, bytes):
            raise ValueError(f"the model in this pickle must be bytes, got {type(content)}")
        # The number of the open file tells that there was one.
        if content is None and state["auto"] and "fd" in state:
            raise ValueError(
                "this pickle has lost its model: the temporary file that held it was gone when the "
                "pickle was made"
            )
        for key in _FIELDS:
            setattr(self, key, state[key])
        if content is not None:
            self.auto, self.name = True, None
            with open(self.ensure_name(), "wb") as file:
                file.write(content)


def check_state(state: Mapping[str, Any]) -> None:
    """Refuse the state of a pickled CRF that would become a model without weights."""
    modelfile = state.get("modelfile")
    if not isinstance(modelfile, FileResource):
        raise ValueError(
            "this pickle of a CRF holds no file of a model: its 'modelfile' must be a "
            f"FileResource, got {type(modelfile).__name__} among {sorted(map(str, state))}"
        )
    if state.get("training_log_") is not None and modelfile.auto and modelfile.name is None:
        raise ValueError("this pickle is of a trained CRF, but it holds no model")
