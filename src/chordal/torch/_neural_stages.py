"""The stages in which a `NeuralCRF` is trained, wherever its training examples are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chordal._container import CheckpointError
from chordal._status import Status
from chordal.estimators import (
    BaseCRF,
    CheckpointFile,
    FitReport,
    keep_or_raise,
    whole_fits,
)
from chordal.model_file import save
from chordal.solvers import Callback, Iteration
from chordal.torch._drawing import Stream
from chordal.torch._heads import Head
from chordal.torch._training import Course, Steps, flat, train

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF


class Watch(NamedTuple):
    """What follows the last stage.

    file : the checkpoint
    earlier : the model that it has, to go on from
    kept : facts that it keeps besides: a fingerprint of the fit, and its seed
    """

    callback: Callback | None
    file: CheckpointFile | None = None
    earlier: NeuralCRF | None = None
    kept: Mapping[str, Any] = MappingProxyType({})


class Material(ABC):
    """Training and validation data, in memory or in parts, and the model that learns from them."""

    head: Head
    stream: Stream

    @abstractmethod
    def steps(self, joint: bool) -> Steps:
        """The steps of a stage: of the CRF's objective, or of a softmax per variable."""

    @abstractmethod
    def scorer(self, joint: bool) -> Callable[[], float] | None:
        """The share of labels of validation data that are right; alone, those of the network."""

    @abstractmethod
    def relinked(self) -> BaseCRF:
        """A CRF whose links were trained on the network's scores as they are."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the report of joint training says about inference."""


def run_stages(
    made: NeuralCRF, material: Material, generator: np.random.Generator, watch: Watch
) -> None:
    """Train in the stages that are not done yet, and let the model know how it went."""
    stages = _stages(made, material, generator, watch)
    for stage in stages:
        with whole_fits() if stage is not stages[-1] else nullcontext():
            stage()
    _conclude(made, material.head)


def _stages(
    made: NeuralCRF, material: Material, generator: np.random.Generator, watch: Watch
) -> list[Callable[[], None]]:
    """The stages that are left."""
    settings, earlier, head = made._settings(), watch.earlier, material.head

    def passes(joint: bool, last: bool) -> None:
        model = head.model
        course = Course(model, material.scorer(joint), [], material.stream)
        course.saved = earlier._saved if earlier is not None else None
        if last:
            course.callbacks = _told(made, head, course, watch)
        parts = model.parameters() if joint else model.network.parameters()
        with nullcontext() if earlier is None else of_file(watch.file):
            course.begin(list(parts), generator, settings)
        train(course, material.steps(joint), settings)
        if course.status is Status.INTERRUPTED:
            keep_or_raise(len(course.history), course.best is not None)
        loss = course.finish(settings)
        known = material.facts() if joint else {"inference": "none"}
        made.reports_.append(_report_of(course, made, loss, known))

    def links() -> None:
        made.reports_.append(head.take(material.relinked()).fit_report_)

    last = partial(passes, True, True)
    if made.training == "joint" or earlier is not None:
        return [last]
    first: list[Callable[[], None]] = [partial(passes, False, False), links]
    return first if made.training == "two_stage" else [*first, last]


@contextmanager
def of_file(file: CheckpointFile | None) -> Iterator[None]:
    """Errors of what a checkpoint holds, with its name."""
    try:
        yield
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        if file is None or isinstance(error, CheckpointError):
            raise
        raise CheckpointError(file.path, f"training cannot continue from it: {error}") from error


def _told(made: NeuralCRF, head: Head, course: Course, watch: Watch) -> list[Callback]:
    """What hears of each pass."""

    def so_far(state: Iteration, going_on: bool) -> NeuralCRF:
        model = copy(made)
        model.module_ = deepcopy(made.module_)  # users may keep it
        model.crf_, model.objective_ = head.crf(), state.value
        model.inference_, model.n_iter_ = model.crf_.inference_, state.iteration
        if going_on:
            facts, arrays = course.save()
            model._saved = {**facts, **watch.kept}, arrays
        return model

    def keep(state: Iteration) -> None:
        if watch.file is not None and watch.file.is_due(state.iteration):
            watch.file.write(state.iteration, lambda path: save(so_far(state, True), path))

    told: list[Callback] = [keep]
    callback = watch.callback
    if callback is not None:
        told.append(lambda state: callback(state._replace(model=lambda: so_far(state, False))))
    return told


def _report_of(course: Course, made: NeuralCRF, loss: float, known: dict[str, Any]) -> FitReport:
    weights = flat(course.model)
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


def _conclude(made: NeuralCRF, head: Head) -> None:
    made.module_.eval()
    made.crf_ = head.crf()
    made.fit_report_ = made.reports_[-1]
    made.crf_.fit_report_ = made.fit_report_  # it says how predictions are made
    made.inference_ = made.crf_.inference_
    made.objective_, made.n_iter_ = made.fit_report_.objective, made.fit_report_.n_iter
    made.crf_.objective_, made.crf_.n_iter_ = made.objective_, made.n_iter_
