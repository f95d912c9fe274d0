"""Models of the user's own templates in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from chordal.estimators._clique_reading import check_templates
from chordal.estimators.clique_template import CliqueTemplate
from chordal.estimators.template_crf import TemplateCRF
from chordal.model_file.kinds._cliques import CliqueKind


@final
class TemplateKind(CliqueKind):
    """Templates are functions, and come from the user again."""

    estimator = TemplateCRF
    functions = ("templates",)

    def templates(
        self, model: TemplateCRF, facts: Mapping[str, Any], described: Sequence[Mapping[str, Any]]
    ) -> list[CliqueTemplate]:
        return check_templates(model.templates)
