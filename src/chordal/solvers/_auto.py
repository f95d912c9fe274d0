"""The solver that `auto` stands for, by what is to be minimised."""

from __future__ import annotations

from collections.abc import Sequence

from chordal._errors import UnsupportedError
from chordal._optional import installed
from chordal._registry import Registry
from chordal.oracle import Problem
from chordal.solvers._base import Solver

SOLVERS = Registry("chordal.solvers", Solver, "solver")

MANY = 100_000  # weights: planes under the whole loss have one number for each


def choose_solver(problem: Problem, l1: float = 0.0, first: Sequence[str] = ()) -> str:
    """The name of the first solver made for the problem that takes it and is installed.

    A smooth objective gets L-BFGS, its orthant-wise form where l1 > 0; one that is estimated from
    samples gets Adam. One with kinks gets a solver with a duality gap, those in `first` before
    others, else one that takes small steps.

    >>> from chordal.objectives.hinge import Hinge
    >>> from chordal.objectives.likelihood import Likelihood
    >>> choose_solver(Problem(Likelihood())), choose_solver(Problem(Hinge()))
    ('lbfgs', 'block_frank_wolfe')
    """
    objective = problem.objective
    if l1 > 0.0 and not objective.smooth:
        raise UnsupportedError(
            f"no solver takes l1 > 0 with objective {objective.name!r}, which has kinks of its "
            "own; use l1=0, or a smooth objective such as 'likelihood' or 'softmax_margin'"
        )
    names = _candidates(problem, l1, first)
    for name in names[:-1]:
        kind = SOLVERS.get(name)
        if not all(map(installed, kind.packages)):
            continue
        try:
            kind().check(problem)
        except (UnsupportedError, ValueError):
            continue
        return name
    return names[-1]  # which says why not, if it does not take the problem either


def _candidates(problem: Problem, l1: float, first: Sequence[str]) -> list[str]:
    objective = problem.objective
    if objective.stochastic:
        return ["adam"]
    if objective.smooth:
        return ["owlqn" if l1 > 0.0 else "lbfgs"]
    # Compiled loops pass over chains; elsewhere planes under the whole loss need fewer passes.
    # Steps of single examples are short where scaled weights stand for an intercept.
    margin = ["one_slack", *["cutting_plane"] * problem.exempt, "block_frank_wolfe"]
    if problem.n_weights > MANY or (problem.chains and problem.one_l2):
        margin.reverse()
    return ["averaged_perceptron", *first, *margin, "frank_wolfe", "sgd", "adam"]
