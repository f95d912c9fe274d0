"""Other tools: their models, and their Python interfaces.

`pycrfsuite` and `sklearn_crfsuite` have the interfaces of these packages, and `install` gives them
their names. `wapiti` labels blocks of text as Wapiti does. `crfsuite_model`, `crfpp_model` and
`wapiti_model` read and write models; `hmmlearn` takes over hidden Markov models.
"""

from chordal.compat._install import install

__all__ = ["install"]
