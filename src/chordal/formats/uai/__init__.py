"""Model files in the UAI format and in those of libDAI and toulbar2.

`read_uai`, `read_fg`, `read_wcsp` and `read_cfn` return potentials for any inference method;
`read_model` chooses by the file name. Other formats contain labelled sequences; these contain a
model with its scores.
"""

from __future__ import annotations

from chordal.formats._base import without_compression
from chordal.formats._files import Place, name_of
from chordal.formats.uai._cfn import read_cfn
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
from chordal.formats.uai._wcsp import read_wcsp
from chordal.potentials import Potentials

#: What reads a model, by the end of the file's name; others are UAI's.
READERS = {".fg": read_fg, ".wcsp": read_wcsp, ".cfn": read_cfn}


def read_model(place: Place) -> Potentials:
    """Read a model from a file, compressed or not. The format is libDAI's for .fg, toulbar2's for
    .wcsp and .cfn, else UAI's.
    """
    name = without_compression(name_of(place))
    read = next((read for end, read in READERS.items() if name.endswith(end)), read_uai)
    return read(place)


__all__ = [
    "apply_evidence",
    "condition_on",
    "read_cfn",
    "read_evidence",
    "read_fg",
    "read_map",
    "read_mar",
    "read_model",
    "read_pr",
    "read_uai",
    "read_wcsp",
    "write_evidence",
    "write_fg",
    "write_map",
    "write_mar",
    "write_pr",
    "write_uai",
]
