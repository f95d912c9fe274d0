"""Matching models in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.estimators._fitting import check_settings
from chordal.estimators.matching_model import MatchingModel
from chordal.features import MatchingFeatures
from chordal.model_file._kind import Arrays, Facts, Kind
from chordal.model_file._parameters import parameter_facts, parameters_of
from chordal.model_file._pieces import (
    check_finite,
    fit_facts,
    inference_of,
    set_fit,
    weights_of,
)


@final
class MatchingKind(Kind):
    """A weight for each feature of pairs, and one for having no target."""

    estimator = MatchingModel
    functions = ("features",)

    def to_state(self, model: MatchingModel) -> tuple[Facts, Arrays]:
        model._check_fitted()
        _check_parameters(model)
        return (
            {
                **parameter_facts(self, model),
                **fit_facts(model),
                "n_features": int(model.features_.n_features),
            },
            {"weights": check_finite(model.weights_)},
        )

    def from_state(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        functions: Mapping[str, Any],
    ) -> MatchingModel:
        model = MatchingModel(**parameters_of(self, facts, functions))
        _check_parameters(model)
        check_number("n_features", facts["n_features"], minimum=1, integer=True)
        model.features_ = MatchingFeatures(facts["n_features"])
        model.weights_ = weights_of(arrays, model.features_.n_weights)
        model.coef_, model.no_target_ = model.weights_[:-1], float(model.weights_[-1])
        model.inference_ = inference_of(facts["inference"])
        set_fit(model, facts)
        return model


def _check_parameters(model: MatchingModel) -> None:
    check_settings(model)
    check_number("l2", model.l2)
