"""What an inference method is: questions it answers about potentials, and what it claims."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure, offsets_of

Labels = NDArray[np.int32]


class Convergence(NamedTuple):
    """How an iterative method ended.

    status : Status, of the example that went worst
    n_iter : int, iterations (sweeps, rounds, …) of the example that took most
    change : float, what was to fall below the tolerance, in the example where it is largest
    """

    status: Status
    n_iter: int
    change: float


class Marginals(NamedTuple):
    """log Z of each example, and marginals in the shape of the potentials.

    Marginals of a tied table are summed over its cliques; `Potentials.untied` keeps them apart.
    `convergence` tells how an iterative method ended; None: nothing was iterated.
    """

    log_partition: Floats
    parts: Potentials
    convergence: Convergence | None = None


class Decoded(NamedTuple):
    """The best labelling found and its score in each example.

    The score is −inf where an approximate method has found no allowed labelling. `bound` is what
    no labelling exceeds (float64 [n_examples], +inf where nothing is known); None: the score
    itself, which is exact. `convergence` tells how an iterative method ended.
    """

    labels: Labels
    score: Floats
    bound: Floats | None = None
    convergence: Convergence | None = None

    @property
    def gap(self) -> Floats:
        """By how much the best labelling may be better; 0 proves that there is none."""
        if self.bound is None:
            return np.zeros_like(self.score)
        return np.maximum(self.bound - self.score, 0.0)


class Relaxed(NamedTuple):
    """The maximum over a set that is larger than that of all labellings, and where it is.

    value : float64 [n_examples], no labelling's score exceeds it
    parts : fractional indicators of labels and of clique labellings, in the shape of the
        potentials: distributions that fit each other. Their product with the potentials is the
        value, up to the method's tolerance; those of a tied table are summed over its cliques.
    convergence : how an iterative method ended
    """

    value: Floats
    parts: Potentials
    convergence: Convergence | None = None


class Ranked(NamedTuple):
    """The best labellings, best first.

    labels : int32 [k, n_variables]
    score : float64 [n_examples, k], −inf where there are fewer than k
    """

    labels: Labels
    score: Floats


class ByCost(NamedTuple):
    """The best labelling of each example at every cost k = 0, 1, ….

    offsets : int64 [n_examples + 1], where the costs of each example begin
    score : float64 [offsets[-1]], −inf where no labelling has that cost
    labels : int32, at every cost of every example, the labels of its variables
    """

    offsets: NDArray[np.int64]
    score: Floats
    labels: Labels

    def at(self, structure: Structure, cost: NDArray[np.int64]) -> Labels:
        """The labels of all variables, with this cost in each example."""
        sizes = np.diff(structure.variable_offsets)
        first = offsets_of(np.diff(self.offsets) * sizes)[:-1] + cost * sizes
        before = np.repeat(structure.variable_offsets[:-1], sizes)
        within = np.arange(structure.n_variables) - before
        return np.asarray(self.labels[np.repeat(first, sizes) + within])

    @staticmethod
    def empty(structure: Structure, price: NDArray[np.int64]) -> ByCost:
        """Room for the answer, for these prices of labels (int64 [n_states], at least 0)."""
        if price.shape != (structure.n_states,) or (len(price) and price.min() < 0):
            raise ValueError(
                f"price must be {structure.n_states} whole numbers of at least 0, one per label "
                "of every variable"
            )
        most = offsets_of(
            np.maximum.reduceat(price, structure.state_offsets[:-1])
            if structure.n_variables
            else []
        )
        levels = np.diff(most[structure.variable_offsets]) + 1
        cells = int((levels * np.diff(structure.variable_offsets)).sum())
        offsets = offsets_of(levels)
        return ByCost(offsets, np.full(offsets[-1], -np.inf), np.zeros(cells, dtype=np.int32))


@dataclass(frozen=True)
class Spans:
    """Events "the variables from `start` on have labels in these sets", one per span.

    example, start, length : int64 [n_spans]
        Which example, the first position in it, and how many positions.
    allowed : uint8
        For each position of each span, a flag per label of its variable.
    """

    example: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    allowed: NDArray[np.uint8]

    def in_order(self, structure: Structure) -> tuple[Spans, NDArray[np.int64]]:
        """The same spans by example, checked, and the place of each in this order."""
        n = np.diff(structure.variable_offsets)
        if len(self.example) and (self.example.min() < 0 or self.example.max() >= len(n)):
            raise ValueError(f"a span's example must be between 0 and {len(n) - 1}")
        inside = (self.start >= 0) & (self.length >= 1)
        inside &= self.start + self.length <= n[self.example]
        if not inside.all():
            k = int(np.argmin(inside))
            raise ValueError(
                f"span {k} covers positions {self.start[k]} to {self.start[k] + self.length[k]} "
                f"of example {self.example[k]}, which has {n[self.example[k]]}"
            )
        first = structure.variable_offsets[self.example] + self.start
        sizes = structure.state_offsets[first + self.length] - structure.state_offsets[first]
        if len(self.allowed) != sizes.sum():
            raise ValueError(f"allowed must have {sizes.sum()} flags, got {len(self.allowed)}")
        order = np.argsort(self.example, kind="stable")
        begin = offsets_of(sizes)[:-1]
        cells = [np.arange(begin[k], begin[k] + sizes[k]) for k in order]
        flags = self.allowed[np.concatenate(cells)] if cells else self.allowed
        sorted_spans = Spans(self.example[order], self.start[order], self.length[order], flags)
        return sorted_spans, order


class Inference(ABC):
    """Answers questions about a batch of potentials; knows no model and no weights.

    A final subclass declares what it does; `choose` and the documents read these declarations, and
    the contracts test them. It lists in `answers` the methods it implements, and says by `supports`
    where it works and by `exact_on` where its answers are exact. For `choose` to take it by itself,
    it declares the `cost` of exact answers, or the `quality` of approximate ones, or both. A
    method whose file is named as a structure's is written for it, and `choose` asks it first.
    """

    answers: ClassVar[frozenset[str]]
    #: Where it is not exact, log Z is bounded from this side: "upper", "lower" or None.
    bound: ClassVar[str | None] = None
    #: How good its approximations are, by question: the best one that fits is chosen. Only the
    #: order counts, among all methods; a question that is not here is answered by name alone.
    quality: ClassVar[Mapping[str, int]] = {}
    #: Whether all scores are taken. If not, `refusal_of` says which are, and the method is chosen
    #: only where the scores are known.
    any_scores: ClassVar[bool] = True
    #: Whether an answer may take minutes: then it is chosen only with `patient`.
    slow: ClassVar[bool] = False

    @abstractmethod
    def supports(self, structure: Structure) -> bool:
        """Whether this method works on the structure at all."""

    def fits(self, question: str, structure: Structure) -> bool:
        """Whether this question is answered on the structure."""
        return question in self.answers and self.supports(structure)

    @abstractmethod
    def exact_on(self, structure: Structure) -> bool:
        """Whether its answers are exact there."""

    def cost(self, structure: Structure, question: str) -> float:
        """The work of an exact answer, in looks at every cell of every table: 1 is the least.

        An estimate that is quick to make: nothing is planned for it. inf, the default, means that
        the work has no bound, and the method is chosen by name alone. The first line of a
        subclass's own docstring is its cost in the documents.
        """
        return math.inf

    def refusal_of(self, potentials: Potentials) -> str | None:
        """Why these scores are refused, on a structure that is supported; None: they are not.

        A method that needs scores of a kind, as graph cuts need submodular ones, says here what
        is missing and where. Its answers raise `UnsupportedError` with this text.
        """
        return None

    def log_partition(self, potentials: Potentials) -> Floats:
        """log Z of each example."""
        raise self._refusal("log_partition")

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """log Z and all marginals; with `weight`, each example's marginals times its weight.

        With `overwrite`, the potentials are no longer needed and their memory may be reused.
        """
        raise self._refusal("marginals")

    def marginals_derivative(
        self,
        potentials: Potentials,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """How the marginals change when the potentials move in the direction.

        That is d/dε of `marginals(potentials + ε · direction, weight).parts` at ε = 0: the
        covariance of each part with the direction's score of the labelling. The direction is
        finite; where the potentials forbid something, it has no effect. With `overwrite`, the
        direction is no longer needed and its memory may be reused.
        """
        raise self._refusal("marginals_derivative")

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling of each example."""
        raise self._refusal("map")

    def relaxed_map(self, potentials: Potentials, weight: Floats | None = None) -> Relaxed:
        """The best of all distributions of cliques' labels that fit each other locally.

        On forests that is the best labelling, elsewhere it may be better than any. With `weight`,
        each example's parts are multiplied by its weight.
        """
        raise self._refusal("relaxed_map")

    def k_best(self, potentials: Potentials, k: int) -> Ranked:
        """The k best labellings of each example."""
        raise self._refusal("k_best")

    def map_by_cost(self, potentials: Potentials, price: NDArray[np.int64]) -> ByCost:
        """The best labelling at every total price of its labels (price: int64 [n_states])."""
        raise self._refusal("map_by_cost")

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """n independent labellings (int32 [n, n_variables])."""
        raise self._refusal("sample")

    def entropy(self, potentials: Potentials) -> Floats:
        """The entropy of each example's labelling, in nats."""
        raise self._refusal("entropy")

    def span_log_probability(self, potentials: Potentials, spans: Spans) -> Floats:
        """log P of each span's event."""
        raise self._refusal("span_log_probability")

    def require(self, question: str, structure: Structure) -> None:
        """Refuse early what would fail later."""
        if question not in self.answers:
            raise self._refusal(question)
        if not self.supports(structure):
            raise UnsupportedError(
                f"inference {self.name!r} does not work on {type(structure).__name__} structures"
            )

    @property
    def name(self) -> str:
        """The name of its file, by which it is registered."""
        return type(self).__module__.rpartition(".")[2]

    def _refusal(self, question: str) -> UnsupportedError:
        return UnsupportedError(
            f"inference {self.name!r} does not answer {question!r}; it answers: "
            + ", ".join(sorted(self.answers))
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def most_probable_labels(parts: Potentials) -> Labels:
    """Maximum posterior marginal decoding: the likeliest label of each variable by itself.

    Ties go to the smallest label.
    """
    structure = parts.structure
    counts = structure.label_counts
    if structure.n_variables == 0:
        return np.zeros(0, dtype=np.int32)
    if (counts == counts[0]).all():
        return parts.unary.reshape(-1, counts[0]).argmax(axis=1).astype(np.int32)
    best = np.maximum.reduceat(parts.unary, structure.state_offsets[:-1])
    is_best = parts.unary == np.repeat(best, counts)
    first = np.flatnonzero(is_best)
    variable = np.repeat(np.arange(len(counts)), counts)[first]
    _, keep = np.unique(variable, return_index=True)
    return (first[keep] - structure.state_offsets[:-1]).astype(np.int32)
