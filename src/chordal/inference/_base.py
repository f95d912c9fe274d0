"""The base class of inference methods, and the choice of a method for "auto"."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal._docs import complete_docs
from chordal._errors import UnsupportedError
from chordal._memory import auto_memory_limit, default_memory_limit
from chordal._saved import Stateful
from chordal._validate import check_number
from chordal.inference._answers import ByCost, Decoded, Labels, Marginals, Ranked, Relaxed, Spans
from chordal.inference._limited import QUESTIONS, limited
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure


class Pace(IntEnum):
    """How long an answer may take."""

    MOMENTS = 0
    SECONDS = 1
    MINUTES = 2


class Inference(ABC):
    """Answers questions about a batch of potentials; it does not see models or weights.

    A final subclass declares its properties; `choose` and the documents use them, and the contracts
    test them. `answers` lists the implemented methods. `supports` tells where it works, and
    `exact_on` where its answers are exact. To be chosen by "auto" it declares the `cost` of exact
    answers, or the `quality` of approximate ones, or both. A method whose file has the name of a
    structure is made for it, and `choose` tries it first.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for each answer; by default there is no limit. At the limit, an iterative method
        returns its best result with the status MAX_TIME; others raise `TimeLimitError`.
    memory_limit : float, optional
        Bytes that an answer may need besides the scores. They are estimated first, and an answer
        that needs more is an error. The default is half of the available memory.
    """

    answers: ClassVar[frozenset[str]]
    #: The side from which log Z is bounded if it is not exact: "upper", "lower" or None.
    bound: ClassVar[str | None] = None
    #: How good its approximations are, by question; the best one that fits is chosen. Only the
    #: order among all methods matters. Questions without an entry are answered only by name.
    quality: ClassVar[Mapping[str, int]] = {}
    #: Whether all scores are supported. If not, `refusal_of` tells which, and the method is chosen
    #: only if the scores are known.
    any_scores: ClassVar[bool] = True
    #: The time that an answer may need: the method is chosen only for this pace or a slower one.
    pace: ClassVar[Pace] = Pace.MOMENTS
    #: Whether it returns its best result at the time limit, with the status in the answer.
    anytime: ClassVar[bool] = False
    # Also of classes whose own __init__ knows no limits.
    time_limit: float | None = None
    memory_limit: float | None = None

    def __init__(
        self, *, time_limit: float | None = None, memory_limit: float | None = None
    ) -> None:
        for name, value in (("time_limit", time_limit), ("memory_limit", memory_limit)):
            if value is not None:
                check_number(name, value, strict=True)
        self.time_limit, self.memory_limit = time_limit, memory_limit

    def __init_subclass__(cls) -> None:
        for question in QUESTIONS & vars(cls).keys():
            setattr(cls, question, limited(question, vars(cls)[question]))
        complete_docs(cls)

    @abstractmethod
    def supports(self, structure: Structure) -> bool:
        """Whether this method works on the structure."""

    def fits(self, question: str, structure: Structure) -> bool:
        """Whether this method can answer the question on the structure."""
        return question in self.answers and self.supports(structure)

    @abstractmethod
    def exact_on(self, structure: Structure) -> bool:
        """Whether its answers are exact on the structure."""

    def cost(self, structure: Structure, question: str) -> float:
        """The work of an exact answer, in passes over all table cells; 1 is the least.

        This is a quick estimate without a plan. inf, the default, means that the work is unbounded,
        and the method is only chosen by name. The documents show the first line of a subclass's
        docstring as its cost.
        """
        return math.inf

    def work(self, structure: Structure, question: str) -> float:
        """As `cost`, but it may make a plan for a better estimate."""
        return self.cost(structure, question)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Bytes that an answer needs besides the scores, estimated from its largest arrays.

        `n` is the number of labellings, for `k_best` and `sample`.
        """
        return 8.0 * structure.n_states + 4.0 * n * structure.n_variables

    @property
    def copies(self) -> float:
        """How often its settings make it store something for each variable; 1 is usual."""
        return 1.0

    @property
    def memory_budget(self) -> float:
        """The bytes that an answer may need: `memory_limit`, or the default."""
        return default_memory_limit() if self.memory_limit is None else self.memory_limit

    def refusal_of(self, potentials: Potentials) -> str | None:
        """Why these scores are not supported on a supported structure; None if they are.

        A method that needs certain scores, as graph cuts need submodular ones, tells here what is
        missing and where. Its answers raise `UnsupportedError` with this text.
        """
        return None

    def in_training(self) -> Inference:
        """The method as training uses it when `auto` has chosen it; by default itself.

        Training asks the same question at many nearby weights, at less precision. So an
        iterative method may stop earlier, and start from its previous result.
        """
        return self

    def rough(self) -> Inference:
        """The same method with early stopping, for labels alone; by default the method itself.

        An iterative method may stop where further iterations change few labels.
        """
        return self

    def kept_for(self, structures: Iterable[Structure]) -> Stateful | None:
        """The state kept between calls on these structures; None if it has no state.

        A checkpoint saves it, so that a resumed fit gets the same answers.
        """
        return None

    def log_partition(self, potentials: Potentials) -> Floats:
        """log Z of each example."""
        raise self._refusal("log_partition")

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """log Z and all marginals; with `weight`, each example's marginals are multiplied by its
        weight.

        With `overwrite`, the memory of the potentials may be reused.
        """
        raise self._refusal("marginals")

    def marginals_derivative(
        self,
        potentials: Potentials,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The directional derivative of the marginals.

        It is d/dε of `marginals(potentials + ε · direction, weight).parts` at ε = 0: the covariance
        of each part with the direction's score of the labelling. The direction must be finite; it
        has no effect where the potentials are −inf. With `overwrite`, the memory of the direction
        may be reused.
        """
        raise self._refusal("marginals_derivative")

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling of each example."""
        raise self._refusal("map")

    def relaxed_map(self, potentials: Potentials, weight: Floats | None = None) -> Relaxed:
        """The best locally consistent distributions of clique labels.

        On forests this is the best labelling; elsewhere its value may exceed every labelling's.
        With `weight`, each example's parts are multiplied by its weight.
        """
        raise self._refusal("relaxed_map")

    def k_best(self, potentials: Potentials, k: int) -> Ranked:
        """The k best labellings of each example."""
        raise self._refusal("k_best")

    def map_by_cost(self, potentials: Potentials, price: NDArray[np.int64]) -> ByCost:
        """The best labelling at every total cost of its labels (price: int64 [n_states])."""
        raise self._refusal("map_by_cost")

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """n independent labellings (int32 [n, n_variables])."""
        raise self._refusal("sample")

    def entropy(self, potentials: Potentials) -> Floats:
        """The entropy of each example, in nats."""
        raise self._refusal("entropy")

    def span_log_probability(self, potentials: Potentials, spans: Spans) -> Floats:
        """log P of each span's event."""
        raise self._refusal("span_log_probability")

    def require(self, question: str, structure: Structure) -> None:
        """Raise an error early for a structure on which the method would fail."""
        if question not in self.answers:
            raise self._refusal(question)
        if not self.supports(structure):
            raise UnsupportedError(
                f"inference {self.name!r} does not support {type(structure).__name__} structures"
            )

    @property
    def name(self) -> str:
        """The name by which users choose it: that of its file."""
        return type(self).__module__.rpartition(".")[2]

    def _refusal(self, question: str) -> UnsupportedError:
        return UnsupportedError(
            f"inference {self.name!r} does not compute {question!r}; it computes: "
            + ", ".join(sorted(self.answers))
        )

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        limits = ("time_limit", "memory_limit")
        shown = {k: v for k, v in values.items() if v is not None or k not in limits}
        text = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v!r}" for k, v in shown.items())
        return f"{type(self).__name__}({', '.join(text)})"


def exact_for(
    model: Structure | Potentials,
    question: str = "marginals",
    pace: Pace = Pace.SECONDS,
    memory_limit: float | None = None,
    max_work: float = math.inf,
) -> Inference | None:
    """The cheapest affordable method that is exact on the model; None if there is none.

    Chains use `chain`, forests `tree`, and graphs with loops `junction_tree` if its tables fit into
    the memory budget; a plan made to find this out is kept. If scores are given, `matching` finds
    the best labels of matchings, and `max_flow` those of submodular models with two labels, on
    graphs of any size. With a pace of minutes, `elimination` handles wider graphs.

    Without `memory_limit` the choice is the same on every machine: a method may use 1 GB, or half
    of the available memory if that is less. With a pace of minutes it may use half of the available
    memory, so more memory makes more answers exact. Methods whose `Inference.work` is above
    `max_work` are skipped.

    Examples
    --------
    >>> from chordal.structures import Grid, Tree
    >>> exact_for(Tree([[-1, 0, 0]], n_labels=2))
    TreeInference()
    >>> grid = Grid([(100, 100)], n_labels=2)
    >>> exact_for(grid, "map") is None
    True
    >>> exact_for(Potentials(grid, [0] * 20_000, tables=[1, 0, 0, 1]), "map").name
    'max_flow'
    """
    from chordal.inference import INFERENCE

    structure = _structure(model)
    # A method named as the structure is was written for it. If it looks at every cell but once,
    # none is cheaper, and no other has to be imported.
    own = type(structure).__module__.rpartition(".")[2]
    if own in INFERENCE:
        method = INFERENCE.resolve(own)
        method.memory_limit = memory_limit
        if method.cost(structure, question) <= 1.0 and _exact(method, model, question):
            return method
    # Only now, and the cheapest first: to find out what fits may need a plan.
    costs = [
        (method.cost(structure, question), method.name, method)
        for method in _answering(question)
        if method.pace <= pace
    ]
    cheapest_first = (method for cost, _, method in sorted(costs) if cost < float("inf"))
    limit = memory_limit
    if limit is None and pace < Pace.MINUTES:
        limit = auto_memory_limit()
    for method in cheapest_first:
        method.memory_limit = limit
        if _exact(method, model, question) and method.work(structure, question) <= max_work:
            method.memory_limit = memory_limit
            return method
    return None


def choose(
    model: Structure | Potentials,
    question: str = "marginals",
    pace: Pace = Pace.SECONDS,
    memory_limit: float | None = None,
    max_work: float = math.inf,
) -> Inference:
    """An exact method if affordable, else the best approximation.

    Methods declare where they are exact, the cost of that, and the quality of their approximations:
    see `Inference`.

    Parameters
    ----------
    model : Structure or Potentials
        With scores, methods that need certain scores are considered too: see `exact_for`.
    question : str
        The question, such as "marginals", "map" or "sample".
    pace : Pace
        How long an answer may take. Training needs many quick answers. A prediction has
        seconds, which `portfolio` uses for the best labelling. With minutes, see `exact_for`.
    memory_limit : float, optional
        Bytes that an exact method may use; it becomes the method's own limit. See `exact_for`.
    max_work : float
        Maximum number of passes over all table cells (`Inference.work`) of an exact answer.

    Raises
    ------
    UnsupportedError
        If no method can answer the question on this structure.

    Examples
    --------
    >>> from chordal.structures import Chain, Grid
    >>> choose(Chain([5], n_labels=2))
    ChainInference(domain='auto')
    >>> choose(Grid([(4, 100)], n_labels=2), "map").name
    'junction_tree'
    """
    found = exact_for(model, question, pace, memory_limit, max_work)
    if found is not None:
        return found
    ranked = [m for m in _answering(question) if question in m.quality and m.pace <= pace]
    for method in sorted(ranked, key=lambda m: (-m.quality[question], m.name)):
        if _fits(method, model, question):
            method.memory_limit = memory_limit
            return method
    raise UnsupportedError(
        f"no inference method can compute {question!r} on {_structure(model)}: an exact one would "
        "need too much memory, and no approximation supports it; raise memory_limit"
    )


def _structure(model: Structure | Potentials) -> Structure:
    return model.structure if isinstance(model, Potentials) else model


def _answering(question: str) -> Iterator[Inference]:
    from chordal.inference import INFERENCE

    return (cls() for cls in INFERENCE.classes() if question in cls.answers)


def _exact(method: Inference, model: Structure | Potentials, question: str) -> bool:
    return _fits(method, model, question) and method.exact_on(_structure(model))


def _fits(method: Inference, model: Structure | Potentials, question: str) -> bool:
    """Whether the method can answer the question on the structure, with these or any scores."""
    if not method.fits(question, _structure(model)):
        return False
    if method.any_scores:
        return True
    return isinstance(model, Potentials) and method.refusal_of(model) is None
