"""Wapiti's text models.

Strings are written as their length in bytes, a colon, the bytes and a comma::

    #mdl#2#8034                  type (1 is a MEMM, 2 a CRF), number of weights that are not 0
    #rdr#19/2/0                  patterns, last column that they ask for, whether "u" is implied
    13:u00:%x[-2,0],             patterns, the first letter in lower case
    …
    #qrk#22                      labels
    4:B-NP,
    …
    #qrk#76328                   observations, the first letter saying what has weights:
    6:u00:He,                    u every label, b every pair (from, to), * first labels, then pairs
    …
    17=-0x1.5bf0a8b145769p+1     number of a weight in the order of observations, and its value
    …
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from chordal._atomic import atomic_write
from chordal._errors import UnsupportedError
from chordal.compat._observations import (
    Blocks,
    Floats,
    Ints,
    Model,
    chunks,
    decoded,
    read_text_model,
)
from chordal.estimators import ChainCRF
from chordal.features import VocabularyInput
from chordal.structures import offsets_of
from chordal.text import FeatureTemplate
from chordal.text.feature_template import lines_of

MEMM, CRF = 1, 2

_MACRO = re.compile(
    r"%(?P<kind>.)\[\s*(?P<absolute>@?)(?P<offset>[+-]?\d+)\s*,\s*(?P<column>\d+)\s*"
    r'(?:,\s*(?P<pattern>"(?:[^"\\]|\\.)*")\s*)?\]'
)


def read_wapiti(source: str | os.PathLike[str] | bytes, **parameters: object) -> ChainCRF:
    """A model that `wapiti train` or `wapiti update` has written.

    The result reads what `wapiti label` reads, rows of columns of text, and gives the same tags
    and marginals.

    Parameters
    ----------
    source : path of the file, or its bytes
    **parameters
        Of `ChainCRF`.

    Raises
    ------
    UnsupportedError
        For maximum-entropy Markov models, and for models trained without patterns.

    Examples
    --------
    >>> text = b"#mdl#2#1\\n#rdr#1/0/0\\n10:u0:%x[0,0],\\n#qrk#2\\n1:D,\\n1:N,\\n"
    >>> crf = read_wapiti(text + b"#qrk#1\\n6:u0:cat,\\n1=0x1p-1\\n")
    >>> crf.predict([[["cat"]]])
    [['N']]
    """
    return read_text_model(source, "Wapiti", "wapiti", parse_wapiti, parameters)


def parse_wapiti(data: bytes) -> Model:
    """The parts of a model file."""
    reader = _Reader(data)
    kind, n_weights = reader.line(rb"#mdl#(?:(\d+)#)?(\d+)", "#mdl#")
    if kind == MEMM:
        raise UnsupportedError(
            "the model is a maximum-entropy Markov model (wapiti --type memm), which normalises "
            "each position alone; a ChainCRF normalises whole sequences"
        )
    n_patterns, _, _ = reader.line(rb"#rdr#(\d+)/(\d+)(?:/(\d+))?", "#rdr#")
    if not n_patterns:
        raise UnsupportedError(
            "the model was trained without patterns, on prepared observations; only models with "
            "patterns can be read"
        )
    lines = [decoded(line, "patterns") for line in reader.strings(n_patterns, "patterns")]
    for line in lines:
        if line[:1] not in ("u", "b", "*"):
            raise ValueError(f"patterns must begin with u, b or *, got {line!r}")
    (n_labels,) = reader.line(rb"#qrk#(\d+)", "#qrk# of the labels")
    labels = [decoded(label, "labels") for label in reader.strings(n_labels, "labels")]
    (n_observations,) = reader.line(rb"#qrk#(\d+)", "#qrk# of the observations")
    names = reader.strings(n_observations, "observations")
    ids, weights = reader.weights(n_weights)
    return Model(labels, names, _blocks(names, len(labels)), ids, weights, lines)


def _blocks(names: Sequence[bytes], n: int) -> Blocks:
    kinds = np.frombuffer(b"".join(name[:1] or b"?" for name in names), dtype=np.uint8)
    bad = np.flatnonzero(~np.isin(kinds, list(b"ub*")))
    if len(bad):
        raise ValueError(f"observations must begin with u, b or *, got {names[bad[0]]!r}")
    # Row 0 for labels, row 1 for pairs: their order within an observation.
    present = np.stack([kinds != ord("b"), kinds != ord("u")], axis=1)
    observation, pairs = np.nonzero(present)
    sizes = np.where(pairs == 1, n * n, n)
    return Blocks(offsets_of(sizes)[:-1], observation, pairs == 1)


class _Reader:
    """Goes through the file, and says where it went wrong."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def line(self, pattern: bytes, what: str) -> list[int]:
        """The numbers of a line; those that are left out count as 0."""
        end = self._data.find(b"\n", self._at)
        end = len(self._data) if end < 0 else end
        found = self._data[self._at : min(end, self._at + 100)]
        match = re.fullmatch(pattern, found)
        if match is None:
            raise ValueError(f"expected a line {what} at byte {self._at}, got {found[:30]!r}")
        numbers = [int(group or 0) for group in match.groups()]
        # Every entry takes a byte and more.
        if max(numbers) > len(self._data):
            raise ValueError(f"its line {what} asks for {max(numbers)} entries, more than it holds")
        self._at = end + 1
        return numbers

    def strings(self, n: int, what: str) -> list[bytes]:
        data, at, found = self._data, self._at, []
        for number in range(n):
            colon = data.find(b":", at, at + 12)
            size = data[at:colon]
            end = colon + 1 + int(size) if colon > 0 and size.isdigit() else len(data)
            if data[end : end + 2] != b",\n":
                raise ValueError(f"entry {number} of the {what} is damaged, at byte {at}")
            found.append(data[colon + 1 : end])
            at = end + 2
        self._at = at
        return found

    def weights(self, n: int) -> tuple[Ints, Floats]:
        ids, values = [], []
        for chunk in chunks(self._data, self._at):
            try:
                text = chunk.rstrip(b"\n").decode("ascii")
                parts = text.replace("=", "\n").split("\n")
                numbers, found = parts[0::2], parts[1::2]
                # All are in base 16, as Wapiti writes them: no function of ours for each.
                number = float.fromhex if text.count("x") == len(found) else _number
                ids.append(np.array(list(map(int, numbers)), dtype=np.int64))
                values.append(np.array(list(map(number, found)), dtype=np.float64))
            except (ValueError, OverflowError) as error:
                raise ValueError(f"weights must be written number=value: {error}") from None
        all_ids, all_values = np.concatenate([[0], *ids])[1:], np.concatenate([[0.0], *values])[1:]
        if len(all_values) != n or len(all_ids) != n:
            raise ValueError(f"it must have {n} weights, got {len(all_values)}")
        return all_ids, all_values


def _number(text: str) -> float:
    """As C reads it: in base 16 if it begins so."""
    return float.fromhex(text) if "x" in text else float(text)


def write_wapiti(model: ChainCRF, path: str | os.PathLike[str]) -> None:
    """Write a model that `wapiti label` can load; it gives the same tags and posteriors.

    The model must read columns by a feature template in Wapiti's dialect, as in
    ``ChainCRF(feature_template=FeatureTemplate(text, "wapiti"))``, or be one of `read_wapiti`.
    Weights of zero are left out, and so are observations that have no other weights. The file is
    never half written: an old file is replaced at the end.

    Raises
    ------
    UnsupportedError
        If the model has parts that Wapiti does not have: features other than a template's, shapes
        (``%s``), `fit_intercept`, `ends`, labels that are not strings. Templates in CRF++'s
        dialect can be written only if every ``%x`` reads the current row, as in ``%x[0,1]``. The
        two tools name what lies outside of a sequence differently.
    """
    content = _content(model)
    with atomic_write(path) as file:
        file.write(content)


def _content(model: ChainCRF) -> bytes:
    template = _template(model)
    patterns = [_pattern(line, template.dialect) for line in _lines(template)]
    labels = [_label(label) for label in model.labels_.labels]
    numbers: dict[bytes, int] = {}  # of observations
    parts = [_observed(model, group, numbers) for group in ("node", "edge")]
    parts.append(_tied(model, patterns, numbers))
    if not numbers:
        raise _unsupported("a model without weights")
    blocks = _blocks(list(numbers), len(labels))
    starts = np.zeros((len(numbers), 2), dtype=np.int64)  # of labels, of pairs
    starts[blocks.observation, blocks.pairs.astype(np.int64)] = blocks.starts
    ids = np.concatenate([
        starts[observation, int(k > 0)] + output for k, (observation, output, _) in enumerate(parts)
    ])  # fmt: skip
    weights = np.concatenate([part[2] for part in parts])
    order = np.argsort(ids)
    pairs = zip(ids[order].tolist(), weights[order].tolist(), strict=True)
    head = f"#mdl#{CRF}#{len(ids)}\n#rdr#{len(patterns)}/{max(template.n_columns - 1, 0)}/0\n"
    return b"".join([
        head.encode(),
        *_netstrings(pattern.encode("utf-8", "surrogatepass") for pattern in patterns),
        f"#qrk#{len(labels)}\n".encode(),
        *_netstrings(labels),
        f"#qrk#{len(numbers)}\n".encode(),
        *_netstrings(numbers),
        "".join(f"{k}={w.hex()}\n" for k, w in pairs).encode(),
    ])  # fmt: skip


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(f"a Wapiti model cannot hold {what}")


def _template(model: ChainCRF) -> FeatureTemplate:
    """The template of a model that Wapiti can hold."""
    template = model.columns_template()
    if template is None:
        raise _unsupported("features of its own: train on columns, with a feature_template")
    for parameter, group in (("fit_intercept", "intercept"), ("ends", "start")):
        if len(model.layout_[group].kept):
            raise _unsupported(f"the weights of {parameter}=True")
    if not np.isfinite(model.weights_).all():
        raise _unsupported("weights that are not finite")
    return template


def _lines(template: FeatureTemplate) -> list[str]:
    return [line for line in lines_of(template.text) if line and not line.startswith("#")]


def _pattern(line: str, dialect: str) -> str:
    """A line as Wapiti's model files have it: no spaces in macros, no zeros before numbers."""

    def macro(match: re.Match[str]) -> str:
        kind, offset, column = match["kind"], int(match["offset"]), int(match["column"])
        if kind.lower() not in "xtm":
            raise _unsupported(f"shapes: {match[0]} in the line {line!r}")
        if dialect != "wapiti" and (kind != "x" or offset or match["absolute"]):
            raise _unsupported(
                f"{match[0]} in CRF++'s meaning (line {line!r}): Wapiti has other names for what "
                "is outside of a sequence, and sees bytes; train with "
                'FeatureTemplate(text, "wapiti")'
            )
        pattern = f",{match['pattern']}" if match["pattern"] else ""
        return f"%{kind}[{match['absolute']}{offset},{column}{pattern}]"

    if "\0" in line:
        raise _unsupported(f"NUL in a template: {line!r}")
    return line[0].lower() + _MACRO.sub(macro, line[1:])


def _label(label: object) -> bytes:
    if not isinstance(label, str) or not label or "\0" in label:
        raise _unsupported(f"the label {label!r}: it must be a str, neither empty nor with NUL")
    return label.encode()


def _observed(model: ChainCRF, group: str, numbers: dict[bytes, int]) -> tuple[Ints, Ints, Floats]:
    """(observation, output, weight) of the weights that are not 0; names get their numbers."""
    rows, source = model.layout_[group].rows, model.reader_.inputs[("node", "edge").index(group)]
    if rows is None or not isinstance(source, VocabularyInput):
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    keys, weights = rows.keys(), model.weights_[model.layout_.slices[group]]
    kept = np.flatnonzero(weights)
    used, owner = np.unique(keys.column[kept], return_inverse=True)
    array, offsets = source.vocabulary.arrays()
    data, limits = array.tobytes(), offsets.tolist()
    names = [data[limits[k] : limits[k + 1]] for k in used.tolist()]
    lowered = [name[:1].lower() + name[1:] for name in names]
    if len(set(lowered)) < len(names):
        raise _unsupported("template lines that differ in the case of their first letter alone")
    for name in lowered:
        if b"\0" in name:
            raise _unsupported(f"the observation {name!r}: it must not hold NUL")
    number = np.array([numbers.setdefault(k, len(numbers)) for k in lowered], dtype=np.int64)
    return number[owner], keys.output[kept].astype(np.int64), weights[kept]


def _tied(
    model: ChainCRF, patterns: Sequence[str], numbers: dict[bytes, int]
) -> tuple[Ints, Ints, Floats]:
    """Weights of transitions without observation, as those of the first line that asks for them."""
    weights = model.weights_[model.layout_.slices["transitions"]]
    kept = np.flatnonzero(weights)
    pairs = model.layout_["transitions"].kept[kept].astype(np.int64)
    lines = [line for line in patterns if line[0] in "b*" and "%" not in line]
    if not len(kept):
        return pairs, pairs, np.zeros(0)
    name = lines[0].encode("utf-8", "surrogatepass")
    number = numbers.setdefault(name, len(numbers))
    # A line that is there twice counts twice.
    return np.full(len(kept), number), pairs, weights[kept] / lines.count(lines[0])


def _netstrings(strings: Iterable[bytes]) -> Iterator[bytes]:
    for string in strings:
        yield b"%d:%s,\n" % (len(string), string)
