"""Names of the library in inline code lead to their pages in the reference.

So the sources say `ChainCRF` or `chordal.save`, which reads well anywhere. A name that several
objects have is left alone, and so are names of other tools: those in the first columns of tables on
the pages of migration.
"""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.util.nodes import make_refnode

KINDS = {"class", "function", "exception", "data", "module"}
MEMBERS = {"method", "property", "attribute"}


def names(domain: PythonDomain) -> dict[str, str]:
    """Short names of objects that have one meaning, and whole ones."""
    found: dict[str, set[str]] = {}
    for name, entry in domain.objects.items():
        if entry.objtype in KINDS and not entry.aliased:
            found.setdefault(name, set()).add(name)
            short = name.rpartition(".")[2]
            # A word such as `fit` may mean many things.
            if entry.objtype in ("class", "exception") or "_" in short:
                found.setdefault(short, set()).add(name)
        elif entry.objtype in MEMBERS and not entry.aliased:
            for known in (name, ".".join(name.split(".")[-2:])):  # also as Class.method
                found.setdefault(known, set()).add(name)
    return {short: min(whole) for short, whole in found.items() if len(whole) == 1}


def around(node: nodes.Node) -> Iterator[nodes.Node]:
    """The nodes that a node is in, from the inside."""
    while node.parent is not None:
        node = node.parent
        yield node


def in_first_column(node: nodes.Node) -> bool:
    """Whether a node is in the first cell of a row."""
    cells = [outer for outer in around(node) if isinstance(outer, nodes.entry)]
    return bool(cells) and cells[0].parent.index(cells[0]) == 0


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make references of the inline code of a page."""
    domain = app.env.domains.python_domain
    known = names(domain)
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().removesuffix("()").partition("(")[0]
        if any(isinstance(node, nodes.reference | nodes.title) for node in around(literal)):
            continue
        if docname.startswith("migration/") and in_first_column(literal):
            continue
        if name in known and not docname.endswith(known[name]):
            entry = domain.objects[known[name]]
            target = make_refnode(
                app.builder, docname, entry.docname, entry.node_id, [literal.deepcopy()]
            )
            literal.replace_self(target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
