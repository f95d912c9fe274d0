"""Grid models in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from chordal._validate import check_number
from chordal.estimators.clique_template import CliqueTemplate
from chordal.estimators.grid_crf import GridCRF
from chordal.model_file._kind import Arrays, Facts
from chordal.model_file.kinds._cliques import CliqueKind


@final
class GridKind(CliqueKind):
    """Templates for pixels and neighbours follow from the parameters; a contrast that was found
    in the training images does not, and is kept.
    """

    estimator = GridCRF
    functions = ("edge_features",)

    def to_state(self, model: GridCRF) -> tuple[Facts, Arrays]:
        facts, arrays = super().to_state(model)
        contrast = None if model.contrast_ is None else float(model.contrast_)
        return {**facts, "contrast": contrast}, arrays

    def templates(
        self, model: GridCRF, facts: Mapping[str, Any], described: Sequence[Mapping[str, Any]]
    ) -> list[CliqueTemplate]:
        contrast = facts["contrast"]
        if (contrast is None) != (model.contrast is None):
            raise ValueError("there must be a contrast if the parameter contrast is not None")
        if contrast is not None:
            check_number("contrast", contrast)
        return model._templates_with(contrast)
