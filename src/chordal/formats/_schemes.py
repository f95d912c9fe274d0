"""Convert labels between tag schemes: IOB1, BIO (or IOB2), IOBES, BILOU."""

from __future__ import annotations

from collections.abc import Sequence

from chordal._schemes import SCHEMES as TABLE
from chordal._validate import check_choice

SCHEMES = tuple(TABLE)

_Span = tuple[int, int, str]  # begin, end, and what follows the prefix: "-NP", or nothing


def convert_scheme(
    labels: Sequence[str], source: str, target: str, *, strict: bool = True
) -> list[str]:
    """Write one sequence's labels in another scheme.

    Parameters
    ----------
    labels : sequence of str
        ``O``, or a prefix with or without a type: ``B-NP``, ``I``.
    source, target : {"iob1", "bio", "iobes", "bilou"}
        The scheme of the labels, and the wanted one. ``bio`` is also known as IOB2.
    strict : bool
        Whether illegal sequences of labels are errors. If not, they are read as by conlleval: a
        label that continues no span of its type begins one, and a span ends where its type does not
        continue. A prefix that the scheme does not have is always an error.

    Examples
    --------
    >>> convert_scheme(["B-NP", "I-NP", "O", "B-VP"], "bio", "iobes")
    ['B-NP', 'E-NP', 'O', 'S-VP']
    >>> convert_scheme(["O", "I-NP"], "bio", "iobes", strict=False)
    ['O', 'S-NP']
    >>> convert_scheme(["O", "I-NP"], "bio", "iobes")
    Traceback (most recent call last):
    ValueError: labels[1] = 'I-NP' is not allowed in bio after 'O'; the same span has 'B-NP' ...
    """
    for name, value in (("source", source), ("target", target)):
        check_choice(name, value, SCHEMES)
    spans = _spans(labels, source)
    if strict:
        for t, legal in enumerate(_written(spans, len(labels), source)):
            if labels[t] != legal:
                context = f"after {labels[t - 1]!r}" if t else "at the beginning"
                if t + 1 < len(labels):
                    context += f" and before {labels[t + 1]!r}"
                raise ValueError(
                    f"labels[{t}] = {labels[t]!r} is not allowed in {source} {context}; the same "
                    f"span has {legal!r} there. Correct it, or convert with strict=False"
                )
    return _written(spans, len(labels), target)


def _spans(labels: Sequence[str], scheme: str) -> list[_Span]:
    begin, inside, end, single, _ = TABLE[scheme]
    spans: list[_Span] = []
    is_open = False  # whether the last span may go on
    for t, label in enumerate(labels):
        if not isinstance(label, str):
            raise TypeError(f"labels must be str, got labels[{t}] = {label!r}")
        prefix, kind = label[:1], label[1:]
        if label == "O":
            is_open = False
            continue
        if prefix not in (begin, inside, end, single) or (kind and not kind.startswith("-")):
            known = ", ".join(sorted({begin, inside, end, single}))
            raise ValueError(
                f"labels[{t}] = {label!r} must be 'O' or one of {known}, with or without '-' and a "
                f"type, in {scheme}"
            )
        goes_on = is_open and prefix in (inside, end) and kind == spans[-1][2]
        if goes_on:
            spans[-1] = (spans[-1][0], t + 1, kind)
        else:
            spans.append((t, t + 1, kind))
        is_open = prefix in (begin, inside)
    return spans


def _written(spans: Sequence[_Span], length: int, scheme: str) -> list[str]:
    begin, inside, end, single, begin_if_adjacent = TABLE[scheme]
    labels = ["O"] * length
    last: _Span = (0, -1, "")
    for span in spans:
        first, stop, kind = span
        labels[first:stop] = [inside + kind] * (stop - first)
        labels[stop - 1] = end + kind
        if not begin_if_adjacent or (last[1], last[2]) == (first, kind):
            labels[first] = (single if stop - first == 1 else begin) + kind
        last = span
    return labels
