"""Sentences above 30 words and phrases to avoid in docstrings and messages.

    python tools/prose.py                  # all of them, and how many there are, by package
    python tools/prose.py solvers cli      # those of some packages

Messages are the strings of errors and warnings, and the help texts of the command line.
Code, formulas, tables and doctests are not read. A `{value}` in a message counts as one word.
`long_sentences.py` does the same for documents.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _sources import modules, table
from long_sentences import LIMIT, n_words, sentences

#: What a reader has to decode, as regular expressions.
AVOID = [
    r"(each|every|after|of|at most|by) so many",
    r"to be had",
    r"(is|are|was|were) let go",
    r"of (one|its|their|your)('s)? own",
    r"(?<!there )(is|are) no(?! longer)",
    r"met before",
    r"(was|were|is|are) met",
    r"the (one|ones|line) before",
    r"up to, without",
    r"nobody",
    r"no telling",
    r"by itself",
    r"by themselves",
    r"what (is|was|are|were) (chosen|asked|known|meant|left|needed)",
    r"without rows",
    r"marginals only",
    r"stands? for",
    r"(has|have|had) to (fear|do with)",
    r"who worked",
    r"(the|a) fit before",
    r"as good as (the|that|those)",
    r"goes? on",
    r"takes? (the place|part)",
    r"a road",
    r"wants? (a|an|the|no)\b",
    r"knows (no|nothing|of)\b",
]
AVOIDED = re.compile(r"\b(" + "|".join(AVOID) + r")\b", re.IGNORECASE)

#: What may follow the references of a docstring.
SECTIONS = {"Examples", "Notes", "Attributes", "Raises"}
#: A piece of text with the line where it starts.
Text = tuple[int, str]


def texts(tree: ast.Module) -> Iterator[Text]:
    """The docstrings and the messages of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node) is not None:
                own = node.body[0]
                if isinstance(own, ast.Expr) and isinstance(own.value, ast.Constant):
                    yield own.lineno, str(own.value.value)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rsplit(".", 1)[-1]
            if re.search(r"(Error|Warning|warn|Exit|fail|refuse|note)$", called):
                yield from (text for argument in node.args for text in strings(argument))
            for keyword in node.keywords:
                if keyword.arg in {"help", "description", "epilog"}:
                    yield from strings(keyword.value)


def strings(node: ast.expr) -> Iterator[Text]:
    """The strings of an expression, with `{}` in place of their values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield node.lineno, "".join(str(part) for part in parts)
    elif isinstance(node, ast.BinOp | ast.IfExp):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from strings(child)


def paragraphs(text: str, first: int) -> Iterator[Text]:
    """Runs of lines that are prose: no code, table, heading, doctest, reference or list marker.

    The line "name : type" of a parameter is apart from its description. After a paragraph that
    ends with a colon and a blank line, what is indented further is a formula or a drawing.
    """
    lines = [*text.split("\n"), ""]
    margin = min((_indent(line) for line in lines[1:] if line.strip()), default=0)
    found: list[str] = []
    start, fenced, doctest, cited = first, False, False, False
    depth, colon, inset = 0, False, False  # of the last line of prose; within an indented block
    for number, raw in enumerate(lines, first):
        line = raw.strip()
        indent = _indent(raw) if number > first else margin
        doctest = line.startswith(">>>") or (doctest and bool(line))
        fence = line.startswith("```")
        fenced ^= fence
        cited = line == "References" or (cited and line not in SECTIONS)
        if line:
            inset = indent > depth and (inset or (colon and not found))
        skipped = fence or fenced or doctest or cited or inset or not line
        skipped = skipped or re.match(r"[-=|#]{3,}|[|#]|\*?[\w, *]+ : ", line)
        item = re.match(r"([-*]|\d+\.) ", line)
        if found and (skipped or item):
            yield start, " ".join(found)
            found = []
        if not skipped:
            start = start if found else number
            depth, colon = indent, line.endswith(":")
            found.append(line)
    assert not found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def findings(text: str, first: int) -> Iterator[Text]:
    """What is wrong in a text, by line."""
    for line, paragraph in paragraphs(text, first):
        for sentence in sentences(paragraph):
            if n_words(sentence) > LIMIT:
                yield line, f"{n_words(sentence)} words: {sentence}"
            for match in AVOIDED.finditer(sentence):
                yield line, f"{match[0]!r}: {sentence}"


def sources(wanted: set[str]) -> Iterator[tuple[str, Path, list[Text]]]:
    """The package, the path and the texts of each file."""
    for package, path, tree in modules():
        if not wanted or package in wanted:
            yield package, path, list(texts(tree))


def main() -> None:
    """List what was found, and count."""
    counts: Counter[str] = Counter()
    for package, path, found in sources(set(sys.argv[1:])):
        counts[package] += 0
        for first, text in found:
            for line, problem in findings(text, first):
                counts[package] += 1
                print(f"{path}:{line}: {problem}")
    table({k: [str(v)] for k, v in {**counts, "all": counts.total()}.items()}, ["where", "found"])
    sys.exit(bool(counts.total()))


if __name__ == "__main__":
    main()
