"""Variables and the factors that link them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from chordal._validate import check_number, listed
from chordal.plots._checks import places, real
from chordal.plots._display import Display, classes_of
from chordal.plots._graph_layout import places_of
from chordal.plots._style import FAINT, INK, class_colours, short
from chordal.potentials import Potentials

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 200  # variables that can be told apart
LONGEST = 12  # characters of a name
MOST_TABLES = 7  # with a colour of their own


@dataclass(eq=False)
class FactorGraphDisplay(Display):
    """The factor graph of one example: circles are variables, squares are factors.

    Factors of one colour share a table of scores. Every variable also has unary scores, which
    are not drawn.

    Parameters
    ----------
    scopes : list of tuples
        The variables of each factor.
    tables : array [n_factors]
        Which table of scores each factor has.
    names : list of str
        Of the variables.
    places : array [n_variables, 2], optional
        Where variables stand; by default near those that they share a factor with.

    Examples
    --------
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Graph
    >>> square = Graph([4], [[(0, 1), (1, 2), (2, 3), (3, 0)]], n_labels=2)
    >>> potentials = Potentials(square, np.zeros(8), [1.0, 0.0, 0.0, 1.0])
    >>> display = FactorGraphDisplay.from_potentials(potentials)
    >>> display.scopes
    [(0, 1), (1, 2), (2, 3), (3, 0)]
    """

    scopes: Sequence[tuple[int, ...]]
    tables: NDArray[np.int64]
    names: Sequence[str]
    places: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        self.names = listed(self.names, "names")
        n = len(self.names)
        if not 0 < n <= MOST:
            raise ValueError(f"a factor graph is drawn of 1 to {MOST} variables, got {n}")
        self.scopes = [
            tuple(places(scope, f"scopes[{k}]", "n", low=-n).tolist())
            for k, scope in enumerate(listed(self.scopes, "scopes"))
        ]
        if any(not scope or not 0 <= min(scope) <= max(scope) < n for scope in self.scopes):
            raise ValueError(f"scopes must name variables between 0 and {n - 1}")
        if self.places is None:
            self.places = places_of(n, self.scopes)
        self.places = real(self.places, "places", n, 2)
        self.tables = places(self.tables, "tables", len(self.scopes))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        *,
        names: Sequence[str] | None = None,
        places: Any = None,
        ax: Axes | None = None,
    ) -> FactorGraphDisplay:
        """Draw the factor graph that a fitted estimator makes of one example.

        Variables have the names by which `explain` calls them: numbers, or "row,column" of pixels.
        """
        classes_of(estimator, "potentials")
        if places is None and isinstance(x, np.ndarray) and x.ndim == 3:  # an image
            rows, columns = np.indices(x.shape[:2])
            places = np.stack([columns.ravel(), -rows.ravel()], axis=1)
            if names is None:
                names = [f"{a},{b}" for a, b in zip(rows.flat, columns.flat, strict=True)]
        return cls.from_potentials(estimator.potentials([x]), names=names, places=places, ax=ax)

    @classmethod
    def from_potentials(
        cls,
        potentials: Potentials,
        *,
        example: int = 0,
        names: Sequence[str] | None = None,
        places: Any = None,
        ax: Axes | None = None,
    ) -> FactorGraphDisplay:
        """Draw the factor graph of potentials.

        Parameters
        ----------
        potentials : Potentials
        example : int
            Which example of the batch.
        names : list of str, optional
            Of the variables; by default their numbers "0", "1", …
        places : array [n_variables, 2], optional
            Where variables stand.
        ax : matplotlib axes, optional
        """
        if not isinstance(potentials, Potentials):
            raise TypeError(
                f"potentials must be chordal.potentials.Potentials, got {type(potentials).__name__}"
            )
        structure = potentials.structure
        check_number("example", example, integer=True)
        if example >= structure.n_examples:
            raise ValueError(f"there is no example {example}: there are {structure.n_examples}")
        first, last = structure.variable_offsets[example : example + 2].tolist()
        cliques = range(*structure.clique_offsets[example : example + 2].tolist())
        limits = structure.scope_offsets
        scopes = [
            tuple((structure.scopes[limits[c] : limits[c + 1]] - first).tolist()) for c in cliques
        ]
        used = [int(potentials.table_of_clique[c]) for c in cliques]
        number = {table: k for k, table in enumerate(sorted(set(used)))}
        tables = np.array([number[table] for table in used], dtype=np.int64)
        n = last - first
        names = listed(range(n) if names is None else names, "names", n, "variable")
        return cls(scopes, tables, names, places).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> FactorGraphDisplay:
        """Draw it."""
        from matplotlib.collections import LineCollection

        assert self.places is not None
        places, n = self.places, len(self.names)
        room = np.ptp(places, axis=0) + 1.0
        unit = float(min(0.85, 10.4 / room.max()))  # inches between neighbours
        ax = self._begin(ax, (max(3.2, 0.3 + unit * room[0]), 0.5 + unit * room[1]))
        squares = np.array([_middle(places, scope) for scope in self.scopes]).reshape(-1, 2)
        lines = [(squares[f], places[v]) for f, scope in enumerate(self.scopes) for v in scope]
        ax.add_collection(LineCollection(lines, colors=FAINT, linewidths=1.2, zorder=1))
        kinds, table = np.unique(self.tables, return_inverse=True)
        n_tables = len(kinds)
        colours = class_colours(n_tables) if n_tables <= MOST_TABLES else None
        shown = INK if colours is None else colours[table]
        if len(squares):
            small = (72 * min(0.108, 0.3 * unit)) ** 2
            ax.scatter(squares[:, 0], squares[:, 1], marker="s", s=small, c=shown, zorder=2)
        large = (72 * min(0.285, 0.55 * unit)) ** 2
        style: dict[str, Any] = {"facecolors": "white", "edgecolors": INK, "linewidths": 1.4}
        ax.scatter(places[:, 0], places[:, 1], marker="o", s=large, zorder=3, **style)
        for (across, up), name in zip(places.tolist(), self.names, strict=True):
            text: dict[str, Any] = {
                "ha": "center",
                "va": "center",
                "fontsize": min(8.0, max(3.0, 28.0 * unit)),
                "zorder": 4,
                "path_effects": [withStroke(linewidth=2.6, foreground="white")],
            }
            ax.text(across, up, short(name, LONGEST), color=INK, **text)
        ax.set_aspect("equal")
        low, high = places.min(axis=0) - 0.5, places.max(axis=0) + 0.5
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.set_axis_off()
        counts = {"variable": n, "factor": len(self.scopes), "table": n_tables}
        words = [f"{own} {name}{'' if own == 1 else 's'}" for name, own in counts.items()]
        ax.set_title(f"{', '.join(words)} of scores", fontsize=9)
        return self


def _middle(places: NDArray[np.float64], scope: tuple[int, ...]) -> NDArray[np.float64]:
    """Where a factor stands: between its variables, or beside its only one."""
    middle = places[list(scope)].mean(axis=0)
    return middle + np.array([0.0, 0.38]) if len(scope) == 1 else middle
