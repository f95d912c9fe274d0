"""How a `NeuralCRF` is fitted: in stages, of which the last may go on from a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from functools import partial
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import nn

from chordal._container import CheckpointError
from chordal._status import Status
from chordal.estimators import (
    BaseCRF,
    FitReport,
    keep_or_raise,
    whole_fits,
)
from chordal.estimators.linked import Known, Linked, gold_codes, known_labels
from chordal.execution import effective_n_jobs, execution_for
from chordal.model_file import ModelFileError, load, save
from chordal.oracle import Mapper
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration
from chordal.torch._forms import Form, ImageForm, Raw, Seen, form_for
from chordal.torch._learners import (
    ChainLearner,
    ChainNetwork,
    Learner,
    LinkedLearner,
    LinkedNetwork,
    is_plain,
)
from chordal.torch._networks import network_of
from chordal.torch._training import Course, flat, train

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF

Ints = NDArray[np.int64]
Checkpoint: TypeAlias = str | PathLike[str]
#: Parameters that may differ where training goes on: they do not change what is learned.
FREE = ("verbose", "n_jobs", "random_state", "augment", "network", "crf", "warm_start")


class Given(NamedTuple):
    """What `fit` got, checked."""

    X: Raw
    y: Raw
    weight: Floats
    validation: tuple[Any, Any] | None
    callback: Callback | None
    checkpoint: Checkpoint | None


def fit(estimator: NeuralCRF, crf: BaseCRF, given: Given, generator: np.random.Generator) -> None:
    """Learn; the estimator stays as it was if anything goes wrong."""
    earlier = _earlier(estimator, given.checkpoint)
    with execution_for(effective_n_jobs(estimator.n_jobs)) as mapper:
        made, learner = _prepared(estimator, crf, given, generator, mapper)
        data = _digest(learner, given, estimator.warm_start)
        if earlier is not None:
            if earlier._saved[0].get("data") != data:
                raise _refusal(given.checkpoint, "it is of a fit with other data")
            if earlier._saved[0].get("ended"):
                vars(estimator).update(_fitted_attributes(earlier))
                return
            made.reports_ = list(earlier.reports_)
            learner.model.load_state_dict(earlier.module_.state_dict())
        stages = _stages(made, learner, given, generator, earlier, data)
        for stage in stages:
            with whole_fits() if stage is not stages[-1] else nullcontext():
                stage()
        _report(made, learner)
    if given.checkpoint is not None:
        ended = copy(made)
        ended._saved = {"data": data, "ended": True}, {}
        save(ended, given.checkpoint)
    vars(estimator).update(vars(made))


def _digest(learner: Learner, given: Given, warm: bool) -> str:
    """A fingerprint of what is learned from, and of the weights at a warm start."""
    found, form = sha256(given.weight.tobytes()), learner.form

    def add(examples: list[Seen], labels: Iterable[NDArray[Any]]) -> None:
        for own in examples:
            found.update(repr(tuple(own.values.shape)).encode())
            found.update(own.values.numpy().tobytes())
            if own.edges is not None:
                found.update(own.edges.numpy().tobytes())
        for array in labels:
            found.update(np.ascontiguousarray(array).tobytes())

    add(form.seen(given.X), learner.known.by_class())
    found.update(repr(learner.known.labels.labels).encode())
    if given.validation is not None:
        add(*_validation(learner, given.validation)[1:3])
    if warm:
        found.update(flat(learner.model).tobytes())
    return found.hexdigest()


def _prepared(
    estimator: NeuralCRF,
    crf: BaseCRF,
    given: Given,
    generator: np.random.Generator,
    mapper: Mapper,
) -> tuple[NeuralCRF, Learner]:
    """A copy of the estimator that learns, and what it learns from."""
    X, y, weight = given.X, given.y, given.weight
    old = estimator if estimator.warm_start and hasattr(estimator, "module_") else None
    if old is None:
        form = form_for(crf).read(crf, X, estimator.min_freq)
    else:
        form = copy(old._form)
        if type(form) is not form_for(crf):
            raise ValueError(
                f"warm_start continues from a {type(form.crf).__name__}, and crf is a "
                f"{type(crf).__name__}; give one of that kind, or warm_start=False"
            )
        form.crf = crf
    examples = form.seen(X)
    sizes = np.array([own.size for own in examples], dtype=np.int64)
    if not (sizes[weight > 0.0] > 0).any():
        raise ValueError("there is nothing to learn from: all examples with a weight are empty")
    known = known_labels(crf, X, y, sizes, None if old is None else old.crf_.labels_)
    drawn = _drawn(estimator, form, X, examples, generator)
    made = copy(estimator)  # the model so far: nothing of the estimator changes before the end
    made._form, made.reports_ = form, []
    made.classes_ = known.labels.classes
    vars(made).pop("_saved", None)
    network = network_of(estimator.network, form, known.n_classes, estimator._sizes())
    if old is not None:
        network = deepcopy(old.module_.network)
    network = network.to(estimator.device)
    learner = _learner(made, old, network, drawn, known, given, mapper)
    made.module_ = learner.model
    return made, learner


def _learner(
    made: NeuralCRF,
    old: NeuralCRF | None,
    network: nn.Module,
    drawn: Callable[[Ints], list[Seen]],
    known: Known,
    given: Given,
    mapper: Mapper,
) -> Learner:
    """Use the chain layer if it supports the settings, else the CRF's own inference."""
    form, weight = made._form, given.weight
    if is_plain(form.crf):
        chain = ChainNetwork(network, known.n_classes).to(made.device)
        if old is not None:
            chain.take(old.crf_)
        return ChainLearner(chain, form, drawn, known, weight)
    zeros = [np.zeros((n, known.n_classes)) for n in known.sizes]
    crf, keep = form.reads, old is not None
    if old is not None:
        crf = copy(old.crf_).set_params(**crf.get_params(deep=False))
    X = form.observed(given.X, zeros)
    linked = Linked(crf, X, given.y, weight, known, mapper, keep)
    linear = LinkedNetwork(network, linked.links).to(made.device)
    return LinkedLearner(linear, form, drawn, known, weight, linked)


def _drawn(
    estimator: NeuralCRF, form: Form, X: Raw, examples: list[Seen], generator: np.random.Generator
) -> Callable[[Ints], list[Seen]]:
    """What gives a step its inputs: augmented, and with rare tokens hidden."""

    def drawn(chosen: Ints) -> list[Seen]:
        own = [examples[i] for i in chosen]
        if estimator.augment is not None:
            name, other = "augment(X)", estimator.augment([X[i] for i in chosen], generator)
            new = form.seen(form.examples(form.crf, other, name), name)
            if [_shape(form, e) for e in new] != [_shape(form, e) for e in own]:
                raise ValueError("augment must give as many examples of the same sizes")
            own = [e._replace(values=n.values) for e, n in zip(own, new, strict=True)]
        if not form.inputs.rare:
            return own
        values = form.inputs.hidden_rare([e.values for e in own], generator)
        return [e._replace(values=v) for e, v in zip(own, values, strict=True)]

    return drawn


def _shape(form: Form, example: Seen) -> tuple[int, ...]:
    return tuple(example.values.shape) if isinstance(form, ImageForm) else (example.size,)


def _stages(
    made: NeuralCRF,
    learner: Learner,
    given: Given,
    generator: np.random.Generator,
    earlier: NeuralCRF | None,
    data: str,
) -> list[Callable[[], None]]:
    """The stages that are left."""
    settings, form = made._settings(), made._form

    def passes(joint: bool, last: bool) -> None:
        model = learner.model
        course = Course(model, _scorer(learner, given, joint), [])
        course.saved = earlier._saved if earlier is not None else None
        if last:
            course.callbacks = _told(made, learner, course, given, data)
        parts = model.parameters() if joint else model.network.parameters()
        loss_of = learner.joint if joint else learner.alone
        with _of_file(given.checkpoint if earlier is not None else None):
            course.begin(list(parts), generator, settings)
        train(course, loss_of, learner.used, settings)
        if course.status is Status.INTERRUPTED:
            keep_or_raise(len(course.history), course.best is not None)
        loss = course.finish(settings)
        made.reports_.append(_report_of(course, made, learner, loss, _facts(joint)))

    def _facts(joint: bool) -> dict[str, Any]:
        if not joint:
            return {"inference": "none"}
        scores = learner.scores(form.seen(given.X))
        return learner.facts(form.observed(given.X, scores), given.y)

    def links() -> None:
        scores = learner.scores(form.seen(given.X))
        crf = learner.relink(form.observed(given.X, scores), given.y)
        made.reports_.append(crf.fit_report_)

    last = partial(passes, True, True)
    if made.training == "joint" or earlier is not None:
        return [last]
    first: list[Callable[[], None]] = [partial(passes, False, False), links]
    return first if made.training == "two_stage" else [*first, last]


@contextmanager
def _of_file(path: Checkpoint | None) -> Iterator[None]:
    """Errors of what a file holds, with its name."""
    try:
        yield
    except ValueError as error:
        raise error if path is None else CheckpointError(path, str(error)) from error


def _scorer(learner: Learner, given: Given, joint: bool) -> Callable[[], float] | None:
    """The share of labels of validation data that are right; alone, those of the network."""
    if given.validation is None:
        return None
    form, y = learner.form, given.validation[1]
    X, examples, (gold, seen) = _validation(learner, given.validation)

    def score() -> float:
        scores = learner.scores(examples)
        if joint:
            return learner.score(form.observed(X, scores), y, gold, seen)
        return float((np.concatenate(scores).argmax(axis=1) == gold)[seen].mean())

    return score


def _validation(
    learner: Learner, given: tuple[Any, Any]
) -> tuple[Raw, list[Seen], tuple[NDArray[np.int32], NDArray[np.bool_]]]:
    """Validation data, what a network sees of them, and their labels; checked."""
    form, (X, y) = learner.form, given
    X = form.examples(form.crf, X, "validation X")
    examples = form.seen(X, "validation X")
    sizes = np.array([own.size for own in examples], dtype=np.int64)
    labels = gold_codes(form.crf, learner.known.labels, X, y, sizes, "validation ")
    return X, examples, labels


def _told(
    made: NeuralCRF, learner: Learner, course: Course, given: Given, data: str
) -> list[Callback]:
    """What hears of each pass."""

    def so_far(state: Iteration, going_on: bool) -> NeuralCRF:
        model = copy(made)
        model.module_ = deepcopy(made.module_)  # users may keep it
        model.crf_, model.objective_ = learner.crf(), state.value
        model.inference_, model.n_iter_ = model.crf_.inference_, state.iteration
        if going_on:
            facts, arrays = course.save()
            model._saved = {**facts, "data": data}, arrays
        return model

    told: list[Callback] = []
    path, callback = given.checkpoint, given.callback
    if path is not None:
        told.append(lambda state: save(so_far(state, True), path))
    if callback is not None:
        told.append(lambda state: callback(state._replace(model=lambda: so_far(state, False))))
    return told


def _report_of(
    course: Course, made: NeuralCRF, learner: Learner, loss: float, known: dict[str, Any]
) -> FitReport:
    weights = flat(learner.model)
    return FitReport(
        status=course.status,
        solver=made.optimizer,
        objective=loss,
        gradient_norm=float("nan"),
        n_iter=len(course.history),
        n_evaluations=course.n_steps,
        n_weights=len(weights),
        n_nonzero=int(np.count_nonzero(weights)),
        elapsed=course.elapsed,
        history=course.history,
        validation=course.scores,
        **known,
    )


def _report(made: NeuralCRF, learner: Learner) -> None:
    made.module_.eval()
    made.crf_ = learner.crf()
    made.fit_report_ = made.reports_[-1]
    made.crf_.fit_report_ = made.fit_report_  # it says how predictions are made
    made.inference_ = made.crf_.inference_
    made.objective_, made.n_iter_ = made.fit_report_.objective, made.fit_report_.n_iter
    made.crf_.objective_, made.crf_.n_iter_ = made.objective_, made.n_iter_


def _earlier(estimator: NeuralCRF, path: Checkpoint | None) -> NeuralCRF | None:
    """The model of the checkpoint, if there is one; refuses that of another fit."""
    if path is None or not os.path.exists(path):
        return None
    again = {name: getattr(estimator, name) for name in _given_again(estimator)}
    try:
        found: NeuralCRF = load(path, type(estimator), **again)
    except ModelFileError as error:
        raise CheckpointError(path, str(error).removeprefix(f"{os.fspath(path)}: ")) from error
    if not hasattr(found, "_saved"):
        raise _refusal(path, "it is a model that was saved, not a checkpoint")
    own = estimator.get_params(deep=False)
    for name, value in found.get_params(deep=False).items():
        if name not in FREE and value != own[name]:
            why = f"it is of another fit, which differs in {name} (was {value!r}, is {own[name]!r})"
            raise _refusal(path, why)
    if repr(found.crf) != repr(estimator.crf):
        why = f"differs in crf (was {found.crf!r}, is {estimator.crf!r})"
        raise _refusal(path, f"it is of another fit, which {why}")
    return found


def _refusal(path: Checkpoint | None, why: str) -> CheckpointError:
    return CheckpointError(path or "", f"{why}; delete it, or name another file")


def _given_again(estimator: NeuralCRF) -> list[str]:
    """Parameters that a file does not hold."""
    names = [] if isinstance(estimator.network, str) else ["network"]
    holds = estimator.crf is not None and any(
        getattr(estimator.crf, name) is not None for name in estimator.crf.functions
    )
    return [*names, "crf"] if holds else names


def _fitted_attributes(model: NeuralCRF) -> dict[str, Any]:
    known = model.get_params(deep=False)
    return {name: value for name, value in vars(model).items() if name not in known}
