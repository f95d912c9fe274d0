"""Which method to use where none was named: the best by what the methods declare."""

from __future__ import annotations

from collections.abc import Iterator

from chordal._errors import UnsupportedError
from chordal.inference._base import Inference
from chordal.potentials import Potentials
from chordal.structures import Structure


def exact_for(
    model: Structure | Potentials, question: str = "marginals", patient: bool = False
) -> Inference | None:
    """The cheapest method that is exact on the model and affordable; None if there is none.

    Chains are done by `chain`, forests by `tree`, and graphs with loops by `junction_tree` as long
    as its tables fit into its memory budget. A plan that was made to find out is kept. Where the
    scores are given too, the best labels of matchings and of submodular models of two labels are
    found by `matching` and `max_flow`, however large the graph. With `patient`, wider graphs are
    done by `elimination`, for some seconds or minutes.

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
        if method.cost(structure, question) <= 1.0 and _exact(method, model, question):
            return method
    # Only now, and the cheapest first: to find out what fits may need a plan.
    costs = [
        (method.cost(structure, question), method.name, method)
        for method in _answering(question)
        if patient or not method.slow
    ]
    cheapest_first = (method for cost, _, method in sorted(costs) if cost < float("inf"))
    return next((m for m in cheapest_first if _exact(m, model, question)), None)


def choose(
    model: Structure | Potentials, question: str = "marginals", patient: bool = False
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
    patient : bool
        Whether an exact answer is worth some minutes: see `exact_for`.

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
    found = exact_for(model, question, patient)
    if found is not None:
        return found
    ranked = [m for m in _answering(question) if question in m.quality]
    for method in sorted(ranked, key=lambda m: (-m.quality[question], m.name)):
        if _fits(method, model, question):
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
