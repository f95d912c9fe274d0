"""One sequence: every label at every position, and the paths through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from chordal._validate import check_flag, check_number, listed
from chordal.plots._cells import LEAST, colour_bar, write_numbers
from chordal.plots._checks import label_list, places, probabilities
from chordal.plots._display import Display, classes_of, flat_labels, name_of, numbers_of
from chordal.plots._style import (
    CHARACTER,
    FAINT,
    INK,
    LABEL,
    font_for,
    inches_of,
    legend_columns,
    short,
    width_of,
)
from chordal.structures import Chain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PATHS = ("#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d31")
MOST_NUMBERS = 16  # positions up to which cells carry numbers
LONGEST = 14  # characters of a token


@dataclass(eq=False)
class LatticeDisplay(Display):
    """The lattice of one sequence: marginals as shading, the best paths, and the true labels.

    Parameters
    ----------
    marginals : array [n_positions, n_labels]
        P(label | x) at each position.
    labels : list
    paths : list of (numbers of labels [n_positions], probability)
        The best labellings, best first.
    gold : numbers of the true labels [n_positions], optional
        −1 where the label is not known.
    tokens : list of str, optional
        What stands below the positions; by default 1, 2, …

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> display = LatticeDisplay.from_estimator(ChainCRF().fit(X, y), X[0], y[0], k=2)
    >>> display.tokens, len(display.paths)
    (['the', 'cat', 'sleeps'], 2)
    """

    marginals: NDArray[np.float64]
    labels: Sequence[Any]
    paths: Sequence[tuple[NDArray[np.int64], float]] = ()
    gold: NDArray[np.int64] | None = None
    tokens: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self.labels = label_list(self.labels, "labels")
        n_labels = len(self.labels)
        self.marginals = probabilities(self.marginals, "marginals", "n_positions", n_labels)
        n = len(self.marginals)
        if n == 0:
            raise ValueError("the sequence is empty: there is nothing to draw")
        paths = [listed(own, f"paths[{k}]") for k, own in enumerate(listed(self.paths, "paths"))]
        if any(len(own) != 2 for own in paths):
            raise ValueError("paths must be pairs of (numbers of labels, probability)")
        self.paths = [
            (
                places(path, f"path {k}", n, high=n_labels - 1),
                float(probabilities(p, f"the probability of path {k}")),
            )
            for k, (path, p) in enumerate(paths, 1)
        ]
        if self.gold is not None:
            gold = listed(self.gold, "gold", n, "position")
            self.gold = places(gold, "gold", n, low=-1, high=n_labels - 1)
        if self.tokens is not None:
            tokens = list(self.tokens) if isinstance(self.tokens, str) else self.tokens
            self.tokens = listed(tokens, "tokens", n, "position")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        y: Sequence[Any] | None = None,
        *,
        k: int = 3,
        tokens: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> LatticeDisplay:
        """Ask a fitted chain about one sequence, and draw.

        Parameters
        ----------
        estimator : fitted chain, such as ChainCRF
        x : one sequence
        y : its true labels, optional
            A label that the model does not know gets a further row, with probability 0.
        k : int
            How many of the best paths to draw; 0 for none.
        tokens : list of str, optional
            By default the first text of each token, or 1, 2, …
        ax : matplotlib axes, optional
        """
        check_number("k", k, integer=True)
        classes = classes_of(estimator, "potentials", "k_best")
        structure = estimator.potentials([x]).structure
        if not isinstance(structure, Chain) and not _is_path(structure):
            raise ValueError(
                f"a lattice shows chains, and this example of {name_of(estimator)} is not a chain; "
                "use GridMarginalsDisplay or FactorGraphDisplay"
            )
        marginals = np.asarray(estimator.predict_marginals([x])[0])
        found = estimator.k_best([x], k)[0] if k else []
        paths = [
            (numbers_of(path, classes, "the path"), float(np.exp(log_p))) for path, log_p in found
        ]
        gold = None
        if y is not None:  # labels that the model does not know are probable nowhere
            known = {None, *classes}
            new = sorted({label for label in flat_labels(y, "y") if label not in known}, key=str)
            classes += new
            marginals = np.pad(marginals, ((0, 0), (0, len(new))))
            gold = numbers_of(y, classes, "y")
        names = _tokens(x, len(marginals)) if tokens is None else tokens
        return cls(marginals, classes, paths, gold, names).plot(ax=ax)

    def plot(self, *, colorbar: bool = True, ax: Axes | None = None) -> LatticeDisplay:
        """Draw it; `colorbar` is whether to explain the shading."""
        check_flag("colorbar", colorbar)
        n, n_labels = self.marginals.shape
        beside = 1.8 + width_of(self.labels)  # the labels, and the bar that explains the shading
        size = (
            min(16.0, beside + max(3.3, 0.62 * n)),
            min(12.0, max(3.0, 2.0 + 0.56 * n_labels)),
        )
        across, down = size[0] - beside, size[1] - 1.2
        if ax is not None:
            across, down = inches_of(ax)
        ax = self._begin(ax, size)
        image = ax.imshow(self.marginals.T, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        if n <= MOST_NUMBERS and min(across / n, down / n_labels) >= LEAST:
            numbers = [[_rounded(p) for p in row] for row in self.marginals.T]
            write_numbers(ax, image.to_rgba(self.marginals.T)[..., :3], numbers, below=0.36)
        self._draw_paths(ax)
        if self.gold is not None:
            known = np.flatnonzero(self.gold >= 0)
            style: dict[str, Any] = {"facecolors": "none", "linewidths": 1.6, "marker": "s"}
            style["path_effects"] = [withStroke(linewidth=3.6, foreground="white")]
            squares = (known, self.gold[known])
            side = 72 * min(0.17, 0.8 * across / n)  # points
            ax.scatter(*squares, s=side**2, edgecolors=INK, label="gold", zorder=4, **style)
        names = range(1, n + 1) if self.tokens is None else [short(t, LONGEST) for t in self.tokens]
        names = [str(name) for name in names]
        crowded = (max(map(len, names)) + 1) * CHARACTER > across / n
        ax.set_xticks(range(n), names, rotation=90 if crowded else 0, fontsize=font_for(n, across))
        labels = [short(label, LABEL) for label in self.labels]
        ax.set_yticks(range(n_labels), labels, fontsize=font_for(n_labels, down))
        ax.set(xlabel="position", ylabel="label")
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set(color=FAINT, visible=True)
        if colorbar:
            colour_bar(ax, image, "marginal probability", shrink=0.85, pad=0.02)
        if self.paths or self.gold is not None:
            place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
            place["ncols"] = legend_columns(ax.get_legend_handles_labels()[1], across)
            ax.legend(frameon=False, fontsize=8, markerscale=0.45, borderaxespad=0.2, **place)
        return self

    def _draw_paths(self, ax: Axes) -> None:
        """Lines side by side, the best one thick and in the middle."""
        places = np.arange(len(self.marginals))
        for k, (path, p) in enumerate(self.paths):
            aside = 0.0 if k == 0 else (0.16 + 0.1 * ((k - 1) // 2)) * (1 if k % 2 else -1)
            name = "best" if k == 0 else f"no. {k + 1}"
            ax.plot(
                places,
                path + aside,
                color=PATHS[k % len(PATHS)],
                lw=2.4 if k == 0 else 1.4,
                ls="-" if k == 0 else "--",
                alpha=0.85,
                label=f"{name}: p = {p:.3g}",
                zorder=3,
            )


def _is_path(structure: Any) -> bool:
    """Whether every clique links a variable to the next one, and every variable is linked."""
    pairs = np.asarray(structure.scopes)
    if not structure.is_pairwise or structure.n_examples != 1:
        return False
    pairs = pairs.reshape(-1, 2)
    wanted = {(v, v + 1) for v in range(structure.n_variables - 1)}
    return {(int(a), int(b)) for a, b in np.sort(pairs, axis=1)} == wanted


def _rounded(p: float) -> str:
    return f"{p:.2f}".lstrip("0") if 0.005 <= p < 0.995 else ("1" if p >= 0.995 else "")


def _tokens(x: Any, n: int) -> list[str] | None:
    """The first text of each token, if each has one."""
    found = []
    for k in range(n):
        token = x[k]
        texts = token.values() if isinstance(token, Mapping) else token
        texts = [texts] if isinstance(texts, str) else texts
        try:
            first = next((text for text in texts if isinstance(text, str)), None)
        except TypeError:
            return None
        if first is None:
            return None
        found.append(first)
    return found
