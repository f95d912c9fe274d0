"""How the site sets formulas and names of code."""

import importlib
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
EXTENSIONS = Path(__file__).parents[2] / "docs" / "_extensions"


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    yield importlib.import_module
    for name in ("code_breaks", "mathml"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\log Z", "log_Z"),
        (r"p\log p", "p_log_p"),
        (r"(x)\log x", "(x)_log_x"),
        (r"x^2\exp y", "x2_exp_y"),
        (r"-\log x", "−log_x"),
        (r"\log(x)", "log(x)"),
        (r"\log\bigl(x\bigr)", "log(x)"),
        (r"\log\sum_i x", "log∑ix"),
    ],
)
def test_names_of_functions_stand_apart(extension, tex, text):
    made = extension("mathml").mathml(tex).replace("&ApplyFunction;", "")
    marked = re.sub(r"<mspace[^>]*></mspace>", "_", made)
    assert re.sub(r"<[^>]*>|\s", "", marked) == text


@pytest.mark.parametrize("accent", ["hat", "bar", "tilde"])
def test_a_subscript_stands_beside_an_accented_letter(extension, accent):
    made = extension("mathml").mathml(rf"\{accent} y_t + \sum_{{i=1}}^n x_i")
    (own,) = re.findall(r"<msub>\s*<mover.*?</mover>.*?</msub>", made, flags=re.DOTALL)
    assert re.findall(r"<mi>(.)</mi>", own) == ["y", "t"]
    assert made.count("<munderover>") == 1  # that of the sum


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("chordal.metrics.chunk_f1", "chordal.|metrics.|chunk_|f1"),
        ("tests/test_oracle.py::test_it", "tests/|test_|oracle.|py::|test_|it"),
        ("n_iter_no", "n_iter_no"),
        ("https://example.org/a", "https://example.|org/|a"),
    ],
)
def test_long_names_break_where_their_parts_end(extension, word, expected):
    broken = extension("code_breaks").broken
    page = '<code class="docutils literal"><span class="pre">{}</span></code>'
    assert broken(page.format(word)) == page.format(expected.replace("|", "<wbr>"))
    plain = f'<pre><span class="pre">{word}</span></pre>'
    assert broken(plain) == plain


def test_options_stay_on_one_line(extension):
    page = '<code class="docutils literal"><span class="pre">{}</span></code>'
    found = extension("code_breaks").broken(page.format("--n-iter-no-change"))
    assert 'class="pre option"' in found
    assert "<wbr>" not in found
    assert 'class="pre"' in extension("code_breaks").broken(page.format("no-option"))
