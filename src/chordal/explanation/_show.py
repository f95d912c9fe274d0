"""show: predictions together with what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chordal._entities import entities_in, entity_probabilities
from chordal._errors import UnsupportedError
from chordal._schemes import scheme_of, split_tag
from chordal._validate import is_sparse
from chordal.estimators import ChainCRF
from chordal.estimators.opened import OpenExample, opened
from chordal.explanation._image import LabelledImage
from chordal.explanation._odds import MarginalOdds
from chordal.explanation._text import LabelledText, Span, placed
from chordal.potentials import Floats
from chordal.text.words import words_of


def show(
    estimator: object,
    x: object,
    tokens: Sequence[str] | None = None,
    *,
    text: str | None = None,
) -> LabelledText | LabelledImage:
    """The prediction for one example together with what it is about, for people to read.

    Notebooks show it in colours. Labels that are tags, such as B-LOC and I-LOC, are shown as
    entities, each with the probability that it is exactly this entity.

    Parameters
    ----------
    estimator : a fitted estimator of sequences, graphs or images
    x : one example, what `predict` takes a list of
    tokens : list of str, optional
        The words of a sequence, or names of nodes. By default they are taken from x. A token that
        is a str is its own word. Of a dict or a list of attributes, "word", "w", "token", "form" or
        "text" is taken, as in "w=Paris"; else the first of a list, else the position's number.
    text : str, optional
        The text in which the tokens stand, for offsets; by default tokens between spaces.

    Returns
    -------
    LabelledText
        With `to_displacy` and `to_label_studio`.
    LabelledImage
        For `GridCRF`.

    Examples
    --------
    >>> from chordal import ChainCRF, show
    >>> X = [[["in"], ["New"], ["York"]], [["to"], ["York"]], [["New"], ["shoes"]]]
    >>> y = [["O", "B-LOC", "I-LOC"], ["O", "B-LOC"], ["O", "O"]]
    >>> crf = ChainCRF(l2=0.01).fit(X, y)
    >>> found = show(crf, [["in"], ["New"], ["York"]])
    >>> print(found)
    in [New York LOC 0.92]
    >>> found.to_displacy()["ents"]
    [{'start': 3, 'end': 11, 'label': 'LOC'}]
    """
    example = opened(estimator, x)
    places = example.places
    if places.word not in ("position", "node", "pixel") or len(places.names):
        raise UnsupportedError(
            "show is for sequences, graphs with one kind of nodes, and images; for others, see "
            "predict_proba and predict_marginals"
        )
    names = example.labels_at(0)  # all variables have the same
    labels = [names[k] for k in example.predicted.tolist()]
    chances = _chances(example)
    if places.word == "pixel":
        return _image(example, labels, chances)
    if tokens is None:
        tokens = words_of(x, example.n_variables)
    elif isinstance(tokens, (str, bytes)) or is_sparse(tokens) or not hasattr(tokens, "__len__"):
        raise TypeError(f"tokens must be a list of words, got {type(tokens).__name__}")
    elif len(tokens) != len(labels):
        raise ValueError(f"tokens must be {len(labels)}, one per {places.word}, got {len(tokens)}")
    words = [str(token) for token in tokens]
    whole, offsets = placed(words, text)
    spans, kinds = _spans(example, labels, chances)
    sure = (None,) * len(labels) if chances is None else tuple(map(float, chances))
    return LabelledText(
        tuple(words), tuple(labels), sure, tuple(spans), whole, tuple(offsets), tuple(kinds)
    )


def _chances(example: OpenExample) -> Floats | None:
    """The marginal probability of each predicted label; None if the method gives no marginals."""
    try:
        return MarginalOdds(example).predicted()
    except UnsupportedError:
        return None


def _image(example: OpenExample, labels: list[Any], chances: Floats | None) -> LabelledImage:
    shape = example.places.shape
    image = np.empty(len(labels), dtype=object)
    image[:] = labels
    sure = None if chances is None else chances.reshape(shape)
    return LabelledImage(image.reshape(shape), sure, tuple(example.model.classes_.tolist()))


def _spans(
    example: OpenExample, labels: list[Any], chances: Floats | None
) -> tuple[list[Span], list[str]]:
    """Entities, or single tokens where labels are not tags; and all labels that spans may have."""
    classes = example.model.classes_.tolist()
    scheme = scheme_of(classes) if example.is_chain else None
    if scheme is None:
        sure = [None] * len(labels) if chances is None else chances.tolist()
        pairs = enumerate(zip(labels, sure, strict=True))
        spans = [Span(t, t + 1, str(label), share) for t, (label, share) in pairs]
        return spans, [str(label) for label in classes]
    found = entities_in([list(map(str, labels))], scheme)
    shares: list[float | None] = [None] * len(found[0])
    if isinstance(example.model, ChainCRF) and chances is not None:
        shares = entity_probabilities(example.model, example.X, found, scheme)[0]
    kinds = list(dict.fromkeys(split_tag(label)[1] for label in classes if label != "O"))
    pairs_of = zip(found[0], shares, strict=True)
    return [Span(e.start, e.end, e.type, share) for e, share in pairs_of], kinds
