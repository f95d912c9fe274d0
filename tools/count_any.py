"""How much of the library's types is `Any`, by package.

    python tools/count_any.py                  # the table
    python tools/count_any.py --list solvers   # where they are, in a package

Annotations are those of arguments, of what functions return, and of variables. Two counts:
bare — the whole annotation is `Any`, or `Any | None`, which says no more;
inner — `Any` is an argument of another type, as in `list[Any]` or `Callable[..., Any]`.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator

from _sources import modules, table


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """All annotations of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def kind_of(annotation: ast.expr) -> str:
    """What an annotation is: "bare", "inner" or "typed".

    >>> [kind_of(ast.parse(t).body[0].value) for t in ("Any", "Any | None", "list[Any]", "int")]
    ['bare', 'bare', 'inner', 'typed']
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body  # written as text
    parts = {ast.unparse(part).removeprefix("typing.") for part in alternatives(annotation)}
    if "Any" in parts and parts <= {"Any", "None"}:
        return "bare"
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return "inner" if "Any" in names else "typed"


def alternatives(annotation: ast.expr) -> Iterator[ast.expr]:
    """The types that `A | B | …` joins."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        yield from alternatives(annotation.left)
        yield from alternatives(annotation.right)
    else:
        yield annotation


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", metavar="PACKAGE", help="where a package has bare ones")
    wanted = parser.parse_args().list
    counts: dict[str, Counter[str]] = {}
    for package, path, tree in modules():
        found = [(kind_of(annotation), annotation.lineno) for annotation in annotations(tree)]
        counts.setdefault(package, Counter()).update(kind for kind, _ in found)
        for kind, line in found if package == wanted else ():
            if kind == "bare":
                print(f"{path}:{line}")
    if wanted is None:
        total = sum(counts.values(), Counter())
        rows = {name: row(count) for name, count in {**counts, "all": total}.items()}
        table(rows, ["package", "annotations", "bare", "%", "inner", "%"])


def row(count: Counter[str]) -> list[str]:
    """The figures of a package."""
    n = count.total()
    share = [f"{100 * count[kind] / max(n, 1):.1f}" for kind in ("bare", "inner")]
    return [str(n), str(count["bare"]), share[0], str(count["inner"]), share[1]]


if __name__ == "__main__":
    main()
