"""Small data for the comparison with other tools, and the tools themselves where they are."""

import os
import random
import subprocess
from pathlib import Path

import pytest

AWKWARD = ["", ":", "a:b", "back\\slash", "c:\\d:", "ünïcode", "日本", "😀", "tab\there", " ", "#"]


@pytest.fixture(scope="session")
def sentences():
    """(X, y): named attributes, some awkward, and labels drawn at random."""
    draw = random.Random(5)
    X = [
        [
            [f"w={draw.randrange(40)}", f"p={draw.randrange(5)}", draw.choice(AWKWARD)]
            for _ in range(draw.randrange(1, 9))
        ]
        for _ in range(80)
    ]
    return X, [[draw.choice(["B-NP", "I-NP", "O", "é"]) for _ in x] for x in X]


@pytest.fixture(scope="session")
def peer():
    """Runs a tool of the folder that CHORDAL_PEERS names, and returns what it prints."""
    folder = os.environ.get("CHORDAL_PEERS")
    if not folder:
        pytest.skip("CHORDAL_PEERS names no folder with crfsuite, crf_learn, crf_test, wapiti")

    def run(tool, *arguments, text=None):
        path = Path(folder) / tool
        if not path.exists():
            pytest.skip(f"CHORDAL_PEERS has no {tool}")
        done = subprocess.run(
            [path, *map(str, arguments)],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=300,
            check=True,
        )
        return done.stdout

    return run
