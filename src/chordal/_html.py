"""Pieces of HTML for notebooks: text as text, tables, colours of labels; no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from chordal._shown import in_a_line

FONT = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere"
_CELL = "padding:1px 8px;border:none"


def text(value: object) -> str:
    r"""Any value as text that a browser shows as it is, in its own direction of writing.

    >>> text("<b>\x1b")
    '<bdi>&lt;b&gt;\\x1b</bdi>'
    """
    return f"<bdi>{escape(in_a_line(str(value)))}</bdi>"


def signed(value: float) -> str:
    """A number with its sign, to three digits.

    >>> signed(-1.25), signed(0.0)
    ('−1.250', '+0.000')
    """
    return f"{value:+.3f}".replace("-", "−")


def unbroken(html: str) -> str:
    """HTML that stays on one line."""
    return f'<span style="white-space:nowrap">{html}</span>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table of cells that are HTML already; all but the first `left` columns stand right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        sides = ("left" if k < left else "right" for k in range(len(row)))
        return "".join(
            f'<{tag} style="{_CELL};text-align:{side}">{own}</{tag}>'
            for own, side in zip(row, sides, strict=True)
        )

    top = f"<thead><tr>{cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{top}<tbody>{body}</tbody></table>'


def facts(values: Mapping[str, object]) -> str:
    """Names and values, one pair in a row."""
    rows = [(unbroken(text(name)), text(value)) for name, value in values.items()]
    return table([], rows, left=2)


def folded(title: str, body: str, is_open: bool = False) -> str:
    """What a click on its title shows; the body is HTML."""
    return f"<details{' open' * is_open}><summary>{text(title)}</summary>{body}</details>"


def colour(number: int, share: float = 0.35) -> str:
    """The background of a label by its place in the classes, on light and dark pages."""
    return f"hsla({hue(number)},70%,50%,{share:g})"


def hue(number: int) -> int:
    """Colours of neighbouring numbers lie far apart."""
    return round(number * 137.508) % 360
