"""explain: why a model gives a variable this label and not another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal._errors import UnsupportedError
from chordal._validate import check_choice, is_sparse
from chordal.estimators.opened import OpenExample, Place, Term, opened
from chordal.explanation._explanation import Contribution, Explanation, Flip
from chordal.explanation._odds import ConditionalOdds, Link, MarginalOdds, Split

ODDS = ("auto", "marginal", "conditional")
ROUNDING = 1e-12  # of a sum of contributions, relative to their sizes


def explain(
    estimator: object,
    x: object,
    at: Place = None,
    *,
    label: object = None,
    rival: object = None,
    odds: str = "auto",
) -> Explanation:
    """Why one variable has its label, and not another: the log-odds of both, split exactly.

    Each attribute of the variable, its intercepts and the links to its neighbours get the number
    that they add to the log-odds. The sum of these numbers is the log-odds.

    Parameters
    ----------
    estimator : a fitted estimator
        Every CRF but `MatchingModel`. Of `HMM` and `NaiveBayes`, the chain inside is explained,
        with the columns that it reads. Of `TwoStageCRF` and `NeuralCRF`, the CRF inside, which
        reads one score for each label.
    x : one example
        What `predict` takes a list of: a sequence, a graph, an image. For classifiers, one row.
    at : int, tuple or name, optional
        Which variable: the number of a position or node, the coordinates of a pixel, (type, number)
        of a `TypedGraphCRF`, the label of a `MultiLabelCRF`. By default the one that the model is
        least sure of.
    label, rival : labels, optional
        The label to explain, by default the predicted one; and the one it is compared with, by
        default the best of the others.
    odds : {"auto", "marginal", "conditional"}
        "marginal": log P(label | x) − log P(rival | x), with all other labels summed out. Links
        are then what the rest of the graph says: on chains, what is before and what is after.
        "conditional": the same given the labels that the model predicts for all other variables,
        with one contribution for each clique. It needs no inference and is always exact. "auto" is
        "marginal" where inference is exact, else "conditional".

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from chordal import ChainCRF, explain
    >>> X = [[["w=in"], ["w=Paris", "before=in"]], [["w=met"], ["w=Anna", "before=met"]]]
    >>> X, y = [*X, [["w=Paris"]]], [["O", "LOC"], ["O", "PER"], ["LOC"]]
    >>> crf = ChainCRF(l2=0.1).fit(X, y)
    >>> found = explain(crf, [["w=met"], ["w=Paris", "before=met"]], 1)
    >>> print(found)
    ChainCRF, position 1: 'LOC' against 'PER'
    log-odds of the marginals +0.994: P('LOC') = 0.711, P('PER') = 0.263 (exact, chain)
      +2.340  w=Paris
      −1.085  before=met
      −0.261  positions before
    To flip it: without w=Paris the log-odds are −1.347, and 'PER' is predicted.
    >>> abs(sum(own.amount for own in found.contributions) - found.log_odds) < 1e-9
    True
    """
    check_choice("odds", odds, ODDS)
    example = opened(estimator, x)
    measure = _measure(example, odds)
    v = int(np.argmin(measure.predicted())) if at is None else example.places.number(at)
    labels = example.labels_at(v)
    if len(labels) < 2:
        raise ValueError(f"the model knows one label, {labels[0]!r}: there is no rival")
    a = int(example.predicted[v]) if label is None else _number(labels, label, "label")
    b = _rival(measure, v, a) if rival is None else _number(labels, rival, "rival")
    if a == b:
        raise ValueError(f"label and rival must differ, got {labels[a]!r} for both")
    split = measure.split(v, a, b)
    if not np.isfinite(measure.ranking(v)[[a, b]]).any():
        raise ValueError(
            f"neither {labels[a]!r} nor {labels[b]!r} is possible here: they have no log-odds"
        )
    shares = measure.probabilities(v)
    return Explanation(
        estimator=type(estimator).__name__,
        place=example.places.word,
        at=example.places.name(v),
        label=labels[a],
        rival=labels[b],
        predicted=labels[int(example.predicted[v])],
        odds=measure.kind,
        exact=measure.exact,
        inference=measure.method.name if isinstance(measure, MarginalOdds) else None,
        log_odds=split.log_odds,
        probability=float(shares[a]),
        rival_probability=float(shares[b]),
        contributions=_contributions(example, v, split),
        flip=_flip(example, measure, v, a, b, split),
    )


def _measure(example: OpenExample, odds: str) -> MarginalOdds | ConditionalOdds:
    """The log-odds that are asked for; "auto" takes those that are exact."""
    if odds == "conditional":
        return ConditionalOdds(example)
    try:
        marginal = MarginalOdds(example)
    except UnsupportedError:  # the method of the model finds best labels alone
        if odds == "marginal":
            raise
        return ConditionalOdds(example)
    return marginal if odds == "marginal" or marginal.exact else ConditionalOdds(example)


def _rival(measure: MarginalOdds | ConditionalOdds, v: int, a: int) -> int:
    """The best of the other labels; the first of them where none is possible."""
    ranking = measure.ranking(v)
    others = [k for k in range(len(ranking)) if k != a]
    return max(others, key=lambda k: float(ranking[k]))


def _number(labels: list[Any], label: object, name: str) -> int:
    if getattr(label, "ndim", 0) or is_sparse(label) or label not in labels:
        some = ", ".join(map(repr, labels[:20]))
        raise ValueError(f"{name} must be one of {some}; got {label!r}")
    return labels.index(label)


def _contributions(example: OpenExample, v: int, split: Split) -> tuple[Contribution, ...]:
    """All terms, the largest first."""
    found = [_of_term(example, term, amount) for term, amount in split.own]
    found += [_of_link(example, v, link) for link in split.links]
    return tuple(sorted(found, key=lambda own: -abs(own.amount)))


def _of_term(example: OpenExample, term: Term, amount: float) -> Contribution:
    if term.name is not None:
        meaning = example.meaning(term.name)
        return Contribution("attribute", term.name, amount, term.value, term.template, meaning)
    observed = example.model.layout_[term.template].rows is not None
    return Contribution("intercept", "intercept" if observed else term.template, amount)


def _of_link(example: OpenExample, v: int, link: Link) -> Contribution:
    near = tuple(example.places.name(u) for u in link.variables)
    parts = tuple(_of_term(example, term, amount) for term, amount in link.parts)
    name = _link_name(example, v, link)
    return Contribution("link", name, link.amount, neighbours=near, parts=parts)


def _link_name(example: OpenExample, v: int, link: Link) -> str:
    """A link in words."""
    places, near = example.places, link.variables
    if link.labelled:
        labels = [repr(example.labels_at(u)[int(example.predicted[u])]) for u in near]
        if example.is_chain:
            way = "from" if near[0] < v else "to"
            return f"{way} {labels[0]} at {places.name(near[0])}"
        pairs = [f"{places.name(u)!r} = {own}" for u, own in zip(near, labels, strict=True)]
        return f"with {places.word} {', '.join(pairs)}"
    if example.is_chain and len(link.cliques) == 1:
        return "positions before" if near[0] < v else "positions after"
    named = ", ".join(repr(places.name(u)) for u in near)
    if len(link.cliques) == 1:
        return f"neighbour {named}"
    return f"the rest of the graph, through {named}"


def _flip(
    example: OpenExample,
    measure: MarginalOdds | ConditionalOdds,
    v: int,
    a: int,
    b: int,
    split: Split,
) -> Flip | None:
    """The fewest attributes without which the other label is ahead; None if there are none."""
    side = 1.0 if split.log_odds >= 0.0 else -1.0
    mine = [(t, side * amount) for t, amount in split.own if t.name is not None]
    favourable = sorted((own for own in mine if own[1] > 0.0), key=lambda own: -own[1])
    n_gone = _enough(split, side, [amount for _, amount in favourable])
    if n_gone is None:
        return None
    gone = [term for term, _ in favourable[:n_gone]]
    changed = example.without(v, gone)
    left = measure.log_odds(v, a, b, changed)
    after = int(changed.predicted[v])
    return Flip(
        removed=tuple(_of_term(example, t, side * c) for t, c in favourable[:n_gone]),
        log_odds=left,
        confirmed=side * left < 0.0,
        prediction=example.labels_at(v)[after],
        changes_prediction=after != int(example.predicted[v]),
    )


def _enough(split: Split, side: float, gains: list[float]) -> int | None:
    """How many of the largest gains must go until the other label is ahead; None if all do not.

    A gain is infinite where an observation forbids the other label. Without it, the rest is finite
    again.
    """
    every = [amount for _, amount in split.own] + [own.amount for own in split.links]
    finite = [side * amount for amount in every if np.isfinite(amount)]
    size = max([1.0, *map(abs, finite)])
    rest, forbidding = sum(finite), len(every) - len(finite)
    for n, gain in enumerate(gains, 1):
        if np.isfinite(gain):
            rest -= gain
        else:
            forbidding -= 1
        if not forbidding and rest < -ROUNDING * size:
            return n
    return None
