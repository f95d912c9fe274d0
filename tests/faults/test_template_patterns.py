"""Patterns of templates take time in proportion to the text, whatever they are."""

import random
import subprocess
import sys
import time

import pytest

from chordal.text import FeatureTemplate

CLASSES = {"a": str.isalpha, "d": str.isdecimal, "W": lambda c: not c.isalnum()}


def backtracking(elements, word, anchored, to_the_end):
    """What the first match is by trying everything in the order of preference, or None."""

    def here(k, p):
        if k == len(elements):
            return p if not to_the_end or p == len(word) else None
        kind, count = elements[k]
        fits = p < len(word) and (
            kind == "." or (CLASSES[kind[1]](word[p]) if kind[0] == "\\" else kind == word[p])
        )
        ways = [(k + 1, p + 1)] if fits else []
        if count == "*":
            ways = [(k + 1, p)] + ([(k, p + 1)] if fits else [])
        if count == "?":
            ways = [*ways, (k + 1, p)]
        for way in ways:
            end = here(*way)
            if end is not None:
                return end
        return None

    for first in range(1 if anchored else len(word) + 1):
        end = here(0, first)
        if end is not None:
            return word[first:end]
    return None


def test_matches_are_those_of_backtracking():
    rng = random.Random(0)
    for _ in range(3000):
        kinds = ["a", "b", "é", ".", r"\d", r"\a", r"\W"]
        elements = [
            (rng.choice(kinds), rng.choice("**??1 ").strip("1 ")) for _ in range(rng.randrange(6))
        ]
        word = "".join(rng.choice("abé1-") for _ in range(rng.randrange(8)))
        anchored, to_the_end = rng.random() < 0.4, rng.random() < 0.4
        pattern = "^" * anchored + "".join(k + c for k, c in elements) + "$" * to_the_end
        expected = backtracking(elements, word, anchored, to_the_end)
        template = FeatureTemplate(f'U:%m[0,0,"{pattern}"]\nU:%t[0,0,"{pattern}"]')
        found, seen = template.attributes([[word]])[0]
        assert (found, seen) == (f"U:{expected or ''}", f"U:{str(expected is not None).lower()}")


@pytest.mark.parametrize("dialect", ["crf++", "wapiti"])
@pytest.mark.parametrize(
    ("pattern", "word", "expected"),
    [
        ("^" + "a?" * 34 + "b$", "a" * 34, "false"),  # 2^34 ways
        ("a*" * 300 + "b", "a" * 3000, "false"),
        ("a?" * 500, "a" * 20_000, "true"),
        (".*" * 400 + "$", "x" * 5000, "true"),
    ],
)
def test_no_pattern_explodes(pattern, word, expected, dialect):
    template = FeatureTemplate(f'U:%t[0,0,"{pattern}"]', dialect)
    assert template.attributes([[word]]) == [[f"U:{expected}"]]


def test_longer_patterns_are_refused():
    with pytest.raises(ValueError, match="at most 1000 characters, got 400000"):
        FeatureTemplate('U:%m[0,0,"' + "a?" * 200_000 + '"]')


SLOW = """
import sys
from chordal.text import FeatureTemplate
template = FeatureTemplate('U:%t[0,0,"' + "a*" * 490 + 'b"]')
print("ready", flush=True)
try:
    template.attributes([["a" * 30_000_000]])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of another kind")
def test_ctrl_c_is_heard():
    run = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.5)
    run.send_signal(2)
    out, _ = run.communicate(timeout=60)
    assert out == "interrupted\n"
