"""Classifiers in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from chordal._validate import check_number
from chordal.estimators._fitting import check_settings
from chordal.estimators._labels import SequenceLabels
from chordal.estimators.crf_classifier import CRFClassifier
from chordal.model_file._kind import Arrays, Facts, Kind
from chordal.model_file._parameters import parameter_facts, parameters_of
from chordal.model_file._pieces import check_finite, fit_facts, set_fit, weights_of


@final
class ClassifierKind(Kind):
    """A linear function of the columns for each class, or one for two of them."""

    estimator = CRFClassifier

    def to_state(self, model: CRFClassifier) -> tuple[Facts, Arrays]:
        check_is_fitted(model)
        _check_parameters(model)
        names = getattr(model, "feature_names_in_", None)
        labels = SequenceLabels()
        labels.learn([model.classes_])
        facts = {
            **parameter_facts(self, model),
            **fit_facts(model),
            "classes": labels.to_facts(),
            "n_features": int(model.n_features_in_),
            "feature_names": None if names is None else [str(name) for name in names],
        }
        # A function after another, the constant of each behind its coefficients.
        weights = np.column_stack([model.coef_, model.intercept_]).ravel()
        return facts, {"weights": check_finite(weights)}

    def from_state(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        functions: Mapping[str, Any],
    ) -> CRFClassifier:
        model = CRFClassifier(**parameters_of(self, facts, functions))
        _check_parameters(model)
        labels = SequenceLabels.from_facts(facts["classes"])
        numbers = np.arange(len(labels), dtype=np.int32)
        classes = np.asarray(labels.decode(numbers, np.array([len(labels)]))[0])
        if len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
            raise ValueError("classes must be two or more, in order")
        n, names = facts["n_features"], facts["feature_names"]
        check_number("n_features", n, minimum=1, integer=True)
        if names is not None:
            if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
                raise ValueError("feature_names must be a list of str, or null")
            if len(names) != n:
                raise ValueError(f"there must be {n} feature_names, got {len(names)}")
            model.feature_names_in_ = np.array(names, dtype=object)
        n_functions = 1 if len(classes) == 2 else len(classes)
        table = weights_of(arrays, n_functions * (n + 1)).reshape(n_functions, n + 1)
        model.coef_, model.intercept_ = table[:, :n].copy(), table[:, n].copy()
        model.classes_, model.n_features_in_ = classes, n
        set_fit(model, facts)
        return model


def _check_parameters(model: CRFClassifier) -> None:
    check_settings(model)
    check_number("l2", model.l2)
