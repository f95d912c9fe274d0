"""Tables and counts in the documents, from what the registries hold and declare.

    python docs/make_tables.py

Rewrites what stands between `<!-- made:name -->` and `<!-- end -->` in README.md and docs/**/*.md.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chordal import UnsupportedError
from chordal.costs import COSTS
from chordal.inference import INFERENCE, Inference, Pace
from chordal.objectives import OBJECTIVES, Objective
from chordal.oracle import Problem
from chordal.solvers import SOLVERS, Solver
from chordal.structures import (
    STRUCTURES,
    Chain,
    FactorGraph,
    Graph,
    Grid,
    Matching,
    Structure,
    Tree,
)

ROOT = Path(__file__).parents[1]
#: What questions are called in the documents.
QUESTIONS = {
    "log_partition": "log Z",
    "marginals": "marginals",
    "map": "MAP",
    "relaxed_map": "relaxed MAP",
    "k_best": "k best",
    "sample": "samples",
    "entropy": "entropy",
    "span_log_probability": "spans",
    "map_by_cost": "MAP by cost",
    "marginals_derivative": "derivatives of marginals",
}
TARGETS = {"hard": "labels", "soft": "distributions", "partial": "sets"}
CLIQUE = [(i, j) for i in range(40) for j in range(i)]
#: One of each kind of structure, the widest kinds first: a method is asked where it works.
PROBES: dict[str, Structure] = {
    "anything": FactorGraph([40], [[*CLIQUE, *((i, i + 1, i + 2) for i in range(38))]], 3),
    "pairs of variables": Graph([40], [CLIQUE], 3),
    "pairs of variables, two labels": Graph([40], [CLIQUE], 2),
    "low treewidth": Grid([(4, 40)], 3),
    "forests": FactorGraph([40], [[(i, i + 1, i + 2) for i in range(0, 38, 2)]], 3),
    "forests of pairs": Tree([[-1, *range(39)]], 3),
    "forests of pairs, two labels": Tree([[-1, *range(39)]], 2),
    "chains": Chain([40], 3),
    "matchings": Matching([40], [40]),
    "single variables": Graph([40], [[]], 3),
    "few labellings": Chain([3], 2),
}


def main() -> None:
    """Rewrite all documents."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        path.write_text(remade(text), encoding="utf-8")


def remade(text: str) -> str:
    """The text with its marked regions made again."""

    def region(match: re.Match[str]) -> str:
        start, name, old, end = match.groups()
        made = MADE[name]()
        # A region that begins on a line of its own is a block, others are part of a sentence.
        return f"{start}\n{made}\n{end}" if old.startswith("\n") else f"{start}{made}{end}"

    return re.sub(r"(<!-- made:(\w+) -->)(.*?)(<!-- end -->)", region, text, flags=re.DOTALL)


def methods() -> list[Inference]:
    """All inference methods as `auto` makes them."""
    return [cls() for cls in INFERENCE.classes()]


def kinds_where(holds: Callable[[Structure], bool]) -> list[str]:
    """The kinds of structures on which a claim holds, the widest first."""
    return [kind for kind, structure in PROBES.items() if holds(structure)]


def where(method: Inference) -> str:
    """The widest kind of structure on which it works."""
    kind = kinds_where(method.supports)[0]
    return kind if method.any_scores else f"{kind}; scores of a kind"


def always_exact(method: Inference) -> bool:
    """Whether it is exact wherever it works."""
    return kinds_where(method.supports) == kinds_where(method.exact_on)


def exact_methods() -> str:
    """Methods that are exact wherever they work, the cheapest first."""
    found = sorted((m for m in methods() if always_exact(m)), key=lambda m: (cost_of(m), m.name))
    rows = [(code(m.name), summary(m), where(m), questions(m), work(m)) for m in found]
    return table(["method", "how", "where", "answers", "cost"], rows)


def sum_methods() -> str:
    """Approximations of sums over labellings, the best first."""
    found = _approximate("marginals")
    rows = [
        (code(m.name), summary(m), where(m), questions(m), m.bound or "", exact_where(m))
        for m in found
    ]
    return table(["method", "how", "where", "answers", "bound of log Z", "exact"], rows)


def map_methods() -> str:
    """Approximations of the best labelling, the best first."""
    found = _approximate("map")
    rows = [(code(m.name), summary(m), where(m), questions(m), exact_where(m)) for m in found]
    return table(["method", "how", "where", "answers", "exact"], rows)


def _approximate(question: str) -> list[Inference]:
    found = [m for m in methods() if not always_exact(m) and question in m.answers]
    return sorted(found, key=lambda m: (-m.quality.get(question, 0), m.name))


def exact_where(method: Inference) -> str:
    """The widest kind of structure on which it is exact."""
    return next(iter(kinds_where(method.exact_on)), "")


def cost_of(method: Inference) -> float:
    """The declared cost of an exact answer."""
    return method.cost(PROBES["few labellings"], min(method.answers))


def work(method: Inference) -> str:
    """The declared cost in words."""
    if type(method).cost is Inference.cost:
        return "Not bounded: by name only"
    slow = "; where there are minutes" if method.pace is Pace.MINUTES else ""
    return first_line(type(method).cost).rstrip(".") + slow


def questions(method: Inference) -> str:
    """What it answers."""
    return ", ".join(name for question, name in QUESTIONS.items() if question in method.answers)


def objectives() -> str:
    """All objectives."""
    rows = []
    for name in OBJECTIVES:
        objective = OBJECTIVES.resolve(name)
        needs = ", ".join(n for q, n in QUESTIONS.items() if q in objective.needs) or "nothing"
        kinds = objective.targets | ({"partial"} if objective.completes else set())
        takes = ", ".join(n for kind, n in TARGETS.items() if kind in kinds)
        rows.append((code(name), summary(objective), needs, takes))
    return table(["objective", "loss", "needs", "takes"], rows)


def pairs() -> str:
    """Which solver minimises which objective, as the solvers themselves say."""
    names = OBJECTIVES.names()
    rows = []
    for solver in SOLVERS:
        taken = [takes(SOLVERS.resolve(solver), OBJECTIVES.resolve(name)) for name in names]
        rows.append([code(solver), *("yes" if can else "–" for can in taken)])
    return table(["solver", *(code(name) for name in names)], rows)


def takes(solver: Solver, objective: Objective) -> bool:
    """Whether a solver accepts an objective of chains with labels, before any data are read."""
    try:
        solver.check(Problem(objective))
    except (UnsupportedError, ValueError):
        return False
    return True


def described(registry: Any, name: Callable[[type], str]) -> str:
    """All of a kind, each with the first line of its docstring."""
    rows = [(code(name(cls)), summary(cls)) for cls in registry.classes()]
    return table([registry.what, "what it is"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def summary(thing: object) -> str:
    """The first line of a class's docstring, as a cell."""
    cls = thing if isinstance(thing, type) else type(thing)
    return first_line(cls).rstrip(".").replace("|", "\\|")


def first_line(thing: object) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().partition("\n")[0]


def code(name: str) -> str:
    """A name as code."""
    return f"`{name}`"


def module(cls: type) -> str:
    """The name that users write."""
    return cls.__module__.rpartition(".")[2]


MADE: dict[str, Callable[[], str]] = {
    "exact_methods": exact_methods,
    "sum_methods": sum_methods,
    "map_methods": map_methods,
    "objectives": objectives,
    "solvers": lambda: described(SOLVERS, module),
    "pairs": pairs,
    "costs": lambda: described(COSTS, module),
    "structures": lambda: described(STRUCTURES, lambda cls: cls.__name__),
    "n_inference": lambda: str(len(INFERENCE.names())),
    "n_objectives": lambda: str(len(OBJECTIVES.names())),
    "n_solvers": lambda: str(len(SOLVERS.names())),
}

if __name__ == "__main__":
    main()
