"""Pages whose Python and shell blocks are run when the site is built, with what they print.

The sources are plain Markdown, readable anywhere. A page asks for it at its top:

    ---
    executed: true
    needs: [torch]
    ---

Its blocks of ``python`` then become cells of one notebook, and those of ``sh`` are run by bash in
a folder of the page's own. Words after the language are tags of the cell, such as `remove-output`.
A block of another tool, ``python before`` or ``sh before``, and the one that follows it stand side
by side.
If a package that the page needs is not installed, the page is shown as it is, with a note.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import yaml
from sphinx.application import Sphinx

HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
FENCE = re.compile(r"^```(python|sh)\b([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INSIDE = r"((?:(?!```).*\n)*)"  # lines up to the end of a block
SIDES = re.compile(
    rf"^```(python|sh) before\n{INSIDE}```\n\n(```(?:python|sh)\n{INSIDE}```)$", re.MULTILINE
)
NOTEBOOK = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n"
#: Documents outside of this folder that are pages of the site.
OUTSIDE = {
    "benchmarks/README.md": "project/benchmarks.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "SECURITY.md": "project/security.md",
    "README.md": "index.md",
}
RUN = """import subprocess as _process
_done = _process.run(["bash", "-c", {!r}], stdout=-1, stderr=-2, text=True)
print(_done.stdout, end="")
_done.check_returncode()"""
COPIES = {page.removesuffix(".md"): file for file, page in OUTSIDE.items() if "/" in page}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
ROOT = Path(__file__).parents[2]


def front_matter(text: str) -> tuple[dict[str, object], str]:
    """What a page says of itself, and the rest of it."""
    head = HEAD.match(text)
    return (yaml.safe_load(head[1]) or {}, text[head.end() :]) if head else ({}, text)


def missing(head: dict[str, object]) -> list[str]:
    """The packages that a page needs and that are not installed."""
    return [name for name in head.get("needs", []) if importlib.util.find_spec(name) is None]


def cell(match: re.Match[str]) -> str:
    """A block as a cell; shell commands are shown as they are, and what they print follows."""
    language, words, source = match.groups()
    tags = words.split()
    if language == "python":
        option = f":tags: [{', '.join(tags)}]\n\n" if tags else ""
        return f"```{{code-cell}} python\n{option}{source}```"
    shown = f"```sh\n{source}```\n\n"
    # A kernel tells programs that colours are wanted.
    script = f"set -euo pipefail; unset FORCE_COLOR CLICOLOR_FORCE CLICOLOR\n{source}"
    option = f":tags: [{', '.join(['remove-input', *tags])}]\n\n"
    return f"{shown}```{{code-cell}} python\n{option}{RUN.format(script)}\n```"


def side_by_side(match: re.Match[str]) -> str:
    """Code of another tool to the left, ours to the right."""
    language, theirs, ours, _ = match.groups()
    return (
        ":::::{grid} 1 1 2 2\n:gutter: 2\n\n"
        f"::::{{grid-item}}\n**before**\n\n```{language}\n{theirs}```\n::::\n\n"
        f"::::{{grid-item}}\n**with chordal**\n\n{ours}\n::::\n:::::"
    )


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Make a notebook of a page that asks for it, and keep links within the site."""
    path = Path(app.env.doc2path(name))
    if path.suffix != ".md":
        return
    if name in COPIES:
        path = ROOT / COPIES[name]
        source[0] = path.read_text(encoding="utf-8")
        app.env.note_dependency(str(path))
    head, body = front_matter(source[0])
    if head.get("executed"):
        lacking = missing(head)
        if lacking:
            said = f":::{{note}}\nBuilt without {', '.join(lacking)}: nothing here was run.\n:::\n"
            title, _, rest = body.lstrip().partition("\n")
            body = f"{title}\n\n{said}\n{rest}"
        else:
            body = NOTEBOOK + FENCE.sub(cell, body)
        source[0] = body
    source[0] = SIDES.sub(side_by_side, source[0])
    source[0] = LINK.sub(lambda match: _within(path.parent, match), source[0])


def _within(folder: Path, match: re.Match[str]) -> str:
    """A link to a document that is a page of the site, or to something in its folder."""
    target, anchor = match[1], match[2] or ""
    found = (folder / target).resolve()
    if "//" in target or not found.is_relative_to(ROOT) or not found.exists():
        return match[0]
    place = found.relative_to(ROOT).as_posix()
    if place in OUTSIDE:
        return f"](/{OUTSIDE[place]}{anchor})"
    inside = place.startswith("docs/") and not folder.is_relative_to(ROOT / "docs")
    return f"](/{place.removeprefix('docs/')}{anchor})" if inside else match[0]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
