"""Sentences of the documents that are too long to be read once.

    python tools/long_sentences.py                  # all documents, above 30 words
    python tools/long_sentences.py 25 README.md     # another limit, some files

Counted is prose: code, tables, mathematics and generated pages are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _sources import ROOT

LIMIT = 30
GENERATED = ("docs/_build/", "docs/gallery/", "docs/reference/api/", "docs/reference/commands/")
#: What ends no sentence though a stop stands in it.
SHORT = re.compile(r"\b(e\.g|i\.e|etc|vs|al|Mr|Dr)\.")


def documents() -> list[Path]:
    """README and the other documents that are written by hand."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    found = [*top, *sorted((ROOT / "docs").rglob("*.md"))]
    return [p for p in found if not p.relative_to(ROOT).as_posix().startswith(GENERATED)]


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs and items of lists with the line where each begins."""
    text = re.sub(r"\A---\n.*?\n---\n", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(
        r"^(```|:::+)[^\n]*\n.*?^\1[`:]*$|<!-- \w+: begin.*?: end -->|<!--.*?-->|\$\$.*?\$\$",
        lambda m: "\n" * m[0].count("\n"),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    start, lines = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        begins = re.match(r"\s*([-*]|\d+\.) ", line)
        if not line.strip() or begins or line.startswith(("|", "#", "    ")):
            if lines:
                yield start, " ".join(lines)
            lines = []
        if line.strip() and not line.startswith(("|", "#")):
            start = start if lines else number
            lines.append(line.strip())


def sentences(block: str) -> list[str]:
    """The sentences of a paragraph."""
    plain = re.sub(r"`[^`]*`|\$[^$]*\$", "code", block)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", SHORT.sub(r"\1", plain))
    return re.split(r"(?<=[.!?])[\"”)*]*\s+|(?<=[.!?])\*\*\s*|:\s*$", plain)


def n_words(sentence: str) -> int:
    """Words, of which code counts as one."""
    return len(re.findall(r"\w[\w'’–-]*", sentence))


def main() -> None:
    """List them, the longest first."""
    words = sys.argv[1:]
    limit = int(words.pop(0)) if words and words[0].isdigit() else LIMIT
    found = []
    for path in [Path(word).resolve() for word in words] or documents():
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for line, block in blocks(path.read_text(encoding="utf-8")):
            for sentence in sentences(block):
                if n_words(sentence) > limit:
                    found.append((n_words(sentence), f"{shown}:{line}", sentence))
    for n, place, sentence in sorted(found, key=lambda entry: -entry[0]):
        print(f"{place}: {n} words: {sentence}")
    print(f"{len(found)} sentences above {limit} words")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
