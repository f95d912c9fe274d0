"""The interface of python-crfsuite, on chordal: change the import, and existing code runs.

>>> from chordal.compat import pycrfsuite
>>> trainer = pycrfsuite.Trainer(verbose=False)
>>> trainer.append([{"word": "the"}, {"word": "cat"}], ["D", "N"])
>>> trainer.train("")
>>> trainer.logparser.featgen_num_features
3

Model files are CRFsuite's own: its tools read what is written here, and the other way round.
"""

from chordal.compat.pycrfsuite._items import ItemSequence
from chordal.compat.pycrfsuite._tagger import Tagger
from chordal.compat.pycrfsuite._trainer import BaseTrainer, CRFSuiteError, Trainer

#: The version of CRFsuite whose behaviour and files this package has.
CRFSUITE_VERSION = "0.12.2"

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "ItemSequence",
    "Tagger",
    "Trainer",
]
