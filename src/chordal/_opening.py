"""Model files, chordal's own and those of other tools: which is which, and how each is opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from chordal.estimators import ChainCRF
    from chordal.features import Input

# How the files of other tools begin, and who reads them.
_OTHERS = {
    "crfsuite": re.compile(rb"lCRF"),
    "crfpp": re.compile(rb"version: \d+\r?\ncost-factor: "),
    "wapiti": re.compile(rb"#mdl#"),
}


class Reading(Protocol):
    """A model that says how it reads the features of its variables."""

    @property
    def input_(self) -> Input | None:
        """What reads them; None if it is not one of chordal's inputs."""


def kind_of(path: str) -> str | None:
    """The tool that wrote a model: "chordal" or another; None if the file is not a model."""
    if path == "-":
        return None
    from chordal._container import opened  # with NumPy, which --help does without

    with opened(path) as file:
        head = file.read(256)
    for kind, beginning in _OTHERS.items():
        if beginning.match(head):
            return kind
    is_ours = len(head) > 8 and head[8:9] == b"{" and head[6:8] == b"\0\0"
    return "chordal" if is_ours else None


def open_model(path: str) -> ChainCRF:
    """The model of a file that chordal or another tool wrote."""
    kind = kind_of(path)
    if kind in _OTHERS:
        model: ChainCRF = tool(f"read_{kind}", f"{kind}_model")(path)
        return model
    from chordal.estimators import ChainCRF
    from chordal.model_file import load

    return load(path, ChainCRF)


def tool(function: str, module: str) -> Callable[..., Any]:
    """A function of chordal.compat; another tool's reader is imported only if it is needed."""
    try:
        return getattr(import_module(f"chordal.compat.{module}"), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"this version of chordal has no {function}") from error


def columns_of(model: Reading) -> int:
    """The columns of the rows that a model was trained on; 0 if that is not known."""
    from chordal.features import TemplateInput

    source = model.input_
    return source.width if isinstance(source, TemplateInput) else 0
