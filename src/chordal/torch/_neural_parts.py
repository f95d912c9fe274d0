"""How a `NeuralCRF` is fitted to partitions in other processes: weights and optimiser are here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from chordal.estimators import BaseCRF, Checkpoint, Crew, Handle, Tasks, Train, digest
from chordal.estimators.linked import (
    all_labels,
    check_observed,
    check_relink,
    facts_of_parts,
    linked_parts,
)
from chordal.execution import effective_n_jobs
from chordal.labels import SequenceLabels
from chordal.solvers import Callback
from chordal.torch import _on_part
from chordal.torch._drawing import Stream
from chordal.torch._forms import Form, form_for
from chordal.torch._heads import Head, LinkedHead, LinkedNetwork, is_plain
from chordal.torch._lender import Lender, pieces, set_weights, weights_of
from chordal.torch._neural_fit import (
    NOTHING,
    Validation,
    begun,
    chain_head,
    crf_of_scores,
    known_form,
    of_data,
    older,
    train_material,
    watch_of,
)
from chordal.torch._neural_stages import Material
from chordal.torch._on_part import Facts, Step, Told
from chordal.torch._threads import threads
from chordal.torch._training import Course, Steps

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF

Held = tuple[Any, Any] | list[Handle]  # validation data: in memory, or handles of parts


class Read(NamedTuple):
    """Parts with examples, in one form and one numbering of labels."""

    parts: list[Handle]  # of `ReadPart`
    form: Form
    labels: SequenceLabels
    facts: list[Facts]
    handles: tuple[Handle, Handle]  # of form and labels


def fit_parts(
    estimator: NeuralCRF,
    crew: Crew,
    parts: list[Handle],
    train: Train,
    *,
    validation_data: Held | None = None,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
) -> None:
    """Learn; the estimator stays as it was if anything goes wrong."""
    crf, old = estimator._given_crf(), older(estimator)
    form_for(crf).check(crf)
    if estimator.training != "joint":
        check_relink(crf)
    watch, generator = watch_of(estimator, callback, checkpoint)
    of_network, seed = generator.integers(2**31, size=2).tolist()
    taken = crew.map(_on_part.take_part, parts, crew.share(crf))
    parts.clear()  # what is read takes their place in memory
    held = validation_data
    if estimator.n_iter_no_change is not None and held is None:
        taken, held = held_out(estimator, crew, taken, seed)
    read = read_parts(estimator, crew, taken, crf, old)
    taken.clear()
    stream = Stream(of_network, estimator.network, estimator.dropout)
    with stream.drawing():
        made, network = begun(estimator, old, read.form, read.labels)
    with stream.drawing() if is_plain(crf) else nullcontext():  # links are drawn, then set to zero
        head, examples = head_of(made, old, network, crew, read)
    made.module_ = head.model
    with threads(effective_n_jobs(estimator.n_jobs)):
        material = InParts(crew, made, head, read, examples, seed, held, train, stream)
        if watch.file is not None:
            found = crew.fetch(crew.map(_on_part.digest_part, read.parts))
            more = {"the precision of gradients": crew.dtype}
            watch = of_data(watch, estimator, head, found, material.validation(), **more)
        train_material(estimator, made, material, generator, watch)


def head_of(
    made: NeuralCRF, old: NeuralCRF | None, network: nn.Module, crew: Tasks, read: Read
) -> tuple[Head, list[Handle] | None]:
    """A network with its links, and handles of what a CRF other than a plain chain learns from."""
    if is_plain(read.form.crf):
        return chain_head(made, old, network, read.labels), None
    known = crew.map(_on_part.known_of, read.parts)
    given = crew.map(_on_part.without_scores, read.parts, read.handles[0])
    crf, keep = crf_of_scores(read.form, old), old is not None
    links, examples = linked_parts(crf, crew, given, known, keep)
    linear = LinkedNetwork(network, links.links).to(made.device)
    return LinkedHead(linear, read.form, read.labels, links), examples


def held_out(
    estimator: NeuralCRF, crew: Tasks, taken: Sequence[Handle], seed: int
) -> tuple[list[Handle], list[Handle]]:
    """Parts without the share of examples that are held out, and these."""
    sizes = crew.fetch(crew.map(_on_part.size_of, taken))
    before = np.cumsum([0, *sizes])
    wanted = np.diff(np.floor(estimator.validation_fraction * before + 0.5).astype(int))
    out = np.minimum(wanted, np.maximum(np.array(sizes) - 1, 0))  # every part keeps some
    if not out.any() and len(sizes):
        out[int(np.argmax(sizes))] = min(1, max(sizes) - 1)
    if not out.sum() > 0:
        raise ValueError(
            f"n_iter_no_change would hold out none of {sum(sizes)} examples in {len(sizes)} "
            "partitions: give more examples, or validation_data"
        )
    both = crew.map(_on_part.split_part, taken, seed, each=list(enumerate(out.tolist())))
    return crew.map(_on_part.first_of, both), crew.map(_on_part.second_of, both)


def read_parts(
    estimator: NeuralCRF,
    crew: Tasks,
    taken: Sequence[Handle],
    crf: BaseCRF,
    old: NeuralCRF | None,
) -> Read:
    """One vocabulary and one numbering of labels for all parts."""
    form = _form(crew, taken, crf, estimator.min_freq) if old is None else known_form(old, crf)
    labels = None if old is None else old.crf_.labels_
    shared = crew.share(form)
    parts = crew.map(_on_part.read_part, taken, shared, labels)
    found: list[Facts | None] = crew.fetch(crew.map(_on_part.facts_of, parts))
    parts = [own for own, known in zip(parts, found, strict=True) if known is not None]
    facts = [own for own in found if own is not None]
    if not facts:  # with a form that was known before
        raise ValueError("X is empty: give at least one example that has variables")
    if not any(own.n_used for own in facts):
        raise ValueError(NOTHING)
    whole = all_labels(crf, [(own.labels, own.kind) for own in facts], labels)
    handles = (shared, crew.share(whole))
    return Read(crew.map(_on_part.number_part, parts, *handles), form, whole, facts, handles)


def _form(crew: Tasks, taken: Sequence[Handle], crf: BaseCRF, min_freq: int) -> Form:
    """The form of what all parts have; an error if they have different things."""
    kind = form_for(crf)
    glances = crew.map(_on_part.glance_part, taken, crf)
    shapes = crew.fetch(crew.map(_on_part.shape_of, glances))
    first = next((k for k, own in enumerate(shapes) if own is not None), None)
    if first is None:
        some = any(crew.fetch(crew.map(_on_part.size_of, taken)))
        raise ValueError(kind.empty if some else "X is empty: give at least one example")
    for k, own in enumerate(shapes):
        if own not in (None, shapes[first]):
            raise ValueError(
                f"partitions {k} and {first} differ: a variable has {_named(own)} in the former "
                f"and {_named(shapes[first])} in the latter"
            )
    glance = crew.take(crew.tree(_on_part.two_glances, glances))
    return kind.from_glance(crf, glance, min_freq)


def _named(shape: tuple[int, ...]) -> str:
    return "a token" if shape == () else f"numbers {list(shape)}"


class OfParts(Material):
    """Examples in parts, with a CRF that learns from the scores of each."""

    crew: Crew
    train: Train

    @abstractmethod
    def _scored(self) -> list[Handle]:
        """What the CRF reads of the network."""

    def relinked(self) -> BaseCRF:
        """By the CRF's own solver."""
        crf: BaseCRF = self.train(self.head.to_relink(), self._scored())
        return crf

    def facts(self) -> dict[str, Any]:
        """Of the scores at the end."""
        if not isinstance(self.head, LinkedHead):
            return {"inference": "chain"}
        return facts_of_parts(self.head.linked, self.head.links, self.crew, self._scored())


class InParts(OfParts):
    """Examples in parts; the model is here, and parts borrow it with every question."""

    def __init__(
        self,
        crew: Crew,
        made: NeuralCRF,
        head: Head,
        read: Read,
        examples: Sequence[Handle] | None,
        seed: int,
        held: Held | None,
        train: Train,
        stream: Stream,
    ) -> None:
        self.crew, self.head, self.train, self.stream = crew, head, train, stream
        self.held, self.handles = held, read.handles
        self.lender = crew.share(Lender(head, made))
        again = made.training != "joint" or isinstance(head, LinkedHead)
        self.parts = read.parts if again else []  # for the CRF's own `fit`, and for reports
        places = [(seed, k) for k in range(len(read.parts))]
        lessons = crew.map(_on_part.placed, read.parts, each=places)
        if examples is not None:
            lessons = crew.map(_on_part.with_links, lessons, each=examples)
        self.settled = crew.settle(lessons, [own.n_variables for own in read.facts])
        used = [own.n_used for own in read.facts]
        self.per_pass = min(-(-sum(used) // made.batch_size), max(used))

    def steps(self, joint: bool) -> Steps:
        """A share of every part in each step."""
        return StepsInParts(self, joint)

    def validation(self) -> tuple[Any, Any] | str | None:
        """Validation data here, or a fingerprint of those in parts."""
        if not isinstance(self.held, list):
            return self.held
        return digest(self.crew.fetch(self.crew.map(_on_part.digest_validation, self._held())))

    def _held(self) -> list[Handle]:
        return self.crew.map(_on_part.validation_part, self.held or [], *self.handles)

    def scorer(self, joint: bool) -> Callable[[], float] | None:
        """Of validation data here, or of parts."""
        if self.held is None:
            return None
        crew, model, lender = self.crew, self.head.model, self.lender
        if isinstance(self.held, tuple):
            own = Validation.of(self.head.form, self.head.labels, *self.held)
            counts: Callable[[], tuple[int, int]] = lambda: own.counts(self.head, joint)  # noqa: E731
        else:
            made = self._held()
            parts = crew.settle(made, [1.0] * len(made))

            def counts() -> tuple[int, int]:
                asked = (_on_part.validated, _on_part.two_counts, parts, weights_of(model))
                found: tuple[int, int] = crew.total(*asked, lender, joint)
                return found

        return score_of(counts)

    def _scored(self) -> list[Handle]:
        weights = self.crew.share(weights_of(self.head.model))
        return self.crew.map(_on_part.with_scores, self.parts, self.lender, weights)


def score_of(counts: Callable[[], tuple[int, int]]) -> Callable[[], float]:
    """The share of labels that are right; an error if none is observed."""

    def score() -> float:
        right, n = counts()
        check_observed(n, "validation ")
        return right / n

    return score


class StepsInParts:
    """Steps to which every part adds the gradient of its examples."""

    def __init__(self, material: InParts, joint: bool) -> None:
        self.material, self.joint, self.per_pass = material, joint, material.per_pass

    def taken(self, course: Course) -> Iterator[tuple[float, float]]:
        """A question to all parts for each step."""
        own = self.material
        for k in range(self.per_pass):
            step = Step(self.joint, len(course.history), k, self.per_pass, own.crew.dtype)
            asked = (own.settled, weights_of(course.model), own.lender, step)
            told: Told = own.crew.total(_on_part.step_part, Told.plus, *asked)
            size = max(told.size, 1e-12)
            _set_gradients(course, told, size)
            yield told.term.value / size, told.size


def _set_gradients(course: Course, told: Told, size: float) -> None:
    """Let the model have the gradients of the mean, and what parts did to its buffers."""
    model = course.model
    parameters = list(model.parameters())
    rows = pieces(parameters, told.term.full() / size)
    for parameter, row, reached in zip(parameters, rows, told.reached, strict=True):
        parameter.grad = row if reached else None
    weights, buffers = weights_of(model)
    if len(buffers):
        moved = buffers + told.moved / max(told.n, 1)
        with torch.no_grad():
            set_weights(model, [weights, moved])
