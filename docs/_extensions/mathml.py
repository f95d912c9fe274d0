"""Formulas as MathML, which browsers show by themselves: the site needs no network."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def inline(self: nodes.NodeVisitor, node: nodes.math) -> None:
    """A formula in a sentence."""
    self.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(self: nodes.NodeVisitor, node: nodes.math_block) -> None:
    """A formula by itself."""
    made = latex2mathml.tex2mathml(node.astext().strip(), as_block=True)
    self.body.append(self.starttag(node, "div", CLASS="math") + made + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
