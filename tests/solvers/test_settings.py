"""Settings of solvers that are no numbers of their kind are refused when a solver is made."""

import inspect

import pytest

from chordal.solvers import SOLVERS
from chordal.solvers.lbfgs import LBFGS
from chordal.solvers.owlqn import OWLQN

SETTINGS = {
    "max_iter": ([0, -1, 2.5, "many", None], "max_iter must be an integer of at least 1"),
    "tol": ([float("nan"), float("inf"), "small"], "tol must be a number"),
}


@pytest.mark.parametrize("name", SOLVERS.names())
def test_every_solver_refuses_them_by_name(name):
    for setting, (values, message) in SETTINGS.items():
        for value in values:
            with pytest.raises(ValueError, match=message):
                SOLVERS.resolve(name, **{setting: value})


def test_owlqn_takes_l1():
    for value in (-1.0, float("nan"), "some"):
        with pytest.raises(ValueError, match="l1 must be a number of at least 0"):
            OWLQN(l1=value)


@pytest.mark.parametrize("name", SOLVERS.names())
def test_help_describes_every_setting_once(name):
    solver = SOLVERS.get(name)
    described = [
        setting
        for line in solver.__doc__.partition("Parameters\n")[2].splitlines()
        if " : " in line and not line.startswith(" ")
        for setting in line.partition(" : ")[0].split(", ")
    ]
    assert sorted(described) == sorted(inspect.signature(solver).parameters)


@pytest.mark.parametrize("solver", [LBFGS, OWLQN])
def test_memory_is_a_number_of_pairs(solver):
    for value in (0, 1.5, "x"):
        with pytest.raises(ValueError, match="memory must be an integer of at least 1"):
            solver(memory=value)
