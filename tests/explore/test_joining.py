"""How the files of the page become one."""

import re
from html.parser import HTMLParser

import pytest

from chordal.explore import _joining


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_policy_lets_nothing_out(tagged):
    html = tagged[-1]
    elements = Elements()
    elements.feed(html)
    policies = [
        a["content"]
        for tag, a in elements.found
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    rules = dict(rule.strip().split(" ", 1) for rule in policies[0].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert set(rules) == {
        "default-src",
        "script-src",
        "style-src",
        "img-src",
        "base-uri",
        "form-action",
    }
    assert all(
        re.fullmatch(r"'sha256-[\w+/=]+'", rules[key]) for key in ("script-src", "style-src")
    )


def test_no_address_and_no_inline_handler(tagged):
    elements = Elements()
    elements.feed(tagged[-1])
    for _, attributes in elements.found:
        assert not {"src", "href", "style"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)


def test_text_never_becomes_html():
    script = _joining.script()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
    ):
        assert word not in script
    assert "</" not in script
    assert "<!--" not in script


def test_modules_follow_what_they_import(tmp_path, monkeypatch):
    (tmp_path / "main.js").write_text('import { f } from "./other.js";\nconst MOST = f();\n')
    (tmp_path / "other.js").write_text("const MOST = 2;\nexport function f() { return MOST; }\n")
    monkeypatch.setattr(_joining, "FOLDER", tmp_path)
    joined = _joining.script.__wrapped__()
    assert joined.index("other_module =") < joined.index("main_module =")
    assert "export" not in joined
    assert "import" not in joined


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"main": 'import { f } from "./main.js";\n'}, "import cycle: main → main"),
        ({"main": "", "alone": ""}, "no module imports alone.js"),
    ],
)
def test_modules_that_cannot_be_joined(tmp_path, monkeypatch, files, message):
    for name, text in files.items():
        (tmp_path / f"{name}.js").write_text(text)
    monkeypatch.setattr(_joining, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=message):
        _joining.script.__wrapped__()
