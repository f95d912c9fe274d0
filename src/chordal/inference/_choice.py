"""Which method to use where none was named: an exact one wherever that is affordable."""

from __future__ import annotations

from chordal._errors import UnsupportedError
from chordal.inference._base import Inference
from chordal.inference.elimination import EliminationInference
from chordal.structures import Structure

#: Exact methods, the cheapest first.
_EXACT = ("chain", "tree", "junction_tree")
#: What to try elsewhere, by question; "" stands for all others.
_APPROXIMATE = {
    "map": ("trw_s", "ad3", "loopy_bp", "icm", "annealing"),
    "relaxed_map": ("ad3", "linear_program"),
    "": ("loopy_bp", "mean_field", "gibbs"),
}


def exact_for(
    structure: Structure, question: str = "marginals", patient: bool = False
) -> Inference | None:
    """The cheapest method that is exact on the structure and affordable; None if there is none.

    Chains are done by `chain`, forests by `tree`, and graphs with loops by `junction_tree` as long
    as its tables fit into its memory budget. A plan that was made to find out is kept. With
    `patient`, wider graphs are done by `elimination`, for some seconds or minutes.

    Examples
    --------
    >>> from chordal.structures import Grid, Tree
    >>> exact_for(Tree([[-1, 0, 0]], n_labels=2))
    TreeInference()
    >>> exact_for(Grid([(100, 100)], n_labels=5)) is None
    True
    """
    found = _first(_EXACT, structure, question)
    if found is None and patient:
        slow = EliminationInference()
        if question in slow.answers and slow.fits(question, structure):
            return slow
    return found


def choose(structure: Structure, question: str = "marginals", patient: bool = False) -> Inference:
    """An exact method where that is affordable, else the approximation to try first.

    Parameters
    ----------
    structure : Structure
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
    found = exact_for(structure, question, patient)
    if found is None:
        names = _APPROXIMATE.get(question, _APPROXIMATE[""])
        found = _first(names, structure, question)
    if found is None:
        raise UnsupportedError(
            f"no inference method answers {question!r} on {structure}: an exact one would need "
            "too much memory, and no approximation is at hand"
        )
    return found


def _first(names: tuple[str, ...], structure: Structure, question: str) -> Inference | None:
    from chordal.inference import INFERENCE

    there = INFERENCE.names()
    for name in names:
        if name not in there:
            continue
        method = INFERENCE.resolve(name)
        if question in method.answers and method.supports(structure):
            return method
    return None
