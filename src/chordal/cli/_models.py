"""What commands tell about a model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from chordal._opening import kind_of, open_model

if TYPE_CHECKING:
    from chordal import ChainCRF, FeatureTemplate
    from chordal.cli._token_model import TokenModel
    from chordal.torch import NeuralCRF


def open_tagger(path: str) -> ChainCRF | TokenModel:
    """The model of a file that labels tokens: a chain, or a network of tokens."""
    found = chain_or_network(path)
    from chordal import ChainCRF

    if isinstance(found, ChainCRF):
        return reader_of_text(found, path)
    from chordal.cli._token_model import TokenModel

    return TokenModel(found, path)


def reader_of_text(model: ChainCRF, path: str) -> ChainCRF:
    """A chain, unless it reads rows of numbers: no file of text has these."""
    from chordal.features import ArrayInput
    from chordal.model_file import ModelFileError

    if isinstance(model.input_, ArrayInput):
        raise ModelFileError(
            path, "it reads rows of numbers, but files have tokens; use chordal.load in Python"
        )
    return model


def check_columns(model: ChainCRF | TokenModel) -> None:
    """Refuse a model that reads attributes, of which files of columns have none."""
    if model.feature_template is None and model.input_ is not None:
        raise ValueError(
            "the model cannot read files of columns, because it was trained on attributes; give "
            "--format crfsuite or jsonl"
        )


def check_reads(model: ChainCRF | TokenModel, X: object) -> None:
    """Refuse a model that cannot read these examples."""
    from chordal.text import Columns

    if isinstance(X, Columns):
        check_columns(model)


def chain_or_network(path: str) -> ChainCRF | NeuralCRF:
    """The model of a file, if it is one of these."""
    from chordal.model_file import ModelFileError, class_of, load

    try:
        return open_model(path)
    except ModelFileError:
        if kind_of(path) != "chordal" or class_of(path) != "NeuralCRF":
            raise
    from chordal.torch import NeuralCRF

    return load(path, NeuralCRF)


def open_any(path: str) -> Any:
    """The model of a file, of any class."""
    from chordal.model_file import load

    return load(path) if kind_of(path) == "chordal" else open_model(path)


def template_of(model: ChainCRF | TokenModel) -> FeatureTemplate | None:
    """The feature template of a model, if it has one."""
    return model.columns_template()


def sizes(model: Any) -> dict[str, Any]:
    """What a model consists of."""
    import numpy as np

    from chordal import ChainCRF
    from chordal.estimators import BaseCRF

    if isinstance(model, BaseCRF) and not isinstance(model, ChainCRF):
        return {
            "labels": len(model.classes_),
            "templates": ", ".join(own.name for own in model.reader_.templates),
            "attributes": sum(own.n_columns for own in model.reader_.inputs if own is not None),
            "weights": model.layout_.n_weights,
            "nonzero_weights": int(np.count_nonzero(model.weights_)),
        }
    if not isinstance(model, ChainCRF):
        network = sum(tensor.numel() for tensor in model.module_.network.state_dict().values())
        shape = " × ".join(map(str, model.inputs_.shape)) or f"{len(model.inputs_.tokens)} tokens"
        return {
            "labels": len(model.classes_),
            "inputs": shape,
            "network_weights": network,
            "crf_weights": model.crf_.layout_.n_weights,
        }
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


def report(model: Any) -> dict[str, Any] | None:
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
