"""What commands tell about a model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chordal import ChainCRF, FeatureTemplate


def template_of(model: ChainCRF) -> FeatureTemplate | None:
    """The feature template of a model, if it has one."""
    return model.columns_template()


def sizes(model: ChainCRF) -> dict[str, Any]:
    """What a model consists of."""
    import numpy as np

    node, edge, vectors = model.input_, model.reader_.inputs[1], model.reader_.input("vectors")
    return {
        "labels": len(model.classes_),
        "attributes": node.n_columns,
        "transition_attributes": 0 if edge is None else edge.n_columns,
        **({} if vectors is None else {"numbers_of_vectors": vectors.n_columns}),
        "weights": model.layout_.n_weights,
        "nonzero_weights": int(np.count_nonzero(model.weights_)),
        "transitions": len(model.layout_["transitions"].kept),
    }


def report(model: ChainCRF) -> dict[str, Any] | None:
    """How the fit went."""
    found = getattr(model, "fit_report_", None)
    if found is None:
        return None
    return {
        "status": found.status.name.lower(),
        "solver": found.solver,
        "iterations": found.n_iter,
        "evaluations": found.n_evaluations,
        "objective": found.objective,
        "gradient_norm": found.gradient_norm,
        "seconds": found.elapsed,
    }


def file_size(path: str) -> int:
    """Bytes of a file; 0 of what is none, such as /dev/null."""
    return os.path.getsize(path) if os.path.isfile(path) else 0
