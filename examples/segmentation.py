"""Cut horses out of photographs, pixel by pixel, with a grid CRF.

Run it by `python examples/segmentation.py`; it reads the Weizmann horses from the folder named by
CHORDAL_DATA, and writes report/segmentation.png.

Logistic regression labels every pixel by its colour, its place and how it differs from the border
and the middle of the image. The CRF takes its log odds, made by models that have not seen the
image, and learns as a max-margin model how much to trust them and how much neighbours of similar
colour agree. Contrast makes labels change where the image does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from chordal import CRFClassifier, GridCRF
from chordal.datasets import LabelledImages, load_weizmann_horses
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.solvers.adam import Adam

Floats = NDArray[np.float64]
N_TRAIN, N_TEST = 24, 30


def distance(rgb: Floats, sample: Floats) -> Floats:
    """Mahalanobis distance of every pixel's colour from those of the sample [n, 3], at most 6."""
    spread = np.cov(sample.T) + 1e-3 * np.eye(3)
    offset = rgb - sample.mean(axis=0)
    squared = np.einsum("hwi,ij,hwj->hw", offset, np.linalg.inv(spread), offset)
    return np.minimum(np.sqrt(squared), 6.0)


def features(image: NDArray[np.uint8]) -> Floats:
    """Colours, blurred colours, distances from border and middle, and place [height, width, d]."""
    rgb = image / 255.0
    h, w = rgb.shape[:2]
    y, x = (np.mgrid[0:h, 0:w] + 0.5) / np.array([h, w])[:, None, None] - 0.5
    grey, colour = rgb.mean(axis=-1), rgb.max(axis=-1) - rgb.min(axis=-1)
    layers = [*np.moveaxis(rgb, -1, 0), rgb.max(axis=-1), colour]
    for sigma in (1.5, 4.0):
        layers += [gaussian_filter(channel, sigma) for channel in np.moveaxis(rgb, -1, 0)]
        variance = gaussian_filter(grey**2, sigma) - gaussian_filter(grey, sigma) ** 2
        layers.append(np.sqrt(np.maximum(variance, 0.0)))
    sides = [rgb[:2], rgb[-2:], rgb[:, :2], rgb[:, -2:]]
    border = distance(rgb, np.concatenate([side.reshape(-1, 3) for side in sides]))
    middle = distance(rgb, rgb[h // 3 : 2 * h // 3, w // 3 : 2 * w // 3].reshape(-1, 3))
    near = [np.exp(-border), np.exp(-middle)]
    layers += [border, middle, border * middle, *near]
    layers += [x, y, x**2, y**2, x * y, x**2 * y, y**2 * x, y**3, x**4, y**4, x**2 * y**2]
    layers += [layer * place for layer in (grey, colour, *near) for place in (x**2, y, y**2)]
    return np.stack(layers, axis=-1)


def flat(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All pixels of all images."""
    return np.concatenate([a.reshape(-1, *a.shape[2:]) for a in arrays])


def scores(truth: Sequence[NDArray[Any]], found: Sequence[NDArray[Any]]) -> tuple[float, float]:
    """The share of right pixels, and the mean over both labels of intersection over union."""
    a, b = flat(truth), flat(found)
    shares = [((a == k) & (b == k)).sum() / ((a == k) | (b == k)).sum() for k in (0, 1)]
    return float((a == b).mean()), float(np.mean(shares))


def unary(X: list[Floats], y: list[Any]) -> CRFClassifier:
    return CRFClassifier(l2=10.0, max_iter=40, tol=1e-3).fit(flat(X), flat(y))


def with_odds(model: CRFClassifier, X: list[Floats]) -> list[Floats]:
    """Log odds and colours, which are the first features, of each pixel [height, width, 4]."""
    odds = [model.decision_function(flat([x])).reshape(*x.shape[:2], 1) for x in X]
    return [np.concatenate([o, x[..., :3]], axis=-1) for o, x in zip(odds, X, strict=True)]


def crf() -> GridCRF:
    messages = LoopyBPInference(max_iter=30, damping=0.3, tol=1e-2)
    solver = Adam(learning_rate=0.05, max_iter=18, batch_size=6, random_state=0)
    return GridCRF(
        "hinge", solver, messages, tables="potts", contrast="auto", contrast_columns=[1, 2, 3]
    )


def compared(data: LabelledImages) -> dict[str, Any]:
    """Scores of both models on images that neither has seen, and the labels they find."""
    order = np.random.default_rng(0).permutation(len(data.images))[: N_TRAIN + N_TEST]
    made = [features(data.images[i]) for i in order]
    y = [data.labels[i] for i in order]
    mean, spread = flat(made[:N_TRAIN]).mean(axis=0), flat(made[:N_TRAIN]).std(axis=0)
    X = [(x - mean) / spread for x in made]
    half, train = N_TRAIN // 2, slice(0, N_TRAIN)
    alone = unary(X[train], y[train])
    odds = with_odds(unary(X[half:N_TRAIN], y[half:N_TRAIN]), X[:half])
    odds += with_odds(unary(X[:half], y[:half]), X[half:N_TRAIN])
    unseen = with_odds(alone, X[N_TRAIN:])
    found = {
        "unary": [(x[..., 0] > 0.0).astype(int) for x in unseen],
        "grid CRF": crf().fit(odds, y[train]).predict(unseen),
    }
    truth = y[N_TRAIN:]
    return {
        "scores": {name: scores(truth, labels) for name, labels in found.items()},
        "rows": {"image": [data.images[i] for i in order[N_TRAIN:]], "truth": truth, **found},
    }


def main(output: Path = Path("report")) -> dict[str, tuple[float, float]]:
    """Accuracy and mean IoU of both; the picture is written into the folder `output`."""
    result = compared(load_weizmann_horses())
    for name, (accuracy, overlap) in result["scores"].items():
        print(f"{name}: {accuracy:.3f} of pixels right, mean IoU {overlap:.3f}")
    rows = result["rows"]
    figure, axes = plt.subplots(4, 6, figsize=(12.0, 6.0), layout="constrained")
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(name)
        for axis, image in zip(line, images, strict=False):
            axis.imshow(image, cmap="gray")
            axis.set(xticks=[], yticks=[])
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / "segmentation.png", dpi=100)
    plt.close(figure)
    return result["scores"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("report"))
    main(parser.parse_args().output)
