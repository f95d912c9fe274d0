"""How examples look on the page: words, small images, grids of pixels, rows and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import is_list
from chordal.text import Columns
from chordal.text.words import first_text, usual_word


@dataclass(frozen=True)
class Shapes:
    """What is drawn of examples.

    kind : the name of the page's kind: "text", "letters", "grid", "row", "labels" or "graph"
    names : distinct names of variables; empty for kinds whose variables have none
    tokens : the place in `names` of every variable's name
    pixels : bytes of all images, one after another; empty where there is nothing to draw
    facts : what else the page has to know
    sizes : heights and widths of grids
    columns : other columns of the list of examples
    listed : other names of the list of examples
    positions : where nodes are drawn [n_variables, 2]
    """

    kind: str
    names: list[str] = field(default_factory=list)
    tokens: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pixels: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    facts: dict[str, Any] = field(default_factory=dict)
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    listed: dict[str, list[str]] = field(default_factory=dict)
    positions: NDArray[np.float64] | None = None


def shapes_of_sequences(
    X: Any,
    sizes: NDArray[np.int64],
    tokens: Sequence[Sequence[str]] | None,
    image_shape: tuple[int, int] | None,
) -> Shapes:
    """How sequences are drawn: as words, or as letters."""
    if image_shape is not None:
        return letters("letters", X, image_shape)
    names, numbers = named(tokens_of(X, sizes) if tokens is None else list(tokens), sizes)
    return Shapes("text", names, numbers)


def named(
    tokens: Sequence[Sequence[str]], sizes: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct names of variables, and the place of each variable's name among them."""
    if len(tokens) != len(sizes):
        raise ValueError(f"tokens must have one list per example ({len(sizes)}), got {len(tokens)}")
    for i, (own, n) in enumerate(zip(tokens, sizes.tolist(), strict=True)):
        if not is_list(own):
            raise TypeError(f"tokens[{i}] must be a list of strings, got {own!r:.60}")
        if len(own) != n:
            raise ValueError(
                f"tokens[{i}] must have a string for each of the {n} positions, got {len(own)}"
            )
    places: dict[str, int] = {}
    numbers = [places.setdefault(str(token), len(places)) for own in tokens for token in own]
    return list(places), np.array(numbers, dtype=np.int64)


def tokens_of(X: Any, sizes: NDArray[np.int64]) -> list[list[str]]:
    """The words of sequences: their first column, or the attribute that holds them.

    >>> tokens_of([[{"pos": "NN", "word": "cat"}], [["b", "w=dog", "x"]]], np.array([1, 1]))
    [['cat'], ['dog']]
    """
    if isinstance(X, Columns):
        return [list(own) for own in X.column(0)]
    if len(X) and (hasattr(X[0], "shape") or not isinstance(X[0], Sequence)):
        return [[str(t + 1) for t in range(n)] for n in sizes]
    return [[token_of(row) for row in own] for own in X]


def token_of(row: Any) -> str:
    """What the attributes of one variable call it; empty if they do not."""
    if isinstance(row, (str, int)):
        return str(row)
    word = usual_word(row)
    return first_text(row) if word is None else word


def letters(kind: str, X: Any, shape: tuple[int, int]) -> Shapes:
    """Each row is an image of this height and width."""
    height, width = shape
    arrays = [np.asarray(x) for x in X]
    for i, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1] != height * width:
            raise ValueError(
                f"image_shape={shape} needs rows of {height * width} numbers, and X[{i}] has shape "
                f"{array.shape}"
            )
    data = np.concatenate([np.zeros((0, height * width)), *arrays])
    facts = {"height": height, "width": width, "channels": 1}
    return Shapes(kind, pixels=_bytes(data), facts=facts)


def shapes_of_grids(X: Any) -> Shapes:
    """Images of one or three channels are drawn; of others only the labels."""
    arrays = [np.asarray(x) for x in X]
    if any(array.ndim != 3 for array in arrays):
        raise ValueError("explore draws grids of two axes, and these have three")
    channels = arrays[0].shape[2] if arrays else 0
    sizes = np.array([array.shape[:2] for array in arrays], dtype=np.int64).reshape(-1, 2)
    drawn = channels in (1, 3)
    flat = [array.reshape(-1, channels) for array in arrays] if drawn else []
    pixels = _bytes(np.concatenate([np.zeros((0, channels)), *flat]))
    return Shapes("grid", pixels=pixels, facts={"channels": channels if drawn else 0}, sizes=sizes)


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers as shades from 0 to 255: of their whole range, or of [0, 1] or [0, 255] if they fit.

    The digits of scikit-learn, from 0 to 16, would be nearly white on the scale of [0, 255].
    """
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if low >= 0.0:
        low, high = 0.0, 1.0 if high <= 1.0 else 255.0 if 127.0 < high <= 255.0 else high
    shades = (values - low) * (255.0 / (high - low)) if high > low else values * 0.0
    return np.rint(shades).astype(np.uint8).ravel()
