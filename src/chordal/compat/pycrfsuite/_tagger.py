"""Tagger: labels sequences with a model from a file."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from chordal import _kernels
from chordal._validate import check_path
from chordal.compat.pycrfsuite._dumpparser import ParsedDump, dumped, parsed
from chordal.compat.pycrfsuite._items import ItemSequence, tokens_of

if TYPE_CHECKING:
    from chordal.estimators import ChainCRF
    from chordal.potentials import Floats

CLOSED = "The tagger is not opened"


class Tagger:
    """Answers questions about one sequence at a time: the one last given to `set` or `tag`."""

    def __init__(self) -> None:
        self._model: ChainCRF | None = None
        self._content = b""
        self._chain: _kernels.QuickChain | None = None
        self._sequence: _kernels.QuickSequence | None = None
        self._numbers: dict[str, int] = {}

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; the tagger closes at the end of a ``with`` block."""
        check_path("name", name)
        with open(name, "rb") as file:
            content = file.read()
        try:
            return self.open_inmemory(content)
        except ValueError as error:
            raise ValueError(f"Invalid model file {os.fspath(name)!r}: {error}") from None

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model given as the content of its file."""
        if not isinstance(value, bytes):
            raise TypeError(f"value must be bytes, got {type(value).__name__}")
        # Not before a model is opened: programs that may tag, or may not, start without it.
        from chordal.compat.crfsuite_model import read_crfsuite

        self.close()
        self._model, self._content = read_crfsuite(value), value
        self._chain = self._model.quick()
        self._numbers = {label: k for k, label in enumerate(self._model.labels_.labels)}
        return contextlib.closing(self)

    def close(self) -> None:
        """Forget the model."""
        self._model, self._content = None, b""
        self._chain = self._sequence = None

    def labels(self) -> list[str]:
        """The labels of the model, in its order."""
        return list(self._opened().labels_.labels)

    def set(self, xseq: object) -> None:
        """The sequence that the next calls of `tag`, `probability` and `marginal` mean."""
        chain = self._chain
        if chain is None:
            raise ValueError(CLOSED)
        tokens = xseq if xseq.__class__ is list else tokens_of(xseq)
        try:
            self._sequence = chain.sequence(tokens)
        except TypeError:  # bytes, other iterables, or a mistake: which of them, this finds out
            self._sequence = chain.sequence(tokens_of(ItemSequence(tokens)))
        except ValueError as error:
            raise ValueError(str(error).replace("X[0]", "xseq")) from None

    def tag(self, xseq: object = None) -> list[str]:
        """The best labels of `xseq`, or of the current sequence."""
        if xseq is not None:
            self.set(xseq)
        sequence = self._none() if self._sequence is None else self._sequence
        return sequence.best() or []

    def probability(self, yseq: Sequence[str]) -> float:
        """The probability of these labels, given the current sequence."""
        sequence = self._none() if self._sequence is None else self._sequence
        n = len(sequence)
        if n == 0:
            return 0.0
        try:
            numbers = [self._numbers[label] for label in yseq]
        except (KeyError, TypeError):
            raise unknown(next(y for y in yseq if y not in list(self._numbers))) from None
        if len(numbers) != n:
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {n}, |y| = {len(numbers)}"
            )
        return math.exp(sequence.score(numbers) - sequence.log_partition())

    def marginal(self, y: str, pos: int) -> float:
        """The probability of the label `y` at position `pos` of the current sequence."""
        sequence = self._none() if self._sequence is None else self._sequence
        try:
            return sequence.marginal(pos, self._numbers[y])
        except (KeyError, TypeError, ValueError):
            n = len(sequence)
        if n == 0:
            return 0.0
        if not isinstance(pos, Integral):
            raise TypeError(f"the position must be an integer, got {pos!r}")
        if not 0 <= pos < n:
            raise ValueError(f"The position, {pos} is out of range of {n}")
        raise unknown(y)

    def _none(self) -> _kernels.QuickSequence:
        """The empty sequence, which is the current one before another is set."""
        if self._chain is None:
            raise ValueError(CLOSED)
        return self._chain.sequence([])

    def info(self) -> ParsedDump:
        """The labels, attributes and weights of the model."""
        if self._model is None:
            raise RuntimeError("Tagger is closed")
        return parsed(self._model, self._content)

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text to a file, or to standard output."""
        lines = dumped(self.info())
        if filename is None:
            sys.stdout.writelines(lines)
            return
        check_path("filename", filename)
        with open(filename, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)

    def _tag_all(self, X: Iterable[Any]) -> list[list[str]]:
        """The best labels of many sequences, faster than one by one."""
        return _answers(self._opened().predict, X)

    def _marginals_of(self, xseq: object) -> list[list[float]]:
        """P(y_t | x) of one sequence, in the order of `labels`."""
        self.set(xseq)
        sequence = self._none() if self._sequence is None else self._sequence
        return sequence.marginals().tolist()

    def _marginals_all(self, X: Iterable[Any]) -> list[Floats]:
        """P(y_t | x) of many sequences, in the order of `labels`."""
        model = self._opened()
        place = np.argsort(model.labels_.order)  # of each label among the sorted ones
        return [table[:, place] for table in _answers(model.predict_marginals, X)]

    def _opened(self) -> ChainCRF:
        if self._model is None:
            raise ValueError(CLOSED)
        return self._model


def unknown(label: object) -> RuntimeError:
    """The error of a label that the model does not have."""
    return RuntimeError(f"Failed to convert into label identifier: {label}")


def _answers(ask: Callable[[list[Any]], list[Any]], X: Iterable[Any]) -> list[Any]:
    """What a model answers to sequences of python-crfsuite's items."""
    batch = [tokens_of(xseq) for xseq in X]
    if not batch:
        return []
    try:
        return ask(batch)
    except TypeError:  # bytes or other iterables
        return ask([tokens_of(ItemSequence(tokens)) for tokens in batch])
