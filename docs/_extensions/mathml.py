"""Formulas as MathML, which browsers show by themselves: the site needs no network."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

NAME = r"<mi[^>]*>[^<]+</mi>\s*<mo>&ApplyFunction;</mo>"  # of a function, as docutils writes it
FACTOR = r"</m(?:i|n|sub|sup|subsup|frac|row)>|[)\]}]</mo>"  # the end of what stands before one
OPERATOR = r"(?:<m(?:row|under|underover)>\s*)?<mo"  # brackets and sums have their own space
# docutils writes "\\hat y_t" as a y between t and the hat; t belongs beside it.
ACCENTED = (
    r"<munderover>\s*(<mi[^>]*>[^<]+</mi>)((?:(?!</munderover>).)*?)"
    r"(<mo[^>]*>[ˆ^ˉ¯~˜→]</mo>)\s*</munderover>"
)
THIN = '<mspace width="0.17em"></mspace>'


def mathml(tex: str, as_block: bool = False) -> str:
    """A formula as MathML, with thin spaces around the names of functions: "p log Z"."""
    made = latex2mathml.tex2mathml(tex, as_block=as_block)
    accented = r"<msub><mover accent='true'>\1\3</mover>\2</msub>"
    made = re.sub(ACCENTED, accented, made, flags=re.DOTALL)
    made = re.sub(rf"({FACTOR})(?=\s*{NAME})", rf"\1{THIN}", made)
    return re.sub(rf"({NAME})(?!\s*{OPERATOR})", rf"\1{THIN}", made)


def inline(self: nodes.NodeVisitor, node: nodes.math) -> None:
    """A formula in a sentence."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(self: nodes.NodeVisitor, node: nodes.math_block) -> None:
    """A formula by itself."""
    made = mathml(node.astext().strip(), as_block=True)
    self.body.append(self.starttag(node, "div", CLASS="math") + made + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
