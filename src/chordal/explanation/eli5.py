"""eli5's `explain_weights` and `show_weights` for our estimators.

Import this module once::

    import chordal.explanation.eli5
    import eli5

    eli5.show_weights(crf)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chordal._errors import not_fitted
from chordal._estimator import Estimator
from chordal._optional import needed
from chordal._validate import listed
from chordal.estimators import BaseCRF, Wrapped
from chordal.estimators.opened import NamedWeights, named_weights

with needed("eli5", "chordal.explanation.eli5"):
    from eli5.base import (
        Explanation,
        FeatureWeight,
        FeatureWeights,
        TargetExplanation,
        TransitionFeatureWeights,
    )
    from eli5.explain import explain_weights
    from eli5.utils import get_target_display_names

BIAS = "<BIAS>"  # what eli5 calls an intercept

Top = int | tuple[int, int] | None


def explain_crf_weights(
    crf: BaseCRF,
    top: Top = 20,
    target_names: object = None,
    targets: Sequence[Any] | None = None,
    feature_re: str | None = None,
    feature_filter: Callable[[str], bool] | None = None,
    **ignored: Any,
) -> Explanation:
    """The weights of each label, and those of pairs of labels that depend on no observation.

    Parameters are those of `eli5.explain_weights`.
    """
    found = list(named_weights(crf))
    if crf.labels_.types:
        kinds = ", ".join(map(repr, crf.labels_.types))
        error = f"labels of several types ({kinds}) have no common table; see template_weights"
        return Explanation(estimator=repr(crf), error=error)
    display = _display(crf, target_names, targets)
    numbers = [int(crf.labels_.order[k]) for k, _ in display]
    keep = _kept(feature_re, feature_filter)
    return Explanation(
        targets=[
            TargetExplanation(target=name, feature_weights=_of_label(found, number, top, keep))
            for number, (_, name) in zip(numbers, display, strict=True)
        ],
        transition_features=_pairs(crf, found, display),
        estimator=repr(crf),
        method="CRF",
    )


def _display(crf: BaseCRF, target_names: Any, targets: Any) -> list[tuple[int, Any]]:
    """The chosen labels: their numbers, and the names to show."""
    if targets is not None:
        targets = listed(targets, "targets")
        labels = crf.classes_.tolist()
        shown = target_names.values() if isinstance(target_names, Mapping) else target_names or ()
        for label in targets:
            if label not in labels and label not in list(shown):
                raise ValueError(f"targets has the label {label!r}; the model has {labels}")
    found: list[tuple[int, Any]] = get_target_display_names(crf.classes_, target_names, targets)
    return found


def explain_wrapped_weights(estimator: Wrapped, **options: Any) -> Explanation:
    """The weights of the CRF that an estimator holds."""
    if not hasattr(estimator, "crf_"):
        raise not_fitted(estimator)
    explanation = explain_crf_weights(estimator.crf_, **options)
    explanation.estimator = repr(estimator)
    return explanation


def explain_chosen_weights(estimator: Estimator, **options: Any) -> Explanation:
    """The weights of the model that a search by cross-validation chose."""
    if not hasattr(estimator, "estimator_"):
        raise not_fitted(estimator)
    explanation: Explanation = explain_weights(estimator.estimator_, **options)
    explanation.estimator = repr(estimator)
    return explanation


def _kept(
    feature_re: str | None, feature_filter: Callable[[str], bool] | None
) -> Callable[[str], bool] | None:
    """Which names are shown; None for all."""
    if feature_re is None and feature_filter is None:
        return None
    pattern = re.compile(feature_re or "")

    def keep(name: str) -> bool:
        return bool(pattern.search(name)) and (feature_filter is None or feature_filter(name))

    return keep


def _of_label(
    found: Sequence[NamedWeights], label: int, top: Top, keep: Callable[[str], bool] | None
) -> FeatureWeights:
    """The weights of variables with this label, the largest of both signs."""
    mine: list[tuple[float, NamedWeights, int]] = []
    for own in found:
        if own.order == 1:
            chosen = np.flatnonzero((own.labels[:, 0] == label) & (own.weights != 0.0))
            mine += [(float(own.weights[k]), own, int(k)) for k in chosen]
    if keep is not None:
        mine = [item for item in mine if keep(_name(item[1], item[2]))]
    mine.sort(key=lambda item: -abs(item[0]))
    signs = [[item for item in mine if (item[0] > 0.0) == up] for up in (True, False)]
    if isinstance(top, int):
        n_up = sum(item[0] > 0.0 for item in mine[:top])
        counts = [n_up, len(mine[:top]) - n_up]
    else:
        counts = [len(own) for own in signs] if top is None else list(top)
    shown = [
        [FeatureWeight(_name(own, k), weight) for weight, own, k in items[:n]]
        for items, n in zip(signs, counts, strict=True)
    ]
    left = [len(items) - len(own) for items, own in zip(signs, shown, strict=True)]
    return FeatureWeights(shown[0], shown[1], left[0], left[1])


def _name(own: NamedWeights, k: int) -> str:
    name = own.name(k)
    if name:
        return name
    return BIAS if own.source is not None or own.template == "intercept" else f"<{own.template}>"


def _pairs(
    crf: BaseCRF, found: Sequence[NamedWeights], chosen: Sequence[tuple[int, Any]]
) -> TransitionFeatureWeights | None:
    """The weights of two labels side by side, of the first template that has such a table."""
    for own in found:
        if own.order == 2 and (own.columns < 0).any():
            table = crf.template_weights(own.template)["intercept"]
            places = [k for k, _ in chosen]
            names = [name for _, name in chosen]
            return TransitionFeatureWeights(names, table[np.ix_(places, places)])
    return None


explain_weights.register(Estimator)(explain_chosen_weights)
explain_weights.register(BaseCRF)(explain_crf_weights)
explain_weights.register(Wrapped)(explain_wrapped_weights)
