"""What an inference method is: questions it answers about potentials, and what it claims; and which
one to use where none was named: the best by these claims.
"""

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
    """How long an answer may take, beyond the work that the model's size asks for."""

    MOMENTS = 0
    SECONDS = 1
    MINUTES = 2


class Inference(ABC):
    """Answers questions about a batch of potentials; knows no model and no weights.

    A final subclass declares what it does; `choose` and the documents read these declarations, and
    the contracts test them. It lists in `answers` the methods it implements, and says by `supports`
    where it works and by `exact_on` where its answers are exact. For `choose` to take it by itself,
    it declares the `cost` of exact answers, or the `quality` of approximate ones, or both. A
    method whose file is named as a structure's is written for it, and `choose` asks it first.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for each answer; None, the default, for no limit. A method that iterates then
        returns the best it has, with the status MAX_TIME; others raise `TimeLimitError`.
    memory_limit : float, optional
        Bytes that an answer may take beside the scores, by an estimate that is made first; what
        needs more is refused. None, the default, is half of the memory that is available.
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
    #: How long an answer may take: a method is chosen only where there is as much time.
    pace: ClassVar[Pace] = Pace.MOMENTS
    #: Whether it returns the best it has at its time limit, where the answer says how it ended.
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

    def work(self, structure: Structure, question: str) -> float:
        """The same as `cost`, where a plan may be made to know better."""
        return self.cost(structure, question)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Bytes that an answer takes beside the scores, estimated by its largest arrays.

        `n` is how many labellings are asked for, by `k_best` and `sample`.
        """
        return 8.0 * structure.n_states + 4.0 * n * structure.n_variables

    @property
    def copies(self) -> float:
        """How often its settings make it store something for each variable; 1 is usual."""
        return 1.0

    @property
    def memory_budget(self) -> float:
        """The bytes that an answer may take: `memory_limit`, or the default."""
        return default_memory_limit() if self.memory_limit is None else self.memory_limit

    def refusal_of(self, potentials: Potentials) -> str | None:
        """Why these scores are refused, on a structure that is supported; None: they are not.

        A method that needs scores of a kind, as graph cuts need submodular ones, says here what
        is missing and where. Its answers raise `UnsupportedError` with this text.
        """
        return None

    def in_training(self) -> Inference:
        """The same method as training asks it, where `auto` has chosen it: the method itself.

        Training asks the same question at many weights that are near each other, and needs no last
        digits. An iterative method may stop earlier then, and begin where it ended before.
        """
        return self

    def kept_for(self, structures: Iterable[Structure]) -> Stateful | None:
        """What this method has for its next calls on these structures; None: it keeps nothing.

        A checkpoint keeps it, so that a fit that goes on gets the same answers.
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
    """The cheapest method that is exact on the model and affordable; None if there is none.

    Chains are done by `chain`, forests by `tree`, and graphs with loops by `junction_tree` as long
    as its tables fit into its memory budget. A plan that was made to find out is kept. Where the
    scores are given too, the best labels of matchings and of submodular models of two labels are
    found by `matching` and `max_flow`, however large the graph. Where there are minutes, wider
    graphs are done by `elimination`.

    Without `memory_limit`, the answer is the same on every machine: a method may take 1 GB (or
    less, where half of the available memory is less). Where there are minutes, it may take half of
    the available memory, and more memory makes more answers exact. Methods
    whose `Inference.work` is above `max_work` are left out.

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
    """An exact method where that is affordable, else the approximation that ranks best.

    Methods declare where they are exact, what that costs and how good their approximations are:
    see `Inference`.

    Parameters
    ----------
    model : Structure or Potentials
        With the scores, methods that take scores of a kind are considered too: see `exact_for`.
    question : str
        What is to be asked, such as "marginals", "map" or "sample".
    pace : Pace
        How long an answer may take. Training asks often and has moments; a prediction has seconds,
        which `portfolio` uses for the best labelling; with minutes, see `exact_for`.
    memory_limit : float, optional
        Bytes that an exact method may take, which it keeps as its own limit: see `exact_for`.
    max_work : float
        The most looks at every table cell (see `Inference.work`) that an exact answer is worth.

    Raises
    ------
    UnsupportedError
        If no method answers the question on this structure.

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
        f"no inference method answers {question!r} on {_structure(model)}: an exact one would "
        "need too much memory, and no approximation is at hand"
    )


def _structure(model: Structure | Potentials) -> Structure:
    return model.structure if isinstance(model, Potentials) else model


def _answering(question: str) -> Iterator[Inference]:
    from chordal.inference import INFERENCE

    return (cls() for cls in INFERENCE.classes() if question in cls.answers)


def _exact(method: Inference, model: Structure | Potentials, question: str) -> bool:
    return _fits(method, model, question) and method.exact_on(_structure(model))


def _fits(method: Inference, model: Structure | Potentials, question: str) -> bool:
    """Whether the question is answered on the structure, and for these scores or for any."""
    if not method.fits(question, _structure(model)):
        return False
    if method.any_scores:
        return True
    return isinstance(model, Potentials) and method.refusal_of(model) is None
