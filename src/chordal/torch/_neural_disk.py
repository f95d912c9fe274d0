"""How a `NeuralCRF` is fitted to parts that are read when they are needed, such as from disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from chordal.estimators import Checkpoint, Handle, LocalCrew, Train, result
from chordal.execution import effective_n_jobs, execution_for
from chordal.oracle import Mapper
from chordal.potentials import Floats
from chordal.solvers import Callback
from chordal.torch import _on_part
from chordal.torch._drawing import Stream
from chordal.torch._forms import form_for
from chordal.torch._heads import Head
from chordal.torch._learners import Learner
from chordal.torch._neural_fit import (
    begun,
    of_data,
    older,
    train_material,
    validation_of,
    watch_of,
)
from chordal.torch._neural_parts import OfParts, Read, head_of, held_out, read_parts, score_of
from chordal.torch._on_part import Lesson
from chordal.torch._threads import threads
from chordal.torch._training import Course, Steps, StepsInMemory

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF

KEPT = 2  # parts that stay in memory, so that small data are read once


class DiskCrew(LocalCrew):
    """Tasks in this process, with answers of one part after another."""

    dtype = "float64"

    def settle(self, parts: Sequence[Handle], sizes: Sequence[float]) -> list[Handle]:
        """The parts as they are."""
        return list(parts)

    def total(
        self,
        answer: Callable[..., Any],
        plus: Callable[[Any, Any], Any],
        settled: Sequence[Handle],
        vectors: Sequence[Floats],
        *rest: Any,
        first: int | None = None,
    ) -> Any:
        """The sum of `answer(part, vectors, *rest)` over all parts, or the `first` so many."""
        found: Any = None
        for k, part in enumerate(settled[:first]):
            own = answer(result(part), vectors, *map(result, rest))
            found = plus(found, own) if k else own
        return found


def fit_disk(
    estimator: NeuralCRF,
    parts: list[Handle],
    train: Train,
    *,
    validation_data: tuple[Any, Any] | None = None,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
) -> None:
    """Learn; the estimator stays as it was if anything goes wrong.

    A data set of one part gives the weights of the same examples in memory, bit for bit, unless
    some are held out.
    """
    crf, old, crew = estimator._given_crf(), older(estimator), DiskCrew()
    form_for(crf).check(crf)
    watch, generator = watch_of(estimator, callback, checkpoint)
    taken = crew.map(_on_part.take_part, parts, crf)
    held: list[Handle] | None = None
    if estimator.n_iter_no_change is not None and validation_data is None:
        taken, held = held_out(estimator, crew, taken, int(generator.integers(2**31)))
    n_jobs = effective_n_jobs(estimator.n_jobs)
    stream = Stream(int(generator.integers(2**31)), estimator.network, estimator.dropout)
    with threads(n_jobs), execution_for(n_jobs) as mapper:
        read = read_parts(estimator, crew, taken, crf, old)
        with stream.drawing():
            made, network = begun(estimator, old, read.form, read.labels)
            head, examples = head_of(made, old, network, crew, read)
        made.module_ = head.model
        lessons = crew.map(_on_part.placed, read.parts, each=[(0, 0)] * len(read.parts))
        if examples is not None:
            lessons = crew.map(_on_part.with_links, lessons, each=examples)
        material = OnDisk(made, head, read, lessons, train, mapper, stream)
        material.validate(validation_data, held)
        if watch.file is not None:
            found = crew.fetch(crew.map(_on_part.digest_part, read.parts))
            watch = of_data(watch, estimator, head, found, validation_data)
        train_material(estimator, made, material, generator, watch)


class OnDisk(OfParts):
    """Parts that are read when they are needed; memory holds a few of them."""

    def __init__(
        self,
        made: NeuralCRF,
        head: Head,
        read: Read,
        lessons: list[Handle],
        train: Train,
        mapper: Mapper,
        stream: Stream,
    ) -> None:
        self.made, self.head, self.read, self.lessons = made, head, read, lessons
        self.train, self.mapper, self.stream, self.crew = train, mapper, stream, DiskCrew()
        self._kept: OrderedDict[int, Lesson] = OrderedDict()
        self._counts: Callable[[bool], tuple[int, int]] | None = None

    def validate(self, given: tuple[Any, Any] | None, held: list[Handle] | None) -> None:
        """Take validation data, in memory or held out of parts; checks those in memory."""
        head, crew = self.head, self.crew
        if given is not None:
            own = validation_of(head, given)
            self._counts = lambda joint: own.counts(head, joint)
        elif held is not None:
            parts = crew.map(_on_part.validation_part, held, head.form, head.labels)

            def counts(joint: bool) -> tuple[int, int]:
                right, plus = _on_part.right_in, _on_part.two_counts
                found: tuple[int, int] = crew.total(right, plus, parts, [], head, joint)
                return found

            self._counts = counts

    def lesson(self, k: int) -> Lesson:
        """Part k, which stays in memory for a while."""
        if k not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.popitem(last=False)
            self._kept[k] = result(self.lessons[k])
        self._kept.move_to_end(k)
        return self._kept[k]

    def learner(self, k: int, generator: np.random.Generator) -> Learner:
        """The losses of part k."""
        lesson = self.lesson(k)
        return _on_part.learner_of(lesson, self.head, self.made.augment, generator, self.mapper)

    def steps(self, joint: bool) -> Steps:
        """One part after another."""
        return StepsOnDisk(self, joint)

    def scorer(self, joint: bool) -> Callable[[], float] | None:
        """Of validation data."""
        counts = self._counts
        if counts is None:
            return None

        def found() -> tuple[int, int]:
            with self.stream.answer():
                return counts(joint)

        return score_of(found)

    def _scored(self) -> list[Handle]:
        return self.crew.map(_on_part.scored_by, self.read.parts, self.head)


class StepsOnDisk:
    """Steps through the examples of a part, then of the next; parts come in a new order each time.

    Mini-batches are drawn from one part each.
    """

    def __init__(self, material: OnDisk, joint: bool) -> None:
        self.material, self.joint, self.size = material, joint, material.made.batch_size
        self.used = [k for k, own in enumerate(material.read.facts) if own.n_used]
        self.per_pass = sum(-(-own.n_used // self.size) for own in material.read.facts)

    def taken(self, course: Course) -> Iterator[tuple[float, float]]:
        """The steps of all parts."""
        order = self.used
        if len(order) > 1:
            order = course.generator.permutation(order).tolist()
        for k in order:
            learner = self.material.learner(k, course.generator)
            loss_of = learner.joint if self.joint else learner.alone
            yield from StepsInMemory(loss_of, learner.used, self.size).taken(course)
