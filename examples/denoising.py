"""Remove noise from pictures of two colours, with a grid CRF.

Run it by `python examples/denoising.py`; it writes report/denoising.png. The pictures are the X of
Schmidt's UGM, if the folder named by CHORDAL_DATA has it, and shapes drawn here, after Kumar and
Hebert's (2003) synthetic images. Each has Gaussian noise (UGM), or bimodal noise, for which the
values of both colours have two peaks each (Kumar and Hebert).

A threshold looks at each pixel alone. The CRF learns how far pixels are to be trusted and how much
neighbours agree, by pseudo-likelihood; the best labelling is found exactly, by a minimum cut.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from chordal import CRFClassifier, GridCRF
from chordal.datasets import load_ugm_x

Image = NDArray[Any]
Noise = Callable[[Image, np.random.Generator], Image]


def shapes() -> dict[str, Image]:
    """A disk, bars and a ring [64, 64]."""
    y, x = np.mgrid[-1:1:64j, -1:1:64j]
    distance = np.hypot(x, y)
    return {
        "disk": (distance < 0.6).astype(int),
        "bars": ((np.abs(x - 0.4) < 0.15) | (np.abs(y + 0.3) < 0.15)).astype(int),
        "ring": ((distance > 0.45) & (distance < 0.8)).astype(int),
    }


def gaussian(image: Image, rng: np.random.Generator) -> Image:
    """σ = 0.5, as in UGM's demonstrations."""
    return np.asarray(image + 0.5 * rng.normal(size=image.shape))


def bimodal(image: Image, rng: np.random.Generator) -> Image:
    """Two peaks per colour, the lesser one of each beyond the threshold."""
    first = rng.random(image.shape) < 0.8
    peak = np.where(image == 1, np.where(first, 0.8, 0.3), np.where(first, 0.1, 0.6))
    return np.asarray(peak + 0.15 * rng.normal(size=image.shape))


def features(noisy: Image) -> Image:
    """A pixel's value and its square, for a curved response [height, width, 2]."""
    return np.stack([noisy, noisy**2], axis=-1)


def compared(
    images: list[Image], noise: Noise, n_copies: int, seed: int = 0
) -> tuple[dict[str, float], dict[str, list[Image]]]:
    """Shares of wrong pixels by method on fresh noise, and what each makes of the first copies."""
    rng = np.random.default_rng(seed)
    truth = [image for image in images for _ in range(n_copies)]
    train, test = ([noise(image, rng) for image in truth] for _ in range(2))
    found = {"threshold": [(noisy > 0.5).astype(int) for noisy in test]}
    X, X_test = [features(noisy) for noisy in train], [features(noisy) for noisy in test]
    alone = CRFClassifier(l2=0.1).fit(np.concatenate([x.reshape(-1, 2) for x in X]), _flat(truth))
    found["logistic"] = [alone.predict(x.reshape(-1, 2)).reshape(x.shape[:2]) for x in X_test]
    crf = GridCRF("pseudo_likelihood", inference="max_flow", l2=0.1).fit(X, truth)
    found["grid CRF"] = crf.predict(X_test)
    errors = {name: float(np.mean(_flat(labels) != _flat(truth))) for name, labels in found.items()}
    rows = {"truth": truth, "noisy": test, **found}
    return errors, {name: row[::n_copies] for name, row in rows.items()}


def _flat(images: list[Image]) -> Image:
    return np.concatenate([image.ravel() for image in images])


def main(output: Path = Path("report")) -> dict[str, dict[str, float]]:
    """Compare, draw, and write the picture into the folder `output`; errors by noise and method."""
    drawn = shapes()
    sets = {"shapes, Gaussian": (list(drawn.values()), gaussian, 3)}
    sets["shapes, bimodal"] = (list(drawn.values()), bimodal, 3)
    try:
        sets = {"X, Gaussian": ([load_ugm_x().astype(int)], gaussian, 10), **sets}
    except FileNotFoundError as error:
        Console().print(f"without UGM's X: {error}", soft_wrap=True)
    results = {name: compared(*arguments) for name, arguments in sets.items()}
    table = Table(title="Share of wrong pixels", title_justify="left")
    table.add_column("Method")
    for name in results:
        table.add_column(name, justify="right")
    for method in next(iter(results.values()))[0]:
        table.add_row(method, *(f"{errors[method]:.3f}" for errors, _ in results.values()))
    Console().print(table)
    _draw(output, {name: rows for name, (_, rows) in results.items()})
    return {name: errors for name, (errors, _) in results.items()}


def _draw(output: Path, results: dict[str, dict[str, list[Image]]]) -> None:
    lines = [(name, k, rows) for name, rows in results.items() for k in range(len(rows["truth"]))]
    titles = list(next(iter(results.values())))
    size = (1.7 * len(titles), 1.8 * len(lines))
    figure, axes = plt.subplots(len(lines), len(titles), figsize=size, layout="constrained")
    for line, (name, k, rows) in zip(axes, lines, strict=True):
        for axis, title in zip(line, titles, strict=True):
            axis.imshow(rows[title][k], cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, fontsize=7)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, fontsize=7)
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / "denoising.png", dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("report"))
    main(parser.parse_args().output)
