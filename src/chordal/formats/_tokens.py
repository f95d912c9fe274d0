"""Split raw text into tokens and sentences, by short language-independent rules."""

from __future__ import annotations

import re
from typing import NamedTuple

# The first that matches, from left to right; \w without digits and _ are letters of any script.
# Time must not grow faster than the text, whoever wrote it: hence the limit of what precedes an @
# (that of mail itself), and of how many closing signs a sentence may end with.
_TOKEN = re.compile(
    r"""
    (?:https?://|www\.)\S*[\w/]                 # an address of the web
  | [\w.+-]{1,64}@\w[\w.-]*\w                   # an address of mail
  | (?:[^\W\d_]\.){2,}                          # letters with stops: U.S., z.B.
  | \d+(?:[.,:/-]\d+)*                          # a number, a date, a time: 1,000.5 12:30 2/3/99
  | \w+(?:['’·.-]\w+)*                          # a word: don't, Saint-Denis, l'Oréal, node.js
  | (?P<same>[^\w\s])(?P=same)*                 # signs: one, or the same again: ... -- !!
    """,
    re.VERBOSE,
)
_END = re.compile(r"[.!?…。！？]+$")
_CLOSING = frozenset("\"'”’»)]")
_MOST_CLOSING = 16


class Token(NamedTuple):
    """A token, and its characters from `start` to `end` (exclusive)."""

    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, with their positions.

    Tokens are, in this order: web and mail addresses; letters with stops (``U.S.``); numbers with
    ``. , : / -`` inside; words with ``' ’ . · -`` inside. Other signs are tokens, alone or repeated
    (``...``). Blanks separate tokens.

    >>> [token.text for token in tokenize("Dr. Ada O'Hara paid $1,000.50 (in the U.S.)...")]
    ['Dr', '.', 'Ada', "O'Hara", 'paid', '$', '1,000.50', '(', 'in', 'the', 'U.S.', ')', '...']
    """
    return [Token(found[0], *found.span()) for found in _TOKEN.finditer(text)]


def sentences(text: str) -> list[list[Token]]:
    """The tokens of each sentence of a text.

    A sentence ends after ``. ! ? …`` and closing quotes or brackets, if a blank follows and then no
    lower-case letter. It does not end after the stop of a single letter or of a capitalised word of
    at most three letters (``J. Smith``, ``Mr. Smith``).

    >>> [[token.text for token in own] for own in sentences("Mr. X left. He slept!")]
    [['Mr', '.', 'X', 'left', '.'], ['He', 'slept', '!']]
    """
    out: list[list[Token]] = []
    own: list[Token] = []
    tokens = tokenize(text)
    for k, token in enumerate(tokens):
        own.append(token)
        after = tokens[k + 1] if k + 1 < len(tokens) else None
        if after is None or (after.start > token.end and _ends(own, after)):
            out.append(own)
            own = []
    return out


def _ends(own: list[Token], after: Token) -> bool:
    """Whether a sentence ends between the last token and the next, which a blank separates."""
    k = len(own) - 1
    furthest = max(0, k - _MOST_CLOSING)
    while k > furthest and own[k].text[0] in _CLOSING:
        k -= 1
    if not _END.match(own[k].text) or after.text[0].islower():
        return False
    before = own[k - 1].text if k else ""
    short = before.isalpha() and (len(before) == 1 or (before[0].isupper() and len(before) <= 3))
    return not (own[k].text == "." and short and own[k].start == own[k - 1].end)
