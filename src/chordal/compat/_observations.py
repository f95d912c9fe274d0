"""What the text models of CRF++ and Wapiti share: observations with blocks of weights."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.compat._assembly import MAX_LABELS, assembled
from chordal.estimators import ChainCRF
from chordal.text import FeatureTemplate

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Blocks(NamedTuple):
    """Runs of weights, one after another: n_labels of an observation, or n_labels² of pairs."""

    starts: Ints
    observation: Ints
    pairs: NDArray[np.bool_]


class Model(NamedTuple):
    """A model file, parsed: weights[k] is the one numbered ids[k]; all others are 0."""

    labels: list[str]
    names: list[bytes]  # of observations
    blocks: Blocks
    ids: Ints
    weights: Floats
    lines: list[str]  # of the template

    def placed(self) -> tuple[tuple[Ints, Ints, Floats], tuple[Ints, Ints, Ints, Floats]]:
        """(observation, label, weight) and (observation, from, to, weight) of all weights."""
        n, blocks = len(self.labels), self.blocks
        if n > MAX_LABELS:
            raise ValueError(f"it must have at most {MAX_LABELS} labels, got {n}")
        order = np.argsort(blocks.starts, kind="stable")
        starts, pairs = blocks.starts[order], blocks.pairs[order]
        sizes = np.where(pairs, n * n, n)
        if (starts[:-1] + sizes[:-1] > starts[1:]).any() or (len(starts) and starts[0] < 0):
            raise ValueError("weights of two observations overlap")
        at = np.searchsorted(starts, self.ids, side="right") - 1
        bad = np.flatnonzero((at < 0) | (self.ids >= (starts + sizes)[at]))
        if len(bad):
            raise ValueError(f"weight {self.ids[bad[0]]} belongs to no observation")
        rising = np.sort(self.ids)
        twice = np.flatnonzero(rising[1:] == rising[:-1])
        if len(twice):
            raise ValueError(f"weight {rising[twice[0]]} must be given once, got it twice")
        within, owner, pair = self.ids - starts[at], blocks.observation[order][at], pairs[at]
        state = (owner[~pair], within[~pair], self.weights[~pair])
        source, target = np.divmod(within[pair], n)
        return state, (owner[pair], source, target, self.weights[pair])

    def crf(self, dialect: str, parameters: dict[str, Any]) -> ChainCRF:
        """The fitted model, which expands the template when it reads columns."""
        state, (owner, source, target, weights) = self.placed()
        n = len(self.labels)
        # Lines without a macro give one table for all transitions: theirs, added up.
        tied = Counter(line.encode() for line in self.lines if line[0] in "Bb*" and "%" not in line)
        times = np.zeros(len(self.names))
        for k in np.unique(owner).tolist():
            times[k] = tied[self.names[k]]
        repeated = times[owner]
        shared = np.flatnonzero(repeated)
        pairs, index = np.unique((source * n + target)[shared], return_inverse=True)
        table = np.bincount(index, (repeated * weights)[shared], minlength=len(pairs))
        edge = None
        if any(line[0] in "Bb*" and "%" in line for line in self.lines):
            own = np.flatnonzero(repeated == 0.0)
            names, index = _used(self.names, owner[own])
            edge = (names, (index, source[own], target[own], weights[own]))
        names, index = _used(self.names, state[0])
        return assembled(
            self.labels,
            names,
            (index, *state[1:]),
            (*np.divmod(pairs, n), table),
            edge,
            feature_template=FeatureTemplate("\n".join(self.lines), dialect),
            **parameters,
        )


def read_text_model(
    source: str | os.PathLike[str] | bytes,
    tool: str,
    dialect: str,
    parse: Callable[[bytes], Model],
    parameters: dict[str, Any],
) -> ChainCRF:
    """The model of a path or of bytes; errors name the file and the tool."""
    if isinstance(source, bytes):
        data, name = source, f"the {tool} model"
    else:
        name = os.fspath(source)
        with open(source, "rb") as file:
            data = file.read()
    try:
        return parse(data).crf(dialect, parameters)
    except UnsupportedError:
        raise
    except ValueError as error:
        raise ValueError(f"{name} is not a sound text model of {tool}: {error}") from None


def _used(names: Sequence[bytes], owner: Ints) -> tuple[list[bytes], Ints]:
    """Only the observations that have weights, numbered anew."""
    used = np.flatnonzero(np.bincount(owner, minlength=len(names)))
    number = np.zeros(len(names), dtype=np.int64)
    number[used] = np.arange(len(used))
    return [names[k] for k in used.tolist()], number[owner]


def decoded(text: bytes, what: str) -> str:
    """Text of a model file."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{what} must be UTF-8, got {text!r}") from None


def chunks(data: bytes, at: int, size: int = 2**22) -> Iterator[bytes]:
    """The lines from byte `at` on, some at a time: millions of them would fill the memory."""
    while at < len(data):
        end = data.rfind(b"\n", at, at + size) + 1
        end = end or data.find(b"\n", at) + 1 or len(data)
        yield data[at:end]
        at = end
