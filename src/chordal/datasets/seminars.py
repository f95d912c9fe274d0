"""Announcements of seminars: who speaks where, from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from chordal._validate import check_choice
from chordal.datasets._files import found, text_of

SOURCE = "the CMU seminar announcements of Freitag"
FIELDS = ("stime", "etime", "speaker", "location")
TAGS = frozenset({"O", *(f"{p}-{field}" for p in "BI" for field in FIELDS)})


@dataclass(frozen=True)
class Seminars:
    """Announcements, token by token.

    Attributes
    ----------
    words : list of lists of str
    line_start : list of lists of bool
        Whether a token is the first of its line.
    y : list of lists of str
        "B-" and "I-" of stime, etime, speaker and location, else "O".
    """

    words: list[list[str]]
    line_start: list[list[bool]]
    y: list[list[str]]


def load_seminars(part: str = "train", path: str | PathLike[str] | None = None) -> Seminars:
    """The announcements of Freitag (1998): 301 to train, 185 to test.

    Parameters
    ----------
    part : {"train", "test"}
    path : str or Path, optional
        The file seminars_train.tsv.gz (or _test), or its folder; by default
        $CHORDAL_DATA/seminars.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        The message names the first invalid line.
    """
    check_choice("part", part, ["train", "test"])
    file = found(path, "seminars", (f"seminars_{part}.tsv.gz", f"seminars_{part}.tsv"), SOURCE)
    data = Seminars([], [], [])
    for n, line in enumerate(text_of(file).split("\n")):
        if line.startswith("# doc ") and "\t" not in line:
            for column in (data.words, data.line_start, data.y):
                column.append([])
            continue
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in ("0", "1") or fields[2] not in TAGS:
            raise ValueError(f"{file}, line {n + 1}: must have a token, 0 or 1, and a tag")
        if not data.words:
            raise ValueError(f"{file}, line {n + 1}: must begin with a line '# doc 0'")
        data.words[-1].append(fields[0])
        data.line_start[-1].append(fields[1] == "1")
        data.y[-1].append(fields[2])
    if not data.words:
        raise ValueError(f"{file} has no announcement")
    return data
