"""Steps of a prediction: read, compile, map, infer, and shape the answers like labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from chordal._errors import CollapsedLabellingWarning, InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal._validate import RandomState, check_choice, check_sample_weight
from chordal.estimators._constraints import Constraints, Transitions
from chordal.estimators._still import still
from chordal.estimators._training.monitor import FitReport
from chordal.estimators._typed import relabelled
from chordal.execution import effective_n_jobs, execution_for
from chordal.features import Batch, Layout, Reader, Shard, length_of
from chordal.inference import INFERENCE, Inference, Pace, choose, most_probable_labels
from chordal.labels import SequenceLabels, observed, single_labels
from chordal.objectives import Objective
from chordal.potentials import LARGEST_SUM, Floats, Potentials
from chordal.structures import Chain, Structure

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Codes = NDArray[np.int32]

#: Ways of prediction, and the questions whose answers have the labels.
WAYS = {"map": "map", "mpm": "marginals"}

FEW = 20  # variables: of fewer, one label everywhere is nothing special
MIXED = 0.9  # one label has no larger share of any training example
OTHERS = 1 / 3  # of the variables speak for another label by themselves

#: The smallest share of a call's time limit that a shard gets.
LEAST_SHARE = 0.02


class Model(Protocol):
    """The part of `BaseCRF` that predictions use."""

    objective: str | Objective
    inference: str | Inference
    prediction: str
    n_jobs: int | None
    random_state: RandomState
    ignore_label: object
    inference_: Inference
    layout_: Layout
    weights_: Floats
    reader_: Reader
    labels_: SequenceLabels
    fit_report_: FitReport

    def _check_fitted(self) -> None: ...
    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]: ...
    def _flat(self, y: object, X: Sequence[Any], name: str = "y") -> Sequence[Any]: ...
    def _check_lengths(
        self, sizes: NDArray[np.int64], flat: Sequence[Any], prefix: str = ""
    ) -> None: ...
    def _allowed_in(
        self, batch: Batch, given: Sequence[Any], X: Sequence[Any]
    ) -> Sequence[Any]: ...
    def _best_of_one(self, X: object) -> list[Any] | None: ...
    def _marginals_of_one(self, X: object) -> Floats | None: ...
    def _decoded(self, numbers: Codes, batch: Batch, X: Sequence[Any]) -> Any: ...
    def _arranged(self, found: Sequence[Floats], batch: Batch, X: Sequence[Any]) -> Any: ...


class StoredExamples:
    """Examples of a prepared data set, already read; of images, the shapes are kept.

    `first` is the number of the first one among those of all parts, for errors.
    """

    def __init__(
        self, batch: Batch, labels: Sequence[Any], shapes: NDArray[np.int64] | None, first: int
    ) -> None:
        self.batch, self.labels, self.shapes, self.first = batch, labels, shapes, first

    def __len__(self) -> int:
        return len(self.batch.sizes)

    def __getitem__(self, i: int) -> Any:
        if self.shapes is None:
            raise UnsupportedError(
                "this data set does not keep the shapes of examples: pass the examples themselves, "
                "or prepare images again"
            )
        return np.empty((*self.shapes[i].tolist(), 0))  # answers need its shape alone


class Part(NamedTuple):
    """Some examples of a batch with their potentials and inference method."""

    potentials: Potentials
    inference: Inference
    shard: Shard
    examples: slice
    variables: slice  # theirs, in the whole batch


def names_data(X: object, texts: bool = False) -> bool:
    """Whether X names prepared data sets; only with `texts` does a list of strings alone."""
    if isinstance(X, (list, tuple)):
        named = len(X) > 0 and all(map(_is_place, X))
        return named and (texts or not all(isinstance(own, str) for own in X))
    return _is_place(X)


def _is_place(X: object) -> bool:
    return isinstance(X, (str, os.PathLike)) or hasattr(X, "n_parts")


def by_parts(answer: F) -> F:
    """Make a method accept prepared data sets: it answers for one part after another."""

    @wraps(answer)
    def asked(self: Model, X: object, *args: Any, **options: Any) -> Any:
        if not names_data(X):
            return answer(self, X, *args, **options)
        from chordal.estimators._by_parts import answered  # not needed otherwise

        return answered(self, answer, X, args, options)

    return cast("F", asked)


def ask(
    model: Model,
    X: Any,
    question: str | None,
    answer: Callable[[Part], T],
    constraints: Constraints | None = None,
    *,
    batch: Batch | None = None,
    serial: bool = False,
    whole: bool = False,
) -> tuple[Sequence[Any], Batch, list[T]]:
    """The examples, their batch and the answers, by shard or for the `whole` batch."""
    model = still(model)
    model._check_fitted()
    if batch is None:
        X, batch = read(model, X)
    if constraints is not None:
        constraints.check(batch, lambda given: model._allowed_in(batch, given, X))
    layout, expanded, given = model.layout_, model.layout_.expanded(model.weights_), batch
    first = X.first if isinstance(X, StoredExamples) else 0

    def of_part(limits: tuple[int, int]) -> T:
        begin, end = limits
        shard = layout.compile(given, begin, end, once=True)
        potentials = layout.potentials(shard, expanded)
        check_scores(potentials, first + begin, model.weights_)
        if constraints is not None:
            potentials = constraints.apply(potentials, begin)
        method = model.inference_
        variables = slice(int(given.offsets[begin]), int(given.offsets[end]))
        if question is not None:
            share = (variables.stop - variables.start) / max(1, int(given.offsets[-1]))
            method = method_for(model, question, potentials, share=share)
        try:
            return answer(Part(potentials, method, shard, slice(begin, end), variables))
        except InfeasibleError as error:
            raise error.moved(first + begin) from None

    limits = batch.limits(layout.counts)
    if whole and limits:
        limits = [(0, len(batch.sizes))]
    with execution_for(1 if serial else effective_n_jobs(model.n_jobs)) as mapper:
        return X, batch, mapper.map(of_part, limits)


def check_scores(potentials: Potentials, begin: int, weights: Floats) -> None:
    """Raise an error for scores that overflow or are NaN, from which no answer follows."""
    s = potentials.structure
    if np.isnan(potentials.tables.min(initial=0.0)):
        raise no_scores(begin, weights)
    largest = LARGEST_SUM / max(1, s.n_variables + s.n_cliques)
    unary = potentials.unary
    if not len(unary) or (unary.max() <= largest and unary.min() >= -largest):
        return
    bad = ~((unary <= largest) & ((unary >= -largest) | (unary == -np.inf)))
    if bad.any():
        variable = np.searchsorted(s.state_offsets, int(bad.argmax()), side="right") - 1
        example = begin + np.searchsorted(s.variable_offsets, variable, side="right") - 1
        raise no_scores(int(example), weights)


def no_scores(example: int, weights: Floats) -> ValueError:
    """The error of an example whose scores are not numbers, or too large ones."""
    if np.isnan(weights).any():
        return ValueError("weights_ has NaN, so no answer follows; fit or load the model again")
    return ValueError(
        f"the scores of X[{example}] overflow: its numbers are too large for the weights; scale "
        "them as in training"
    )


def read(model: Model, X: object) -> tuple[Sequence[Any], Batch]:
    """Check and read examples; an empty list gives an empty batch."""
    if isinstance(X, StoredExamples):
        return X, X.batch  # type: ignore[return-value]
    X = model._examples(X, known=True)
    if length_of(X) == 0:
        return X, Batch(np.zeros(0, dtype=np.int64), [])
    return X, model.reader_.read(X, grow=False)


def labelled(model: Model, X: object, y: object) -> tuple[Sequence[Any], Batch, Sequence[Any]]:
    """Examples, their batch, and labels that match them."""
    model._check_fitted()
    X, batch = read(model, X)
    labels = model._flat(y, X)
    model._check_lengths(batch.sizes, labels)
    return X, batch, labels


def constraints_of(
    model: Model, allowed_labels: Sequence[Any] | None, allowed_transitions: Transitions | None
) -> Constraints | None:
    """The constraints of a call, or None."""
    if allowed_labels is None and allowed_transitions is None:
        return None
    model._check_fitted()
    return Constraints(model.labels_, allowed_labels, allowed_transitions)


def method_for(
    model: Model,
    question: str,
    potentials: Potentials,
    pace: Pace = Pace.SECONDS,
    share: float = 1.0,
) -> Inference:
    """The inference method for these potentials, which are a `share` of the call."""
    if model.inference == "auto":
        method = choose(potentials, question, pace)
        if method.time_limit is not None:  # that of a call, by default
            method.time_limit *= max(share, LEAST_SHARE)
        return method
    method = INFERENCE.resolve(model.inference)
    method.require(question, potentials.structure)
    return method


def decoding(model: Model, report: FitReport | None = None) -> str:
    """The inference question whose answer `predict` uses: "map" or "marginals".

    `prediction` decides. "auto" is the one that the inference method supports; if it supports both,
    the choice of the fit report, else "map".
    """
    if model.prediction != "auto":
        return WAYS[model.prediction]
    if model.inference != "auto":
        answers = INFERENCE.resolve(model.inference).answers
        if not answers.issuperset(WAYS.values()):
            return "marginals" if "marginals" in answers else "map"
    return WAYS[(report and report.prediction) or "map"]


def decoded(potentials: Potentials, inference: Inference, question: str) -> Codes:
    """The best labels by the answer to "map" or to "marginals"; may overwrite the potentials."""
    if question == "map":
        found = inference.map(potentials)
        if found.convergence is not None and found.convergence.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # labels of half a search are no prediction
        return found.labels
    return most_probable_labels(inference.marginals(potentials, overwrite=True).parts)


def best(
    model: Model,
    X: object,
    method: str | None,
    constraints: Constraints | None = None,
    batch: Batch | None = None,
) -> tuple[Sequence[Any], Batch, Codes]:
    """Examples, their batch, and the numbers of their best labels."""
    if method is not None:
        check_choice("method", method, WAYS)
    report = getattr(model, "fit_report_", None)
    question = decoding(model, report) if method is None else WAYS[method]
    share = None if report is None else report.label_share

    def answer(part: Part) -> tuple[Codes, list[bool]]:
        structure = part.potentials.structure
        if share is None or share > MIXED or structure.is_forest:
            return decoded(part.potentials, part.inference, question), []
        alone = most_probable_labels(part.potentials)  # by scores of labels, without links
        labels = decoded(part.potentials, part.inference, question)
        return labels, collapses(labels, alone, structure)

    X, batch, found = ask(model, X, question, answer, constraints, batch=batch)
    warn_collapsed([flag for _, flags in found for flag in flags], question)
    numbers = np.concatenate([np.zeros(0, dtype=np.int32), *(own for own, _ in found)])
    return X, batch, model.labels_.joint(numbers, batch.kinds)


def collapses(labels: Codes, alone: Codes, structure: Structure) -> list[bool]:
    """For each larger example, whether it has one label everywhere while the observations of a
    third or more of its variables favour other labels.
    """
    limits = structure.variable_offsets
    large = np.flatnonzero(np.diff(limits) >= FEW)
    parts = [slice(int(limits[i]), int(limits[i + 1])) for i in large]
    return [
        bool((labels[own] == labels[own.start]).all())
        and float((alone[own] != labels[own]).mean()) >= OTHERS
        for own in parts
    ]


def warn_collapsed(flags: Sequence[bool], question: str) -> None:
    """Warn if at least half of the examples collapse; fewer may be ordinary errors."""
    if not any(flags) or 2 * sum(flags) < len(flags):
        return
    remedy = "try predict(method='mpm'), or " if question == "map" else ""
    warnings.warn(
        f"{sum(flags)} of {len(flags)} graphs got one label everywhere, but a third or more of "
        "their variables favour other labels by their observations alone. The links outweigh the "
        f"observations: {remedy}fit with a larger l2 for links",
        CollapsedLabellingWarning,
        stacklevel=4,
    )


def share_right(model: Model, X: object, y: object, sample_weight: object) -> float:
    """The share of observed labels that a prediction gets right; see `BaseCRF.score`."""
    right, total = weights_right(model, X, y, sample_weight)
    if not total > 0.0:
        raise ValueError(
            "nothing to score: no observed label has a positive weight; check y and sample_weight"
        )
    return right / total


def weights_right(model: Model, X: object, y: object, sample_weight: object) -> tuple[float, float]:
    """The weight of the observed labels that a prediction gets right, and of all of them."""
    X, batch, labels = labelled(model, X, y)
    labels = single_labels(model.labels_, labels)
    weight = check_sample_weight(sample_weight, length_of(X))
    gold, seen = model.labels_.encode(labels, unknown=-1), observed(labels, model.ignore_label)
    _, _, numbers = best(model, X, None, batch=batch)
    weight = np.ones(len(batch.sizes)) if weight is None else weight
    of_variable = np.repeat(weight, batch.sizes)
    right = float(of_variable[seen & (numbers == gold)].sum())
    return right, float(of_variable[seen].sum())


def clique_marginals(
    model: Model, X: object, name: str, constraints: Constraints | None
) -> list[Floats]:
    """P(labels of a clique | x), an array for each example."""
    model._check_fitted()
    layout = model.layout_
    check_choice("template", name, layout.slices)
    k, own = list(layout.slices).index(name), layout[name]
    orders, shape = _orders(model, name), own.tables.shape
    axes = np.ix_(*orders)

    def answer(part: Part) -> Floats:
        if own.order == 1:
            unary = part.inference.marginals(part.potentials, overwrite=True).parts.unary
            return layout.rows_of(k, part.shard, unary)[:, orders[0]]
        parts = part.inference.marginals(part.potentials.untied(), overwrite=True).parts
        starts, places = parts.table_offsets[parts.table_of_clique], part.shard.places
        if places is not None:
            group = next(g for g, members in enumerate(batch.groups) if k in members)
            starts = starts[places[group]]
        tables = parts.tables[starts[:, None] + np.arange(own.tables.n_cells)]
        return tables.reshape(-1, *shape)[(slice(None), *axes)]

    X, batch = read(model, X)
    _, _, found = ask(model, X, "marginals", answer, constraints, batch=batch)
    if not found:
        return []
    return np.split(np.concatenate(found), batch.cliques[k].offsets[1:-1])


def all_potentials(model: Model, X: object, constraints: Constraints | None) -> Potentials:
    """All scores of a batch, with labels in the order of `classes_`."""
    _, batch, found = ask(
        model, X, None, lambda part: part.potentials, constraints, serial=True, whole=True
    )
    if not found:
        return Potentials(Chain([], 1), [], [])
    if batch.label_counts is not None:
        return found[0]
    orders = [model.labels_.order_of(k) for k in range(max(1, len(model.labels_.types)))]
    return relabelled(found[0], orders, batch.kinds)


def labellings(
    model: Model, found: Sequence[Codes], batch: Batch, X: Sequence[Any]
) -> list[list[Any]]:
    """The labellings of each example, from arrays with one row per labelling."""
    if not found:
        return []
    rows = (model.labels_.joint(row, batch.kinds) for row in np.concatenate(found, axis=1))
    labels = [model._decoded(row, batch, X) for row in rows]
    return [list(of_example) for of_example in zip(*labels, strict=True)]


def template_tables(model: Model, name: str) -> dict[str, NDArray[Any]]:
    """The weights of a template as tables of labels; see `BaseCRF.template_weights`."""
    model._check_fitted()
    layout = model.layout_
    check_choice("name", name, layout.slices)
    own, weights = layout[name], model.weights_[layout.slices[name]]
    n, tables, out = own.n_row_weights, own.tables, {}
    axes, shape = np.ix_(*_orders(model, name)), tables.shape
    source = model.reader_.input(name)
    if own.rows is not None and source is not None:
        keys = own.rows.keys()
        table = np.zeros((source.n_columns, tables.n_outputs))
        table[keys.column, keys.output] = weights[:n]
        cells = tables.filled(table).reshape(-1, *shape)
        out["features"] = np.stack([cell[axes] for cell in cells]) if len(cells) else cells
    filled = own.table(weights[n:])
    if filled is not None:
        out["intercept"] = filled.reshape(shape)[axes]
    return out


def _orders(model: Model, name: str) -> list[NDArray[np.int64]]:
    """The number of each class of every variable of a template's cliques."""
    template = next(own for own in model.reader_.templates if own.name == name)
    if template.labelwise:
        return [np.zeros(1, dtype=np.int64)]
    types = model.labels_.types
    kinds = [types.index(own) for own in template.types] or [0] * template.size
    return [model.labels_.order_of(kind) for kind in kinds]


def joined(found: Sequence[Floats]) -> Floats:
    """Answers of all parts as one array."""
    return np.concatenate([np.zeros(0), *found])


def rows_of(found: Sequence[Floats], order: NDArray[np.int64]) -> Floats:
    """Answers of all parts as one row per variable, with its labels in another order."""
    made, at = np.empty((sum(map(len, found)) // len(order), len(order))), 0
    for values in found:
        rows = values.reshape(-1, len(order))
        # mode="clip": NumPy then writes into `out` without a copy between.
        np.take(rows, order, axis=1, out=made[at : at + len(rows)], mode="clip")
        at += len(rows)
    return made
