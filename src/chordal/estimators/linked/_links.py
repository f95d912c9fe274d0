"""Training the links of a CRF whose label scores come from outside."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.estimators._crf import BaseCRF
from chordal.estimators._training.choosing import (
    Data,
    asked_objective,
    check_before_compiling,
    inference_for,
    problem_of,
)
from chordal.estimators._training.groups import members
from chordal.estimators._training.judging import Validator, converged, prediction_facts
from chordal.estimators._training.reading import read
from chordal.estimators._training.steps import attributes_of, weighed
from chordal.estimators.linked._labels import Examples, Known
from chordal.features import DenseInput, Layout, Reader, Shard
from chordal.inference import Inference
from chordal.labels import SequenceLabels
from chordal.objectives import Evaluation, Objective
from chordal.oracle import Mapper
from chordal.oracle.training import refuse_unbounded
from chordal.potentials import Floats
from chordal.solvers.adam import Adam
from chordal.targets import PartialLabels, Target

Ints = NDArray[np.int64]


class Loss(NamedTuple):
    """The objective of some examples, and its derivatives."""

    value: float
    scores: Floats  # [n_variables, n_classes]
    links: Floats


class LinkedExamples(NamedTuple):
    """Training examples of a CRF, each compiled for itself."""

    shards: list[Shard]
    sizes: Ints  # variables that the objective uses
    kept: list[NDArray[np.bool_]] | None  # which these are; None for all
    sets: bool  # y has sets of labels

    @classmethod
    def of(cls, data: Data, known: Known) -> LinkedExamples:
        """The examples of one batch; `known` is what y says about all variables."""
        batch, gold = data.parts[0]
        sizes, layout = batch.sizes, data.layout
        shards = [layout.compile(batch, i, i + 1, gold, data.weight) for i in range(len(sizes))]
        kept = _kept(known, int(sizes.sum()))
        return cls(shards, sizes, kept, isinstance(gold, PartialLabels))

    @property
    def full(self) -> list[Shard]:
        """Those that have variables."""
        return [shard for shard, n in zip(self.shards, self.sizes, strict=True) if n]


class Links:
    """The link weights of a CRF that reads label scores instead of features.

    The last columns are one score per class, with fixed weights. All other clique weights are the
    links.

    Parameters
    ----------
    crf : BaseCRF
    whole : what reads examples, the labels, and the layout of the weights
    start : zeros, or with `keep` the weights of a fitted CRF, to train further
    objective, inference : of training
    """

    def __init__(
        self,
        crf: BaseCRF,
        whole: tuple[Reader, SequenceLabels, Layout],
        start: Floats,
        objective: Objective,
        inference: Inference,
        keep: bool,
    ) -> None:
        self.crf, self.objective, self.inference = crf, objective, inference
        self.reader, self.labels, self.layout = whole
        self.unary = self.reader.templates[0].name
        self.weights = start.copy() if keep else self._start(start)
        self.places = _places(crf, self.unary, self.layout)

    def _start(self, zeros: Floats) -> Floats:
        """Zero weights, except ones that pass the score of each class to its label."""
        weights = zeros.copy()
        own, source = self.layout[self.unary].rows, self.reader.inputs[0]
        assert own is not None
        assert source is not None
        keys, n = own.keys(), len(self.labels)
        column = source.n_columns - n + self.labels.codes(np.arange(n, dtype=np.int32))
        mine = weights[self.layout.slices[self.unary]]
        mine[: own.n_weights] = keys.column == column[keys.output]
        return weights

    @property
    def links(self) -> Floats:
        """The links as they were at the start."""
        return self.weights[self.places]

    def weights_of(self, links: Floats) -> Floats:
        """All weights of the CRF."""
        weights = self.weights.copy()
        weights[self.places] = links
        return weights

    def evaluate(
        self, examples: LinkedExamples, chosen: Ints, scores: Floats, links: Floats, mapper: Mapper
    ) -> Loss:
        """The objective of chosen examples with these scores [n_variables, n_classes], weighted."""
        layout, shards, kept = self.layout, examples.shards, examples.kept
        n, order = len(self.labels), self.labels.order
        numbers = self.labels.codes(np.arange(n, dtype=np.int32))
        expanded = layout.expand(self.weights_of(links))
        seen = None if kept is None else np.concatenate([kept[i] for i in chosen])
        rows = (scores if seen is None else scores[seen])[:, numbers]
        limits = np.cumsum(examples.sizes[chosen])[:-1]
        tasks = zip(chosen.tolist(), np.split(rows, limits), strict=True)

        def evaluate(task: tuple[int, Floats]) -> Evaluation:
            shard, own = shards[task[0]], task[1]
            plain = layout.potentials(shard, expanded)
            potentials = plain.like(plain.unary + own.ravel(), plain.tables)
            if not len(own):
                return Evaluation(np.zeros(1), potentials.zeros())
            return self.objective.evaluate(
                potentials, shard.labels, self.inference, shard.weight, overwrite=True
            )

        found = mapper.map(evaluate, tasks)
        value, sums = 0.0, layout.zeros()
        for i, (values, parts) in zip(chosen.tolist(), found, strict=True):
            value += float(values.sum())
            for block in range(layout.n_blocks(1)):
                layout.adjoint(shards[i], parts, sums, block, 1)
        if self.objective.minus_gold and not examples.sets:
            refuse_unbounded(value, float(np.abs(scores).sum()), self.inference)
        parts_of = [parts.unary.reshape(-1, n)[:, order] for _, parts in found]
        gradient = np.concatenate([np.zeros((0, n)), *parts_of])
        if seen is not None:
            whole = np.zeros_like(scores)
            whole[seen] = gradient
            gradient = whole
        return Loss(value, gradient, layout.collect(sums)[self.places])

    def fitted(self, links: Floats) -> BaseCRF:
        """The fitted CRF with these links; it reads scores."""
        model = copy(self.crf)
        known = attributes_of(self.reader, self.labels, self.layout, self.inference)
        known |= {"objective_": np.nan, "n_iter_": 0}
        vars(model).update(known, weights_=self.weights_of(links))
        return model

    def to_relink(self, links: Floats) -> BaseCRF:
        """The CRF, whose `fit` trains its links by its own solver, with scores fixed."""
        stay = tuple(dict.fromkeys((*self.crf.freeze, self.unary)))
        return self.fitted(links).set_params(warm_start=True, freeze=stay)

    def relinked(self, model: BaseCRF) -> BaseCRF:
        """What `to_relink` gave, after its fit, with the parameters of the CRF."""
        return model.set_params(warm_start=self.crf.warm_start, freeze=self.crf.freeze)

    def facts(self, links: Floats, X: Examples, y: object, weight: Floats | None) -> dict[str, Any]:
        """The report's facts on inference and prediction for the scores in X."""
        objective, model = self.objective, self.fitted(links)
        data = read(model, X, y, weight, objective, keep=True)
        (batch, gold), layout = data.parts[0], data.layout
        shards = [
            layout.compile(batch, a, b, gold, data.weight)
            for a, b in batch.limits(layout.counts, training=True)
        ]
        structures = [shard.frame.structure for shard in shards]
        exact = not objective.needs or all(map(self.inference.exact_on, structures))
        known: dict[str, Any] = {"inference": self.inference.name, "exact": exact}
        if not exact:
            known["inference_converged"] = converged(
                self.inference, objective, layout, shards, model.weights_
            )
        if not all(own.is_forest for own in structures):
            known |= prediction_facts(model, objective, layout, shards, model.weights_)
        return known

    def counts(self, links: Floats, X: Examples, y: object) -> tuple[int, int]:
        """How many labels of other examples a fast prediction gets right, and how many it has."""
        model = self.fitted(links)
        validate = Validator.of(model, X, y, self.reader, self.labels, self.layout)
        return validate.counts(model.weights_)


class Linked(NamedTuple):
    """Training examples in memory, and the links."""

    links: Links
    examples: LinkedExamples
    weight: Floats | None  # of examples, with `class_weight`

    @classmethod
    def of(
        cls,
        crf: BaseCRF,
        X: Examples,
        y: object,
        weight: Floats | None,
        known: Known,
        keep: bool = False,
    ) -> Linked:
        """Of examples as `fit` of a CRF takes them; the values of their scores are not used.

        With `keep`, the CRF is fitted and is to be trained further.
        """
        objective = objective_of(crf)
        data = read(crf, X, y, weight, objective, keep)
        objective, data = _checked(crf, objective, data)
        examples = LinkedExamples.of(data, known)
        inference = inference_for(crf, objective, Adam(1), examples.full)
        whole = (data.reader, data.labels, data.layout)
        links = Links(crf, whole, data.start, objective, inference, keep)
        return cls(links, examples, data.weight)


def objective_of(crf: BaseCRF) -> Objective:
    """The objective of joint training; an error if a network cannot learn from it."""
    objective = asked_objective(crf)
    if objective.stochastic:
        raise UnsupportedError(
            f"objective {objective.name!r} works by sampling, which cannot train a network; use "
            "'likelihood' or 'pseudo_likelihood'"
        )
    return objective


def check_sets(objective: Objective, gold: Target) -> None:
    """Raise an error for sets of labels that the objective cannot sum over."""
    if isinstance(gold, PartialLabels) and "partial" not in objective.targets:
        raise UnsupportedError(
            f"objective {objective.name!r} does not support sets of labels here; use 'likelihood'"
        )


def _checked(crf: BaseCRF, objective: Objective, data: Data) -> tuple[Objective, Data]:
    """The objective for these labels; raises an error for incompatible settings."""
    check_sets(objective, data.parts[0].gold)
    own, weight = weighed(crf, objective, data.labels, data.parts.gold, data.weight)
    problem = problem_of(crf, own, data, some_stay=True, centre=False)
    check_before_compiling(crf, problem, Adam(1), data)
    return own, data._replace(weight=weight)


def _kept(known: Known, n: int) -> list[NDArray[np.bool_]] | None:
    """The variables of each example that the objective uses; None for all."""
    target = known.target
    if not isinstance(target, PartialLabels) or n == len(target):
        return None
    found = target.known()
    assert found is not None
    return np.split(found[0], np.cumsum(known.sizes)[:-1])


def link_places(crf: BaseCRF) -> Ints:
    """The link weights that training may change."""
    return _places(crf, crf.reader_.templates[0].name, crf.layout_)


def _places(crf: BaseCRF, unary: str, layout: Layout) -> Ints:
    stay = members((*crf.freeze, unary), layout.slices)
    return np.setdiff1d(np.arange(layout.n_weights), stay)


def check_scores_in(crf: BaseCRF, n_beside: int) -> None:
    """Raise an error for a stored CRF with other columns than compared features and scores."""
    source, n = crf.reader_.inputs[0], len(crf.labels_)
    if not isinstance(source, DenseInput) or source.n_columns != n_beside + n:
        raise ValueError(f"the crf must read {n_beside + n} columns, the last {n} scores of labels")
