"""What a network reads: rows of numbers, images or tokens, one for each position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

#: Numbers of tokens: 0 fills up sequences, 1 stands for tokens that training did not show.
PADDING, UNKNOWN = 0, 1
MAX_SIZE = 100_000_000  # numbers at one position: more is a damaged file

#: What data have at a position: an array of this shape, or one of these tokens, so many times each.
Glance: TypeAlias = tuple[int, ...] | Counter[Any]


class Inputs:
    """Reads sequences as training showed them.

    Parameters
    ----------
    shape : tuple of int
        Of the array at one position: (columns,), (height, width) or (channels, height, width);
        () for tokens.
    tokens : list of str or int
        The vocabulary, in the order of the numbers from 2 on.
    rare : set of int
        Numbers of tokens that training showed once. Half of the time it hides them, so that the
        network learns what to do with unknown ones.
    """

    def __init__(
        self, shape: tuple[int, ...], tokens: Sequence[Any] = (), rare: frozenset[int] = frozenset()
    ) -> None:
        self.shape, self.tokens, self.rare = shape, list(tokens), rare
        self._number = {token: k for k, token in enumerate(self.tokens, start=UNKNOWN + 1)}

    @classmethod
    def from_glance(cls, glance: Glance, min_freq: int) -> Inputs:
        """What data like these need: the shape of arrays, or how often each token occurs."""
        if isinstance(glance, tuple):
            return cls(glance)
        kept = [token for token, n in glance.items() if n >= min_freq]
        rare = (k for k, token in enumerate(kept, start=UNKNOWN + 1) if glance[token] == 1)
        return cls((), kept, frozenset(rare))

    @property
    def size(self) -> int | tuple[int, ...]:
        """What a network has to know: columns, the shape of an image, or numbers of tokens."""
        if self.shape == ():
            return UNKNOWN + 1 + len(self.tokens)
        return self.shape[0] if len(self.shape) == 1 else self.shape

    def tensors(self, X: Sequence[Any], name: str = "X") -> list[Tensor]:
        """A tensor for each sequence: float32 [length, …] or numbers of tokens [length]."""
        return [self._tensor(x, i, name) for i, x in enumerate(X)]

    def _tensor(self, x: Sequence[Any], i: int, name: str) -> Tensor:
        if self.shape == ():
            get = self._number.get
            return torch.tensor([get(t, UNKNOWN) for t in _tokens(x, i, name)], dtype=torch.long)
        if not len(x):
            return torch.zeros((0, *self.shape))
        array = _array(x, i, name)
        if array.shape[1:] != self.shape:
            raise ValueError(
                f"{name}[{i}] must have {list(self.shape)} numbers at each position, as in "
                f"training; got {list(array.shape[1:])}"
            )
        return torch.from_numpy(np.array(array, dtype=np.float32))  # a copy: arrays may be locked

    def hidden_rare(
        self, sequences: Sequence[Tensor], generator: np.random.Generator
    ) -> list[Tensor]:
        """Tokens with half of the rare ones as unknown."""
        rare = torch.tensor(sorted(self.rare))
        longest = max((len(own) for own in sequences), default=0)
        hide = torch.from_numpy(generator.random((len(sequences), longest)) < 0.5)
        return [
            torch.where(torch.isin(own, rare) & hidden[: len(own)], UNKNOWN, own)
            for own, hidden in zip(sequences, hide, strict=True)
        ]

    def to_facts(self) -> dict[str, Any]:
        """What a model file keeps."""
        tokens = [t.item() if isinstance(t, np.generic) else t for t in self.tokens]
        return {"shape": list(self.shape), "tokens": tokens}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Inputs:
        """The inputs of a file, which may hold anything."""
        shape, tokens = facts["shape"], facts["tokens"]
        good = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        if not good or len(shape) > 3 or prod(shape) > MAX_SIZE:
            raise ValueError(f"the shape of inputs must be up to 3 sizes, got {shape!r}")
        if not isinstance(tokens, list) or not all(type(t) in (str, int) for t in tokens):
            raise ValueError("the vocabulary must be a list of strings or whole numbers")
        if len(set(tokens)) != len(tokens) or (tokens and shape):
            raise ValueError("the vocabulary must name each token once, and belongs to tokens")
        return cls(tuple(shape), tokens)


FLOAT32 = float(np.finfo(np.float32).max)


def glance_at(X: Sequence[Any], name: str = "X") -> Glance | None:
    """The shape of the first position, or how often each token occurs; None if all are empty."""
    first = next((k for k, x in enumerate(X) if len(x)), None)
    if first is None:
        return None
    if not _is_tokens(X[first]):
        return _array(X[first], first, name).shape[1:]
    return Counter(token for i, x in enumerate(X) for token in _tokens(x, i, name))


def padded(sequences: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Sequences side by side [batch, steps, …], filled up with zeros, and which steps are there."""
    lengths = torch.tensor([len(s) for s in sequences])
    batch = pad_sequence(list(sequences), batch_first=True)
    return batch, torch.arange(batch.shape[1]) < lengths.unsqueeze(1)


def _is_tokens(x: Sequence[Any]) -> bool:
    if isinstance(x, np.ndarray):
        return x.ndim == 1
    return isinstance(next(iter(x)), (str, int, np.integer, np.str_))


def _tokens(x: object, i: int, name: str = "X") -> list[Any]:
    tokens = x.tolist() if isinstance(x, np.ndarray) else x
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Sequence):
        raise TypeError(f"{name}[{i}] must be a list of tokens, got {type(x).__name__}")
    for t, token in enumerate(tokens):
        if isinstance(token, bool) or not isinstance(token, (str, int, np.integer)):
            raise TypeError(
                f"{name}[{i}][{t}] must be a string or a whole number, as tokens are; got {token!r}"
            )
    return list(tokens)


def _array(x: object, i: int, name: str = "X") -> NDArray[Any]:
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name}[{i}] must be an array: {error}") from None
    if array.ndim not in (2, 3, 4) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}[{i}] must be numbers [length, columns], images [length, height, width] or "
            f"[length, channels, height, width], or a list of tokens; got {array.dtype} of shape "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        t = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(f"NaN or infinity in {name}[{i}], at position {t}; clean it")
    if array.dtype == np.float64 and np.abs(array).max(initial=0.0) > FLOAT32:
        t = int(np.argwhere(np.abs(array) > FLOAT32)[0, 0])
        raise ValueError(
            f"a number too large for float32 in {name}[{i}], at position {t}; scale it"
        )
    return array
