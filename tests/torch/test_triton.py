"""The kernels for CUDA: in Triton's interpreter, and compiled for a device that is not here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from chordal.torch import _operators, _tangents
from chordal.torch._scores import Scores

CASES = Path(__file__).with_name("triton_cases.py")


def test_equal_to_plain_pytorch(tmp_path):
    """In a process of its own: the interpreter is chosen when kernels are imported."""
    pytest.importorskip("triton", reason="Triton is not installed")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(CASES)], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    checks = [line for line in CASES.read_text().splitlines() if line.startswith("def test_")]
    assert len(done.stdout.split()) == len(checks) > 0


COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from chordal.torch import _triton_kernels

POINTERS = {"codes": "*i8", "tags": "*i64", "pointers": "*i16", "best": "*i64"}
for name in "emissions start end tables totals lefts weights marginals pairs scores".split():
    POINTERS[name] = "*fp32"
for name, constants in (
    ("forward", {"WITH_TAGS": True, "KEEP": True, "BLOCK": 16}),
    ("backward", {"WITH_TAGS": True, "EACH_STEP": False, "BLOCK": 16}),
    ("backward", {"WITH_TAGS": False, "EACH_STEP": True, "BLOCK": 16}),
    ("viterbi", {"BLOCK": 16}),
):
    kernel = getattr(_triton_kernels, name)
    names = kernel.arg_names
    types = {n: "constexpr" if n in constants else POINTERS.get(n, "i32") for n in names}
    values = {(names.index(n),): value for n, value in constants.items()}
    made = triton.compile(ASTSource(kernel, types, values), target=GPUTarget("cuda", 80, 32))
    print(name, len(made.asm["ptx"]))
"""


def test_compiled_for_cuda(tmp_path):
    pytest.importorskip("triton", reason="Triton is not installed")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode and "_triton_kernels.py" not in done.stderr:
        pytest.skip(f"this Triton has no compiler for CUDA: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "forward",
        "backward",
        "backward",
        "viterbi",
    ]


@pytest.mark.parametrize("tying", [(1, 1), (3, 1), (3, 7)])
def test_changes_without_autograd(tying):
    """The second derivative on CUDA is plain PyTorch; the compiled kernel's is the measure."""
    torch.manual_seed(0)
    batch, steps, labels = 3, 7, 5
    wide = {"dtype": torch.float64}
    emissions, (start, end) = torch.randn(batch, steps, labels, **wide), torch.randn(2, 5, **wide)
    tables = torch.randn(*tying, labels, labels, **wide)
    start[1] = tables[..., 0, 1] = -torch.inf
    mask = torch.rand(batch, steps) < 0.7
    tags = torch.full((batch, steps), -100)
    tags[:, 3] = 2
    scores = Scores(emissions, start, end, tables, mask)
    weight, direction = torch.randn(batch, **wide), [torch.randn_like(x) for x in scores[:4]]
    for given in (None, tags):
        wanted = _operators.chain_curvature(*scores, given, -100, weight, *direction)
        found = _tangents.curvature(scores, given, -100, weight, *direction)
        for ours, kernel in zip(found, wanted, strict=True):
            assert_close(ours, kernel)


def test_kernels_where_there_are_none():
    assert _operators.kernels_serve("cpu", 1000)
    assert not _operators.kernels_serve("cuda", _operators.MOST_TAGS + 1)
    assert not _operators.kernels_serve("meta", 3)
