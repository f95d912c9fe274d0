"""Models as files: the UAI competitions' format and libDAI's.

`read_uai` and `read_fg` give potentials, to be asked by any inference method; `read_model` chooses
by the file's name. Unlike the other formats, which hold labelled sequences, these hold a model with
its scores.
"""

from __future__ import annotations

from chordal.formats._base import without_compression
from chordal.formats._files import Place, name_of
from chordal.formats.uai._evidence import (
    apply_evidence,
    condition_on,
    read_evidence,
    write_evidence,
)
from chordal.formats.uai._fg import read_fg, write_fg
from chordal.formats.uai._model import read_uai, write_uai
from chordal.formats.uai._results import (
    read_map,
    read_mar,
    read_pr,
    write_map,
    write_mar,
    write_pr,
)
from chordal.potentials import Potentials


def read_model(place: Place) -> Potentials:
    """A model from a file: libDAI's if its name ends in .fg, compressed or not, else UAI's."""
    return (
        read_fg(place) if without_compression(name_of(place)).endswith(".fg") else read_uai(place)
    )


__all__ = [
    "apply_evidence",
    "condition_on",
    "read_evidence",
    "read_fg",
    "read_map",
    "read_mar",
    "read_model",
    "read_pr",
    "read_uai",
    "write_evidence",
    "write_fg",
    "write_map",
    "write_mar",
    "write_pr",
    "write_uai",
]
