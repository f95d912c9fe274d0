"""What files hold of models made of clique templates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

from numpy.typing import NDArray

from chordal.estimators._clique_fitting import CliqueEstimator
from chordal.estimators._groups import check_freeze, check_l2
from chordal.estimators._labels import SequenceLabels
from chordal.estimators.clique_template import CliqueTemplate
from chordal.features import CliqueFeatures, CliqueLayout, Input, TableLayout
from chordal.model_file._kind import Arrays, Facts, FunctionsError, Kind
from chordal.model_file._parameters import parameter_facts, parameters_of
from chordal.model_file._pieces import (
    check_finite,
    fit_facts,
    inference_of,
    rows_of,
    rows_state,
    set_fit,
    weights_of,
)


class CliqueKind(Kind):
    """Weights of templates; the templates themselves, which are functions, are made again."""

    @abstractmethod
    def templates(
        self, model: Any, facts: Mapping[str, Any], described: Sequence[Mapping[str, Any]]
    ) -> list[CliqueTemplate]:
        """The templates of a model with these facts; `described` as the file does."""

    def to_state(self, model: Any) -> tuple[Facts, Arrays]:
        model._check_fitted()
        model._check_parameters()  # they may have been set after fit, and `from_state` checks them
        facts: Facts = {
            **parameter_facts(self, model),
            **fit_facts(model),
            "labels": model._labels.to_facts(),
            "templates": [],
        }
        arrays: Arrays = {"weights": check_finite(model.weights_)}
        parts = zip(model._templates, model._inputs, model.features_.layouts, strict=True)
        for k, (template, source, layout) in enumerate(parts):
            rows, own = rows_state(str(k), source, layout.rows)
            facts["templates"].append({**description(template), "rows": rows})
            arrays.update(own)
        return facts, arrays

    def from_state(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        functions: Mapping[str, Any],
    ) -> Any:
        model: CliqueEstimator = self.estimator(**parameters_of(self, facts, functions))
        model._check_parameters()
        labels = SequenceLabels.from_facts(facts["labels"])
        described = facts["templates"]
        templates = self.templates(model, facts, described)
        check_described(templates, described)
        names = [template.name for template in templates]
        check_l2(model.l2, names)
        check_freeze(model.freeze, names)
        inputs: list[Input | None] = []
        layouts = []
        for k, (template, own) in enumerate(zip(templates, described, strict=True)):
            tables = _tables(template, len(labels), arrays["weights"].size)
            source, rows = rows_of(str(k), own["rows"], arrays, tables.n_outputs)
            if (source is None) != (template.features is None):
                raise ValueError(f"template {template.name!r} must have rows if it has features")
            inputs.append(source)
            layouts.append(CliqueLayout(template.name, tables, rows, template.bias))
        features = CliqueFeatures(len(labels), layouts)
        model.weights_ = weights_of(arrays, features.n_weights)
        model._templates, model._inputs = templates, inputs
        model._labels, model.classes_ = labels, labels.classes
        model.features_, model.inference_ = features, inference_of(facts["inference"])
        set_fit(model, facts)
        return model


def description(template: CliqueTemplate) -> Facts:
    """A template without its functions."""
    return {
        "name": template.name,
        "order": int(template.size),
        "tables": template.tables,
        "bias": bool(template.bias),
        "cliques": template.cliques is not None,
        "features": template.features is not None,
    }


def check_described(
    templates: Sequence[CliqueTemplate], described: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse templates other than the file describes."""
    expected = [own["name"] for own in described]
    names = [template.name for template in templates]
    if names != expected:
        raise FunctionsError(
            f"its templates are {', '.join(map(repr, expected))}, in this order; got "
            f"{', '.join(map(repr, names))}"
        )
    for template, own in zip(templates, described, strict=True):
        for what, value in description(template).items():
            if own[what] == value:
                continue
            must = f"{what}={own[what]!r}"
            if what in ("cliques", "features"):
                must = f"a function {what}" if own[what] else f"no function {what}"
            raise FunctionsError(
                f"template {template.name!r} must have {must}, as when it was fitted"
            )


def _tables(template: CliqueTemplate, n_labels: int, n_weights: int) -> TableLayout:
    """The tables of a template, unless the file has too few weights for them to be right."""
    order = template.size
    least = n_labels**order if template.tables == "full" else 1
    if template.tables == "symmetric":
        least = comb(n_labels + order - 1, order)
    if template.bias and least > n_weights:
        raise ValueError(
            f"template {template.name!r} needs {n_labels}^{order} scores for {n_labels} labels, "
            f"and the file has {n_weights} weights"
        )
    return TableLayout(n_labels, order, template.tables)
