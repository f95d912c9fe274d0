"""How labels write spans: IOB1, BIO (or IOB2), IOBES, BILOU. The one table of these schemes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Tag = tuple[str, str]  # prefix and type


class Scheme(NamedTuple):
    """The prefixes of a span's first, middle and last token, and of a span of one token."""

    begin: str
    inside: str
    end: str
    single: str
    begin_if_adjacent: bool = False  # begin and single only after a span of the same type

    @property
    def prefixes(self) -> tuple[str, ...]:
        """All prefixes, that of tokens outside all spans first."""
        return tuple(dict.fromkeys(("O", *self[:4])))

    @property
    def marks_ends(self) -> bool:
        """Whether the last token of a span says so."""
        return self.end != self.inside

    def allows(self, before: Tag | None, after: Tag) -> bool:
        """Whether a tag may follow another; `before` is None at the beginning of a sequence."""
        is_open = before is not None and before[0] in (self.begin, self.inside)
        goes_on = is_open and before is not None and before[1] == after[1]
        if self.begin_if_adjacent:
            return after[0] != self.begin or goes_on
        if after[0] in (self.inside, self.end):
            return goes_on
        return not (is_open and self.marks_ends)


SCHEMES = {
    "bio": Scheme("B", "I", "I", "B"),
    "iob1": Scheme("B", "I", "I", "B", begin_if_adjacent=True),
    "iobes": Scheme("B", "I", "E", "S"),
    "bilou": Scheme("B", "I", "L", "U"),
}


def split_tag(label: object) -> Tag:
    """Prefix and type of a tag: "B-NP" is ("B", "NP"), "O" is ("O", "").

    >>> split_tag("I-NP"), split_tag("O")
    (('I', 'NP'), ('O', ''))
    """
    prefix, _, kind = str(label).partition("-")
    return prefix, kind


def misfit(labels: Iterable[object], name: str) -> str | None:
    """Why labels are not of a scheme, or None if they are.

    Every prefix must be one of the scheme's, and every type must have the tags without which
    none of its spans could begin or end.

    >>> misfit(["O", "B-NP", "I-NP"], "bio")
    >>> misfit(["O", "B-NP", "I-NP"], "iobes")
    "spans with 'B-NP' end with 'E-NP' in it, and no label is 'E-NP'"
    """
    scheme, known = SCHEMES[name], [str(label) for label in labels]
    for label in known:
        prefix, _ = split_tag(label)
        if prefix not in scheme.prefixes or (prefix == "O" and label != "O"):
            return f"it has no label {label!r}; its prefixes are {', '.join(scheme.prefixes)}"
        needs = []
        if scheme.marks_ends and prefix in (scheme.begin, scheme.inside):
            needs.append((scheme.end, "end"))
        if not scheme.begin_if_adjacent and prefix in (scheme.inside, scheme.end):
            needs.append((scheme.begin, "begin"))
        for needed, what in needs:
            other = label.replace(prefix, needed, 1)
            if other not in known:
                return (
                    f"spans with {label!r} {what} with {other!r} in it, and no label is {other!r}"
                )
    return None


def scheme_of(labels: Iterable[object]) -> str | None:
    """The first scheme that the labels are of; None if they are tags of none.

    >>> scheme_of(["O", "B-X", "I-X"]), scheme_of(["O", "I-X"]), scheme_of(["U-X", "O"])
    ('bio', 'iob1', 'bilou')
    >>> scheme_of(["NN", "VB"])
    """
    known = [str(label) for label in labels]
    if not any(label != "O" for label in known):
        return None
    return next((name for name in SCHEMES if misfit(known, name) is None), None)
