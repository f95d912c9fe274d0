"""CRF++'s text models, as `crf_learn -t` writes them.

::

    version: 100                 header
    cost-factor: 1
    maxid: 153482
    xsize: 2

    B-NP                         labels
    …

    U00:%x[-2,0]                 template
    …

    7546 B                       observations: number of their first weight, name
    29190 U00:#
    …

    -0.0123456789012345          weights: per label for U, per pair (from, to) for B
    …

The score is the sum of the weights times the cost factor.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from chordal._errors import UnsupportedError
from chordal.compat._observations import Blocks, Model, chunks, decoded, read_text_model
from chordal.estimators import ChainCRF


def read_crfpp(source: str | os.PathLike[str] | bytes, **parameters: object) -> ChainCRF:
    """A text model of CRF++ (`crf_learn -t` writes it beside the binary one, as model.txt).

    The result reads what `crf_test` reads, rows of columns of text, and gives the same tags and
    marginals; CRF++ itself rounds weights to single precision when it tags.

    Parameters
    ----------
    source : path of the file, or its bytes
    **parameters
        Of `ChainCRF`.

    Examples
    --------
    >>> header = b"version: 100\\ncost-factor: 1\\nmaxid: 2\\nxsize: 1\\n\\n"
    >>> crf = read_crfpp(header + b"D\\nN\\n\\nU0:%x[0,0]\\n\\n0 U0:cat\\n\\n-0.5\\n0.5\\n")
    >>> crf.predict([[["cat"]]])
    [['N']]
    """
    return read_text_model(source, "CRF++", "crf++", parse_crfpp, parameters)


def parse_crfpp(data: bytes) -> Model:
    """The parts of a text model."""
    if not data.startswith(b"version: "):
        hint = "; give the text model that crf_learn -t writes" if b"\0" in data[:100] else ""
        raise ValueError(f'it must begin with "version: ", got {data[:20]!r}{hint}')
    parts = data.split(b"\n\n", 4)
    if len(parts) != 5:
        raise ValueError(f"it is cut off: it must have 5 parts, got {len(parts)}")
    header = _header(parts[0])
    factor, size = header["cost-factor"], int(header["maxid"])
    labels = [decoded(line, "labels") for line in parts[1].split(b"\n")]
    lines = [decoded(line, "the template") for line in parts[2].split(b"\n")]
    for line in lines:
        if line[:1] not in ("U", "B"):
            raise ValueError(f"lines of the template must begin with U or B, got {line!r}")
        if line != line.rstrip():
            raise UnsupportedError(f"the template must not end lines in white space: {line!r}")
    names, starts = _observations(parts[3])
    blocks = Blocks(
        starts,
        np.arange(len(names)),
        np.array([name.startswith(b"B") for name in names], dtype=bool),
    )
    try:
        values = [np.array(part.split(), dtype=np.float64) for part in chunks(parts[4], 0)]
    except ValueError as error:
        raise ValueError(f"weights must be numbers: {error}") from None
    weights = np.concatenate([np.zeros(0), *values])
    if len(weights) != size:
        raise ValueError(f"it must have {size} weights, got {len(weights)}")
    kept = np.flatnonzero(weights)
    return Model(labels, names, blocks, kept, factor * weights[kept], lines)


def _header(part: bytes) -> dict[str, float]:
    values = {}
    for line in part.split(b"\n"):
        name, _, value = line.partition(b": ")
        try:
            values[name.decode("ascii")] = float(value)
        except ValueError:
            raise ValueError(f"its header must hold numbers, got {line!r}") from None
    for key, least in (("version", 100.0), ("cost-factor", -np.inf), ("maxid", 0.0)):
        if not least <= values.get(key, np.nan) < np.inf:
            raise ValueError(f"its header must have a number {key}, got {values.get(key)}")
    if not values["version"] < 200:
        raise ValueError(f"its version must be 100 to 199, got {values['version']:g}")
    return values


def _observations(part: bytes) -> tuple[list[bytes], Any]:
    pairs = [line.split(b" ", 1) for line in part.split(b"\n")]
    names = [pair[-1] for pair in pairs]
    for pair in pairs:
        if len(pair) != 2 or not pair[0].isdigit() or pair[1][:1] not in (b"U", b"B"):
            raise ValueError(f"observations must be a number and a name, got {pair!r}")
    try:
        return names, np.array([pair[0] for pair in pairs], dtype=np.int64)
    except (ValueError, OverflowError):
        raise ValueError("numbers of observations must fit 64 bits") from None
