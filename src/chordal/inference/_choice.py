"""Which method to use where none was named: an exact one wherever that is affordable."""

from __future__ import annotations

from chordal._errors import UnsupportedError
from chordal.inference._base import Inference
from chordal.inference.elimination import EliminationInference
from chordal.potentials import Potentials
from chordal.structures import Structure

#: Exact methods, the cheapest first.
_EXACT = ("chain", "tree", "matching", "max_flow", "junction_tree")
#: Those that take scores of a kind only.
_BY_SCORES = ("matching", "max_flow")
#: What to try elsewhere, by question; "" stands for all others.
_APPROXIMATE = {
    "map": ("qpbo", "trw_s", "ad3", "loopy_bp", "icm", "annealing"),
    "relaxed_map": ("qpbo", "ad3", "linear_program"),
    "": ("loopy_bp", "mean_field", "gibbs"),
}


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
    found = _first(_EXACT, model, question)
    if found is None and patient:
        slow = EliminationInference()
        if question in slow.answers and slow.fits(question, _structure(model)):
            return slow
    return found


def choose(
    model: Structure | Potentials, question: str = "marginals", patient: bool = False
) -> Inference:
    """An exact method where that is affordable, else the approximation to try first.

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
    if found is None:
        names = _APPROXIMATE.get(question, _APPROXIMATE[""])
        found = _first(names, model, question)
    if found is None:
        raise UnsupportedError(
            f"no inference method answers {question!r} on {_structure(model)}: an exact one would "
            "need too much memory, and no approximation is at hand"
        )
    return found


def _structure(model: Structure | Potentials) -> Structure:
    return model.structure if isinstance(model, Potentials) else model


def _first(
    names: tuple[str, ...], model: Structure | Potentials, question: str
) -> Inference | None:
    from chordal.inference import INFERENCE

    there = INFERENCE.names()
    for name in names:
        if name not in there:
            continue
        method = INFERENCE.resolve(name)
        if question not in method.answers or not method.supports(_structure(model)):
            continue
        if name not in _BY_SCORES or _takes(method, model):
            return method
    return None


def _takes(method: Inference, model: Structure | Potentials) -> bool:
    """Whether the scores are at hand and of the kind that the method takes."""
    return isinstance(model, Potentials) and method.refusal_of(model) is None
