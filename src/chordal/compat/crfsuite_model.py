"""CRFsuite's binary models: read them into a `ChainCRF`, and write one for CRFsuite's taggers.

Little-endian 32-bit words; offsets count from the beginning of the file::

    "lCRF"  size  "FOMC"  version  n_features  n_labels  n_attributes      header, 48 bytes;
    offsets: features  labels  attributes  label refs  attribute refs      n_features is left 0
    "FEAT"  size  n  n × (type  source  target  weight as a double)        type 0 state, 1 tied
    CQDB of labels, CQDB of attributes
    "LFRF"  size  n_labels + 2  offsets of (n  feature ids …)              transitions by source
    "AFRF"  size  n_attributes  offsets of (n  feature ids …)              state features by source
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._atomic import atomic_write
from chordal._errors import UnsupportedError
from chordal.compat._assembly import assembled
from chordal.compat._cqdb import cqdb_bytes, read_cqdb
from chordal.estimators import ChainCRF
from chordal.features import VocabularyInput
from chordal.structures import offsets_of

Ints = NDArray[np.int64]

HEADER = struct.Struct("<4sI4s9I")
CHUNK = struct.Struct("<4s2I")
FEATURE = np.dtype([("type", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
VERSION = 100
STATE, TRANSITION = 0, 1
MAX_SIZE = 2**32 - 1


class _Header(NamedTuple):
    magic: bytes
    size: int
    type: bytes
    version: int
    n_features: int
    n_labels: int
    n_attributes: int
    features: int
    labels: int
    attributes: int
    label_refs: int
    attribute_refs: int


def read_crfsuite(source: str | os.PathLike[str] | bytes, **parameters: object) -> ChainCRF:
    """A model that CRFsuite (or python-crfsuite, sklearn-crfsuite) has written.

    It gives the same tags and marginals as CRFsuite's own tagger.

    Parameters
    ----------
    source : path of the file, or its bytes
    **parameters
        Of `ChainCRF`; they matter for what the model does next (`n_jobs`, `l2` …).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from chordal.compat.crfsuite_model import read_crfsuite, write_crfsuite
    >>> crf = ChainCRF(l2=0.1).fit([[["w=a"], ["w=cat"]]], [["D", "N"]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.crfsuite"
    >>> write_crfsuite(crf, path)
    >>> read_crfsuite(path).predict([[["w=a"], ["w=cat"]]])
    [['D', 'N']]
    """
    if isinstance(source, bytes):
        return _parse(source, "the CRFsuite model", parameters)
    with open(source, "rb") as file:
        return _parse(file.read(), os.fspath(source), parameters)


def _parse(data: bytes, name: str, parameters: dict[str, Any]) -> ChainCRF:
    try:
        header = _header(data)
        if not header.n_labels:
            raise ValueError("it has no labels: it was trained without data")
        view = memoryview(data)
        labels = read_cqdb(view[header.labels :], header.n_labels, "labels")
        attributes = read_cqdb(view[header.attributes :], header.n_attributes, "attributes")
        features = _features(data, header.features)
        state = _referenced(
            data, header.attribute_refs, b"AFRF", header.n_attributes, features, STATE
        )
        tied = _referenced(data, header.label_refs, b"LFRF", header.n_labels, features, TRANSITION)
        if len(state) + len(tied) != len(features):
            raise ValueError(
                f"it has {len(features)} features, but {len(state) + len(tied)} are in use"
            )
        return assembled(
            labels,
            attributes,
            (state["source"], state["target"], state["weight"]),
            (tied["source"], tied["target"], tied["weight"]),
            **parameters,
        )
    except ValueError as error:
        raise ValueError(f"{name} is not a sound CRFsuite model: {error}") from None


def _header(data: bytes) -> _Header:
    if len(data) < HEADER.size:
        raise ValueError(f"it has {len(data)} bytes, fewer than its header ({HEADER.size})")
    header = _Header(*HEADER.unpack_from(data))
    if header.magic != b"lCRF" or header.type != b"FOMC":
        raise ValueError(f"it must begin with b'lCRF', got {header.magic!r} {header.type!r}")
    if header.version != VERSION:
        raise ValueError(f"its version must be {VERSION}, got {header.version}")
    if header.size != len(data):
        raise ValueError(f"its header says {header.size} bytes, the file has {len(data)}")
    return header


def _chunk(data: bytes, offset: int, magic: bytes) -> tuple[int, int]:
    """Size and number of entries of the chunk that must be at `offset`."""
    if not HEADER.size <= offset <= len(data) - CHUNK.size:
        raise ValueError(f"its part {magic.decode()} is said to be at {offset}, outside of it")
    found, size, n = CHUNK.unpack_from(data, offset)
    if found != magic or size > len(data) - offset:
        raise ValueError(f"its part {magic.decode()} at {offset} is damaged")
    return size, n


def _features(data: bytes, offset: int) -> NDArray[Any]:
    size, n = _chunk(data, offset, b"FEAT")
    if size != CHUNK.size + n * FEATURE.itemsize:
        raise ValueError(f"its part FEAT says {n} features in {size} bytes")
    return np.frombuffer(data, FEATURE, n, offset + CHUNK.size)


def _referenced(
    data: bytes, offset: int, magic: bytes, n_sources: int, features: NDArray[Any], kind: int
) -> NDArray[Any]:
    """The features in the order of their sources' references, each in use once."""
    _, n = _chunk(data, offset, magic)
    what = f"its part {magic.decode()}"
    if not n_sources <= n <= n_sources + 2 or CHUNK.size + 4 * n > len(data) - offset:
        raise ValueError(f"{what} must have {n_sources} entries, got {n}")
    words = np.frombuffer(data, "<u4", len(data) // 4)
    starts = np.frombuffer(data, "<u4", n_sources, offset + CHUNK.size).astype(np.int64)
    if (starts % 4).any() or (starts // 4 >= len(words)).any():
        raise ValueError(f"{what} points outside of the file")
    starts //= 4
    counts = words[starts].astype(np.int64)
    if (starts + 1 + counts > len(words)).any() or counts.sum() > len(features):
        raise ValueError(f"{what} must refer to each of {len(features)} features once")
    limits = offsets_of(counts)
    ids = words[np.arange(limits[-1]) + np.repeat(starts + 1 - limits[:-1], counts)]
    if (ids >= len(features)).any():
        raise ValueError(f"{what} refers to a feature beyond the last ({len(features) - 1})")
    chosen = features[ids]
    wrong = (chosen["type"] != kind) | (chosen["source"] != np.repeat(np.arange(n_sources), counts))
    if wrong.any():
        raise ValueError(f"{what} refers to feature {ids[wrong.argmax()]}, which is another's")
    return chosen


def write_crfsuite(model: ChainCRF, path: str | os.PathLike[str]) -> None:
    """Write a model that CRFsuite's taggers can load; they give its tags and marginals.

    CRFsuite has weights of attribute–label pairs and of label pairs. Weights of zero are left out,
    and so are attributes that have no other weights. The file is never half written: an old file is
    replaced at the end.

    Raises
    ------
    UnsupportedError
        If the model has parts that CRFsuite does not have: arrays instead of named attributes,
        `transition_features`, `fit_intercept`, `ends`, labels that are not strings.
    """
    content = _content(model)
    with atomic_write(path) as file:
        file.write(content)


def write_labels_alone(labels: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Write a model without weights, as CRFsuite does when it is given no data."""
    nothing = np.zeros(0, dtype=FEATURE)
    with atomic_write(path) as file:
        file.write(_joined([_label(label) for label in labels], [], nothing, 0))


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(f"a CRFsuite model cannot hold {what}")


def _content(model: ChainCRF) -> bytes:
    labels = [_label(label) for label in model.labels_.labels]
    source = _supported(model)
    layout, weights = model.layout_, model.weights_
    keys, values = model.node_weights()
    kept = np.flatnonzero(values)
    column, output = keys.column[kept], keys.output[kept]
    order = np.lexsort((output, column))
    used, owner = np.unique(column[order], return_inverse=True)
    state = _records(STATE, owner, output[order], values[kept][order])
    values = weights[layout.slices["transitions"]]
    pairs = layout["transitions"].kept[np.flatnonzero(values)]
    tied = _records(TRANSITION, *np.divmod(pairs, layout.n_labels), values[values != 0.0])
    attributes = _attributes(source, used)
    return _joined(labels, attributes, np.concatenate([state, tied]), len(state))


def _supported(model: ChainCRF) -> VocabularyInput:
    """The names of the attributes of a model that CRFsuite can hold."""
    layout, source = model.layout_, model.input_
    if not isinstance(source, VocabularyInput):
        raise _unsupported("features of arrays and sparse matrices: train on named attributes")
    if layout["vectors"].rows is not None:
        raise _unsupported("arrays among attributes: train on attributes alone")
    if layout["edge"].rows is not None:
        raise _unsupported(
            "transitions that depend on observations (transition_features, or lines B and * of a "
            "template with macros)"
        )
    for parameter, template in (("fit_intercept", "intercept"), ("ends", "start")):
        if len(layout[template].kept):
            raise _unsupported(f"the weights of {parameter}=True")
    if not np.isfinite(model.weights_).all():
        raise _unsupported("weights that are not finite")
    return source


def _label(label: object) -> bytes:
    if not isinstance(label, str) or "\0" in label:
        raise _unsupported(f"the label {label!r}: it must be a str without NUL")
    try:
        return label.encode()
    except UnicodeEncodeError:
        raise _unsupported(f"the label {label!r}: it must be Unicode text") from None


def _attributes(source: VocabularyInput, used: Ints) -> list[bytes]:
    array, offsets = source.vocabulary.arrays()
    data, limits = array.tobytes(), offsets.tolist()
    names = [data[limits[k] : limits[k + 1]] for k in used.tolist()]
    for name in names:
        try:
            name.decode()
        except UnicodeDecodeError:
            raise _unsupported(f"the attribute {name!r}: it must be Unicode text") from None
        if b"\0" in name:
            raise _unsupported(f"the attribute {name!r}: it must not hold NUL")
    return names


def _records(kind: int, source: Ints, target: Ints, weights: NDArray[Any]) -> NDArray[Any]:
    records = np.empty(len(weights), dtype=FEATURE)
    records["type"], records["source"] = kind, source
    records["target"], records["weight"] = target, weights
    return records


def _joined(
    labels: list[bytes], attributes: list[bytes], features: NDArray[Any], n_state: int
) -> bytes:
    """The parts in CRFsuite's order, with the offsets between them."""
    parts = [
        CHUNK.pack(b"FEAT", CHUNK.size + features.nbytes, len(features)) + features.tobytes(),
        cqdb_bytes(labels),
        cqdb_bytes(attributes),
    ]
    offsets = (HEADER.size + offsets_of([len(part) for part in parts])).tolist()
    parts.append(b"\0" * (-offsets[-1] % 4))
    label_refs = offsets.pop() + len(parts[-1])
    sources = features["source"].astype(np.int64)
    # Two entries more than labels: CRFsuite keeps them for the ends, and never fills them.
    parts.append(_references(b"LFRF", label_refs, sources[n_state:], n_state, len(labels), 2))
    attribute_refs = label_refs + len(parts[-1])
    parts.append(_references(b"AFRF", attribute_refs, sources[:n_state], 0, len(attributes), 0))
    size = attribute_refs + len(parts[-1])
    if size > MAX_SIZE:
        raise _unsupported(f"more than 4 GB ({size} bytes)")
    counts = (0, len(labels), len(attributes))
    header = HEADER.pack(
        b"lCRF", size, b"FOMC", VERSION, *counts, *offsets, label_refs, attribute_refs
    )
    return b"".join([header, *parts])


def _references(
    magic: bytes, offset: int, sources: Ints, first: int, n: int, n_empty: int
) -> bytes:
    """For each source the ids of its features, which are numbered from `first` in their order."""
    counts = np.bincount(sources, minlength=n)
    head = 3 + n + n_empty
    starts = head + np.arange(n) + offsets_of(counts)[:-1]  # in words
    words = np.zeros(head + n + len(sources), dtype="<u4")
    words[3 : 3 + n] = offset + 4 * starts
    words[starts] = counts
    within = np.ones(len(words), dtype=bool)
    within[:head] = within[starts] = False
    words[within] = first + np.arange(len(sources))
    return CHUNK.pack(magic, words.nbytes, n + n_empty) + words[3:].tobytes()
