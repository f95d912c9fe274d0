"""Graph models in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from chordal.estimators.clique_template import CliqueTemplate
from chordal.estimators.graph_crf import GraphCRF
from chordal.model_file.kinds._cliques import CliqueKind


@final
class GraphKind(CliqueKind):
    """Templates for nodes and edges, which follow from the parameters and the kind of graphs."""

    estimator = GraphCRF

    def templates(
        self, model: GraphCRF, facts: Mapping[str, Any], described: Sequence[Mapping[str, Any]]
    ) -> list[CliqueTemplate]:
        like = ((), (), ()) if described[1]["features"] else ((), ())
        return model._templates_for([like])
