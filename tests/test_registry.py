import sys
from abc import ABC, abstractmethod

import pytest

from chordal._registry import Registry


class Solver(ABC):
    """The base of the packages below, which import it by way of ``sys.modules``."""

    def __init__(self, tol=1e-3):
        self.tol = tol

    @abstractmethod
    def run(self): ...


HEAD = f"import sys\nSolver = sys.modules[{__name__!r}].Solver\n"
FINAL = "class {}(Solver):\n    def run(self):\n        return {!r}\n"


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Write a package from module name → class definitions; return its registry."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules):
        folder = tmp_path / "toy_solvers"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for name, body in modules.items():
            (folder / f"{name}.py").write_text(HEAD + body)
        return Registry("toy_solvers", Solver, "solver")

    yield write
    for name in [name for name in sys.modules if name.split(".")[0] == "toy_solvers"]:
        del sys.modules[name]


@pytest.fixture
def solvers(make):
    return make(
        owlqn=FINAL.format("OWLQN", "owlqn"),
        lbfgs=FINAL.format("LBFGS", "lbfgs"),
        _shared="raise RuntimeError('not to be imported')\n",
    )


def test_names_are_the_public_modules_in_order(solvers):
    assert solvers.names() == ["lbfgs", "owlqn"]
    assert list(solvers) == ["lbfgs", "owlqn"]


def test_a_package_within_is_not_listed(solvers, tmp_path):
    inner = tmp_path / "toy_solvers" / "family"
    inner.mkdir()
    (inner / "__init__.py").write_text("")
    assert solvers.names() == ["lbfgs", "owlqn"]


def test_names_imports_no_module(make):
    assert make(broken="raise RuntimeError('imported')\n").names() == ["broken"]
    assert "toy_solvers" not in sys.modules


def test_a_new_file_is_found_without_touching_a_list(solvers, tmp_path):
    (tmp_path / "toy_solvers" / "newton.py").write_text(HEAD + FINAL.format("Newton", "newton"))
    assert solvers.names() == ["lbfgs", "newton", "owlqn"]
    assert solvers.get("newton").__name__ == "Newton"


def test_get_returns_the_class(solvers):
    assert solvers.get("lbfgs")().run() == "lbfgs"
    assert solvers.get("lbfgs") is solvers.get("lbfgs")


def test_a_typo_is_answered_with_the_nearest_name(solvers):
    with pytest.raises(ValueError, match="unknown solver") as error:
        solvers.get("lbgfs")
    assert str(error.value) == (
        "unknown solver 'lbgfs'; did you mean 'lbfgs'? There are: 'lbfgs', 'owlqn'"
    )


@pytest.mark.parametrize("name", ["", "simplex", "_shared", "lbfgs.LBFGS", "../lbfgs"])
def test_an_unknown_name_lists_what_there_is(solvers, name):
    with pytest.raises(ValueError, match=r"here are: 'lbfgs', 'owlqn'$"):
        solvers.get(name)


def test_abstract_imported_and_aliased_classes_do_not_count(make):
    registry = make(
        fancy="from toy_solvers.plain import Plain\n"
        "class Abstract(Solver):\n    pass\n"
        "class Helper:\n    pass\n" + FINAL.format("Fancy", "fancy") + "Alias = Fancy\n",
        plain=FINAL.format("Plain", "plain"),
    )
    assert registry.get("fancy").__name__ == "Fancy"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("", "none"),
        ("class A(Solver):\n    pass\n", "none"),
        (FINAL.format("A", "a") + FINAL.format("B", "b"), "A, B"),
    ],
)
def test_a_module_must_define_exactly_one_final_class(make, body, found):
    with pytest.raises(TypeError) as error:
        make(odd=body).get("odd")
    assert str(error.value) == (
        "toy_solvers.odd must define exactly one class that derives from Solver "
        f"and is not abstract, found {found}"
    )


def test_resolve_makes_an_instance_from_a_name(solvers):
    solver = solvers.resolve("lbfgs", tol=0.5)
    assert type(solver) is solvers.get("lbfgs")
    assert solver.tol == 0.5


def test_resolve_passes_an_instance_through(solvers):
    solver = solvers.get("owlqn")(tol=0.25)
    assert solvers.resolve(solver, tol=0.5) is solver
    assert solver.tol == 0.25


@pytest.mark.parametrize("value", [None, 3, Solver, b"lbfgs"])
def test_resolve_refuses_anything_else(solvers, value):
    with pytest.raises(TypeError) as error:
        solvers.resolve(value)
    assert str(error.value) == (
        f"solver must be a name (one of 'lbfgs', 'owlqn') or an instance of Solver, got {value!r}"
    )


def test_a_module_that_fails_to_import_says_so(make):
    with pytest.raises(RuntimeError, match="of its own"):
        make(broken="raise RuntimeError('of its own')\n").get("broken")


@pytest.mark.parametrize("package", ["chordal_has_no_such_package", "chordal._registry"])
def test_what_is_no_package_is_refused(package):
    with pytest.raises(ModuleNotFoundError, match=f"no package named '{package}'"):
        Registry(package, Solver, "solver").names()
