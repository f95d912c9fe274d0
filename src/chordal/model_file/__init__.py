"""Model files: fitted models, each in one file that is never a pickle.

`chordal._container` handles bytes, a model gives its state, and `_parameters` stores its
parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar, overload

from chordal import estimators
from chordal._container import FORMAT, ModelFileError, Path, narrowest, read, write
from chordal._errors import UnsupportedError
from chordal.estimators import BaseCRF
from chordal.inference import INFERENCE
from chordal.model_file._items import item_facts, item_of
from chordal.model_file._parameters import (
    FunctionsError,
    Storable,
    crf_classes,
    parameter_facts,
    parameters_of,
)

M = TypeVar("M")

#: Classes that need an optional package: where they are, when a file or a model names them.
ELSEWHERE = {"NeuralCRF": "chordal.torch"}


def save(model: object, path: Path, metadata: Mapping[str, object] | None = None) -> None:
    """Write a fitted model to a file; the file appears complete or not at all.

    A file contains no code. So functions of a model, such as the templates of a `TemplateCRF` or
    your own network in a `NeuralCRF`, must be passed to `load` again.

    Weights that are exact in float16 or float32, as after `model.compact(dtype="float32")`, are
    stored in that type.

    Parameters
    ----------
    model : ChainCRF, GraphCRF, GridCRF, TemplateCRF, MatchingModel, CRFClassifier or NeuralCRF
    path : str or path
    metadata : dict, optional
        Further facts about the model (data, licence, author, …) as JSON values. `metadata_of`
        returns them, and ``chordal info`` shows them.

    Examples
    --------
    >>> import tempfile
    >>> from chordal import ChainCRF
    >>> crf = ChainCRF().fit([[["w=a"], ["w=b"]]], [["A", "B"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(crf, f"{folder}/model.chordal")
    ...     load(f"{folder}/model.chordal").predict([[["w=b"], ["w=a"]]])
    [['B', 'A']]
    """
    name = type(model).__name__
    if name not in _classes() or type(model) is not _class_named(name):
        raise UnsupportedError(
            f"a {name} cannot be saved; a file can hold: {', '.join(_classes())}"
        )
    kept: Storable = model
    facts, arrays = kept.to_state()
    about: dict[str, Any] = {
        "class": name,
        **parameter_facts(kept),
        "inference": item_facts("inference", kept.inference_),
    }
    if metadata:
        about["metadata"] = _checked(metadata)
    arrays = {**arrays, "weights": narrowest(arrays["weights"])}
    write(path, {**about, **facts}, arrays)


def metadata_of(path: Path) -> dict[str, object]:
    """The metadata of a model file; an empty dict if it has none.

    >>> import tempfile
    >>> from chordal import ChainCRF
    >>> crf = ChainCRF().fit([[["w=a"]]], [["A"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(crf, f"{folder}/model", metadata={"licence": "CC0"})
    ...     metadata_of(f"{folder}/model")
    {'licence': 'CC0'}
    """
    found = read(path)[0].get("metadata", {})
    if not isinstance(found, dict):
        raise ModelFileError(path, "its metadata are not a JSON object")
    return found


def class_of(path: Path) -> str:
    """The name of the class of the model in a file."""
    return str(read(path)[0].get("class"))


def _checked(metadata: Mapping[str, object]) -> dict[str, object]:
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise TypeError(f"metadata must be a dict with names as keys, got {metadata!r}")
    try:
        json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be JSON values: {error}") from None
    return dict(metadata)


@overload
def load(path: Path, kind: type[M], **functions: object) -> M: ...


@overload
def load(path: Path, kind: None = None, **functions: object) -> BaseCRF: ...


def load(path: Path, kind: type[Any] | None = None, **functions: object) -> object:
    """Read a model file. Later changes of the file do not affect the model.

    Parameters
    ----------
    path : str or path
    kind : class, optional
        The expected class; a model of another class is an error.
    **functions
        Parameters of the model that are functions, as they were when it was fitted. These are
        `templates` of a `TemplateCRF`, `edge_features` of a `GridCRF`, `features` of a
        `MatchingModel` and `transition_features` of a `ChainCRF`. Of a `NeuralCRF` they are
        `network`, and `crf` if that has functions.

    Raises
    ------
    ModelFileError
        The file is empty, truncated, changed, not a model, from a newer version or of another
        class, or it needs functions that were not given.

    Examples
    --------
    >>> import tempfile
    >>> from chordal import CliqueTemplate, TemplateCRF
    >>> words = CliqueTemplate("words", features=lambda x: [[word] for word in x])
    >>> crf = TemplateCRF([words]).fit([["a", "b"]], [["A", "B"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(crf, f"{folder}/model.chordal")
    ...     load(f"{folder}/model.chordal", TemplateCRF, templates=[words]).predict([["b"]])
    [['B']]
    """
    facts, arrays = read(path)
    try:
        found = _class_named(facts["class"])
        if kind is None or kind is found:
            model = found(**parameters_of(found, facts, functions))
            model.inference_ = INFERENCE.resolve(item_of("inference", facts["inference"]))
            return model.from_state(facts, arrays)
    except FunctionsError as error:
        raise ModelFileError(path, str(error)) from None
    except (
        ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(path, f"not a valid model: {what}") from error
    raise ModelFileError(path, f"holds a {found.__name__}, not a {kind.__name__}")


def _classes() -> list[str]:
    """The classes whose models a file can hold."""
    return [*(cls.__name__ for cls in crf_classes()), *ELSEWHERE]


def _class_named(name: str) -> type[Storable]:
    if name not in _classes():
        raise ValueError(f"its class must be one of {', '.join(_classes())}; got {name!r}")
    home = import_module(ELSEWHERE[name]) if name in ELSEWHERE else estimators
    found: type[Storable] = getattr(home, name)
    return found


__all__ = ["FORMAT", "ModelFileError", "class_of", "load", "metadata_of", "save"]
