"""GridCRF: label the pixels of images and the voxels of volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_function, check_number, check_sequences
from chordal.estimators._crf import BaseCRF
from chordal.estimators._edge_tables import (
    ColumnTables,
    check_edge_tables,
    edge_groups,
    edge_templates,
)
from chordal.features import CliqueTemplate, Reader
from chordal.structures import Grid

if TYPE_CHECKING:
    from chordal.estimators._training.stored_rows import StoredRows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Neighbours, and the axes of their grids.
NEIGHBOURS = {4: 2, 8: 2, 6: 3, 26: 3}


@final
@dataclass(eq=False, repr=False, kw_only=True)
class GridCRF(BaseCRF):
    """Conditional random field over grids, in which neighbours influence each other.

    Pixel features have a weight per label. Neighbours have a weight for every pair of labels. With
    `contrast` they have a second one that decreases where their features differ, so that labels
    change at edges of the image. The groups of weights are "pixels" and "edges". With `directions`
    the latter are "edges (0, 1)" and so on, by the step from one pixel to the other.

    Parameters
    ----------
    neighbours : {4, 8, 6, 26}, default=4
        Number of neighbours: 4 or 8 (with diagonals) of a pixel, 6 or 26 of a voxel.
    directions : bool, default=False
        Whether each direction (right, down, …) has separate pair weights.
    tables : {"symmetric", "full", "antisymmetric", "potts"}, default="symmetric"
        Form of the label-pair weights w[a, b]. "symmetric": w[a, b] = w[b, a]. "full": any.
        "antisymmetric": w[a, b] = −w[b, a]. "potts": one weight for equal labels.
    column_tables : dict {kind of tables: list of columns}, optional
        Edge-feature columns with another form than `tables`, which holds for the other columns and
        the intercept. Columns are those of `edge_features`; with `contrast`, its column comes
        first, as 0.
        Their groups of weights are "edges antisymmetric" and so on.
    fit_intercept : bool, default=True
        Whether labels and pairs of labels have constant weights besides those of features.
    contrast : float, "auto" or None, default=None
        β of the edge feature exp(−β ‖x_u − x_v‖²). "auto" is 1 / (2 · mean ‖x_u − x_v‖²) over all
        edges of the training images, as in GrabCut. None: no such feature.
    contrast_columns : list of int, optional
        The pixel features that `contrast` compares; by default all.
    edge_features : callable, optional
        Function that computes more edge features. It takes the features of both ends of all edges,
        two arrays [n_edges, n_features], and returns an array [n_edges, n_edge_features].

    Attributes
    ----------
    coef_ : array [n_classes, n_features], weights of pixels
    contrast_ : float or None, the β used

    References
    ----------
    Kumar and Hebert (2003), Discriminative random fields; Rother, Kolmogorov and Blake (2004),
    GrabCut.

    Examples
    --------
    Images of height 3 and width 4, with one channel; the model removes the noise:

    >>> rng = np.random.default_rng(0)
    >>> y = [np.repeat([[0, 0, 1, 1]], 3, axis=0) for _ in range(5)]
    >>> X = [image[..., None] + rng.normal(size=(3, 4, 1)) for image in y]
    >>> crf = GridCRF(l2=0.1).fit(X, y)
    >>> crf.predict(X[:1])[0]
    array([[0, 0, 1, 1],
           [0, 0, 1, 1],
           [0, 0, 1, 1]])

    A label image may be an array of objects: None where a pixel was not observed, a set of possible
    labels, or a dict {label: probability}.

    >>> partly = [image.astype(object) for image in y]
    >>> for image in partly:
    ...     image[0, 0], image[2, 3] = None, {0, 1}
    >>> GridCRF(l2=0.1).fit(X, partly).predict(X[:1])[0][2]
    array([0, 0, 1, 1])
    """

    neighbours: int = 4
    directions: bool = False
    tables: str = "symmetric"
    column_tables: ColumnTables | None = None
    fit_intercept: bool = True
    contrast: float | str | None = None
    contrast_columns: Sequence[int] | None = None
    edge_features: Callable[[Floats, Floats], Any] | None = None
    ignore_label: object = None

    contrast_: float | None = field(init=False)
    functions: ClassVar[tuple[str, ...]] = ("edge_features",)

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]:
        """X as arrays with one axis per dimension and one of features."""
        ndim, columns = NEIGHBOURS[self.neighbours], self._columns()
        images = []
        for i, x in enumerate(check_sequences(X, name, empty=True)):
            image = np.asarray(x)
            if image.ndim != ndim + 1 or image.dtype.kind not in "fiub":
                axes = "depth, height, width" if ndim == 3 else "height, width"
                raise ValueError(
                    f"{name}[{i}] must be an array [{axes}, n_features] of numbers for "
                    f"{self.neighbours} neighbours, got {image.dtype} of shape {image.shape}"
                )
            if columns and max(columns) >= image.shape[-1]:
                raise ValueError(
                    f"contrast_columns has column {max(columns)}, but {name}[{i}] has only "
                    f"{image.shape[-1]} features (columns start at 0)"
                )
            images.append(image)
        return images

    def _flat(self, y: object, X: Sequence[Any], name: str = "y") -> Sequence[Any]:
        """The labels of all pixels in order; for probabilities, one row per pixel."""
        images = [np.asarray(labels) for labels in check_sequences(y, name, empty=True)]
        for i, (labels, x) in enumerate(zip(images, X, strict=False)):
            shape = x.shape[:-1]
            soft = labels.ndim == x.ndim and labels.dtype.kind == "f"
            if labels.shape != (*shape, *labels.shape[-1:] * soft):
                raise ValueError(
                    f"{name}[{i}] must have the shape of its image, {shape}, or one more "
                    f"axis of probabilities; got {labels.dtype} of shape {labels.shape}"
                )
            images[i] = labels.reshape(prod(shape), labels.shape[-1]) if soft else labels.ravel()
        return images

    def _allowed(self, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        return [
            own if own is None else _listed(own, x.shape[:-1], f"allowed_labels[{i}]")
            for i, (own, x) in enumerate(zip(given, X, strict=True))
        ]

    def _shaped(self, values: list[Any], X: Sequence[Any]) -> list[Any]:
        pairs = zip(values, X, strict=True)
        return [own.reshape(*x.shape[:-1], *own.shape[1:]) for own, x in pairs]

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        if not keep:
            self.contrast_ = self._beta([self._distances(X)])
        return Reader.like(self._templates_for(self.contrast_), X)

    def _looks_first(self) -> bool:
        return self.contrast == "auto"

    read_by: ClassVar[tuple[str, ...]] = (
        "ignore_label",
        "neighbours",
        "contrast",
        "contrast_columns",
    )

    def _own_facts(self) -> dict[str, Any]:
        return {"contrast": None if self.contrast_ is None else float(self.contrast_)}

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        """The reader with the stored contrast, which "auto" computed from the training images."""
        contrast = facts["contrast"]
        if facts["labels"]["as_list"]:
            raise ValueError("labels of images must be arrays, not lists")
        if (contrast is None) != (self.contrast is None):
            raise ValueError("contrast must be stored if and only if the parameter is set")
        if contrast is not None:
            check_number("contrast", contrast)
        self.contrast_ = contrast
        return Reader.like(self._templates_for(contrast), [])

    def _templates_for(self, beta: float | None) -> list[CliqueTemplate]:
        """Templates of pixels and neighbours, with this contrast."""
        observed = beta is not None or self.edge_features is not None
        intercept, columns = bool(self.fit_intercept), self._columns()
        both: dict[str, Any] = {"tables": self.tables, "fit_intercept": intercept or not observed}
        templates = [CliqueTemplate("pixels", features=_pixels, fit_intercept=intercept)]
        for name, step in self._steps().items():
            own = _Edges(self.neighbours, step)
            rows = _EdgeRows(own, beta, columns, self.edge_features) if observed else None
            plain = CliqueTemplate(name, own, rows, **both)
            templates += edge_templates(plain, self.column_tables)
        return templates

    def _columns(self) -> tuple[int, ...] | None:
        """The features that the contrast compares; None for all."""
        return None if self.contrast_columns is None else tuple(self.contrast_columns)

    def _steps(self) -> dict[str, tuple[int, ...] | None]:
        """The edge templates: one per step, or one for all steps."""
        if not self.directions:
            return {"edges": None}
        return {f"edges {step}": step for step in Grid([], 1, self.neighbours).directions}

    def _groups(self) -> Sequence[str]:
        edges = [group for name in self._steps() for group in edge_groups(name, self.column_tables)]
        return ["pixels", *edges]

    _glances: ClassVar[bool] = True

    def _glance(self, X: Any, y: Any, sample_weight: object) -> tuple[float, int]:
        """The differences of neighbours in one part of the data."""
        return self._distances(self._examples(X))

    def _know(self, glances: Sequence[tuple[float, int]]) -> None:
        self.contrast_ = self._beta(glances)

    def _distances(self, X: Sequence[Any]) -> tuple[float, int]:
        """The sum of squared distances of neighbours, and their number."""
        total, count = 0.0, 0
        if self.contrast == "auto":
            columns, edges = self._columns(), _Edges(self.neighbours)
            for x in X:
                distance = _distance(*_ends(x, edges(x)), columns)
                total, count = total + float(distance.sum()), count + len(distance)
        return total, count

    def _beta(self, found: Sequence[tuple[float, int]]) -> float | None:
        """The contrast from the glances at all parts."""
        if self.contrast != "auto":
            return None if self.contrast is None else float(self.contrast)
        total, count = sum(own[0] for own in found), sum(own[1] for own in found)
        if not isfinite(total):
            raise ValueError(
                "contrast='auto' cannot compare the features of neighbours: X has NaN, infinity "
                "or numbers too large to be squared; clean or scale X"
            )
        return 0.5 * count / total if total > 0.0 else 1.0

    def _shapes(self, X: Sequence[Any]) -> Ints:
        axes = NEIGHBOURS[self.neighbours]
        return np.array([x.shape[:-1] for x in X], dtype=np.int64).reshape(-1, axes)

    def _restored(self, stored: StoredRows) -> list[Any]:
        if stored.shapes is None:  # written by an older version
            raise ValueError("it has no shapes of images: prepare the data again")
        pairs = zip(stored.observed("pixels"), stored.shapes.tolist(), strict=True)
        return [rows.reshape(*shape, rows.shape[-1]) for rows, shape in pairs]

    def _restored_labels(self, y: list[Any], X: Any) -> list[Any]:
        images = []
        for labels, x in zip(y, X, strict=True):
            own = labels
            if not isinstance(own, np.ndarray):  # some are sets, dicts or None
                own = np.empty(len(labels), dtype=object)
                own[:] = labels
            images.append(own.reshape(x.shape[:-1]))
        return images

    def _check_parameters(self) -> None:
        if self.neighbours not in list(NEIGHBOURS):
            raise ValueError(
                f"neighbours must be 4 or 8 (2-d), 6 or 26 (3-d), got {self.neighbours!r}"
            )
        check_edge_tables(self.tables, self.column_tables)
        if self.column_tables and self.contrast is None and self.edge_features is None:
            raise ValueError(
                "column_tables names columns, but there are no edge features: give "
                "contrast or edge_features"
            )
        if isinstance(self.contrast, Real):
            check_number("contrast", self.contrast)
        elif self.contrast not in (None, "auto"):
            raise ValueError(f"contrast must be a number, 'auto' or None, got {self.contrast!r}")
        columns = self.contrast_columns
        if columns is not None:
            if isinstance(columns, (str, bytes)) or not hasattr(columns, "__len__"):
                raise TypeError(f"contrast_columns must be a list of columns, got {columns!r}")
            for k, column in enumerate(columns):
                check_number(f"contrast_columns[{k}]", column, integer=True)
        check_function("edge_features", self.edge_features, "the features of both ends")
        super()._check_parameters()

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of pixels [n_classes, n_features]."""
        return np.ascontiguousarray(self._table("pixels", "features").T)


def _listed(image: Any, shape: tuple[int, ...], where: str) -> list[Any]:
    """The entry at each pixel of nested lists or an array; entries may have more axes."""
    if not hasattr(image, "__len__") or len(image) != shape[0]:
        got = len(image) if hasattr(image, "__len__") else repr(image)
        raise ValueError(f"{where} must have the shape of its image: {shape[0]} entries, got {got}")
    if len(shape) == 1:
        return list(image)
    rows = (_listed(row, shape[1:], f"{where}[{k}]") for k, row in enumerate(image))
    return [entry for row in rows for entry in row]


def _pixels(x: NDArray[Any]) -> NDArray[Any]:
    """Features as rows."""
    return np.asarray(x.reshape(prod(x.shape[:-1]), x.shape[-1]))


@dataclass(frozen=True)
class _Edges:
    """The edges of a grid: all, or those of one step."""

    neighbours: int
    step: tuple[int, ...] | None = None

    def __call__(self, x: NDArray[Any]) -> Ints:
        grid = Grid([x.shape[:-1]], 1, self.neighbours)
        pairs = grid.scopes.reshape(-1, 2)
        if self.step is None:
            return pairs
        return pairs[grid.direction_of_clique == grid.directions.index(self.step)]


@dataclass(frozen=True)
class _EdgeRows:
    """Observations of edges: the contrast and the features of the user's function."""

    edges: _Edges
    beta: float | None
    columns: tuple[int, ...] | None
    more: Callable[[Floats, Floats], Any] | None

    def __call__(self, x: NDArray[Any]) -> Floats:
        ends = _ends(x, self.edges(x))
        rows = []
        if self.beta is not None:
            rows.append(np.exp(-self.beta * _distance(*ends, self.columns))[:, None])
        if self.more is not None:
            found = np.asarray(self.more(*ends), dtype=np.float64)
            if found.ndim != 2 or len(found) != len(ends[0]):
                raise ValueError(
                    f"edge_features must return a row for each of {len(ends[0])} edges, got shape "
                    f"{found.shape}"
                )
            rows.append(found)
        return np.concatenate(rows, axis=1)


def _ends(x: NDArray[Any], edges: Ints) -> tuple[Floats, Floats]:
    """The features of both ends of edges."""
    pixels = _pixels(x).astype(np.float64, copy=False)
    return pixels[edges[:, 0]], pixels[edges[:, 1]]


def _distance(a: Floats, b: Floats, columns: tuple[int, ...] | None) -> Floats:
    """‖a − b‖², over some columns."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused elsewhere
        difference = a - b if columns is None else a[:, list(columns)] - b[:, list(columns)]
        return np.asarray(np.einsum("ij,ij->i", difference, difference))
