"""MatchingModel: match the items of a source with those of a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_sequences
from chordal.estimators._asking import joined
from chordal.estimators._crf import BaseCRF
from chordal.features import Batch, CliqueTemplate, Reader
from chordal.labels import SequenceLabels, TargetLabels, matched_targets
from chordal.potentials import Floats


@final
@dataclass(eq=False, repr=False)
class MatchingModel(BaseCRF):
    """Bipartite matching with learned scores of pairs, as in word alignment.

    The score of a matching is the sum of w · f(i, j) over its pairs, plus a learned score for every
    source item without a target. Each target is used at most once. The best matching is a linear
    assignment, found exactly; the perceptron and the hinge need nothing else. Sums over all
    matchings are exact for few items and approximate otherwise. Labels are target numbers; −1 means
    no target. The groups of weights are "pairs" and "no_target".

    Parameters
    ----------
    objective : str or Objective, default="auto"
        "auto" is the solver's own objective if it has one, else "hinge" (max-margin matching).
        Objectives that sum over all matchings, such as "likelihood", are feasible for few
        items.
    solver : str or Solver, default="auto"
        "auto" is "frank_wolfe" for non-smooth objectives. It and "one_slack" stop by a duality
        gap; "sgd" is the subgradient method; "averaged_perceptron" has its own objective.
    features : callable, optional
        Computes the features of pairs [n_source, n_target, n_features] from a source and a
        target. X is then a list of pairs (source, target). By default X holds such arrays.

    Attributes
    ----------
    coef_ : array [n_features]
    no_target_ : float
        The score of having no target.

    References
    ----------
    Taskar, Lacoste-Julien and Klein (2005), A discriminative matching approach to word alignment.

    Examples
    --------
    >>> near = lambda a, b: -np.abs(np.subtract.outer(a, b))[:, :, None]
    >>> X = [([1.0, 5.0], [5.2, 1.1]), ([3.0, 9.0], [2.8])]
    >>> model = MatchingModel(features=near, l2=0.01).fit(X, [[1, 0], [0, -1]])
    >>> model.predict([([7.0, 4.0, 2.0], [2.1, 4.2])])
    [array([-1,  1,  0])]
    """

    _: KW_ONLY
    features: Callable[[Any, Any], Any] | None = None

    preferred_solvers: ClassVar[tuple[str, ...]] = ("frank_wolfe",)
    default_objective: ClassVar[str] = "hinge"
    labels_type: ClassVar[type[SequenceLabels]] = TargetLabels
    functions: ClassVar[tuple[str, ...]] = ("features",)

    def _groups(self) -> Sequence[str]:
        return ("pairs", "no_target")

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        both: dict[str, Any] = {"fit_intercept": False, "labelwise": True}
        templates = [
            CliqueTemplate("pairs", features=_pairs, **both),
            CliqueTemplate("no_target", features=_no_target, **both),
        ]
        return Reader.like(templates, X, exclusive=True)

    @property
    def coef_(self) -> Floats:
        """The weight of each feature of pairs."""
        self._check_fitted()
        return self.weights_[self.layout_.slices["pairs"]]

    @property
    def no_target_(self) -> float:
        """The score of having no target."""
        self._check_fitted()
        return float(self.weights_[-1])

    def _decoded(
        self, numbers: NDArray[np.int32], batch: Batch, X: Sequence[Any]
    ) -> list[NDArray[np.int64]]:
        assert batch.label_counts is not None or not len(numbers)
        none = np.zeros(0) if batch.label_counts is None else batch.label_counts - 1
        targets = np.where(numbers == none, -1, numbers).astype(np.int64)
        return np.split(targets, batch.offsets[1:-1]) if len(batch.sizes) else []

    def _arranged(self, found: Sequence[Floats], batch: Batch, X: Sequence[Any]) -> list[Floats]:
        values = joined(found)
        shapes = [(len(x), x.shape[1] + 1) for x in X]
        split = np.split(values, np.cumsum([m * n for m, n in shapes])[:-1]) if shapes else []
        return [own.reshape(shape) for own, shape in zip(split, shapes, strict=True)]

    def _flat(self, y: object, X: Sequence[Any], name: str = "y") -> Sequence[Any]:
        """The target of every source item as a label; the last label means "no target"."""
        given = check_sequences(y, name, empty=True)
        if len(given) != len(X):
            raise ValueError(f"X and y must have the same length, got {len(X)} and {len(given)}")
        return [matched_targets(own, i, *X[i].shape[:2]) for i, own in enumerate(given)]

    def _allowed(self, given: Sequence[Any], X: Sequence[Any]) -> Sequence[Any]:
        """Flags of the allowed targets of each source item; the last flag means "no target"."""
        for i, own in enumerate(given):
            if own is not None and not isinstance(own, (list, tuple, np.ndarray)):
                raise TypeError(
                    f"allowed_labels[{i}] must be a list with one entry per source item, or None; "
                    f"got {type(own).__name__}"
                )
        return [
            own if own is None else [
                _flags(entry, x.shape[1], f"allowed_labels[{i}][{k}]")
                for k, entry in enumerate(own)
            ]
            for i, (own, x) in enumerate(zip(given, X, strict=True))
        ]  # fmt: skip

    def _examples(self, X: object, name: str = "X", known: bool = False) -> list[Floats]:
        """Features of the pairs of each example [n_source, n_target, n_features]."""
        arrays: list[Floats] = []
        for i, x in enumerate(check_sequences(X, name, empty=True)):
            made = x
            if self.features is not None:
                if not isinstance(x, (tuple, list)) or len(x) != 2:
                    raise TypeError(
                        f"X[{i}] must be a pair (source, target), because `features` is set"
                    )
                made = self.features(*x)
            try:
                array = np.asarray(made, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"X[{i}] must be an array of numbers [n_source, n_target, n_features], got "
                    f"{type(made).__name__}"
                ) from None
            if array.ndim != 3 or array.shape[2] == 0:
                raise ValueError(
                    f"X[{i}] must have features [n_source, n_target, n_features], "
                    f"got shape {array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"X[{i}] has NaN or infinite features")
            if array.shape[2] != (arrays or [array])[0].shape[2]:
                raise ValueError(
                    f"X[{i}] has {array.shape[2]} features per pair, but X[0] has "
                    f"{arrays[0].shape[2]}"
                )
            arrays.append(array)
        if known and arrays and arrays[0].shape[2] != len(self.coef_):
            raise ValueError(
                f"X[0] has {arrays[0].shape[2]} features per pair; the model needs "
                f"{len(self.coef_)}"
            )
        return arrays


def _flags(entry: Any, n_target: int, where: str) -> NDArray[np.bool_] | None:
    """Targets (−1 means no target) as flags; flags stay as they are."""
    if entry is None:
        return None
    targets = np.atleast_1d(
        np.asarray(list(entry) if isinstance(entry, (set, frozenset)) else entry)
    )
    if targets.dtype == bool and len(targets) == n_target + 1:
        return targets
    empty = targets.size == 0
    if (
        targets.ndim != 1
        or not (empty or targets.dtype.kind in "iu")
        or (not empty and (targets.min() < -1 or targets.max() >= n_target))
    ):
        raise ValueError(
            f"{where} must be None, targets from 0 to {n_target - 1} or -1 for none, or "
            f"{n_target + 1} flags; got {entry!r}"
        )
    flags = np.zeros(n_target + 1, dtype=bool)
    flags[targets.astype(np.int64)] = True  # −1 is the last
    return flags


def _pairs(x: Floats) -> Floats:
    """The features of all (source, target) pairs; zeros for "no target"."""
    return np.pad(x, ((0, 0), (0, 1), (0, 0)))


def _no_target(x: Floats) -> Floats:
    """One feature, which says that a source item has no target."""
    out = np.zeros((x.shape[0], x.shape[1] + 1, 1))
    out[:, -1] = 1.0
    return out
