"""Pickles of `CRF` for sklearn-crfsuite."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from chordal._errors import UnsupportedError
from chordal.compat.sklearn_crfsuite.estimator import CRF


def portable(crf: CRF) -> object:
    """What to pickle instead of `crf`, to load it without chordal.

    The pickle, by `pickle` or `joblib` and any protocol, loads as sklearn-crfsuite's own CRF with
    the same parameters and the same model. The training log stays behind. (A pickle of `crf`
    itself needs chordal, but not sklearn-crfsuite, and keeps all.)

    Raises
    ------
    UnsupportedError
        If `trainer_cls` is set: it is a class of chordal's.

    Examples
    --------
    >>> import pickle
    >>> from chordal.compat.sklearn_crfsuite import CRF, portable
    >>> crf = CRF().fit([[["w=a"], ["w=cat"]]], [["D", "N"]])
    >>> b"chordal" in pickle.dumps(portable(crf))
    False
    """
    if crf.trainer_cls is not None:
        raise UnsupportedError(
            f"trainer_cls is {crf.trainer_cls.__name__}, which needs chordal; set_params("
            "trainer_cls=None) before the pickle is made"
        )
    state = crf.__getstate__()
    state["training_log_"] = None
    resource = _named("sklearn_crfsuite._fileresource", "FileResource")
    file = _Made(resource, (), crf.modelfile.__getstate__())
    return _Made(_named("sklearn_crfsuite.estimator", "CRF"), (), {**state, "modelfile": file})


class _Made:
    """Pickled as a call: it loads as what the call returns, and no class of ours is named."""

    def __init__(self, make: object, arguments: tuple[Any, ...], state: object = None) -> None:
        self._make, self._arguments, self._state = make, arguments, state

    def __call__(self) -> None:
        """Pickle asks that what makes an object can be called; here it is called when loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return self._make, self._arguments, self._state


def _named(module: str, name: str) -> _Made:
    """A class of a module that need not be here."""
    found: Callable[..., Any] = getattr
    return _Made(found, (_Made(import_module, (module,)), name))
