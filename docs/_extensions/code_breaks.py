"""Long names in inline code break after a dot, a slash, a colon or an underscore.

Options such as `--k-best` do not break at their hyphens.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LONG = 16  # characters of a name that may break
CODE = re.compile(r'(<code class="[^"]*literal[^"]*">)(.*?)(</code>)')
WORD = re.compile(rf'(<span class="pre">)([^<]{{{LONG},}})(</span>)')
OPTION = re.compile(r'<span class="pre">(-[\w-]+)</span>')
END = re.compile(r"(?<=\w)([./_]|::)(?=\w)")


def broken(html: str) -> str:
    """The HTML of a page with places to break in its inline code.

    >>> broken('<code class="literal"><span class="pre">chordal.ChainCRF.fit</span></code>')
    '<code class="literal"><span class="pre">chordal.<wbr>ChainCRF.<wbr>fit</span></code>'
    """

    def word(found: re.Match[str]) -> str:
        return found[1] + END.sub(r"\1<wbr>", found[2]) + found[3]

    def code(found: re.Match[str]) -> str:
        whole = OPTION.sub(r'<span class="pre option">\1</span>', found[2])
        return found[1] + WORD.sub(word, whole) + found[3]

    return CODE.sub(code, html)


def change(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Break the names of one page."""
    if "body" in context:
        context["body"] = broken(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
