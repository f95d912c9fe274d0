"""Text from data, models and file names as a terminal may show it."""

from __future__ import annotations

import re

# Control characters, marks that turn the direction of writing, separators of lines, and what is no
# character: a terminal would obey them, or a reader see another text. Tabs and newlines stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def shown(text: str) -> str:
    r"""The text with such characters written out.

    >>> shown("red \x1b[31m, title \x9d0;x\x07, turned \u202e, café\n")
    'red \\x1b[31m, title \\x9d0;x\\x07, turned \\u202e, café\n'
    """
    return _UNSEEN.sub(lambda match: ascii(match[0])[1:-1], text)


def in_a_line(text: str) -> str:
    r"""The same, with ends of lines written out too.

    >>> in_a_line("one\ntwo")
    'one\\ntwo'
    """
    return shown(text).replace("\n", "\\n")
