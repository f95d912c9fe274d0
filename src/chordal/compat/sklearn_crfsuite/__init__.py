"""The interface of sklearn-crfsuite, on chordal: change the import, and existing code runs.

>>> from chordal.compat import sklearn_crfsuite
>>> crf = sklearn_crfsuite.CRF(c1=0.1, c2=0.1)
>>> X = [[{"word": "the"}, {"word": "cat"}, {"word": "sleeps"}], [{"word": "a"}, {"word": "dog"}]]
>>> y = [["D", "N", "V"], ["D", "N"]]
>>> crf.fit(X, y).predict(X).tolist()
[['D', 'N', 'V'], ['D', 'N']]

Pickles of sklearn-crfsuite load as fitted models after `chordal.compat.install()`, and what
`portable` returns is pickled such that it loads there.
"""

from chordal._optional import needed

with needed("sklearn", "chordal.compat.sklearn_crfsuite"):
    from chordal.compat.sklearn_crfsuite._pickles import portable
    from chordal.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF", "portable"]
