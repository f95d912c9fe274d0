"""Model files: fitted models, each in one file that is memory-mapped and never a pickle.

`_container` knows bytes and nothing of models; a file of `kinds` knows the models of one class.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from chordal.model_file._container import FORMAT, ModelFileError, Path, read, write
from chordal.model_file._kind import FunctionsError
from chordal.model_file.kinds import kind_named, kind_of

M = TypeVar("M")


def save(model: Any, path: Path) -> None:
    """Write a fitted model; the file appears whole or not at all.

    A file holds no code. Functions that are part of a model, such as the templates of a
    `TemplateCRF`, are given to `load` again.

    Weights that float16 or float32 hold exactly, as after `model.compact(dtype="float32")`, are
    stored in that.

    Parameters
    ----------
    model : ChainCRF, GraphCRF, GridCRF, TemplateCRF, MatchingModel or CRFClassifier
    path : str or path

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
    kind = kind_of(model)
    facts, arrays = kind.to_state(model)
    write(path, {"class": kind.estimator.__name__, **facts}, arrays)


@overload
def load(path: Path, kind: type[M], **functions: Any) -> M: ...


@overload
def load(path: Path, kind: None = None, **functions: Any) -> Any: ...


def load(path: Path, kind: type[Any] | None = None, **functions: Any) -> Any:
    """Open a model file; its arrays stay in the file, mapped into memory.

    Parameters
    ----------
    path : str or path
    kind : class, optional
        Refuse models of any other class.
    **functions
        Parameters of the model that hold functions, as they were given when it was made:
        ``templates`` of a `TemplateCRF`, ``edge_features`` of a `GridCRF`, ``features`` of a
        `MatchingModel`, ``transition_features`` of a `ChainCRF`.

    Raises
    ------
    ModelFileError
        The file is empty, truncated, changed, not a model, from a newer version, of another kind,
        or needs functions that were not given.

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
        found = kind_named(facts["class"])
        if kind is None or kind is found.estimator:
            return found.from_state(facts, arrays, functions)
    except FunctionsError as error:
        raise ModelFileError(path, str(error)) from None
    except (
        ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(path, f"not a valid model: {what}") from error
    raise ModelFileError(path, f"holds a {found.estimator.__name__}, not a {kind.__name__}")


__all__ = ["FORMAT", "ModelFileError", "load", "save"]
