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
from chordal.estimators._training.steps import attributes_of, read, weighed
from chordal.estimators.linked._labels import Examples, Known
from chordal.features import DenseInput, Layout, Shard
from chordal.inference import Inference
from chordal.objectives import Evaluation, Objective
from chordal.oracle import Mapper
from chordal.oracle.training import refuse_unbounded
from chordal.potentials import Floats
from chordal.solvers.adam import Adam
from chordal.targets import PartialLabels

Ints = NDArray[np.int64]


class Loss(NamedTuple):
    """The objective of some examples, and its derivatives."""

    value: float
    scores: Floats  # [n_variables, n_classes]
    links: Floats


class Linked:
    """Training examples of a CRF, and the link weights.

    The CRF reads label scores instead of features: the last columns are one score per class, with
    fixed weights. All other clique weights are the links.

    Parameters
    ----------
    crf : BaseCRF
        With `keep`, a fitted CRF to train further.
    X : examples with scores; their values are not used yet
    y, weight : as `fit` takes them
    known : what y says
    mapper : runs inference on several examples at a time
    """

    def __init__(
        self,
        crf: BaseCRF,
        X: Examples,
        y: object,
        weight: Floats | None,
        known: Known,
        mapper: Mapper,
        keep: bool = False,
    ) -> None:
        self.crf, self.mapper = crf, mapper
        objective = asked_objective(crf)
        if objective.stochastic:
            raise UnsupportedError(
                f"objective {objective.name!r} works by sampling, which cannot train a network; "
                "use "
                "'likelihood' or 'pseudo_likelihood'"
            )
        self.data = read(crf, X, y, weight, objective, keep)
        self.objective = self._checked(objective)
        batch, gold = self.data.parts[0]  # all in memory
        self._kept, self._sizes = _kept(known, int(batch.sizes.sum())), batch.sizes
        self.unary = self.data.reader.templates[0].name
        self.weights = self.data.start.copy() if keep else self._start()
        self.places = _places(crf, self.unary, self.data.layout)
        self._sets = isinstance(gold, PartialLabels)
        layout = self.data.layout
        self.shards: list[Shard] = [
            layout.compile(batch, i, i + 1, gold, self.data.weight) for i in range(len(batch.sizes))
        ]
        full = [shard for shard, n in zip(self.shards, batch.sizes, strict=True) if n]
        self.inference: Inference = inference_for(crf, self.objective, Adam(1), full)

    def _checked(self, objective: Objective) -> Objective:
        """The objective for these labels; raises an error for incompatible settings."""
        data = self.data
        if isinstance(data.parts[0].gold, PartialLabels) and "partial" not in objective.targets:
            raise UnsupportedError(
                f"objective {objective.name!r} does not support sets of labels here; use "
                "'likelihood'"
            )
        own, weight = weighed(self.crf, objective, data.labels, data.parts.gold, data.weight)
        self.data = data._replace(weight=weight)
        problem = problem_of(self.crf, own, data, some_stay=True, centre=False)
        check_before_compiling(self.crf, problem, Adam(1), data)
        return own

    def _start(self) -> Floats:
        """Zero weights, except ones that pass the score of each class to its label."""
        data, weights = self.data, self.data.start.copy()
        own, source = data.layout[self.unary].rows, data.reader.inputs[0]
        assert own is not None
        assert source is not None
        keys, n = own.keys(), len(data.labels)
        column = source.n_columns - n + data.labels.codes(np.arange(n, dtype=np.int32))
        mine = weights[data.layout.slices[self.unary]]
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

    def evaluate(self, chosen: Ints, scores: Floats, links: Floats) -> Loss:
        """The objective of examples with these scores [n_variables, n_classes], weighted."""
        data, layout = self.data, self.data.layout
        n, order = len(data.labels), data.labels.order
        numbers = data.labels.codes(np.arange(n, dtype=np.int32))
        expanded = layout.expand(self.weights_of(links))
        seen = None if self._kept is None else np.concatenate([self._kept[i] for i in chosen])
        rows = (scores if seen is None else scores[seen])[:, numbers]
        limits = np.cumsum(self._sizes[chosen])[:-1]
        tasks = zip(chosen.tolist(), np.split(rows, limits), strict=True)

        def evaluate(task: tuple[int, Floats]) -> Evaluation:
            shard, own = self.shards[task[0]], task[1]
            plain = layout.potentials(shard, expanded)
            potentials = plain.like(plain.unary + own.ravel(), plain.tables)
            if not len(own):
                return Evaluation(np.zeros(1), potentials.zeros())
            return self.objective.evaluate(
                potentials, shard.labels, self.inference, shard.weight, overwrite=True
            )

        found = self.mapper.map(evaluate, tasks)
        value, sums = 0.0, layout.zeros()
        for i, (values, parts) in zip(chosen.tolist(), found, strict=True):
            value += float(values.sum())
            for block in range(layout.n_blocks(1)):
                layout.adjoint(self.shards[i], parts, sums, block, 1)
        if self.objective.minus_gold and not self._sets:
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
        data = self.data
        known = attributes_of(data.reader, data.labels, data.layout, self.inference)
        known |= {"objective_": np.nan, "n_iter_": 0}
        vars(model).update(known, weights_=self.weights_of(links))
        return model

    def relinked(self, links: Floats, X: Examples, y: object, weight: Floats | None) -> BaseCRF:
        """The CRF with links trained by its own solver on fixed scores."""
        model = self.fitted(links)
        stay = tuple(dict.fromkeys((*self.crf.freeze, self.unary)))
        model.set_params(warm_start=True, freeze=stay)
        model.fit(X, y, sample_weight=weight)
        return model.set_params(warm_start=self.crf.warm_start, freeze=self.crf.freeze)

    def links_of(self, model: BaseCRF) -> Floats:
        """The links of a CRF of these examples."""
        return model.weights_[self.places]

    def facts(self, links: Floats, X: Examples, y: object) -> dict[str, Any]:
        """The report's facts on inference and prediction for the scores in X."""
        objective, model, data = self.objective, self.fitted(links), self._read(links, X, y)
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

    def _read(self, links: Floats, X: Examples, y: object) -> Data:
        return read(self.fitted(links), X, y, self.data.weight, self.objective, keep=True)

    def score(self, links: Floats, X: Examples, y: object) -> float:
        """The share of correct labels of other examples, by a fast prediction."""
        model = self.fitted(links)
        data = self.data
        validate = Validator.of(model, X, y, data.reader, data.labels, data.layout)
        return validate(model.weights_)


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
