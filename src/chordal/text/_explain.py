"""What the attributes of a template mean, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MACRO = re.compile(
    r'%([xXtTmMsS])\[\s*(@?)(-?\+?\d+)\s*,\s*(\d+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]'
)


def explained(lines: Iterable[str], attribute: str) -> str:
    """What an attribute of a template with these lines is about; empty if no line gives it.

    >>> explained(["U0:%x[0,0]", "U1:%X[-1,1]/%s[2,0]"], "U1:nn/Xx")
    'column 1, 1 before, in small letters / shape of column 0, 2 after'
    """
    found, longest = "", -1
    for line in lines:
        if not line or line[0].upper() not in "UB*":
            continue
        parts = list(_MACRO.finditer(line))
        literal = line[: parts[0].start()] if parts else line
        if attribute.startswith(literal) and len(literal) > longest:
            found, longest = " / ".join(map(_described, parts)), len(literal)
    return found


def _described(macro: re.Match[str]) -> str:
    kind, absolute, row, column, pattern = macro.groups()
    offset = int(row)
    if absolute:
        place = f"row {offset} from the {'end' if offset < 0 else 'beginning'}"
    elif offset == 0:
        place = ""
    else:
        place = f"{abs(offset)} {'before' if offset < 0 else 'after'}"
    cell = f"column {column}" + (f", {place}" if place else "")
    small = ", in small letters" if kind.isupper() else ""
    if kind in "tT":
        return f'whether {cell} has "{pattern}"{small}'
    if kind in "mM":
        return f'what "{pattern}" finds in {cell}{small}'
    return f"{'shape of ' if kind in 'sS' else ''}{cell}{small}"
