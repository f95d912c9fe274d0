"""Images of predicted labels, for notebooks."""

from __future__ import annotations

import base64
import colorsys
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _html
from chordal._shown import in_a_line
from chordal.potentials import Floats

WIDTH = 320  # pixels of the picture on the page
SLICES = 16  # of a volume


@dataclass(frozen=True, eq=False)
class LabelledImage:
    """The labels that a model predicts for the pixels of an image, or of a volume; see `show`.

    labels : array [height, width] or [depth, height, width]
    probabilities : array of the same shape, of these labels; None if the model tells none
    classes : tuple, all labels: their places choose colours
    """

    labels: NDArray[Any]
    probabilities: Floats | None
    classes: tuple[Any, ...]

    @property
    def codes(self) -> NDArray[np.int64]:
        """The labels as places in the classes."""
        place = {label: k for k, label in enumerate(self.classes)}
        flat = [place[label] for label in self.labels.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(self.labels.shape)

    def _shares(self) -> list[tuple[Any, int, float | None]]:
        """Of each label that occurs: how many pixels, and their mean probability."""
        codes, out = self.codes, []
        for k, label in enumerate(self.classes):
            mine = codes == k
            if mine.any():
                sure = self.probabilities
                out.append((label, int(mine.sum()), None if sure is None else sure[mine].mean()))
        return out

    def __str__(self) -> str:
        size = " × ".join(map(str, self.labels.shape))
        parts = (
            f"{label}: {n} pixels" + ("" if sure is None else f", mean probability {sure:.2f}")
            for label, n, sure in self._shares()
        )
        return in_a_line(f"image of {size} pixels; {'; '.join(parts)}")

    def _repr_html_(self) -> str:
        """What notebooks show: a picture and a legend; unsure pixels are paler."""
        codes, sure = self.codes, self.probabilities
        layers = codes if codes.ndim == 3 else codes[None]
        shares = np.ones(codes.shape) if sure is None else sure
        shares = shares if codes.ndim == 3 else shares[None]
        images = "".join(
            f'<img alt="labels" style="width:{WIDTH}px;image-rendering:pixelated;margin:2px" '
            f'src="data:image/png;base64,{_png(_painted(one, share))}">'
            for one, share in list(zip(layers, shares, strict=True))[:SLICES]
        )
        rows = [
            (
                f'<span style="background:{_html.colour(self.classes.index(label), 1.0)}">'
                f"&emsp;</span> {_html.text(label)}",
                f"{n:,}",
                "" if mean is None else f"{mean:.2f}",
            )
            for label, n, mean in self._shares()
        ]
        legend = _html.table(["label", "pixels", "mean probability"], rows)
        return f'<div style="{_html.FONT}">{images}{legend}</div>'


def _painted(codes: NDArray[np.int64], sure: Floats) -> NDArray[np.uint8]:
    """Colours [height, width, 3], towards white where the label is not sure."""
    kinds = range(int(codes.max(initial=0)) + 1)
    table = np.array([colorsys.hls_to_rgb(_html.hue(k) / 360, 0.5, 0.7) for k in kinds])
    share = np.clip(sure, 0.0, 1.0)[..., None]
    return np.round(255 * (share * table[codes] + (1.0 - share))).astype(np.uint8)


def _png(pixels: NDArray[np.uint8]) -> str:
    """A PNG file of colours, in base 64."""
    height, width, _ = pixels.shape

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    lines = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each begins with its filter, 0
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    data += chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode("ascii")
