"""Data formats, all read and written as streams of records. Each file is one format."""

from __future__ import annotations

import os

from chordal._registry import Registry
from chordal.formats._base import Format, Record, without_compression
from chordal.formats._files import Place, open_source, open_target, recoded
from chordal.formats._lines import read_lines
from chordal.formats._schemes import SCHEMES, convert_scheme
from chordal.formats._tokens import Token, sentences, tokenize

FORMATS = Registry("chordal.formats", Format, "format")


def format_of(path: str | os.PathLike[str], default: str = "conll") -> str:
    """The name of the format that a file's name suggests.

    >>> format_of("train.jsonl.gz"), format_of("en-ud-train.conllu"), format_of("esp.train")
    ('jsonl', 'conllu', 'conll')
    """
    name = without_compression(path)
    for candidate in FORMATS:
        if name.endswith(FORMATS.get(candidate).suffixes):
            return candidate
    return default


__all__ = [
    "FORMATS",
    "SCHEMES",
    "Format",
    "Place",
    "Record",
    "Token",
    "convert_scheme",
    "format_of",
    "open_source",
    "open_target",
    "read_lines",
    "recoded",
    "sentences",
    "tokenize",
]
