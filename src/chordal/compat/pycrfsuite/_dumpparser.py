"""What a model file holds, by name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from chordal.estimators import ChainCRF

_HEADER = struct.Struct("<4sI4s9I")
_FIELDS = ("magic", "size", "type", "version", "num_features", "num_labels", "num_attrs")
_OFFSETS = ("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs")


class ParsedDump:
    """The content of a model.

    Attributes
    ----------
    transitions : dict
        ``{(from_label, to_label): weight}``
    state_features : dict
        ``{(attribute, label): weight}``
    header : dict
        The fields of the file's header, as text.
    labels, attributes : dict
        ``{name: number}``, numbers as text.
    """

    def __init__(self) -> None:
        self.header: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.transitions: dict[tuple[str, str], float] = {}
        self.state_features: dict[tuple[str, str], float] = {}


def parsed(model: ChainCRF, content: bytes) -> ParsedDump:
    """The weights of a model by name, and the header of the file that it was read from."""
    out = ParsedDump()
    fields = _HEADER.unpack_from(content)
    for name, value in zip((*_FIELDS, *_OFFSETS), fields, strict=True):
        if isinstance(value, bytes):
            out.header[name] = value.decode("latin-1")
        else:
            out.header[name] = f"0x{value:X}" if name in _OFFSETS else str(value)
    labels = model.labels_.labels
    names = [model.input_.name(k) for k in range(model.input_.n_columns)]
    out.labels = {label: str(k) for k, label in enumerate(labels)}
    out.attributes = {name: str(k) for k, name in enumerate(names)}
    source, target = np.divmod(model.layout_["transitions"].kept, len(labels))
    tied = model.weights_[model.layout_.slices["transitions"]]
    for i, j, w in zip(source.tolist(), target.tolist(), tied.tolist(), strict=True):
        out.transitions[labels[i], labels[j]] = w
    keys, node = model.node_weights()
    order = np.lexsort((keys.output, keys.column))
    columns, outputs = keys.column[order].tolist(), keys.output[order].tolist()
    for a, k, w in zip(columns, outputs, node[order].tolist(), strict=True):
        out.state_features[names[a], labels[k]] = w
    return out


def dumped(dump: ParsedDump) -> Iterator[str]:
    """The model as text, in the layout of ``crfsuite dump``."""
    yield from _section("FILEHEADER", (f"  {k}: {v}\n" for k, v in dump.header.items()))
    for title, names in (("LABELS", dump.labels), ("ATTRIBUTES", dump.attributes)):
        yield from _section(title, (f"  {k:>5}: {name}\n" for name, k in names.items()))
    for kind, title, weights in (
        (1, "TRANSITIONS", dump.transitions),
        (0, "STATE_FEATURES", dump.state_features),
    ):
        lines = (f"  ({kind}) {a} --> {b}: {w:f}\n" for (a, b), w in weights.items())
        yield from _section(title, lines)


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{title} = {{\n"
    yield from lines
    yield "}\n"
    yield "\n"
