"""Small files do not become large models: what they ask for is bounded by their size."""

import gzip
import io
import resource
import subprocess
import sys

import pytest

from chordal._errors import FormatError
from chordal.formats import uai

SCOPE = " ".join(map(str, range(400_000)))
HOSTILE = {
    "fg": b"1 1 99999999 2 1 0 1.0",
    "fg, two": b"2 1 99999990 2 1 0 1.0 1 0 2 1 0 1.0",
    "fg, cells": b"1 3 0 1 2 400 400 400 1 0 1.0",
    "uai": f"MARKOV 400000 {'2 ' * 400_000} 1 400000 {SCOPE} 4 1 1 1 1".encode(),
    "uai, labels": b"MARKOV 1 99999999 0",
    "uai.gz": gzip.compress(b"MARKOV 9 " + b"10 " * 40_000_000),
    "wcsp": f"n 400000 2 1 9 {'2 ' * 400_000} 400000 {SCOPE} 0 0".encode(),
    "wcsp, cells": b"n 3 400 1 9 400 400 400 3 0 1 2 0 0",
    "cfn": b'{problem: {mustbe: "<9"}, variables: {x: 99999999}, functions: {}}',
    "cfn, cells": b'{problem: {mustbe: "<9"}, variables: {x: 400 y: 400 z: 400},'
    b"functions: {f: {scope: [x y z] defaultcost: 0 costs: []}}}",
}

READ = """
import io, resource, sys
from chordal._errors import FormatError
from chordal.formats import uai
read = getattr(uai, "read_" + sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(io.BytesIO(sys.stdin.buffer.read()))
except FormatError as error:
    print("refused", len(str(error)) < 500)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_small_file_cannot_need_is_refused(kind):
    data = HOSTILE[kind]
    ran = subprocess.run(
        [sys.executable, "-c", READ, kind.split(",")[0].removesuffix(".gz")],
        input=data,
        capture_output=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    outcome, grown = ran.stdout.decode().splitlines()
    assert outcome == "refused True"
    kilobytes = int(grown) / (1024 if sys.platform == "darwin" else 1)
    assert kilobytes < 600_000  # most of it for the words of the largest of these files
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > 0.0


def test_small_models_with_large_tables_are_read():
    p = uai.read_fg(io.BytesIO(b"1 2 0 1 900 900 1 0 1.0"))
    assert len(p.tables) == 810_000


@pytest.mark.parametrize("word", ["-1e-400", "-1e-999999", "-0.0"])
def test_negative_numbers_that_are_nearly_zero(word):
    text = f"MARKOV 1 2 1 1 0 2 1 {word}".encode()
    if word == "-0.0":
        assert uai.read_uai(io.BytesIO(text)).unary[1] == -float("inf")
        return
    with pytest.raises(FormatError, match=f"must not be negative, got '{word}'"):
        uai.read_uai(io.BytesIO(text))
