"""One page of HTML from the files of the folder `page`, and the policy that keeps it to itself."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "page"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:const|class|(?:async )?function) (\w+))", re.MULTILINE)


@cache
def script() -> str:
    """The modules as one, each after those that it imports from.

    A module becomes a function that is called once and returns what the module exports.
    """
    sources = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.js"))}
    placed: dict[str, str] = {}

    def place(name: str, way: tuple[str, ...] = ()) -> None:
        if name in placed:
            return
        if name in way:
            raise ValueError(f"import cycle: {' → '.join((*way, name))}")
        for _, other in _IMPORT.findall(sources[name]):
            place(other, (*way, name))
        placed[name] = _as_function(name, sources[name])

    place("main")
    unused = sorted(sources.keys() - placed.keys())
    if unused:
        raise ValueError(f"no module imports {unused[0]}.js")
    return "\n".join(placed.values())


def _as_function(name: str, source: str) -> str:
    exports = ", ".join(own for _, own in _EXPORT.findall(source))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = \2_module;", source)).strip()
    return f"const {name}_module = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"


@cache
def style() -> str:
    """The style sheets, one after another."""
    return "\n".join(path.read_text("utf-8") for path in sorted(FOLDER.glob("*.css")))


def policy() -> str:
    """The security policy: only the scripts and styles of the page itself, images, no network."""
    return (
        f"default-src 'none'; script-src {_digest(script())}; style-src {_digest(style())}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def joined(title: str, blocks: Mapping[str, str]) -> str:
    """The page with these blocks of data, by their names.

    The first block stands before the script, which need not wait for the others to be read.
    """
    first, *rest = (
        f'<script type="application/octet-stream" id="block-{name}">{text}</script>'
        for name, text in blocks.items()
    )
    parts = {
        "title": html.escape(_encodable(title)),
        "policy": html.escape(policy(), quote=True),
        "style": style(),
        "script": script(),
        "first": first,
        "blocks": "\n".join(rest),
    }
    frame = (FOLDER / "frame.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], frame)


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
