"""The order of imports: a module imports only from lines above its own, and nothing private.

Every import statement in ``src/chordal`` counts, also one inside a function or under
``if TYPE_CHECKING:``. The sources are read, never run.
"""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chordal._optional import EXTRAS

SOURCE = Path(__file__).parents[1] / "src" / "chordal"

# Units joined by | do not import each other. `chordal` is the package's __init__, the public API.
LAYERS = """
 _kernels
 _errors  _optional  _registry  _validate  _status  _limits  _memory  _docs  _shown  _html  progress
 _atomic  _scratch  _blocks  _schemes  _sparse  _estimator  _bounded_json  _container  _saved
 structures
 potentials
 targets  labels
 text
 features | preprocessing | inference | costs | metrics | datasets
 emissions
 prepared
 objectives
 testing
 oracle
 execution | solvers
 _fit_progress  _entities
 estimators
 formats | model_file | model_selection | plots | explanation | compat
 torch | dask
 _opening
 chordal
 experiments | explore | serve
 cli
 __main__
"""
LINES = [line.replace("|", " ").split() for line in LAYERS.strip().splitlines()]
RANK = {unit: rank for rank, line in enumerate(LINES) for unit in line}
PARALLEL = {rank for rank, line in enumerate(LAYERS.strip().splitlines()) if "|" in line}

# What the order alone would allow, and the design does not: (unit, what it never imports).
NEVER = [
    ("objectives", "features"),
    ("solvers", "structures"),
    ("solvers", "potentials"),
    ("solvers", "features"),
    ("solvers", "inference"),
    ("solvers", "objectives"),
]

# An optional package and the one unit or module that may import it; some have two. SciPy and
# scikit-learn serve in many places.
OPTIONAL = {
    "dask": "chordal.dask",
    "distributed": "chordal.dask",
    "torch": ("chordal.torch", "chordal.experiments._network"),
    "triton": ("chordal.torch._triton", "chordal.torch._triton_kernels"),
    "matplotlib": "chordal.plots",
    "PIL": ("chordal.plots", "chordal.datasets._image_folders"),
    "eli5": "chordal.explanation.eli5",
    "pandas": ("chordal.explanation._explanation", "chordal.dask"),
    "hmmlearn": "chordal.compat.hmmlearn",
    "networkx": "chordal.compat",
    "zstandard": "chordal.formats._files",
    "narwhals": "chordal.preprocessing.frames",
    "pyarrow": ("chordal.formats._arrow", "chordal.formats.arrow", "chordal.formats.parquet"),
    "starlette": "chordal.serve",
    "uvicorn": "chordal.serve",
}


# Attributes that start with an underscore and are meant for all: of named tuples, and the one that
# scikit-learn documents for estimators with callbacks.
PUBLIC = {"_asdict", "_fields", "_make", "_replace", "_init_callback_context"}

# TEMPORARY: units that still take private names from others, or give them, while they are being
# rebuilt. Remove a name when its unit is done; add none.
STILL_PRIVATE: set[str] = set()
# TEMPORARY: modules of other units that read what is private to those.
STILL_READING: set[str] = set()


class Import(NamedTuple):
    module: str  # the importer
    line: int
    target: str  # dotted name of the imported module
    when: str  # "load", "typing" (under TYPE_CHECKING) or "call" (inside a function)
    private: str = ""  # the names that start with an underscore, of `from module import names`
    within: frozenset[str] = frozenset()  # packages of the `with needed(package, …)` around it

    def __str__(self):
        return f"{self.module} (line {self.line}) imports {self.target}"


class Read(NamedTuple):
    module: str
    line: int
    name: str  # of an attribute that starts with an underscore

    def __str__(self):
        return f"{self.module} (line {self.line}) reads .{self.name}"


def read_tree(source: Path) -> tuple[set[str], list[Import]]:
    """Names of all modules in the folder ``source``, and their imports."""
    files = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    modules = set(files) | {f"chordal.{unit}" for unit in RANK}  # _kernels has no source
    imports = []
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node, when, within in walk(tree, "load"):
            for target in targets(node, package, modules):
                names = private_names(node, target)
                imports.append(Import(module, node.lineno, target, when, names, within))
    return set(files), imports


def private_names(node: ast.AST, target: str) -> str:
    """What an import statement takes from the module ``target`` and should leave there."""
    aliases = node.names if isinstance(node, ast.ImportFrom) else []
    names = (alias.name for alias in aliases if is_private(alias.name))
    return ", ".join(name for name in names if not target.endswith(f".{name}"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def read_attributes(source: Path) -> list[Read]:
    """Reads of private attributes that no line of the same unit defines."""
    trees: dict[str, list[tuple[str, ast.Module]]] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        unit = unit_of(".".join(parts)) or ""
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        trees.setdefault(unit, []).append((module, tree))
    found = []
    for modules in trees.values():
        known = {part for module, _ in modules for part in module.split(".")} | PUBLIC
        known |= {name for _, tree in modules for node in ast.walk(tree) for name in names_of(node)}
        for module, tree in modules:
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and is_private(node.attr):
                    owner = ast.unparse(node.value)
                    if owner not in ("self", "cls", "super()") and node.attr not in known:
                        found.append(Read(module, node.lineno, node.attr))
    return found


def names_of(node: ast.AST) -> Iterator[str]:
    """The names that a node defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield from [node.attr] if ast.unparse(node.value) in ("self", "cls") else []


def walk(
    node: ast.AST, when: str, within: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.AST, str, frozenset[str]]]:
    if isinstance(node, ast.With):
        within |= {package for item in node.items for package in needed_by(item.context_expr)}
    for field, value in ast.iter_fields(node):
        inner = when
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = "call"
        elif when == "load" and field == "body" and is_type_checking(node):
            inner = "typing"
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child, inner, within
                yield from walk(child, inner, within)


def needed_by(call: ast.AST) -> Iterator[str]:
    """The package of ``needed("package", …)``."""
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "needed":
        yield ast.literal_eval(call.args[0])


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def targets(node: ast.AST, package: str, modules: set[str]) -> Iterator[str]:
    """The modules that an import statement, or ``import_module("literal")``, names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        origin = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
        base = ".".join([*origin, *([node.module] if node.module else [])])
        for alias in node.names:
            name = f"{base}.{alias.name}"
            yield name if name in modules else base
    elif isinstance(node, ast.Call):
        function, arguments = ast.unparse(node.func), [*node.args, None]
        if function.endswith("import_module") and isinstance(arguments[0], ast.Constant):
            yield str(arguments[0].value)


def unit_of(module: str) -> str | None:
    """The name that stands in LAYERS, or None for a module from outside."""
    top, *rest = module.split(".")
    if top != "chordal":
        return None
    return rest[0] if rest else "chordal"


def unlisted(modules, imports):
    units = {unit_of(module) for module in modules} - set(RANK)
    for unit in sorted(units):
        yield f"chordal.{unit} is on no line of LAYERS: add it there, where its imports allow"


def against_the_order(modules, imports):
    for item in imports:
        unit, target = unit_of(item.module), unit_of(item.target)
        if target is None or target == unit or unit not in RANK:
            continue
        if target not in RANK:
            yield f"{item}, which is on no line of LAYERS"
        elif RANK[target] > RANK[unit]:
            yield f"{item}, which is on a line below its own"
        elif RANK[target] == RANK[unit] and RANK[unit] in PARALLEL:
            yield f"{item}, which is beside it on its line"
        elif (unit, target) in NEVER:
            yield f"{item}, and {unit} never sees {target}"
        elif target == "testing":
            yield f"{item}, which is for tests alone"


def concrete_methods_in_objectives(modules, imports):
    """Objectives see the inference protocol (chordal.inference, or a module with _), no method."""
    for item in imports:
        package, _, name = item.target.rpartition(".")
        concrete = package == "chordal.inference" and not name.startswith("_")
        if concrete and unit_of(item.module) == "objectives":
            yield f"{item}: an objective never sees a concrete inference method"


def private_names_in_experiments(modules, imports):
    for item in imports:
        ours = unit_of(item.target) not in (None, "experiments")
        private = any(part.startswith("_") for part in item.target.split("."))
        if item.target == "chordal._registry" and item.module == "chordal.experiments":
            continue  # the folder is the registry
        if item.target == "chordal._optional":
            continue  # how a package that may be missing is imported
        if unit_of(item.module) == "experiments" and ours and private:
            yield f"{item}: experiments use the public API only"


def private_imports(modules, imports):
    """A unit imports no other's module with an underscore, and no such name."""
    for item in imports:
        unit, target = unit_of(item.module), unit_of(item.target)
        if target in (None, unit, "chordal") or {unit, target} & STILL_PRIVATE:
            continue
        inner = item.target.split(".")[2:]
        if any(map(is_private, inner)) or item.private:
            yield f"{item}{item.private and f' ({item.private})'}, which is private to {target}"


def cycles(modules, imports):
    graph = {module: [] for module in sorted(modules)}
    for item in sorted(imports):
        if item.when != "call" and item.target in modules and item.target != item.module:
            graph[item.module].append(item.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1][:0:-1]  # each imports the next, the last imports the first
        start = cycle.index(min(cycle))
        yield "import cycle: " + " → ".join([*cycle[start:], *cycle[:start], cycle[start]])


def optional_packages_away_from_home(modules, imports):
    for item in imports:
        homes = OPTIONAL.get(item.target.split(".")[0], ())
        homes = (homes,) if isinstance(homes, str) else homes
        if homes and not any(f"{item.module}.".startswith(f"{home}.") for home in homes):
            yield f"{item}, an optional package that only {' and '.join(homes)} may import"


def optional_packages_loaded_by_the_public_api(modules, imports):
    """``import chordal`` loads no optional package, not even by way of that package's home."""
    loaded, waiting = set(), ["chordal"]
    while waiting:
        module = waiting.pop()
        if module in modules and module not in loaded:
            loaded.add(module)
            waiting.append(module.rpartition(".")[0])
            waiting += [i.target for i in imports if i.module == module and i.when == "load"]
    for item in imports:
        optional = item.target.split(".")[0] in OPTIONAL
        if optional and item.when == "load" and item.module in loaded:
            yield f"{item} as soon as chordal is imported"


def optional_packages_without_a_word(modules, imports):
    """Where an optional package is imported, its absence is an error that names the extra.

    The import stands in a block `with needed(…)`, or a package around its module imports something
    of the same extra in one.
    """
    doors = {(item.module, EXTRAS[name][1]) for item in imports for name in item.within}
    for item in imports:
        package = item.target.split(".")[0]
        if package not in EXTRAS or item.when == "typing" or package in item.within:
            continue
        names = item.module.split(".")
        around = (".".join(names[:n]) for n in range(1, len(names)))
        if not any((outer, EXTRAS[package][1]) in doors for outer in around):
            yield f"{item}, an optional package, outside of `with needed({package!r}, …)`"


RULES = [
    unlisted,
    against_the_order,
    concrete_methods_in_objectives,
    private_names_in_experiments,
    private_imports,
    cycles,
    optional_packages_away_from_home,
    optional_packages_loaded_by_the_public_api,
    optional_packages_without_a_word,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_library(rule):
    modules, imports = read_tree(SOURCE)
    assert {"chordal", "chordal._registry"} <= modules
    problems = list(rule(modules, imports))
    assert not problems, "\n" + "\n".join(problems)


def test_no_unit_reads_what_is_private_to_another():
    problems = [
        str(read)
        for read in read_attributes(SOURCE)
        if unit_of(read.module) not in STILL_PRIVATE and read.module not in STILL_READING
    ]
    assert not problems, "\n" + "\n".join(problems)


GOOD = {
    "__init__": "from .estimators import ChainCRF\nfrom chordal import structures\n",
    "_errors": "import numpy\n",
    "_validate": "from ._errors import InvalidError\n",
    "structures/__init__": "from .chain import Chain\nfrom .._validate import check\n",
    "structures/chain": "from .. import _kernels\nfrom . import _base\n",
    "structures/_base": "",
    "inference/__init__": "from chordal._registry import Registry\nfrom ._base import Inference\n",
    "inference/_base": "from chordal import structures\n",
    "inference/chain": "from ._base import Inference\nimport chordal._kernels\n",
    "objectives/likelihood": "from chordal.inference import Inference\n",
    "dask/__init__": "with needed('dask', ''):\n    import dask\n",
    "dask/_crew": "from distributed import Client\n",
    "plots/__init__": "from typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    import matplotlib\n"
    "def show():\n    with needed('matplotlib', 'plots'):\n        import matplotlib.pyplot\n",
    "plots/tables": "from matplotlib import colors\n",
    "torch/__init__": "with needed('torch', ''):\n    import torch\n"
    "from chordal.objectives import likelihood\n",
    "experiments/digits": "from chordal import ChainCRF, datasets\nfrom . import tables\n",
    "experiments/tables": "import chordal\n",
    "testing/contracts": "from chordal import inference, objectives\n",
    "__main__": "from chordal.cli import main\n",
}

BAD = [
    ("gibberish", "", "chordal.gibberish is on no line of LAYERS"),
    ("gibberish/part", "", "chordal.gibberish is on no line of LAYERS"),
    ("potentials", "\nfrom chordal.inference import chain", "chordal.potentials (line 2) imports"),
    ("potentials", "from .objectives import Loss", "on a line below its own"),
    ("potentials", "import chordal", "on a line below its own"),
    ("potentials", "import chordal.nowhere", "which is on no line of LAYERS"),
    ("potentials", "from chordal import ChainCRF", "on a line below its own"),
    ("potentials", "def f():\n  import chordal.oracle", "on a line below its own"),
    ("potentials", "class A:\n  from . import oracle", "on a line below its own"),
    ("potentials", "try:\n  from . import oracle\nexcept E: pass", "on a line below its own"),
    ("potentials", "import_module('chordal.oracle')", "on a line below its own"),
    ("inference/_base", "from ..objectives.likelihood import f", "on a line below its own"),
    ("inference/_base", "from chordal import features", "beside it on its line"),
    ("inference/_base", "if TYPE_CHECKING:\n  from ..costs import C", "beside it on its line"),
    ("solvers/lbfgs", "from ..objectives import likelihood", "solvers never sees objectives"),
    ("objectives/hinge", "from chordal.features import F", "objectives never sees features"),
    ("objectives/hinge", "from ..inference import chain", "a concrete inference method"),
    ("estimators", "from .testing import contracts", "for tests alone"),
    ("experiments/digits", "from chordal._errors import E", "public API only"),
    ("experiments/digits", "from chordal.inference import _base", "public API only"),
    ("cli", "from chordal.metrics._chunks import chunks", "private to metrics"),
    ("cli", "def f():\n  from .metrics import _chunks", "private to metrics"),
    ("cli", "import chordal.metrics._chunks", "private to metrics"),
    (
        "structures/_base",
        "from . import Chain",
        "cycle: chordal.structures → chordal.structures.chain",
    ),
    ("structures/_base", "if TYPE_CHECKING:\n  from .chain import Chain", "import cycle"),
    ("estimators", "def f():\n  import dask.distributed", "only chordal.dask may"),
    ("execution/threads", "from distributed import Client", "only chordal.dask may"),
    ("estimators", "from matplotlib import pyplot", "only chordal.plots may import"),
    (
        "estimators",
        "import torch",
        "only chordal.torch and chordal.experiments._network may import",
    ),
    ("__init__", "from chordal import dask", "as soon as chordal is imported"),
    ("inference/milp", "from scipy.optimize import milp", "outside of `with needed('scipy'"),
    ("inference/milp", "with needed('sklearn', ''):\n  import scipy", "outside of `with needed("),
    ("costs/chunk", "from matplotlib import colors", "outside of `with needed('matplotlib'"),
]


def broken_rules(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / "chordal" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tree = read_tree(tmp_path / "chordal")
    return [problem for rule in RULES for problem in rule(*tree)]


def test_a_tree_in_order_passes(tmp_path):
    assert broken_rules(tmp_path, GOOD) == []


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_a_breach_is_caught(tmp_path, name, text, message):
    assert any(message in problem for problem in broken_rules(tmp_path, GOOD | {name: text}))


def test_a_private_read_is_caught(tmp_path):
    files = {
        "metrics/__init__": "class A:\n  def _own(self):\n    self._kept = 1\n  _table = {}\n",
        "metrics/other": "def f(a, cls):\n  return a._own, a._kept, a._table, a.__dict__\n",
        "formats": "def f(self, a, p):\n  return self._own, super()._own, p._replace(), a.own\n",
        "plots": "def f(a):\n\n  return a.b._own\n",
    }
    broken_rules(tmp_path, files)
    reads = read_attributes(tmp_path / "chordal")
    assert list(map(str, reads)) == ["chordal.plots (line 3) reads ._own"]


def test_a_cycle_through_a_function_is_none(tmp_path):
    late = {"structures/_base": "def f():\n  from .chain import Chain\n"}
    assert broken_rules(tmp_path, GOOD | late) == []
