"""The interface of python-crfsuite, on chordal: change the import, and existing code runs.

>>> from chordal.compat import pycrfsuite
>>> trainer = pycrfsuite.Trainer(verbose=False)
>>> trainer.append([{"word": "the"}, {"word": "cat"}], ["D", "N"])
>>> trainer.train("")
>>> trainer.logparser.featgen_num_features
3

Model files are CRFsuite's own: its tools read what is written here, and the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chordal.compat.pycrfsuite._items import ItemSequence
from chordal.compat.pycrfsuite._tagger import Tagger

if TYPE_CHECKING:
    from chordal.compat.pycrfsuite._trainer import BaseTrainer, CRFSuiteError, Trainer

#: The version of CRFsuite whose behaviour and files this package has.
CRFSUITE_VERSION = "0.12.2"


def __getattr__(name: str) -> object:
    # Most programs only tag: what trains is imported when it is asked for.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from chordal.compat.pycrfsuite import _trainer

    value = globals()[name] = getattr(_trainer, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "ItemSequence",
    "Tagger",
    "Trainer",
]
