"""Functions on one partition of a `NeuralCRF`'s examples, run where it is.

Their arguments and results can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from chordal._validate import check_sample_weight
from chordal.estimators import BaseCRF, Given
from chordal.estimators.linked import (
    Known,
    Linked,
    LinkedExamples,
    checked_labels,
    known_labels,
    renumbered_labels,
)
from chordal.execution import Execution
from chordal.labels import SequenceLabels
from chordal.oracle import Mapper, Term
from chordal.oracle.parted import SPARSE
from chordal.potentials import Floats
from chordal.torch._forms import Form, Raw, Seen, form_for
from chordal.torch._heads import ChainHead, Head, LinkedHead
from chordal.torch._inputs import Glance
from chordal.torch._learners import ChainLearner, Learner, LinkedLearner, tags_of
from chordal.torch._lender import Lender, Vector, weights_of
from chordal.torch._neural_fit import Validation, digest_of, listed
from chordal.torch._shown import Augment, Shown

Ints = NDArray[np.int64]


class Taken(NamedTuple):
    """The examples of a part, checked as far as they can be without the others."""

    X: Raw
    y: Raw
    weight: Floats


class ReadPart(NamedTuple):
    """A part as a network reads it."""

    taken: Taken
    examples: list[Seen]
    known: Known  # what y says


class Facts(NamedTuple):
    """What the client has to know of a part."""

    labels: SequenceLabels
    kind: str  # of targets
    n_used: int  # examples that there is something to learn from
    n_variables: int


class Lesson(NamedTuple):
    """A part as its steps need it.

    place : a seed and the number of the part, on which its random numbers depend
    """

    read: ReadPart
    tags: list[Tensor]
    linked: LinkedExamples | None
    place: tuple[int, int]


class Told(NamedTuple):
    """What a part says of a step.

    term : the sum of losses and its gradient
    size : the weight of the variables
    n : how many examples it saw
    reached : which parameters have a gradient
    moved : the change of all buffers, n times
    """

    term: Term
    size: float
    n: int
    reached: NDArray[np.bool_]
    moved: Floats

    def plus(self, other: Told) -> Told:
        """Both parts together."""
        return Told(
            self.term.plus(other.term),
            self.size + other.size,
            self.n + other.n,
            self.reached | other.reached,
            self.moved + other.moved,
        )


class Step(NamedTuple):
    """Which step of training is asked for."""

    joint: bool
    n_pass: int
    number: int
    per_pass: int
    dtype: str  # of gradients

    def chosen(self, part: Lesson, used: Ints) -> Ints:
        """The examples that a part shows: a new order in each pass, cut into pieces.

        Parts begin with different pieces, so that long ones do not come together.
        """
        order = self._generator(part).permutation(used)
        k = (self.number + part.place[1]) % self.per_pass
        first, last = (len(order) * at // self.per_pass for at in (k, k + 1))
        return order[first:last]

    def drawing(self, part: Lesson) -> np.random.Generator:
        """The random numbers of this step for a part."""
        return self._generator(part, 1 + self.number)

    def _generator(self, part: Lesson, *more: int) -> np.random.Generator:
        seed, number = part.place
        return np.random.default_rng([seed, int(self.joint), self.n_pass, number, *more])


def take_part(given: Given, crf: BaseCRF) -> Taken | None:
    """The examples of a part; None where there are none."""
    X = form_for(crf).examples(crf, given.X)
    if not len(X):
        return None
    y, weight = listed(given.y, len(X)), check_sample_weight(given.weight, len(X))
    return Taken(X, y, np.ones(len(X)) if weight is None else weight)


def size_of(part: Taken | None) -> int:
    """How many examples there are."""
    return 0 if part is None else len(part.X)


def split_part(part: Taken | None, seed: int, last: tuple[int, int]) -> list[Taken | None]:
    """A part without examples that are held out, and these; `last` has its number and how many."""
    number, n = last
    if part is None or not n:
        return [part, None]
    order = np.random.default_rng([seed, number]).permutation(len(part.X))
    return [_some(part, np.sort(order[n:])), _some(part, np.sort(order[:n]))]


def _some(part: Taken, numbers: Ints) -> Taken:
    X, y = ([own[i] for i in numbers] for own in (part.X, part.y))
    return Taken(X, y, part.weight[numbers])


def first_of(both: list[Taken | None]) -> Taken | None:
    """What stays for training."""
    return both[0]


def second_of(both: list[Taken | None]) -> Taken | None:
    """What is held out."""
    return both[1]


def glance_part(part: Taken | None, crf: BaseCRF) -> Glance | None:
    """What the features of variables are like."""
    return None if part is None else form_for(crf).glance(part.X)


def shape_of(glance: Glance | None) -> tuple[int, ...] | None:
    """The shape at a position, () of tokens; None where there are no variables."""
    return glance if glance is None or isinstance(glance, tuple) else ()


def two_glances(first: Glance | None, second: Glance | None) -> Glance | None:
    """Those of both, in their order; their shapes are the same."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, tuple) or isinstance(second, tuple):
        return first
    return first + second


def read_part(part: Taken | None, form: Form, old: SequenceLabels | None) -> ReadPart | None:
    """A part in the form of all, with its own numbers of labels; None where all are empty.

    old : labels that are kept
    """
    if part is None:
        return None
    examples = form.seen(part.X)
    sizes = np.array([own.size for own in examples], dtype=np.int64)
    if not sizes.any():
        checked_labels(form.crf, part.X, part.y, sizes)
        return None
    known = known_labels(form.crf, part.X, part.y, sizes, old, part=True)
    return ReadPart(part, examples, known)


def facts_of(part: ReadPart | None) -> Facts | None:
    """What the client has to know."""
    if part is None:
        return None
    known = part.known
    sizes = known.sizes
    return Facts(known.labels, known.kind, len(_used(part)), int(sizes.sum()))


def number_part(part: ReadPart, form: Form, whole: SequenceLabels) -> ReadPart:
    """A part by the numbers of all labels."""
    own = part.taken
    return part._replace(known=renumbered_labels(form.crf, own.X, own.y, part.known, whole))


def digest_part(part: ReadPart) -> str:
    """A fingerprint of a part."""
    return digest_of(part.examples, part.known.by_class(), part.taken.weight)


def known_of(part: ReadPart) -> Known:
    """What y says."""
    return part.known


def without_scores(part: ReadPart, form: Form) -> Given:
    """What the CRF reads, before there are scores."""
    n = part.known.n_classes
    return _observed(part, form, [np.zeros((size, n)) for size in part.known.sizes])


def with_scores(part: ReadPart, lender: Lender, vectors: Sequence[Vector]) -> Given:
    """What the CRF reads of a network with these weights."""
    with lender.lent(vectors) as head:
        return scored_by(part, head)


def scored_by(part: ReadPart, head: Head) -> Given:
    """What the CRF reads of a network."""
    return _observed(part, head.form, head.scores(part.examples))


def _observed(part: ReadPart, form: Form, scores: Sequence[Floats]) -> Given:
    X, y, weight = part.taken
    return Given(form.observed(X, scores), y, weight)


def placed(part: ReadPart, place: tuple[int, int]) -> Lesson:
    """A part as its steps need it."""
    return Lesson(part, tags_of(part.known), None, place)


def with_links(part: Lesson, linked: LinkedExamples) -> Lesson:
    """With what a CRF learns from."""
    return part._replace(linked=linked)


def _used(part: ReadPart) -> Ints:
    return np.flatnonzero((part.taken.weight > 0.0) & (part.known.sizes > 0))


def step_part(part: Lesson, vectors: Sequence[Vector], lender: Lender, step: Step) -> Told:
    """The losses of the examples that a step sees, and their gradient."""
    chosen = step.chosen(part, _used(part.read))
    with lender.lent(vectors) as head:
        model = head.model
        parameters = list(model.parameters())
        value = size = 0.0
        model.zero_grad()
        if len(chosen):
            generator = step.drawing(part)
            learner = learner_of(part, head, lender.augment, generator, Execution())
            model.train()
            with lender.step(generator):
                loss, weight = (learner.joint if step.joint else learner.alone)(chosen)
            loss.backward()
            value, size = loss.item(), weight.item()
        rows = [_gradient(own) for own in parameters]
        gradient = np.concatenate([np.zeros(0), *rows])
        at = np.flatnonzero(gradient).astype(np.int32)
        sparse = at if len(at) < SPARSE * len(gradient) else None
        return Told(
            Term.of(value, gradient, sparse, step.dtype),
            size,
            len(chosen),
            np.array([own.grad is not None for own in parameters], dtype=bool),
            len(chosen) * _change(vectors[1], weights_of(model)[1]),
        )


def learner_of(
    part: Lesson,
    head: Head,
    augment: Augment | None,
    generator: np.random.Generator,
    mapper: Mapper,
) -> Learner:
    """The losses of a part's examples, with random numbers of the generator."""
    X, _, weight = part.read.taken
    shown = Shown(head.form, X, part.read.examples, augment)
    known, tags = part.read.known, part.tags

    def drawn(chosen: Ints) -> list[Seen]:
        return shown.drawn(chosen, generator)

    if isinstance(head, ChainHead):
        return ChainLearner(head, drawn, known, tags, weight)
    assert isinstance(head, LinkedHead)
    assert part.linked is not None
    linked = Linked(head.linked, part.linked, None)
    return LinkedLearner(head, drawn, known, tags, weight, linked, mapper)


def _gradient(parameter: Tensor) -> Floats:
    if parameter.grad is None:
        return np.zeros(parameter.numel())
    return parameter.grad.detach().cpu().double().numpy().ravel()


def _change(before: Vector, after: Vector) -> Floats:
    """What was added; infinite numbers that stay the same have not changed."""
    moved = np.zeros(len(before))
    np.subtract(after, before, out=moved, where=before != after, casting="unsafe")
    return moved


def validation_part(
    part: Given | Taken | None, form: Form, labels: SequenceLabels
) -> Validation | None:
    """Validation data of a part; None where there are none."""
    if part is None:
        return None
    found = Validation.of(form, labels, part.X, part.y)
    return found if len(found.X) else None


def digest_validation(part: Validation | None) -> str:
    """A fingerprint of validation data of a part."""
    return "" if part is None else digest_of(part.examples, (part.gold, part.seen))


def validated(
    part: Validation | None, vectors: Sequence[Vector], lender: Lender, joint: bool
) -> tuple[int, int]:
    """How many labels of a part are right, and how many are observed."""
    if part is None:
        return 0, 0
    with lender.lent(vectors) as head:
        return part.counts(head, joint)


def right_in(
    part: Validation | None, vectors: Sequence[Vector], head: Head, joint: bool
) -> tuple[int, int]:
    """The same, by a model that is here."""
    return (0, 0) if part is None else part.counts(head, joint)


def two_counts(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Both together."""
    return first[0] + second[0], first[1] + second[1]
