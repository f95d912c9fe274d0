"""Public classes, functions and methods without a docstring.

    python tools/docstrings.py             # all of them, and the share that has one, by package
    python tools/docstrings.py solvers     # those of some packages

Public is what no underscore begins, inside classes that none begins, in any module. Overloads and
functions inside functions need none; a method that repeats one of its base class does.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator

from _sources import modules, table

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(body: list[ast.stmt], inside: str = "") -> Iterator[tuple[str, Definition]]:
    """Name and definition of what a module or a class offers."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from public(node.body, inside)
        elif isinstance(node, Definition) and not node.name.startswith("_"):
            if not any(ast.unparse(d).endswith("overload") for d in node.decorator_list):
                yield f"{inside}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{inside}{node.name}.")


def main() -> None:
    """List what has none, and count."""
    wanted = set(sys.argv[1:])
    counts: dict[str, Counter[bool]] = {}
    for package, path, tree in modules():
        if wanted and package not in wanted:
            continue
        for name, node in public(tree.body):
            documented = ast.get_docstring(node) is not None
            counts.setdefault(package, Counter())[documented] += 1
            if not documented:
                print(f"{path}:{node.lineno}: {name}")
    total = sum(counts.values(), Counter())
    rows = {
        name: [str(c.total()), str(c[False]), f"{100 * c[True] / max(c.total(), 1):.1f}"]
        for name, c in {**counts, "all": total}.items()
    }
    table(rows, ["package", "public", "without", "% with"])
    sys.exit(bool(total[False]))


if __name__ == "__main__":
    main()
